"""Asks that are prepared while evaluations run, and finished when their outcomes are known.

Preparing does all that is expensive: it fits the models, and ranks candidates as if the running evaluations had ended
as predicted, better, and worse. What it keeps is a short list of candidates and what the models say of them together.
Finishing conditions that on the outcomes that have come in (`surrogates.listed`), and ranks the list again: about a
millisecond, however many trials there are. While an initial design lasts, its next points are prepared.

Both are pure. What was prepared from one state and finished at a later one is the same whenever it is done again; a
history whose `prepared` holds the earlier state asks for just that.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeAlias

import numpy as np

from farthing.budget import Ledger
from farthing.history import History, TrackedTrial, units
from farthing.numerics.arrays import Array, Ints, Mask
from farthing.policies.candidates import FreshSpace
from farthing.policies.fits import FittedModels
from farthing.policies.ranking import RankingWithReason
from farthing.space import Space
from farthing.surrogates.cost.log_cost import CostModel
from farthing.surrogates.fantasies import Fantasies
from farthing.surrogates.listed import JointPosterior, ListedCost, ListedFantasies, ListedSuccess, places
from farthing.trial import Config, Proposal, Status

Rank: TypeAlias = Callable[[FittedModels], RankingWithReason]

AHEAD = 8  # points of an initial design that are prepared at once: evaluations may be shorter than thinking
LISTED = 24  # candidates from each ranking
LEADERS = 8  # evaluated points of least posterior mean: an outcome may make any of them the one to beat
BETTER_AND_WORSE = (-1.28, 1.28)  # standard deviations from the prediction: one outcome in ten is beyond either
SURPRISE = 3.0  # standard deviations of a value, and e^SURPRISING_COST of a cost, beyond which a list is of no use
SURPRISING_COST = float(np.log(4.0))


class ShortList(FreshSpace):
    """The candidates of a list as a space: the only coordinate is the place in it, and there are no moves."""

    def __init__(self, space: Space, history: History, points: Array, is_fresh: Mask) -> None:
        super().__init__(space, history)
        self._points, self._is_fresh = points, is_fresh  # (m, p), (m,)

    @property
    def levels(self) -> Sequence[int | None]:
        return ()

    @property
    def slides(self) -> bool:
        return False

    def snap(self, U: Array) -> Array:
        return U

    def features(self, U: Array) -> Array:
        return U

    def admissible(self, U: Array) -> Mask:
        fresh = self._is_fresh[places(U)]
        return fresh if self._condition is None else np.asarray(fresh & self._condition(U))

    def leading_taken(self, U: Array) -> int:
        return int(np.argmax([*self._is_fresh[places(U)], True]))

    def claim(self, candidates: Iterable[Array]) -> Config | None:
        return super().claim(self._points[int(u[0])] for u in candidates)


@dataclass(frozen=True)
class Ahead:
    """The next points of an initial design, in order."""

    proposals: Sequence[Proposal]

    def surprised(self, history: History) -> bool:
        return False

    def finished(
        self, rank: Rank, space: Space, history: History, ledger: Ledger, rng: np.random.Generator
    ) -> Proposal | None:  # fmt: skip
        """The first that was not proposed meanwhile."""
        fresh = (p for p in self.proposals if space.key(p.config) not in history.taken)
        found = next(fresh, None)
        return None if found is None else replace(found, trial=len(history.trials))


class Joined(NamedTuple):
    """A trial beside the rows of a list."""

    z: Array  # (1, f) features
    w: Array  # (1, n) explained of the process of values
    mean: Array  # (1,)
    across: Array  # (1, m) covariance with the rows


@dataclass(frozen=True, eq=False)
class Listed:
    """A short list, and what is known of it."""

    models: FittedModels
    points: Array  # (m, p)
    keys: Mapping[Hashable, int]  # of the points, and their places
    is_fresh: Mask  # (m,) which of them no trial had
    rows: Array  # (m + l + q, f) features of the points, of the leaders and of what was running
    explained: Array  # (n, m + l + q) of the process of values at these rows
    posterior: JointPosterior  # of these rows
    running: Sequence[int]  # numbers of the q trials
    known: int  # trials
    log_cost: ListedCost | None
    log_price: ListedCost | None
    success: ListedSuccess | None
    joined: dict[int, Joined] = field(default_factory=dict)  # by number of the trial

    def surprised(self, history: History) -> bool:
        """Whether a trial that was running has failed, or ended far from what was predicted."""
        ended = [history.trials[number] for number in self.running]
        ended = [trial for trial in ended if trial.status is not Status.RUNNING]
        if any(trial.status is not Status.COMPLETE or _costs_surprise(trial) for trial in ended):
            return True
        at = np.array([self._place_of(trial) for trial in ended], dtype=np.intp)
        return self.posterior.surprise(at, self._outputs(ended)) > SURPRISE

    def finished(
        self, rank: Rank, space: Space, history: History, ledger: Ledger, rng: np.random.Generator
    ) -> Proposal | None:
        """The best of the list, given what has happened since; None if all of it was proposed."""
        begun = [history.trials[number] for number in self.running] + list(history.trials[self.known :])
        fresh = ShortList(space, history, self.points, self._still_fresh(begun))
        m = len(self.points)
        models = replace(
            self.models, fresh=fresh, ledger=ledger, fantasies=self._fantasies(space, begun, rng), rng=rng,
            anchors=np.empty((0, 1)), pool=np.arange(m, dtype=np.float64)[:, None],
            log_cost=self.log_cost, log_price=self.log_price, success=self.success,
        )  # fmt: skip
        ranked = rank(models)
        config = fresh.claim(ranked.ranking.U)
        if config is None:
            return None
        place = np.array([[float(self.keys[space.key(config)])]])
        return Proposal(
            len(history.trials), config, models.cost_at(place), ranked.reason, {**self.models.fits, **ranked.fits}
        )

    def _still_fresh(self, begun: Sequence[TrackedTrial]) -> Mask:
        fresh = self.is_fresh.copy()
        fresh[[self.keys[trial.key] for trial in begun if trial.key in self.keys]] = False
        return fresh

    def _fantasies(self, space: Space, begun: Sequence[TrackedTrial], rng: np.random.Generator) -> ListedFantasies:
        posterior, at = self._with_places(space, begun)
        complete = np.array([trial.status is Status.COMPLETE for trial in begun], dtype=np.bool_)
        running = np.array([trial.status is Status.RUNNING for trial in begun], dtype=np.bool_)
        outputs = self._outputs([trial for trial in begun if trial.status is Status.COMPLETE])
        if len(outputs):
            posterior = posterior.given(at[complete], outputs)
        target = self._target(posterior, at[complete], outputs)
        return posterior.fantasised(at[running], target, self.models.value.least_variance, rng)

    def _target(self, posterior: JointPosterior, at: Ints, outputs: Array) -> float:
        """The value to beat, as `FittedModels.of` has it."""
        if self.models.options.target == "least":
            return float(min(self.models.value.y.min(), outputs.min(initial=np.inf)))
        m = len(self.points)
        leaders = np.arange(m, len(self.rows) - len(self.running))
        return float(posterior.mean[np.concatenate([leaders, at])].min())

    def _outputs(self, trials: Sequence[TrackedTrial]) -> Array:
        """What the process of values sees of complete trials."""
        return self.models.scale(np.array([trial.value for trial in trials], dtype=np.float64))

    def _place_of(self, trial: TrackedTrial) -> int | None:
        """Its row, None if it has none: it was begun since, from another list."""
        if trial.number in self.running:
            return len(self.rows) - len(self.running) + self.running.index(trial.number)
        return self.keys.get(trial.key)

    def _joined(self, space: Space, trial: TrackedTrial) -> Joined:
        """What is known of a trial that has no row. It is asked for again at each ask that is finished from this list,
        and stays the same."""
        if trial.number not in self.joined:
            value, z = self.models.value, space.features(units([trial], len(space)))
            w = value.explained(z)
            across = value.covariance_between(self.rows, self.explained, z, w)
            self.joined[trial.number] = Joined(z, w.T, value.mean_at(z), across.T)
        return self.joined[trial.number]

    def _with_places(self, space: Space, begun: Sequence[TrackedTrial]) -> tuple[JointPosterior, Ints]:
        """The posterior with a row for each of these trials, and where that is."""
        found = [self._place_of(trial) for trial in begun]
        others = [trial for trial, place in zip(begun, found, strict=True) if place is None]
        posterior, new = self.posterior, iter(range(len(self.rows), len(self.rows) + len(others)))
        if others:
            Z, W, mean, across = map(
                np.concatenate, zip(*(self._joined(space, trial) for trial in others), strict=True)
            )
            among = self.models.value.covariance_between(Z, W.T, Z, W.T)
            posterior = posterior.extended(mean, across.T, among)
        return posterior, np.array([next(new) if place is None else place for place in found], dtype=np.intp)


Prepared: TypeAlias = Ahead | Listed


def listed(rank: Rank, models: FittedModels, history: History) -> Listed | None:
    """The short list of an ask; None where nothing can be proposed."""
    space, running = models.space, history.running
    pending = space.features(units(running, len(space)))
    rankings = [rank(each).ranking.U for each in (models, *_better_and_worse(models, pending))]
    if models.log_price is not None:
        rankings.append(models.by_improvement().U)
    points = np.concatenate([U[:LISTED] for U in rankings])
    if not len(points):
        return None
    first: dict[Hashable, int] = {}
    for place, key in enumerate(space.keys(points)):
        first.setdefault(key, place)
    points = points[list(first.values())]
    keys, X = {key: place for place, key in enumerate(first)}, space.features(points)
    is_fresh = np.array([key not in history.taken for key in keys], dtype=np.bool_)
    leaders = models.value.X[np.argsort(models.value.mean_at(models.value.X), kind="stable")[:LEADERS]]
    rows = np.concatenate([X, leaders, pending])
    success = None if models.success is None else ListedSuccess(models.success.log_success(X))
    value = models.value
    explained = value.explained(rows)
    among = value.covariance_between(rows, explained, rows, explained)
    posterior = JointPosterior(value.mean_at(rows), among, value.noise)
    return Listed(
        models, points, keys, is_fresh, rows, explained, posterior, [trial.number for trial in running],
        len(history.trials), _cost_at(models.log_cost, X), _cost_at(models.log_price, X), success,
    )  # fmt: skip


def _better_and_worse(models: FittedModels, pending: Array) -> list[FittedModels]:
    """The models as they will be if all that is running turns out better, or worse, than predicted."""
    if not len(pending):
        return []
    value, (mean, variance) = models.value, models.value.predict(pending)
    target = float(np.min(value.y if models.options.target == "least" else value.mean_at(value.X)))
    found = []
    for distance in BETTER_AND_WORSE:
        outcome = mean + distance * np.sqrt(variance + value.noise)
        process = value.condition(pending, outcome)
        fantasies = Fantasies.of(process, min(target, float(outcome.min())), pending[:0], models.rng)
        found.append(replace(models, fantasies=fantasies))
    return found


def _cost_at(model: CostModel | None, X: Array) -> ListedCost | None:
    return None if model is None else ListedCost(*model.predict(X))


def _costs_surprise(trial: TrackedTrial) -> bool:
    if not trial.cost or not trial.predicted_cost:
        return False
    return abs(float(np.log(trial.cost / trial.predicted_cost))) > SURPRISING_COST
