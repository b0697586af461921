"""`farthing control`: ask the process that runs a study to pause, resume or stop, for another budget, or to evaluate a
configuration next. It never writes to the study's file: the run does, once it has answered."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, NoReturn

import click

from farthing.cli.group import DEBUG, JSON, STUDY, group
from farthing.cli.streams import json_for, show
from farthing.errors import InvalidArgument
from farthing.record.mailbox import ACTIONS, BUDGET, ENQUEUE

if TYPE_CHECKING:
    from farthing.record.mailbox import Request


@group.command()
@STUDY
@click.argument("action", metavar="ACTION", type=click.Choice(ACTIONS), required=False)
@click.argument("value", metavar="[VALUE]", required=False)
@JSON
@DEBUG
def control(study: str, action: str | None, value: str | None, as_json: bool) -> None:
    """Ask a running study to pause, resume, stop, change its budget or evaluate a configuration next.

    The process that runs the study answers within a second, or once its evaluation has ended. What came of it is in the
    study's file. Only the owner of the file can ask. With nobody running it, a new budget and configurations wait for
    the next run.

    \b
    farthing control s.db pause
    farthing control s.db resume
    farthing control s.db stop
    farthing control s.db budget 20m
    farthing control s.db enqueue '{"lr": 0.01, "depth": 3}'
    farthing control s.db enqueue lr=0.01,depth=3
    """
    from farthing.cli import formatting
    from farthing.record.lock import runner_of
    from farthing.record.mailbox import post, told

    if action is None:
        raise InvalidArgument(f"control: expected one of {', '.join(ACTIONS)}, as in: farthing control s.db pause")
    request = _request(study, action, value)
    request_id, runner = post(study, request), runner_of(study)
    said = told(request, runner)
    if as_json:
        found = {"id": request_id, **request.as_json(), "runner": runner, "said": said}
        show(json_for(sys.stdout, formatting.as_json(found)))
    else:
        show(said)


def _request(study: str, action: str, value: str | None) -> Request:
    """Checked as far as the study's file allows it; the run checks it again."""
    from farthing.record.mailbox import Request

    if (value is None) == (action in (BUDGET, ENQUEUE)):
        _refuse_value(action, value)
    if action == BUDGET:
        return _budget(study, str(value))
    return _config(study, str(value)) if action == ENQUEUE else Request(action)


def _refuse_value(action: str, value: str | None) -> NoReturn:
    if value is not None:
        raise InvalidArgument(f"{action}: expected nothing more, got {value!r}")
    example = "20m" if action == BUDGET else "lr=0.01,depth=3"
    raise InvalidArgument(f"{action}: expected a value, as in: farthing control s.db {action} {example}")


def _budget(study: str, text: str) -> Request:
    from farthing.budget import Budget
    from farthing.record.mailbox import Request
    from farthing.record.reader import read_study
    from farthing.record.settings import require_more_than_spent

    request = Request(BUDGET, budget=text)
    require_more_than_spent(read_study(study).ledger, Budget.of(text))
    return request


def _config(study: str, text: str) -> Request:
    from farthing.cli.start import start_configs
    from farthing.record.mailbox import Request
    from farthing.record.reader import read_study
    from farthing.text.plain import plain

    configs = start_configs([text], read_study(study).record.space, ENQUEUE)
    if len(configs) != 1:
        raise InvalidArgument(f"{ENQUEUE}: expected one configuration, got {len(configs)}")
    return Request(ENQUEUE, config=plain(configs[0]))
