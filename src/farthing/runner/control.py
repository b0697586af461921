"""What somebody who looks at a study asks of its run: pause, resume, stop, another budget, a configuration to evaluate.

Requests come through a mailbox beside the study's file (record/mailbox.py). The run, which alone writes to the file,
looks into it between evaluations and twice a second while it waits, does what is asked for, and records each request as
an event: that it was done, or why not. Only then is it taken out of the mailbox. The event holds its id, so that a
request is done once, also if the run is killed between the two. Policies see requests only by these events, so that a
resumed study asks for what the uninterrupted one would have.
"""

from __future__ import annotations

import logging
import math
import os
import time
from dataclasses import replace
from typing import NamedTuple

from farthing.budget import Budget
from farthing.errors import FarthingError, InvalidArgument, InvalidBudget
from farthing.record.mailbox import BUDGET, ENQUEUE, PAUSE, RESUME, STOP, Request, folder_of, posted_at, take, waiting
from farthing.record.requests import MOST_QUEUED
from farthing.record.settings import checked_config, require_more_than_spent
from farthing.record.state import Event
from farthing.record.study_events import Budgeted, Requested
from farthing.runner.displays import Progress
from farthing.runner.progress import SHOWN_ANYWAY
from farthing.session import Session
from farthing.text.escaping import on_one_line
from farthing.text.plain import counted, shown, text_of
from farthing.trial import Config

logger = logging.getLogger("farthing")

INTERVAL = 0.5  # seconds between two looks: a look takes microseconds, and people wait for an answer
SETTLED = 2 * 10**9  # nanoseconds after which no file system gives a folder the same time for another change
LONGEST_REASON = 500  # characters
ALWAYS_COUNTED = {"seconds", "compute_seconds", "evaluations"}  # units of a run, whatever its budget


class Effect(NamedTuple):
    """What follows from a request that is done."""

    said: str
    events: tuple[Event, ...] = ()
    config: Config | None = None


class Control:
    """Answers requests while a study runs; `began` is when the run did, in seconds since 1970."""

    def __init__(self, session: Session, began: float, *, simulated: bool = False) -> None:
        self._session, self._began = session, began
        self._path = None if simulated else session.storage
        self._folder = None if self._path is None else folder_of(self._path)
        self._next_look, self._seen = 0.0, 0
        self.progress: Progress | None = None

    @property
    def patience(self) -> float:
        """Seconds until the next look; infinite where nobody can ask for anything."""
        return math.inf if self._folder is None else INTERVAL

    def begin(self) -> None:
        """A run is not paused at its beginning; what was asked for before holds for it."""
        if self._session.is_paused:
            self._session.answer(Requested("", RESUME))
        self.look(at_once=True)

    def look(self, *, at_once: bool = False) -> bool:
        """Answer what waits, if the last look was a while ago or `at_once`; returns whether there was something."""
        if self._folder is None:
            return False
        now = time.monotonic()
        if now < self._next_look and not at_once:
            return False
        self._next_look = now + INTERVAL
        try:
            changed = os.lstat(self._folder).st_mtime_ns
        except OSError:  # mostly there is no such folder
            return False
        if changed == self._seen:
            return False
        self._seen = changed if time.time_ns() - changed > SETTLED else 0
        return self._answer_all(str(self._path))

    def _answer_all(self, path: str) -> bool:
        some = False
        for request_id, request in waiting(path):
            if request_id not in self._session.record.state.requests.ids:
                self._answer(request_id, request)
                some = True
            try:
                take(path, request_id)
            except OSError as error:
                self._say(logging.WARNING, f"a request was answered and cannot be removed ({error.strerror})")
        return some

    def _answer(self, request_id: str, request: Request) -> None:
        session, action = self._session, request.action
        try:
            effect, refused = self._effect_of(request, posted_at(request_id)), None
        except Exception as error:  # a function of the user's own may raise anything
            said = str(error) if isinstance(error, FarthingError) else f"{type(error).__name__}: {text_of(error)}"
            effect, refused = Effect(""), on_one_line(said.removeprefix(f"{action}: "))[:LONGEST_REASON]
        session.answer(*effect.events, Requested(request_id, action, request.budget, effect.config, refused))
        if refused is not None:
            self._say(logging.WARNING, f"request to {described(request)}: not done: {refused}")
            return
        if action == STOP:
            session.stop_requested = True
            session.halted = f"stopped by request after {counted(len(session.history.trials), 'trial')}"
        self._say(logging.INFO, f"by request: {effect.said}")

    def _say(self, level: int, text: str) -> None:
        logger.log(level, "%s", text, extra={} if self.progress is None else SHOWN_ANYWAY)
        if self.progress is not None:
            self.progress.message(text)

    def _effect_of(self, request: Request, posted: float) -> Effect:
        """What follows from a request, or an error that says why nothing does."""
        record = self._session.record
        if posted < record.begun_at:
            raise InvalidArgument("it was posted before this study was begun")
        if request.action in (PAUSE, RESUME, STOP) and posted < self._began:
            raise InvalidArgument("it was posted before this run was begun")
        match request.action:
            case action if action == PAUSE:
                return self._paused()
            case action if action == RESUME:
                return self._resumed()
            case action if action == STOP:
                return Effect("the run ends when what is running has ended")
        if request.action == BUDGET:
            if posted < record.budget_set:
                raise InvalidBudget(f"it was posted before the budget was set to {record.ledger.budget}")
            return _budgeted(self._session, str(request.budget))
        return _enqueued(self._session, request)

    def _paused(self) -> Effect:
        if self._session.stop_requested:
            raise InvalidArgument("the run is ending")
        if self._session.is_paused:
            raise InvalidArgument("the study is paused already")
        return Effect("paused; nothing new begins until the study is resumed")

    def _resumed(self) -> Effect:
        if not self._session.is_paused:
            raise InvalidArgument("the study is not paused")
        return Effect("resumed")


