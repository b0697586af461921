"""One call of the objective: whatever it does becomes an outcome, or an iterator of steps."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, cast

from farthing.checks import plain, read_cost, read_value
from farthing.errors import InvalidArgument
from farthing.trial import Config, Outcome, Status


def evaluate(objective: Callable[[Config], Any], config: Config) -> Outcome | Iterator[Any]:
    """Call the objective. Exceptions, values of a wrong type and numbers that are not finite become failures.

    If the objective returns an iterator it is an iterative learner, and the iterator yields its steps.
    KeyboardInterrupt comes from the user and passes through.
    """
    process = os.getpid()
    try:
        returned = objective(dict(config))
        _exit_if_forked(process)
        return cast(Iterator[Any], returned) if hasattr(returned, "__next__") else as_outcome(returned)
    except (Exception, SystemExit) as error:
        _exit_if_forked(process, error)
        return failure(error)


def next_step(steps: Iterator[Any]) -> Outcome | None:
    """Do one step of an iterative learner; None when it has no more."""
    process = os.getpid()
    try:
        step = next(steps)
        _exit_if_forked(process)
        return as_outcome(step)
    except StopIteration:
        _exit_if_forked(process)
        return None
    except (Exception, SystemExit) as error:
        _exit_if_forked(process, error)
        return failure(error)


def _exit_if_forked(process: int, error: BaseException | None = None) -> None:
    """End a process that the objective forked and that returns from the objective: it would go on as a second run."""
    if os.getpid() == process:
        return
    code = error.code if isinstance(error, SystemExit) else error and 1
    sys.stdout.flush()
    os._exit(code if isinstance(code, int) else int(code is not None))


def failure(error: BaseException) -> Outcome:
    """The outcome of an evaluation that raised an exception."""
    return Outcome(Status.FAILED, error=_error_text(error))


def as_outcome(returned: Any) -> Outcome:
    """What the objective returned or yielded: a value, or a dict with "value", perhaps "cost", and attributes. Without
    a cost it is measured."""
    if not isinstance(returned, Mapping):
        return read_value(returned)
    rest = {str(name): plain(item) for name, item in returned.items() if name not in ("value", "cost")}
    if "value" not in returned:
        error = f"the objective's dict has no 'value', only {', '.join(map(repr, returned)) or 'nothing'}"
        return Outcome(Status.FAILED, error=error, attributes=rest)
    outcome, cost = replace(read_value(returned["value"]), attributes=rest), returned.get("cost")
    try:
        return outcome if cost is None else replace(outcome, cost=read_cost(cost))
    except InvalidArgument as error:
        return Outcome(Status.FAILED, error=str(error), attributes=rest)


def _error_text(error: BaseException) -> str:
    """The traceback without our own frame; its last line is the error."""
    frames = error.__traceback__.tb_next if error.__traceback__ else None
    return "".join(traceback.format_exception(type(error), error, frames)).strip()
