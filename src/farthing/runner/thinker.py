"""The thread that prepares the next ask while evaluations run.

Whenever an evaluation begins, the thread is told what is known, and prepares an ask from it (`policies/prepared.py`).
When a worker is free, the run finishes what was prepared last, which takes about a millisecond. If evaluations are
shorter than thinking, several asks are finished from one preparation, each with all that is known by then.

The thread never holds up a run: it pauses while the run has something to do, it is given up where a run ends, and the
program does not wait for it. What it raises is raised by the run when it asks. Only where a budget of time is spent is
it worthwhile, and only where a processor is left for it: where workers fill them, thinking would slow down what is
measured.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import copy_context
from threading import Condition, Event

from farthing.history import History
from farthing.numerics import late_scipy
from farthing.numerics.deadline import OutOfTime, in_background
from farthing.numerics.threads import one_blas_thread
from farthing.policies.preparation import Preparation, Snapshot, prepared
from farthing.policies.protocol import Prepares
from farthing.policies.thinking import Thinking
from farthing.runner.background import start_thread
from farthing.runner.clock import is_timed
from farthing.runner.executors import Executor
from farthing.runner.processors import processor_count
from farthing.session import Session

SWITCH_INTERVAL = 1e-5  # seconds after which the run gets the interpreter's lock; Python's own is 5 milliseconds
AHEAD = 2.0  # evaluations that a preparation may last, with a reserve: mostly it is ready when the next one ends
UNKNOWN = 0.5  # seconds that the first one may, while nobody knows how long evaluations are
WAIT = 0.1  # seconds that the run waits for a preparation under way, where it has no other: about the time of an ask
THINK_AGAIN = 0.05  # of an evaluation: an ask that takes less is made again in turn, if an outcome is surprising
MEMORY = 0.8  # of the typical duration of evaluations, when another one is known


class Thinker:
    """Prepares asks from the latest snapshot."""

    def __init__(self, session: Session) -> None:
        self._session, self._thinking = session, Thinking()
        self._changed, self._ended, self._clear = Condition(), Event(), Event()
        self._clear.set()
        self._next: Snapshot | None = None
        self._is_thinking = False
        self._prepared: Preparation | None = None
        self._took = 0.0  # seconds, the last preparation
        self._typical: float | None = None  # seconds of an evaluation
        self._error: BaseException | None = None

    def begin(self) -> None:
        context = copy_context()  # its limit of BLAS threads is the run's
        start_thread("farthing-thinker", lambda: context.run(self._think_on))

    def end(self) -> None:
        self._ended.set()
        self._clear.set()
        with self._changed:
            self._changed.notify_all()

    # -- the run's side ----------------------------------------------------------------------------------------------

    def pause(self) -> None:
        """Something has happened: until `go_on` the run has the interpreter's lock to itself, as far as that goes. What
        computes in native code ends first."""
        self._clear.clear()

    def go_on(self) -> None:
        """Nothing is left to do but wait for evaluations."""
        self._clear.set()

    def hear(self, seconds: float) -> None:
        """How long an evaluation took."""
        before = seconds if self._typical is None else self._typical
        self._typical = MEMORY * before + (1.0 - MEMORY) * seconds

    def think(self) -> None:
        """Prepare the next ask from what is known now."""
        with self._changed:
            self._next = self._session.snapshot()
            self._changed.notify_all()

    def prepared(self, patience: float) -> Iterator[Preparation]:
        """The last preparation; then, if it is of no use, the one that is under way. Nothing if the ask is better made
        in turn."""
        self._raise()
        last = self._prepared
        if last is not None:
            if self._is_to_be_thought_again(last, self._session.history):
                return
            yield last
        self.go_on()
        with self._changed:
            self._changed.wait_for(lambda: not self._is_thinking and self._next is None, min(patience, WAIT))
        self._raise()
        if self._prepared is not None and self._prepared is not last:
            yield self._prepared

    def _is_to_be_thought_again(self, last: Preparation, history: History) -> bool:
        return self._took < THINK_AGAIN * (self._typical or 0.0) and last.surprised(history)

    def _raise(self) -> None:
        if self._error is not None:
            raise self._error

    # -- the thread's side -------------------------------------------------------------------------------------------

    def _think_on(self) -> None:
        late_scipy.load()  # begun while the first worker started; here its BLAS is limited, too
        while not self._ended.is_set():
            with self._changed:
                self._changed.wait_for(lambda: self._next is not None or self._ended.is_set())
                snapshot, self._next = self._next, None
                self._is_thinking = snapshot is not None
            if snapshot is None:
                continue
            try:
                self._prepare(snapshot)
            except OutOfTime:
                return
            except BaseException as error:  # whatever a policy raises: the run raises it
                self._error = error
            with self._changed:
                self._is_thinking = False
                self._changed.notify_all()

    def _prepare(self, snapshot: Snapshot) -> None:
        began = time.perf_counter()
        seconds = UNKNOWN if self._typical is None else AHEAD * self._typical
        with in_background(self._ended, self._clear):
            found = prepared(self._session.policy, self._session.space, snapshot, self._thinking, seconds)
        self._took = time.perf_counter() - began
        if found is not None:
            self._prepared = found


@contextmanager
def going_on(thinker: Thinker | None) -> Iterator[None]:
    """Inside, the run waits for evaluations and a thinker goes on; afterwards it pauses."""
    if thinker is None:
        yield
        return
    thinker.go_on()
    try:
        yield
    finally:
        thinker.pause()


@contextmanager
def thinking_beside(session: Session, executor: Executor, workers: int) -> Iterator[Thinker | None]:
    """A thread that prepares asks, where it helps."""
    helps = executor.can_kill and is_timed(session.ledger.budget) and workers < processor_count()
    if not helps or not isinstance(session.policy, Prepares):
        yield None
        return
    interval, thinker = sys.getswitchinterval(), Thinker(session)
    sys.setswitchinterval(min(SWITCH_INTERVAL, interval))
    try:
        with one_blas_thread():
            thinker.begin()
            try:
                yield thinker
            finally:
                thinker.end()
    finally:
        sys.setswitchinterval(interval)
