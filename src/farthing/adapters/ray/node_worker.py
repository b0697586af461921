"""The worker of one actor, on its node: a pool of one worker process, which does what the run orders.

Everything happens in one thread, which waits for answers of the worker process and for orders at once. Orders come from
another thread. It needs no Ray.
"""

from __future__ import annotations

import logging
import math
import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from farthing.adapters.ray.messages import (
    Answered,
    Finish,
    Free,
    Gone,
    GoOn,
    Job,
    Kill,
    Order,
    Quit,
    Ready,
    Refused,
    Said,
    Spent,
    Start,
    Tell,
    Warned,
)  # fmt: skip
from farthing.numerics.threads import with_thread_limits
from farthing.runner.checkpoints import Checkpoints
from farthing.runner.executors import Assignment
from farthing.runner.interrupts import Interrupts
from farthing.runner.memory import MemoryWatch
from farthing.runner.messages import Answer, AnswerKind
from farthing.runner.meters import Gauges, Meters
from farthing.runner.meters.choosing import NAMED
from farthing.runner.pool import ProcessPool
from farthing.runner.surroundings import Surroundings
from farthing.runner.worker_process import CannotIsolate, WorkerSetup, import_path
from farthing.trial import Decision, Outcome, Status

LAST_WORDS = 0.3  # seconds after a worker died before that is said: where the node is being ended, nobody says it then
MEMORY_POLL, METER_POLL = 0.05, 0.2  # seconds between two looks, as in a run that looks by itself
ROOM_POLL = 0.5  # seconds between checks whether a worker process can be started
UNSEEN = (
    "the checkpoint of step {} is not in {} on {}: put the study's file, or ft.Ray(checkpoints=...), "
    "into a folder that all nodes share"
)


class Calls(Interrupts):
    """What wakes the pool while it waits: not signals, but orders from another thread."""

    def __init__(self) -> None:
        super().__init__()
        self._ends = socket.socketpair()
        for end in self._ends:
            end.setblocking(False)

    @property
    def wakeups(self) -> list[socket.socket]:
        return [self._ends[0]]

    def wake(self) -> None:
        with suppress(OSError):  # it is full, and so awake enough; or it is closed
            self._ends[1].send(b"\0")

    def close(self) -> None:
        for end in self._ends:
            end.close()


