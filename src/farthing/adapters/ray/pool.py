"""The executor that runs evaluations in Ray actors: each holds one worker process on some node of a cluster.

Actors come when the cluster has resources for them, and go with their nodes. An evaluation whose actor is gone is lost,
which is no failure of it: the run gives it out again. So is one that was told to end by somebody else than the run, as
all processes of a machine are before it is taken away. What is lost again and again may itself be what takes machines
down: then it has failed.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection
from contextlib import ExitStack
from itertools import count
from multiprocessing.connection import wait
from typing import Any, Self

from farthing import __version__
from farthing.adapters.ray.actor import FIRST_NUMBER, Actor, Ears
from farthing.adapters.ray.messages import (
    Answered,
    Facts,
    Finish,
    Free,
    Gone,
    GoOn,
    Kill,
    Quit,
    Ready,
    Refused,
    Said,
    Spent,
    Start,
    Tell,
    Warned,
)  # fmt: skip
from farthing.adapters.ray.rates import ClusterMeters, Rates, rate_of
from farthing.errors import InvalidArgument
from farthing.runner.executors import Assignment, TrialAnswer, warn_of_closing
from farthing.runner.failed_starts import FailedStarts
from farthing.runner.interrupts import Interrupts
from farthing.runner.messages import Answer, AnswerKind
from farthing.space import Space
from farthing.text.plain import warn
from farthing.trial import Config

POLL = 1.0  # seconds between looks at what has to be done without being told
SAID_AFTER = 15.0  # seconds without a worker before that is said
YOUNG_SECONDS = 30.0  # that an actor may be pending before the cluster is taken to have no room for it
IDLE_SECONDS = 30.0  # after which an actor that nobody needs gives back what it holds
FREEING_SECONDS = 15.0  # that an actor may take to end an evaluation: its worker has five to be dead
ENDING_SECONDS = 6.0  # the same at the end of the run, for all together
MOST_LOST = 3  # times that one trial is lost before it has failed
UNSEEN = (
    "{} does not see {}: trainings that are paused there begin again. Put the study's file, or "
    "ft.Ray(checkpoints=...), into a folder that all nodes share"
)


class RayPool:
    """At most `most` actors, made by `make`."""

    can_kill = True

    def __init__(
        self, make: Callable[[], Any], connection: ExitStack, space: Space, most: int, interrupts: Interrupts,
        rates: Rates, meters: ClusterMeters, checkpoints: str,
    ) -> None:  # fmt: skip
        self._make, self._connection, self._space, self._most = make, connection, space, most
        self._interrupts, self._rates, self._meters = interrupts, rates, meters
        self._checkpoints = checkpoints
        self._actors: list[Actor] = []
        self._assigned: dict[int, Actor] = {}  # to trials, paused ones included
        self._happened: list[TrialAnswer] = []
        self._closed: dict[int, Answer] = {}  # by actor: what came of closing
        self._lost: Counter[int] = Counter()  # how often, by trial
        self._failed = FailedStarts()
        self._numbers, self._turns = count(FIRST_NUMBER), count(1)
        self._ears = Ears()
        self._fastest_start: float | None = None
        self._is_warned = False

    @property
    def start_seconds(self) -> float:
        """The shortest that a worker process took, on an actor that is there."""
        return self._fastest_start or 0.0

    @property
    def is_full(self) -> bool:
        pending = [actor for actor in self._actors if actor.trial is None]
        if any(actor.is_free or actor.facts or _age(actor) < YOUNG_SECONDS for actor in pending):
            return False
        return len(self._actors) == self._most or bool(pending)

    def started(self, patience: float) -> Self:
        """Ask for actors, and wait for the first, to learn whether it can load the objective."""
        try:
            self.has_room(patience)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        """Let all actors end what they have, and then end them. What they hold is given back when they are gone."""
        try:
            for actor in self._actors:
                actor.order(Quit())
            deadline = time.monotonic() + ENDING_SECONDS
            while any(a.facts for a in self._actors) and (left := deadline - time.monotonic()) > 0.0:
                self._listen(left, wakeups=False)
            for actor in list(self._actors):
                self._drop(actor)
        finally:
            self._ears.close()
            self._connection.close()

    # -- actors ------------------------------------------------------------------------------------------------------

    def has_room(self, patience: float) -> bool:
        """Whether an actor is free, within `patience` seconds. As many are asked for as may be needed, and Ray makes
        them when it can."""
        began = time.monotonic()
        self._listen(0.0)
        while not any(actor.is_free for actor in self._actors):
            self._failed.raise_if_hopeless()
            if self._failed.pause_left == 0.0:
                self._ask()
            waited = time.monotonic() - began
            if patience <= waited or self._interrupts.any:
                return False
            self._say_what_is_missing(waited)
            self._listen(min(patience - waited, POLL))
        return True

    def _ask(self) -> None:
        while len(self._actors) < self._most:
            actor = Actor(next(self._numbers), self._make())
            self._actors.append(actor)
            self._ears.listen(actor)

    def _say_what_is_missing(self, waited: float) -> None:
        if waited >= SAID_AFTER and not self._is_warned and not any(actor.facts for actor in self._actors):
            self._is_warned = True
            warn(f"after {waited:.0f} seconds no node of the cluster has room for a worker; waiting for one")

    def _drop(self, actor: Actor) -> None:
        """It is gone, or has to go."""
        actor.kill()
        self._meters_give_back(actor)
        if actor in self._actors:
            self._actors.remove(actor)

    def _meters_give_back(self, actor: Actor) -> None:
        if self._meters.actors is not None:
            self._meters.actors.give_back(actor.number)

    def _rest(self, actor: Actor, seconds: float | None = None) -> None:
        if self._meters.actors is not None:
            self._meters.actors.rest(actor.number, seconds)

    # -- what actors say ---------------------------------------------------------------------------------------------

    def _listen(self, seconds: float, wakeups: bool = True) -> None:
        """Take in what actors say, waiting at most `seconds` for it, or for a signal."""
        wait([self._ears.waitable, *(self._interrupts.wakeups if wakeups else ())], max(seconds, 0.0))
        for actor, said in self._ears.heard():
            if actor not in self._actors:
                continue
            if isinstance(said, BaseException):
                self._lose(actor, said)
            else:
                self._take_in(actor, said)
        for actor in list(self._actors):
            if actor.freeing_since is not None and time.monotonic() - actor.freeing_since > FREEING_SECONDS:
                self._drop(actor)  # with all that it has not ended by itself

    def _take_in(self, actor: Actor, said: Said) -> None:
        match said:
            case Facts():
                self._welcome(actor, said)
            case Ready(seconds):
                actor.is_ready, actor.free_since, self._failed = True, time.monotonic(), FailedStarts()
                self._fastest_start = min(seconds, self._fastest_start or seconds)
            case Refused(reason):
                self._failed.note_refusal(reason)
                self._drop(actor)
            case Answered(turn, answer, shown) if turn == actor.turn and actor.trial is not None:
                self._answered(actor, actor.trial, answer, shown)
            case Spent(turn, shown) if turn == actor.turn:
                self._meters.hear(actor.number, shown)
            case Free(turn) if turn == actor.turn:
                actor.freeing_since, actor.free_since = None, time.monotonic()
            case Warned(text):
                warn(f"{actor.place}: {text}")
            case Gone(error):
                self._lose(actor, RuntimeError(error or "it ended"))

    def _welcome(self, actor: Actor, facts: Facts) -> None:
        """An actor has its resources, and says where."""
        if facts.version != __version__:
            raise InvalidArgument(f"{facts.name} has farthing {facts.version}, and this is {__version__}")
        actor.facts = facts
        if self._meters.actors is not None and self._rates is not None:
            self._meters.actors.hold(actor.number, rate_of(facts, self._rates))
        if not facts.sees_checkpoints and not any(
            other.facts and other.facts.node == facts.node for other in self._actors if other is not actor
        ):
            warn(UNSEEN.format(facts.name, self._checkpoints))

    def _answered(self, actor: Actor, trial: int, answer: Answer, shown: Any) -> None:
        actor.is_waiting = answer.kind is AnswerKind.YIELDED
        actor.has_ended = not actor.is_waiting
        self._meters.hear(actor.number, shown)
        self._rest(actor, answer.seconds)
        if actor.freeing_since is not None:  # it was closed
            self._closed[actor.number] = answer
        elif answer.told_by and not actor.was_told:
            self._happened.append(TrialAnswer(trial, self._loss(trial, f"{actor.place} is ending its processes")))
        else:
            self._happened.append(TrialAnswer(trial, answer))

    def _lose(self, actor: Actor, error: BaseException) -> None:
        """An actor is gone. What it had is lost."""
        if not actor.is_ready:
            self._note_failed_start(error)
        self._drop(actor)
        trial = actor.trial
        if trial is not None and self._assigned.get(trial) is actor:
            del self._assigned[trial]
            self._happened.append(TrialAnswer(trial, self._loss(trial, f"{actor.place} was lost ({_line(error)})")))

    def _loss(self, trial: int, reason: str) -> Answer:
        self._lost[trial] += 1
        if self._lost[trial] >= MOST_LOST:
            return Answer(AnswerKind.DIED, reason=f"lost its machine {MOST_LOST} times in a row: {reason}")
        return Answer(AnswerKind.LOST, reason=reason)

    def _note_failed_start(self, error: BaseException) -> None:
        if getattr(error, "actor_init_failed", False) or not hasattr(error, "actor_id"):
            self._failed.note_refusal(f"an actor cannot be made: {_line(error)}")
        else:
            warn(f"an actor was lost before its worker was ready: {_line(error)}")

    # -- evaluations -------------------------------------------------------------------------------------------------

    def reserve(self, trial: int) -> None:
        """The cheapest actor that is free, or else one that is about to be: what it is told to start waits there."""
        if all(actor.trial is not None for actor in self._actors):  # the one that gave its place was ended
            self._ask()
        unassigned = [actor for actor in self._actors if actor.trial is None]
        actor = min(unassigned, key=lambda actor: (not actor.is_free, not actor.is_ready, self._rate(actor)))
        actor.trial, actor.turn, actor.freeing_since = trial, next(self._turns), None
        actor.is_waiting = actor.has_ended = actor.was_told = False
        self._assigned[trial] = actor

    def _rate(self, actor: Actor) -> float:
        return 0.0 if self._rates is None or actor.facts is None else rate_of(actor.facts, self._rates)

    def begin(self, assignment: Assignment, config: Config) -> None:
        actor = self._assigned[assignment.trial]
        actor.left = assignment.left
        stored, folder = self._space.store_config(config), str(assignment.folder)
        left, speed = assignment.left(), assignment.speed
        actor.order(Start(actor.turn, assignment.trial, stored, assignment.step, folder, left, speed))

    def step(self, trial: int) -> None:
        """One that was lost meanwhile has said so already."""
        if (actor := self._assigned.get(trial)) is not None:
            actor.is_waiting = False
            actor.order(GoOn(actor.turn, actor.left()))

    def wait(self, seconds: float | None) -> list[TrialAnswer]:
        if not self._happened:
            self._listen(POLL if seconds is None else min(seconds, POLL))
            self._give_back_idle()
        happened, self._happened = self._happened, []
        for trial, answer in happened:
            if answer.kind is not AnswerKind.LOST:
                self._lost.pop(trial, None)
        return happened

    def _give_back_idle(self) -> None:
        for actor in [actor for actor in self._actors if actor.is_free]:
            if time.monotonic() - actor.free_since > IDLE_SECONDS:
                actor.order(Quit())
                self._drop(actor)

    def process_of(self, trial: int) -> int:
        return self._assigned[trial].number

    # -- ends --------------------------------------------------------------------------------------------------------

    def close(self, trials: Collection[int], seconds: float) -> None:
        """End evaluations. Paused learners clean up at the same time, and are killed after `seconds`."""
        closing: dict[Actor, int] = {}
        for trial in [trial for trial in trials if trial in self._assigned]:
            actor = self._assigned.pop(trial)
            if not actor.has_ended:
                closing[actor] = trial
            actor.order(Finish(actor.turn, seconds))
            self._is_freeing(actor)
        deadline = time.monotonic() + seconds + 1.0
        while closing and (left := deadline - time.monotonic()) > 0.0 and self._interrupts.interrupted < 2:
            self._listen(min(left, POLL))
            self._interrupts.clear_wakeups()
            closing = {a: trial for a, trial in closing.items() if a.freeing_since is not None and a in self._actors}
        for actor, trial in closing.items():
            self._drop(actor)
            warn_of_closing(trial, "took too long, and was killed")

    def _is_freeing(self, actor: Actor) -> None:
        self._rest(actor)
        actor.trial, actor.freeing_since = None, time.monotonic()

    def tell_to_end(self, trial: int) -> None:
        if (actor := self._assigned.get(trial)) is not None:
            actor.was_told = True
            actor.order(Tell(actor.turn))

    def kill(self, trial: int) -> None:
        """The actor ends the worker with all it started. If that takes it too long, it is ended itself."""
        if (actor := self._assigned.pop(trial, None)) is not None:
            actor.order(Kill(actor.turn))
            self._is_freeing(actor)


def _age(actor: Actor) -> float:
    return time.monotonic() - actor.asked


def _line(error: BaseException) -> str:
    """What Ray says, in one line: its last one that says something of the end."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1][:300] if lines else type(error).__name__
