"""Training curves of a study as a model sees them.

Symbols: t_max steps of a complete training; y the running best of the values reported, warped (surrogates/outputs.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, Protocol, TypeAlias

import numpy as np

from farthing.history import History, TrackedTrial, Way, units
from farthing.history.ways import HURRIED_ROWS, MOST_FEW
from farthing.numerics.arrays import Array, Ints
from farthing.numerics.rows import few_rows
from farthing.policies.candidates import ANCHORS
from farthing.policies.model_options import ModelledValues
from farthing.space import Space
from farthing.surrogates.curves import monotone, time_kernels, unconstrained
from farthing.surrogates.curves.choice import Auto, Choice, KernelOption, choose
from farthing.surrogates.curves.monotone import Curves
from farthing.surrogates.curves.paths import Paths
from farthing.surrogates.curves.points import by_posterior_variance
from farthing.surrogates.curves.time_kernels import TimeKernel
from farthing.surrogates.curves.unconstrained import Hyperparameters
from farthing.surrogates.fitting import number_of_groups
from farthing.surrogates.outputs import Scale, Warp
from farthing.trial import Status

CurvePoints: TypeAlias = Literal["variance", "posterior", "halves", "last"]

POINTS = 3  # of a curve that enter the data: its start, bend and end, at a cost that is cubic in their number
Tolerance: TypeAlias = float | Literal["least"] | None

GAP_SHARE = 0.05  # default of eps, as a share of the way from the median of the values seen to the best
FEWEST = 2  # curves, below which there is nothing to model
JITTER = 1e-6  # of the variance, added to the diagonal since neighbouring steps are nearly the same to a solver


class CurveOptions(Protocol):
    """What a policy says about its model of curves."""

    @property
    def points(self) -> CurvePoints: ...
    @property
    def kernel(self) -> KernelOption: ...
    @property
    def monotone(self) -> bool | Auto: ...
    @property
    def values(self) -> ModelledValues: ...
    @property
    def eps(self) -> Tolerance: ...


@dataclass(frozen=True, eq=False)
class TrainingCurves:
    """The model of all curves, fitted."""

    model: Curves
    choice: Choice
    warp: Warp | Scale
    t_max: int
    ends: Mapping[int, float]  # of trials by number: their values, the least that each reported
    eps: float  # in the units of the value
    anchors: Array  # (k, p) configurations of the best runs

    @classmethod
    def of(
        cls, options: CurveOptions, space: Space, history: History, rng: np.random.Generator, *, chooses: bool = True
    ) -> TrainingCurves | None:
        """From every trial with a curve; None while there are too few. Without `chooses`, what is "auto" is as it was
        chosen last."""
        trained = [trial for trial in history.trials if len(trial.curve) and trial.value is not None]
        if len(trained) < FEWEST or history.max_steps is None or history.way is Way.NONE:
            return None
        ends = np.array([trial.value for trial in trained], dtype=np.float64)
        warp = (Warp if options.values == "warped" else Scale).of(ends)
        choice = _choice(options, space, trained, warp, history, chooses)
        model = _fitted(options.points, choice, space, trained, ends, warp, history, rng)
        order = np.argsort(ends, kind="stable")[:ANCHORS]
        anchors = units([trained[i] for i in order], len(space))
        by_number = {trial.number: float(end) for trial, end in zip(trained, ends, strict=True)}
        eps = tolerance(options.eps, trained, ends, history.max_steps)
        return cls(model, choice, warp, history.max_steps, by_number, eps, anchors)

    @property
    def paths(self) -> Paths:
        return self.model.paths

    @cached_property
    def best(self) -> float:
        """The least value of all, warped."""
        return self._warped_least(self.ends.values())

    def best_of_others(self, number: int) -> float:
        """The least value of all but one, warped: what that one must beat."""
        return self._warped_least(end for other, end in self.ends.items() if other != number)

    def _warped_least(self, ends: Iterable[float]) -> float:
        return float(self.warp(np.array([min(ends)]))[0])

    def stops(self, X: Array) -> Array:
        """The smallest steps (c,) with mu(x, t) - mu(x, t_max) <= eps at X (c, f), by bisection (Eq. 8)."""
        low, high = np.zeros(len(X)), np.full(len(X), float(self.t_max))
        end = self._values(X, high)
        while np.any(high - low > 1.0):
            middle = np.floor(0.5 * (low + high))
            enough = self._values(X, np.maximum(middle, 1.0)) - end <= self.eps
            open_ = high - low > 1.0
            high = np.where(open_ & enough, middle, high)
            low = np.where(open_ & ~enough, middle, low)
        return high

    def _values(self, X: Array, t: Array) -> Array:
        """Means in the units of the value."""
        return self.warp.inverse(self.paths.at(X, t).moments()[0])


def tolerance(eps: Tolerance, trained: Sequence[TrackedTrial], ends: Array, t_max: int) -> float:
    """What more training must gain to be worth it (eps of Eq. 8): as given, the least degradation, or a share of the
    way from the median of the values seen to the best. The last also while no curve is complete."""
    if isinstance(eps, float):
        return eps
    least = least_degradation(trained, t_max) if eps == "least" else None
    return GAP_SHARE * float(np.median(ends) - ends.min()) if least is None else least


def least_degradation(trained: Sequence[TrackedTrial], t_max: int) -> float | None:
    """The paper's automatic eps (section 5): the least f(x, t) - f(x, t_max) over every step t of every complete curve,
    since all of them are in D (Algorithm 2, line 8); None without such a curve, or if none fell. A step that is as good
    as the end, like the end itself, is no degradation: it would make eps 0 always."""
    complete = [_running_best(trial) for trial in trained if len(trial.curve) >= t_max]
    gaps = np.concatenate([np.empty(0), *(best - best[-1] for best in complete)])
    return float(gaps[gaps > 0.0].min()) if np.any(gaps > 0.0) else None


def _choice(
    options: CurveOptions, space: Space, trained: list[TrackedTrial], warp: Warp | Scale, history: History, again: bool
) -> Choice:
    """What is "auto": chosen once more if it may be and there are many more steps, else as it was, or the default."""
    stored = history.fits.get("curve_choice")
    last = Choice.from_json(stored) if stored else Choice()
    kernel = last.kernel if options.kernel == "auto" else options.kernel
    falling = last.falling if options.monotone == "auto" else options.monotone
    if "auto" not in (options.kernel, options.monotone):
        return Choice(kernel, falling)
    if not (again and history.way.refits and last.is_old(sum(len(trial.curve) for trial in trained))):
        return Choice(kernel, falling, last.at)
    X, curves = space.features(units(trained, len(space))), [warp(_running_best(trial)) for trial in trained]
    return choose(X, curves, space.groups, float(history.max_steps or 0), options.kernel, options.monotone)


def _fitted(
    points: CurvePoints, choice: Choice, space: Space, trained: list[TrackedTrial], ends: Array, warp: Warp | Scale,
    history: History, rng: np.random.Generator,
) -> Curves:  # fmt: skip
    """The model of some trials' curves, fitted; or with the hyperparameters of the last fit, or of one to few curves,
    if nothing is to be fitted again."""
    way, stored, groups = history.way, history.fits.get("bapi"), space.groups
    warm, t_max = Hyperparameters.from_json(stored) if stored else None, float(history.max_steps or 0)
    running = [trial.status is Status.RUNNING for trial in trained]  # what becomes of these is decided by their curves
    known = way.of(trained, np.where(running, -np.inf, ends), MOST_FEW // POINTS)
    X, t, y = _data(points, choice.kernel, space, known, t_max, warm)
    if way.refits:
        return monotone.fit(
            X, t, warp(y), groups, t_max=t_max, kernel=choice.kernel, warm=warm, rng=rng, falling=choice.falling
        )  # fmt: skip
    if warm is None or not warm.suits(choice.kernel, number_of_groups(groups)):
        some = [trained[i] for i in few_rows(len(trained), None, HURRIED_ROWS // POINTS)]
        X_few, t_few, y_few = _data(points, choice.kernel, space, some, t_max, warm)
        warm = unconstrained.fit(X_few, t_few, warp(y_few), groups, t_max, choice.kernel).hyperparameters
    plain = unconstrained.from_hyperparameters(X, t, warp(y), warm, t_max, groups)
    return monotone.constrained(plain, int(rng.integers(2**62)), falling=choice.falling)


def _data(
    points: CurvePoints, kernel: TimeKernel, space: Space, trials: list[TrackedTrial], t_max: float,
    warm: Hyperparameters | None,
) -> tuple[Array, Array, Array]:  # fmt: skip
    """Features (n, f), steps (n,) and values (n,) of the points of curves that enter the model."""
    X = space.features(units(trials, len(space)))
    lengths = [len(trial.curve) for trial in trials]
    if points == "posterior":
        known = _known(kernel, space, warm)
        steps = by_posterior_variance(X, lengths, int(t_max), known, np.array(space.groups), POINTS)
    else:
        steps = [chosen_steps(length, int(t_max), points, kernel, warm) for length in lengths]
    y = np.concatenate([_running_best(trial)[t - 1] for trial, t in zip(trials, steps, strict=True)])
    return np.repeat(X, [len(t) for t in steps], axis=0), np.concatenate(steps).astype(np.float64), y


def _known(kernel: TimeKernel, space: Space, warm: Hyperparameters | None) -> Hyperparameters:
    """The hyperparameters of the last fit, or the means of their priors."""
    g = number_of_groups(np.array(space.groups, dtype=np.intp))
    return warm if warm is not None and warm.suits(kernel, g) else Hyperparameters.expected(kernel, g)


def chosen_steps(
    length: int, t_max: int, points: CurvePoints, kernel: TimeKernel, warm: Hyperparameters | None
) -> Ints:
    """Which steps of a curve enter the data: the last, and where the process is least certain given those chosen; with
    "halves" the last, the one half-way to it, and half-way to that.

    Judged by the kernel over time alone, since points of the same curve say most about each other: with the
    hyperparameters of the last fit, or their prior means.
    """
    if points == "last" or length == 1:
        return np.array([length], dtype=np.intp)
    if points == "halves":
        return np.unique([max(length >> i, 1) for i in range(POINTS)])
    known = warm is not None and warm.kernel == kernel
    phi = np.array(warm.time if warm is not None and known else time_kernels.PRIOR_MEAN[kernel])
    t, value = np.arange(1, length + 1) / t_max, np.zeros(length, dtype=np.intp)
    prior = time_kernels.variance(kernel, phi, t, value)
    chosen = [length - 1]
    while len(chosen) < min(POINTS, length):  # only rows of the covariance: curves can have many thousand steps
        K = time_kernels.covariance(kernel, phi, t[chosen], value[chosen], t, value)
        among = K[:, chosen] + JITTER * prior[0] * np.eye(len(chosen))
        left = prior - np.einsum("ij,ij->j", K, np.linalg.solve(among, K))
        left[chosen] = -np.inf
        chosen.append(int(np.argmax(left)))
    return np.sort(np.array(chosen, dtype=np.intp)) + 1


def _running_best(trial: TrackedTrial) -> Array:
    return np.minimum.accumulate(np.array(trial.curve.values, dtype=np.float64))
