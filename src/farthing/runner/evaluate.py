"""One call of the objective: whatever it does becomes an outcome, or an iterator of steps."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, cast

from farthing.checks import read_cost, read_value
from farthing.errors import InvalidArgument, TrainingStopped
from farthing.runner.interrupts import Terminated
from farthing.runner.reports import YIELDS, Reports
from farthing.text.plain import cut_text, kept_attributes, shown, text_of
from farthing.trial import Config, Outcome, Status


class WorkerTerminated(BaseException):
    """SIGTERM arrived inside the objective, in a worker process.

    It is not `Terminated`: a study that the objective itself runs would catch that one and go on.
    """


SIGNALS = (KeyboardInterrupt, Terminated, WorkerTerminated)  # which are no answer of the objective's


def evaluate(
    objective: Callable[[Config], Any], config: Config, reports: Reports
) -> Outcome | Iterator[Any] | None:  # fmt: skip
    """Call the objective. Exceptions, values of a wrong type and numbers that are not finite become failures.

    If the objective returns an iterator it is an iterative learner, and the iterator yields its steps. None: it has
    reported its steps, and there are no more. Only signals pass through: any other BaseException, such as
    `asyncio.CancelledError`, is a failure too.
    """
    process = os.getpid()
    try:
        returned = objective(dict(config))
        _exit_if_forked(process)
        return _read(returned, reports)
    except SIGNALS:
        raise
    except BaseException as error:
        _exit_if_forked(process, error)
        ended = isinstance(error, TrainingStopped) and reports.is_iterative
        return None if ended else failure(error)


def _read(returned: Any, reports: Reports) -> Outcome | Iterator[Any] | None:
    if hasattr(returned, "__next__"):
        if reports.any:
            return Outcome(Status.FAILED, error=f"report: {YIELDS}")
        reports.refuse(YIELDS)
        return cast(Iterator[Any], returned)
    return None if reports.is_iterative else as_outcome(returned)


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
    except SIGNALS:
        raise
    except BaseException as error:
        _exit_if_forked(process, error)
        return failure(error)


def _exit_if_forked(process: int, error: BaseException | None = None) -> None:
    """End a process that the objective forked and that returns from the objective: it would go on as a second run."""
    if os.getpid() == process:
        return
    code = error.code if isinstance(error, SystemExit) else error and 1
    flush_output()
    os._exit(code if isinstance(code, int) else int(code is not None))


def flush_output() -> None:
    """Write what was printed."""
    for name in ("stdout", "stderr"):
        with suppress(Exception):  # closed, deleted, or replaced by any object
            getattr(sys, name).flush()


def close_steps(steps: Iterator[Any] | None) -> BaseException | None:
    """Let an iterative learner clean up; the error if it raises one."""
    try:
        getattr(steps, "close", lambda: None)()
    except SIGNALS:
        raise
    except BaseException as error:
        return error
    return None


def failure(error: BaseException) -> Outcome:
    """The outcome of an evaluation that raised an exception."""
    return Outcome(Status.FAILED, error=_error_text(error))


def as_outcome(returned: Any) -> Outcome:
    """What the objective returned or yielded: a value, or a dict with "value", perhaps "cost", and attributes. Without
    a cost it is measured."""
    if not isinstance(returned, Mapping):
        return read_value(returned)
    rest = kept_attributes({name: item for name, item in returned.items() if name not in ("value", "cost")})
    if "value" not in returned:
        error = cut_text(f"the objective's dict has no 'value', only {', '.join(map(shown, returned)) or 'nothing'}")
        return Outcome(Status.FAILED, error=error, attributes=rest)
    outcome, cost = replace(read_value(returned["value"]), attributes=rest), returned.get("cost")
    try:
        return outcome if cost is None else replace(outcome, cost=read_cost(cost))
    except InvalidArgument as error:
        return Outcome(Status.FAILED, error=str(error), attributes=rest)


def _error_text(error: BaseException) -> str:
    """The traceback without our own frame; its last line is the error. One that never has a traceback says all of it
    in words (a program that failed, see cli/program_output.py)."""
    if error.__traceback__ is None:
        return text_of(error) or type(error).__name__
    frames = error.__traceback__.tb_next
    try:
        text = "".join(traceback.format_exception(type(error), error, frames)).strip()
    except Exception:  # an exception of the user's own may raise others when it is looked at
        text = ""
    return cut_text(text or type(error).__name__)
