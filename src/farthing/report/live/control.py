"""Requests to the process that runs a study, as the page sends them: checked, and put into the study's mailbox.

This server writes nothing else. The run, which is the only one to write to the study's file, takes requests out,
applies and records them; with no run they wait for the next one.
"""

from __future__ import annotations

import json
from typing import Any, NoReturn

from farthing.budget import Budget
from farthing.errors import FarthingError, InvalidArgument
from farthing.record.lock import runner_of
from farthing.record.mailbox import Request, post, told
from farthing.record.settings import checked_config, require_more_than_spent
from farthing.report.live.answers import Answer, error_answer, json_answer
from farthing.report.live.studies import LiveStudy
from farthing.report.live.watching import words_of
from farthing.session import Session


def posted(study: LiveStudy, body: bytes) -> Answer:
    """Put the request of a page into the mailbox of a study, and say what becomes of it."""
    look = study.file.condition.look
    try:
        request = request_in(body)
        if look is not None:
            _check(request, look.session)
        post(study.path, request)
    except FarthingError as error:
        return error_answer(400, words_of(error, study.path, study.name))
    return json_answer({"accepted": True, "said": told(request, runner_of(study.path))})


def _check(request: Request, session: Session) -> None:
    """As far as the study is known here; the run checks it again."""
    if request.config is not None:
        checked_config("config", session.space, dict(request.config))
    if request.budget is not None:
        require_more_than_spent(session.ledger, Budget.of(request.budget))


def request_in(body: bytes) -> Request:
    """The request in a body of any origin.

    >>> request_in(b'{"action": "budget", "budget": "20m"}')
    Request(action='budget', budget='20m', config=None)
    """
    try:
        given = json.loads(body, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise InvalidArgument("request: expected JSON") from error
    return Request.from_json(given)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(name)


def state(changes: bool) -> dict[str, Any]:
    """Whether the page may offer any of this."""
    return {"enabled": changes}
