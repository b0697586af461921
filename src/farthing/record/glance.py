"""The best value over cost of a study file, at a glance: before it is read, so that the live page shows something soon.

A glance reads of each event only what the figure needs, and checks neither the chain of checksums nor whether events
can have happened: it is provisional, until the file has been read (reader.py). It opens the file by the same rules,
changes nothing and executes nothing.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike

import numpy as np

from farthing.budget import Budget
from farthing.direction import Direction
from farthing.errors import FarthingError, StorageError
from farthing.history.columns import bought
from farthing.numerics.arrays import Array, Mask
from farthing.record.added import Added
from farthing.record.events import Asked, Ended, least_of, sum_of
from farthing.record.lock import runner_of
from farthing.record.looking import glimpse
from farthing.record.paths import resolved
from farthing.record.reader import as_described
from farthing.record.schema import CURRENT
from farthing.record.state import Encoding, parsed
from farthing.record.study_events import Opened
from farthing.trial import EndedBy, Status

# Most of a file are configurations, attributes and what asks saw. What is needed comes first in the usual events.
ROWS = """
SELECT number, time, kind,
       CASE kind WHEN 'asked' THEN substr(body, 1, 64) WHEN 'told' THEN substr(body, 1, 200) ELSE body END
FROM events
WHERE kind IN ('budgeted', 'asked', 'reported', 'dropped', 'told', 'added') ORDER BY number
"""
STATUS = {status.value: status for status in Status}
ASKED = re.compile(r'\{"ask":\d{1,15},"trial":(\d{1,15}),')
NUMBER = r"(null|-?\d{1,20}(?:\.\d{1,20})?(?:[eE][+-]?\d{1,4})?)"
TOLD = re.compile(
    rf'\{{"trial":(\d{{1,15}}),"status":"({"|".join(STATUS)})","ended_by":"(\w+)","value":{NUMBER},"cost":{NUMBER},'
)


@dataclass(frozen=True, eq=False)
class Glance:
    """What a study had bought after each trial that ended; provisional. The figure `best_value` of the whole study also
    counts what belongs to no trial, and knows when a training was how good before it ended."""

    cost: Array  # (n,), total cost of the trials, in `unit`, or their number
    value: Array  # (n,), the best until then, in the user's own sign
    unit: str
    limit: float | None  # of the budget, in `unit`
    trials: int  # that were asked for or added
    events: int
    maximize: bool


def glance(path: str | PathLike[str]) -> Glance:
    """A study file at a glance; a FarthingError says why it cannot be had.

    >>> import tempfile, farthing as ft
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with ft.Study(ft.Space(x=ft.Real(0, 1)), ft.Budget(cost=9), storage=f"{folder}/s.db") as study:
    ...         for value in (3.0, 5.0, 1.0):
    ...             _ = study.tell(study.ask(), value=value, cost=2.0)
    ...     found = glance(f"{folder}/s.db")
    >>> found.cost.tolist(), found.value.tolist(), found.unit, found.limit
    ([2.0, 4.0, 6.0], [3.0, 3.0, 1.0], 'cost', 9.0)
    """
    name, real = str(path), resolved(path)
    if not real.is_file():
        raise StorageError(f"{name}: there is no such study file")
    live = runner_of(str(path)) is not None
    with glimpse(real, name, CURRENT) as connection:
        try:
            return _Follower(connection).followed(live)
        except (sqlite3.Error, FarthingError):
            raise
        except Exception as error:  # whatever a file of unknown origin holds
            raise StorageError(f"{name}: cannot be read at a glance ({error!r:.200})") from error


@dataclass(slots=True)
class _Row:
    """What a glance follows of a trial; the fields are those of a TrackedTrial."""

    asked: int  # the number of its last such event
    status: Status = Status.RUNNING
    value: float | None = None
    cost: float | None = None
    ended: float | None = None
    by_budget: bool = False
    added: bool = False
    steps: int = 0
    kept_step: int = 0
    saved_step: int = 0


class _Follower:
    """What becomes of trials, event by event: in short what `applied` does in events.py."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._trials: list[_Row] = []
        settings = Opened.read(parsed(self._body(1)))
        space, _ = as_described(settings.space)
        self._encoding = Encoding(space, Direction(settings.maximize))
        self._budget: Budget | None = None

    def followed(self, live: bool) -> Glance:
        """All events; trials are running only while somebody is `live`."""
        follow = {
            "asked": self._asked, "reported": self._reported, "dropped": self._dropped, "told": self._told,
            "added": self._added, "budgeted": self._budgeted,
        }  # fmt: skip
        for number, time, kind, body in self._connection.execute(ROWS):
            follow[kind](number, time, body)
        if not live:
            self._interrupt()
        (events,) = self._connection.execute("SELECT max(number) FROM events").fetchone()
        return self._glance(events)

    def _body(self, number: int) -> str:
        (body,) = self._connection.execute("SELECT body FROM events WHERE number = ?", (number,)).fetchone()
        return str(body)

    def _asked(self, number: int, time: float, beginning: str) -> None:
        found = ASKED.match(beginning)
        if found is not None and int(found[1]) == len(self._trials):  # a new one
            self._trials.append(_Row(number))
            return
        proposal = Asked.read(parsed(self._body(number)), self._encoding).proposal
        if proposal.trial == len(self._trials):
            self._trials.append(_Row(number))
            return
        trial = self._trials[proposal.trial]
        trial.asked, trial.status, trial.kept_step = number, Status.RUNNING, proposal.start_step
        trial.ended, trial.by_budget = None, False

    def _reported(self, number: int, time: float, text: str) -> None:
        body = parsed(text)
        trial, value = self._trials[body["trial"]], self._encoding.direction.turned(body["value"])
        trial.kept_step += 1
        if trial.kept_step > trial.steps:
            trial.steps = trial.kept_step
            trial.value = least_of(trial.value, value)
        trial.cost = sum_of(trial.cost, body["cost"])
        if body["saved"]:
            trial.saved_step = trial.kept_step

    def _dropped(self, number: int, time: float, text: str) -> None:
        body = parsed(text)
        trial = self._trials[body["trial"]]
        trial.kept_step = trial.saved_step = body["kept_step"]

    def _told(self, number: int, time: float, text: str) -> None:
        if (found := TOLD.match(text)) is not None:
            trial, status = self._trials[int(found[1])], STATUS[found[2]]
            value, cost = self._encoding.direction.turned(_number(found[4])), _number(found[5])
            trial.by_budget = found[3] == EndedBy.BUDGET.value
        else:
            event = Ended.read(parsed(self._body(number)), self._encoding)
            trial, status = self._trials[event.trial], event.outcome.status
            value, cost = event.outcome.value, event.outcome.cost
            trial.by_budget = event.outcome.ended_by is EndedBy.BUDGET
        trial.value = least_of(trial.value, value)
        trial.cost = sum_of(trial.cost, cost) if trial.steps else cost
        trial.status, trial.ended = status, time
        if status is not Status.PAUSED:
            trial.kept_step = trial.saved_step

    def _added(self, number: int, time: float, text: str) -> None:
        added = Added.read(parsed(text), self._encoding)
        steps, status = len(added.curve), added.final_status
        kept = 0 if status in (Status.PAUSED, Status.INTERRUPTED) else steps
        by_budget = added.ended_by is EndedBy.BUDGET
        self._trials.append(
            _Row(number, status, added.value, added.cost, added.ended, by_budget, True, steps, kept)
        )  # fmt: skip

    def _budgeted(self, number: int, time: float, text: str) -> None:
        self._budget = Budget.from_json(parsed(text)["budget"])

    def _interrupt(self) -> None:
        """Trials that a run was evaluating have ended with it; those of a loop of the user's may still be evaluated."""
        for trial in self._trials:
            if trial.status is Status.RUNNING and not self._is_pending(trial):
                trial.status = Status.INTERRUPTED

    def _is_pending(self, trial: _Row) -> bool:
        return Asked.read(parsed(self._body(trial.asked)), self._encoding).pending

    def _glance(self, events: int) -> Glance:
        trials = self._trials
        if self._budget is None:
            raise StorageError("the file ends before the study had a budget")
        unsuccessful = _mask(
            [t.status is Status.FAILED or (t.status is Status.KILLED and not t.by_budget) for t in trials]
        )
        unit = self._budget.paid_in
        found = bought(
            _numbers([trial.value for trial in trials]),
            _numbers([1.0 if unit == "evaluations" else trial.cost for trial in trials]),
            _numbers([trial.ended for trial in trials]), _mask([trial.added for trial in trials]),
            _mask([trial.status is Status.RUNNING for trial in trials]), unsuccessful,
        )  # fmt: skip
        maximize, limit = self._encoding.direction.maximize, self._budget.limits.get(unit)
        value = -found.value if maximize else found.value
        return Glance(found.cost, value, unit, limit, len(trials), events, maximize)


def _number(text: str) -> float | None:
    return None if text == "null" else float(text)


def _numbers(values: Sequence[float | None]) -> Array:
    found = np.array(values, dtype=np.float64)  # None becomes NaN
    if np.isinf(found).any():
        raise ValueError("an infinite number")
    return found


def _mask(values: Sequence[bool]) -> Mask:
    return np.array(values, dtype=np.bool_)
