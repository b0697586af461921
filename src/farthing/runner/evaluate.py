"""One call of the objective, turned into an outcome or into steps, whatever it does."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from farthing.checks import plain, read_cost, read_value
from farthing.errors import InvalidArgument
from farthing.trial import Config, Outcome, Status


@dataclass(frozen=True)
class Evaluation:
    """An outcome, the cost the objective reported for it (None: measure it), and what else it returned."""

    outcome: Outcome
    cost: float | None = None
    attributes: Mapping[str, Any] = field(default_factory=dict)


def evaluate(objective: Callable[[Config], Any], config: Config) -> Evaluation | Iterator[Any]:
    """Call the objective; exceptions, wrong types and numbers that are not finite become failures.

    What returns an iterator is an iterative learner, and the iterator its steps. KeyboardInterrupt is the user's and
    goes through.
    """
    process = os.getpid()
    try:
        returned = objective(dict(config))
        _end_a_fork(process)
        return cast(Iterator[Any], returned) if hasattr(returned, "__next__") else read(returned)
    except (Exception, SystemExit) as error:
        _end_a_fork(process, error)
        return failure(error)


def next_step(steps: Iterator[Any]) -> Evaluation | None:
    """Pull one step of an iterative learner; None when it has no more."""
    process = os.getpid()
    try:
        step = next(steps)
        _end_a_fork(process)
        return read(step)
    except StopIteration:
        _end_a_fork(process)
        return None
    except (Exception, SystemExit) as error:
        _end_a_fork(process, error)
        return failure(error)


def _end_a_fork(process: int, error: BaseException | None = None) -> None:
    """A process that the objective forked, and that comes back from it by `sys.exit()` or an error, ends here: else
    there would be two runs."""
    if os.getpid() == process:
        return
    code = error.code if isinstance(error, SystemExit) else error and 1
    sys.stdout.flush()
    os._exit(code if isinstance(code, int) else int(code is not None))


def failure(error: BaseException) -> Evaluation:
    """What an exception makes of an evaluation."""
    return Evaluation(Outcome(Status.FAILED, error=_error_text(error)))


def read(returned: Any) -> Evaluation:
    """What the objective returned or yielded."""
    if not isinstance(returned, Mapping):
        return Evaluation(read_value(returned))
    rest = {str(name): plain(item) for name, item in returned.items() if name not in ("value", "cost")}
    if "value" not in returned:
        error = f"the objective's dict has no 'value', only {', '.join(map(repr, returned)) or 'nothing'}"
        return Evaluation(Outcome(Status.FAILED, error=error), attributes=rest)
    outcome, cost = read_value(returned["value"]), returned.get("cost")
    if cost is None:
        return Evaluation(outcome, attributes=rest)
    try:
        return Evaluation(outcome, read_cost(cost), rest)
    except InvalidArgument as error:
        return Evaluation(Outcome(Status.FAILED, error=str(error)), attributes=rest)


def _error_text(error: BaseException) -> str:
    """The error in its last line, the way there above it, without our own frame."""
    frames = error.__traceback__.tb_next if error.__traceback__ else None
    return "".join(traceback.format_exception(type(error), error, frames)).strip()