class NodeWorker:
    """Does what `order` says, and reports by `say`."""

    def __init__(self, job: Job, objective: bytes, folder: str | None, say: Callable[[Said], None]) -> None:
        """`folder` is where evaluations run; None: in that of the run, if it is there."""
        self._job, self._objective, self._folder, self._say = job, objective, folder, say
        self._orders: SimpleQueue[Order] = SimpleQueue()
        self._calls = Calls()
        self._turn: Start | None = None  # the evaluation that this worker has
        self._has_begun = False  # there was a process for it
        self._is_active = False  # it does something, and does not wait after a step
        self._left = 0.0
        self._gauges, self._next_gauge = Gauges(), 0.0
        self._memory, self._next_memory = MemoryWatch(job.bytes), 0.0
        self._is_ready = self._is_over = False

    def order(self, order: Order) -> None:
        """From any thread."""
        self._orders.put(order)
        self._calls.wake()

    def run(self) -> None:
        """Until the order to quit comes."""
        error = ""
        try:
            with _warnings_said(self._say):
                self._meters = _meters(self._job.meter)
                setup = WorkerSetup.of_pickled(self._objective, self._surroundings(), self._path(), self._job.forks)
                with ProcessPool(setup, dict, 1, self._calls, self._job.reuse) as pool:
                    while not self._is_over:
                        self._turn_over(pool)
        except Exception as failed:  # the run must hear of it
            if isinstance(failed, CannotIsolate):
                self._say(Refused(str(failed)))
            error = f"{type(failed).__name__}: {failed}"
        self._calls.close()
        self._say(Gone(error))

    def _surroundings(self) -> Surroundings:
        """Those of the run, as far as they mean something here."""
        threads = max(int(self._job.cpus), 1)
        theirs, folder = self._job.surroundings, self._folder
        if folder is None:
            folder = theirs.folder if os.path.isdir(theirs.folder) else os.getcwd()
        return replace(theirs, folder=folder, environment=with_thread_limits(os.environ, threads))

    def _path(self) -> list[str]:
        """Where modules are found here, and then what the run has and is here too, as on shared storage."""
        here = import_path()
        return [*here, *(entry for entry in self._job.path if entry not in here and os.path.exists(entry))]

    def _turn_over(self, pool: ProcessPool) -> None:
        """Start what can be, wait, and say what came of it."""
        self._begin_if_possible(pool)
        for _, answer in pool.wait(self._patience()):
            self._answered(answer)
        self._calls.clear_wakeups()
        for order in self._taken_orders():
            self._obey(pool, order)
        self._watch(pool)

    def _patience(self) -> float | None:
        until = math.inf
        if self._is_active and self._job.bytes < math.inf:
            until = min(until, self._next_memory - time.monotonic())
        if self._is_active and self._meters.units:
            until = min(until, self._next_gauge - time.monotonic())
        if not self._is_ready or (self._turn is not None and not self._has_begun):
            until = min(until, ROOM_POLL)
        return None if math.isinf(until) else max(until, 0.0)

    def _taken_orders(self) -> Iterator[Order]:
        while True:
            try:
                yield self._orders.get_nowait()
            except Empty:
                return

    # -- orders ------------------------------------------------------------------------------------------------------

    def _obey(self, pool: ProcessPool, order: Order) -> None:
        if isinstance(order, Start):
            self._turn, self._left, self._has_begun = order, order.left, False
            self._begin_if_possible(pool)
            return
        if isinstance(order, Quit):
            self._is_over = True
            return
        turn = self._turn
        if turn is None or order.turn != turn.turn:  # it is over
            return
        match order:
            case GoOn():
                self._left = order.left
                self._begin_action(pool, turn.trial)
                pool.step(turn.trial)
            case Finish():
                pool.close([turn.trial], order.seconds)
                self._free(turn)
            case Kill():
                pool.kill(turn.trial)
                self._free(turn)
            case Tell() if self._has_begun:
                pool.tell_to_end(turn.trial)

    def _free(self, turn: Start) -> None:
        self._turn, self._is_active = None, False
        self._say(Free(turn.turn))

    def _begin_if_possible(self, pool: ProcessPool) -> None:
        start = self._turn
        if (start is None and self._is_ready) or self._has_begun or not pool.has_room(0.0):
            return
        if not self._is_ready:
            self._is_ready = True
            self._say(Ready(pool.start_seconds))
        if start is None:
            return
        folder = Path(start.folder)
        if start.step and not Checkpoints.are_in(folder):
            unseen = UNSEEN.format(start.step, folder, socket.gethostname())
            self._has_begun = True
            self._say(Answered(start.turn, Answer(AnswerKind.RETURNED, Outcome(Status.FAILED, error=unseen), 0.0), {}))
            return
        pool.reserve(start.trial)
        self._has_begun = True
        self._begin_action(pool, start.trial)
        assignment = Assignment(start.trial, start.step, folder, lambda: self._left, start.speed, _nobody)
        pool.begin(assignment, dict(start.config))

    def _begin_action(self, pool: ProcessPool, trial: int) -> None:
        self._gauges, self._is_active = self._meters.begin(pool.process_of(trial)), True

    # -- answers -----------------------------------------------------------------------------------------------------

    def _answered(self, answer: Answer) -> None:
        assert self._turn is not None
        self._is_active = False
        spent = self._gauges.spent()
        if answer.kind is AnswerKind.DIED:
            time.sleep(LAST_WORDS)
        self._say(Answered(self._turn.turn, answer, spent))

    def _watch(self, pool: ProcessPool) -> None:
        """Kill what holds too much memory, and say what meters show."""
        turn, now = self._turn, time.monotonic()
        if turn is None or not self._is_active:
            return
        if self._meters.units and now >= self._next_gauge:
            self._next_gauge = now + METER_POLL
            self._say(Spent(turn.turn, self._gauges.spent()))
        if self._job.bytes < math.inf and now >= self._next_memory:
            self._next_memory = now + MEMORY_POLL
            if self._memory.above({turn.trial: pool.process_of(turn.trial)}):
                spent = self._gauges.spent()
                pool.kill(turn.trial)
                self._is_active = False
                self._say(Answered(turn.turn, Answer(AnswerKind.LARGE), spent))


def _nobody(answer: Answer) -> Decision:
    raise AssertionError("a worker process reports by itself")


def _meters(meter: Any) -> Meters:
    return Meters(NAMED[meter]() if isinstance(meter, str) else meter)


@contextmanager
def _warnings_said(say: Callable[[Said], None]) -> Iterator[None]:
    """What this process warns of and nobody here reads."""

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            say(Warned(record.getMessage()))

    logger, handler = logging.getLogger("farthing"), Handler(logging.WARNING)
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