def described(request: Request) -> str:
    """What a request asks for, in words.

    >>> described(Request("budget", budget="20m")), described(Request("enqueue", config={"x": 1}))
    ("set the budget to '20m'", "evaluate {'x': 1}")
    """
    match request.action:
        case "budget":
            return f"set the budget to {shown(request.budget)}"
        case "enqueue":
            return on_one_line(f"evaluate {shown(dict(request.config or {}))}")
        case action:
            return f"{action} the run"


def _budgeted(session: Session, text: str) -> Effect:
    """A new total. What the study and its run count in stays as it is: costs in another unit say nothing about each
    other, and meters are chosen when a run begins."""
    ledger, total = session.record.ledger, Budget.of(text)
    held = ledger.budget
    if total.usd_per_hour is None:
        total = replace(total, usd_per_hour=held.usd_per_hour)
    if total.unit != held.unit:
        raise InvalidBudget(f"expected a limit in {held.unit}, in which this study counts, got {total}")
    if new := sorted(total.limits.keys() - held.limits.keys() - ALWAYS_COUNTED):
        raise InvalidBudget(
            f"expected limits in {', '.join(held.limits)}, got {total}: this run does not count {new[0]}"
        )
    require_more_than_spent(ledger, total)
    if total == held:
        return Effect(f"the budget is {held}, as it was")
    return Effect(f"the budget is {total}; it was {held}", (Budgeted(total),))


def _enqueued(session: Session, request: Request) -> Effect:
    """A configuration to evaluate next, unless it is known."""
    space, history = session.space, session.history
    config = checked_config(ENQUEUE, space, request.config)
    key = space.key(config)
    if key in history.taken:
        number = next(trial.number for trial in history.trials if trial.key == key)
        raise InvalidArgument(f"trial {number} has this configuration")
    queue = session.record.state.requests.still_queued(history.taken)
    if any(queued == key for queued, _ in queue):
        raise InvalidArgument("it waits to be evaluated already")
    if len(queue) >= MOST_QUEUED:
        raise InvalidArgument(f"{MOST_QUEUED} configurations wait to be evaluated already")
    return Effect(f"evaluates next: {on_one_line(shown(dict(config)))}", config=config)
