"""A simulated cluster: an executor whose evaluations only take time of a clock that is not the wall's.

The real run drives it (`farthing.runner.loop`), with the cluster's clock as its timer: what an evaluation takes passes
at once, and what Farthing itself takes is what can be measured. Nodes have several places each; they join and leave,
and with a node all its evaluations are lost. The cluster keeps books of its own, which the ledger is compared with.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from random import Random
from typing import Self

from benchmarks.cluster.workload import Workload
from farthing.runner.executors import Assignment, TrialAnswer
from farthing.runner.messages import Answer, AnswerKind
from farthing.trial import Config, Outcome, Status

TICK = 1e-6  # seconds that pass at least while a run waits: its clock must go on
SLOWEST_END = 0.3  # seconds within which an evaluation ends that was told to: a third of them has to be killed
STAYS = 1e9  # seconds: longer than any simulation


@dataclass(frozen=True)
class Nodes:
    """The nodes of a cluster: how many there are at first, how many places each has, how long a node stays on average
    before it leaves, and how long it takes on average until another one joins in its place."""

    count: int
    places: int = 8
    stays: float = 7_200.0
    away: float = 300.0


@dataclass
class Books:
    """What really happened: the seconds of actions by how they ended, by trial too, and how many nodes came and
    went."""

    seconds: dict[str, list[float]] = field(default_factory=dict)
    by_trial: dict[int, list[float]] = field(default_factory=dict)
    begun: Counter[int] = field(default_factory=Counter)  # evaluations, by trial
    nodes: Counter[str] = field(default_factory=Counter)
    most: int = 0  # evaluations at the same time

    def note(self, trial: int, how: str, seconds: float) -> None:
        self.seconds.setdefault(how, []).append(seconds)
        self.by_trial.setdefault(trial, []).append(seconds)

    @property
    def total(self) -> float:
        return math.fsum(amount for amounts in self.seconds.values() for amount in amounts)

    def of(self, how: str) -> Sequence[float]:
        return self.seconds.get(how, ())

    def count(self, how: str) -> int:
        return len(self.of(how))


@dataclass
class Held:
    """An evaluation in its place, which waits unless it has begun an action."""

    node: int
    config: Config = field(default_factory=dict)
    folder: Path | None = None
    step: int = 0
    began: float | None = None
    was_told: bool = False  # to end: what it answers then is too late
    action: int = 0  # which one, of all in the simulation: what was to happen in an earlier one does not


class SimulatedCluster:
    """An `Executor`. `seed` says which nodes leave when; `now` is what its clock shows, in seconds."""

    can_kill = True
    is_full = False  # a paused learner holds no place
    start_seconds = 5.0

    def __init__(self, workload: Workload, nodes: Nodes, seed: int = 0) -> None:
        self.books, self.now = Books(), 0.0
        self._workload, self._nodes, self._random = workload, nodes, Random(seed)
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._order, self._actions, self._names = count(), count(1), count()
        self._free: dict[int, int] = {}  # places by node, of nodes that have any
        self._there: dict[int, set[int]] = {}  # trials by node
        self._held: dict[int, Held] = {}  # by trial
        self._happened: list[TrialAnswer] = []
        for _ in range(nodes.count):
            self._join()

    def timer(self) -> float:
        return self.now

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close(list(self._held), 0.0)

    @property
    def has_steps(self) -> bool:
        return self._workload.steps > 0

    @property
    def held(self) -> int:
        """Evaluations that have a place."""
        return len(self._held)

    # -- places ------------------------------------------------------------------------------------------------------

    def has_room(self, patience: float) -> bool:
        if not self._free:
            self._give_back()
        until = self.now + patience
        while not self._free and self._pass(until):
            pass
        return bool(self._free)

    def _give_back(self) -> None:
        """Take the place of a paused learner: it keeps one only as long as nobody else wants it."""
        paused = next((trial for trial, held in self._held.items() if held.began is None), None)
        if paused is not None:
            self._lose(paused, "its place was given to another evaluation")

    def reserve(self, trial: int) -> None:
        assert trial not in self._held, f"trial {trial} is evaluated twice at the same time"
        node = next(iter(self._free))
        self._free[node] -= 1
        if not self._free[node]:
            del self._free[node]
        self._held[trial] = Held(node)
        self._there[node].add(trial)
        self.books.begun[trial] += 1
        self.books.most = max(self.books.most, len(self._held))

    def _release(self, trial: int) -> Held | None:
        """Its place is free again; None if it had none any more."""
        held = self._held.pop(trial, None)
        if held is not None and held.node in self._there:
            self._there[held.node].remove(trial)
            self._free[held.node] = self._free.get(held.node, 0) + 1
        return held

    # -- evaluations -------------------------------------------------------------------------------------------------

    def begin(self, assignment: Assignment, config: Config) -> None:
        held = self._held[assignment.trial]
        held.config, held.folder, held.step = config, assignment.folder, assignment.step
        self.step(assignment.trial)

    def step(self, trial: int) -> None:
        held = self._held.get(trial)
        if held is None:  # its node has just left, which the run has not heard yet
            return
        times = len(self.books.by_trial.get(trial, ()))
        ahead = self._workload.ahead(trial, times, held.step, held.config)
        held.began, held.action = self.now, next(self._actions)
        if ahead.is_lost:
            self._later(ahead.seconds, trial, held.action, lambda: self._lose(trial, "its worker is gone"))
        else:
            self._later(ahead.seconds, trial, held.action, lambda: self._answer(trial, ahead.value))

    def _answer(self, trial: int, value: float | None) -> None:
        held = self._held[trial]
        if value is None:
            self._end(trial, "failed", AnswerKind.RETURNED, Outcome(Status.FAILED, error="ValueError: diverged"))
            return
        held.step += 1
        if self._workload.steps and held.step % self._workload.saves_every == 0:
            self._save(held)
        kind = AnswerKind.YIELDED if self._workload.steps else AnswerKind.RETURNED
        self._end(trial, kind.value, kind, Outcome(Status.COMPLETE, value))

    def _save(self, held: Held) -> None:
        assert held.folder is not None
        held.folder.mkdir(parents=True, exist_ok=True)
        (held.folder / "step").write_text(str(held.step))

    def _end(self, trial: int, how: str, kind: AnswerKind, outcome: Outcome | None = None, **more: str) -> None:
        """An action has ended, and the run hears of it."""
        held = self._held[trial]
        seconds = self._noted(trial, held, "late" if held.was_told else how)
        self._happened.append(TrialAnswer(trial, Answer(kind, outcome, seconds, **more)))

    def _noted(self, trial: int, held: Held, how: str) -> float | None:
        """The seconds of an action, None where none has begun."""
        if held.began is None:
            return None
        seconds = self.now - held.began
        self.books.note(trial, how, seconds)
        held.began, held.action = None, 0
        return seconds

    def tell_to_end(self, trial: int) -> None:
        held = self._held.get(trial)
        if held is not None and held.began is not None:
            held.was_told = True
            seconds = SLOWEST_END * self._random.random()

            def ends() -> None:
                self._end(trial, "late", AnswerKind.TERMINATED, reason="SIGTERM", told_by="SIGTERM")

            self._later(seconds, trial, held.action, ends)

    def kill(self, trial: int) -> None:
        held = self._release(trial)
        if held is not None:
            self._noted(trial, held, "killed")

    def close(self, trials: Collection[int], seconds: float) -> None:
        for trial in trials:
            held = self._release(trial)
            assert held is None or held.began is None, f"trial {trial} was closed while it was evaluated"

    def process_of(self, trial: int) -> int:
        return 0  # none of this machine

    # -- nodes -------------------------------------------------------------------------------------------------------

    def _join(self) -> None:
        node = next(self._names)
        self._free[node], self._there[node] = self._nodes.places, set()
        self.books.nodes["joined"] += 1
        if self._nodes.stays < STAYS:
            self._at(self.now + self._random.expovariate(1.0 / self._nodes.stays), lambda: self._leave(node))

    def _leave(self, node: int) -> None:
        """With all that is evaluated there, and all learners that are paused there."""
        self.books.nodes["left"] += 1
        self._free.pop(node, None)
        for trial in sorted(self._there.pop(node)):
            self._lose(trial, "its node has left")
        self._at(self.now + self._random.expovariate(1.0 / self._nodes.away), self._join)

    def _lose(self, trial: int, why: str) -> None:
        self._end(trial, "lost", AnswerKind.LOST, reason=why)
        self._release(trial)

    # -- time --------------------------------------------------------------------------------------------------------

    def wait(self, seconds: float | None) -> list[TrialAnswer]:
        until = math.inf if seconds is None else self.now + max(seconds, TICK)
        while not self._happened and self._pass(until):
            pass
        happened, self._happened = self._happened, []
        return happened

    def _pass(self, until: float) -> bool:
        """Let time pass to the next event, but not beyond `until`; False if there is none before."""
        if not self._events or self._events[0][0] > until:
            assert not math.isinf(until), "the run waits for ever"
            self.now = until
            return False
        self.now, _, happens = heapq.heappop(self._events)
        happens()
        return True

    def _at(self, moment: float, happens: Callable[[], None]) -> None:
        heapq.heappush(self._events, (moment, next(self._order), happens))

    def _later(self, seconds: float, trial: int, action: int, happens: Callable[[], None]) -> None:
        """In that many seconds, if the trial is still in that action then."""

        def unless_over() -> None:
            held = self._held.get(trial)
            if held is not None and held.action == action:
                happens()

        self._at(self.now + seconds, unless_over)
