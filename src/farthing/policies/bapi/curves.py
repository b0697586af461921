"""Training curves of a study as a model sees them, and what their steps cost.

Symbols: t_max steps of a complete training; y the running best of the values reported, warped (surrogates/outputs.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from farthing.history import History, units
from farthing.numerics.arrays import Array
from farthing.space import Space
from farthing.surrogates import gp
from farthing.surrogates.cost import choice, log_cost
from farthing.surrogates.curves import monotone, time_kernels
from farthing.surrogates.curves.monotone import Curves
from farthing.surrogates.curves.paths import Paths
from farthing.surrogates.curves.time_kernels import TimeKernel
from farthing.surrogates.curves.unconstrained import Hyperparameters
from farthing.surrogates.outputs import Warp
from farthing.trial import Trial

POINTS = 3  # of a curve that enter the data
GAP_SHARE = 0.05  # of the way from the median of the values seen to the best: what eps is by default
FEWEST = 2  # curves, below which there is nothing to model
ANCHORS = 3
MOST_VARIANCE = 2.0  # of log cost: what is less certain than by a factor of four is not thought to cost more for it


class CurveOptions(Protocol):
    """What a policy says about its model of curves."""

    @property
    def points(self) -> Literal["variance", "last"]: ...
    @property
    def kernel(self) -> TimeKernel: ...
    @property
    def monotone(self) -> bool: ...
    @property
    def eps(self) -> float | None: ...


@dataclass(frozen=True, eq=False)
class TrainingCurves:
    """All curves, fitted."""

    curves: Curves
    warp: Warp
    t_max: int
    best: float  # warped
    eps: float  # in the units of the value
    anchors: Array  # (k, p) configurations of the best runs

    @classmethod
    def of(
        cls, options: CurveOptions, space: Space, history: History, rng: np.random.Generator
    ) -> TrainingCurves | None:
        """From every trial with a curve; None while there are too few."""
        trained = [trial for trial in history.trials if len(trial.curve) and trial.value is not None]
        if len(trained) < FEWEST or history.max_steps is None:
            return None
        stored = history.fits.get("bapi")
        warm = Hyperparameters.from_json(stored) if stored else None
        ends = np.array([trial.value for trial in trained], dtype=np.float64)
        warp = Warp.of(ends)
        t_max = history.max_steps
        steps = [chosen_steps(len(trial.curve), t_max, options, warm) for trial in trained]
        X = space.features(units(trained, len(space)))
        y = np.concatenate([_running_best(trial)[t - 1] for trial, t in zip(trained, steps, strict=True)])
        curves = monotone.fit(
            np.repeat(X, [len(t) for t in steps], axis=0), np.concatenate(steps).astype(np.float64), warp(y),
            space.groups, t_max=float(t_max), kernel=options.kernel, warm=warm, rng=rng, falling=options.monotone,
        )  # fmt: skip
        eps = options.eps if options.eps is not None else GAP_SHARE * float(np.median(ends) - ends.min())
        order = np.argsort(ends, kind="stable")[:ANCHORS]
        anchors = units([trained[i] for i in order], len(space))
        best = float(warp(np.array([ends.min()]))[0])
        return cls(curves, warp, t_max, best, eps, anchors)

    @property
    def paths(self) -> Paths:
        return self.curves.paths

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


def chosen_steps(length: int, t_max: int, options: CurveOptions, warm: Hyperparameters | None) -> NDArray[np.intp]:
    """Which steps of a curve enter the data: the last, and where the process is least certain given those chosen.

    By the kernel over time alone, since the others of a curve say most about it; what the last fit found, or its prior.
    """
    if options.points == "last" or length == 1:
        return np.array([length], dtype=np.intp)
    known = warm is not None and warm.kernel == options.kernel
    phi = np.array(warm.time if warm is not None and known else time_kernels.PRIOR_MEAN[options.kernel])
    t = np.arange(1, length + 1) / t_max
    value = np.zeros(length, dtype=np.intp)
    K = time_kernels.covariance(options.kernel, phi, t, value, t, value)
    chosen = [length - 1]
    while len(chosen) < min(POINTS, length):
        among = K[np.ix_(chosen, chosen)] + 1e-6 * K[0, 0] * np.eye(len(chosen))
        left = np.diag(K) - np.einsum("ij,ij->j", K[chosen], np.linalg.solve(among, K[chosen]))
        left[chosen] = -np.inf
        chosen.append(int(np.argmax(left)))
    return np.sort(np.array(chosen, dtype=np.intp)) + 1


def _running_best(trial: Trial) -> Array:
    return np.minimum.accumulate(np.array(trial.curve.values, dtype=np.float64))


@dataclass(frozen=True, eq=False)
class RunCosts:
    """What a step costs: every step of one configuration alike, priced by the steps it has had."""

    model: log_cost.CostModel | None
    fits: dict[str, Any]

    @classmethod
    def of(cls, kind: Literal["lines", "process"], space: Space, history: History) -> RunCosts:
        priced = [trial for trial in history.trials if _per_step(trial) is not None]
        if not priced:
            return cls(None, {})
        X = space.features(units(priced, len(space)))
        slopes = np.array([_per_step(trial) for trial in priced], dtype=np.float64)
        if kind == "process":
            return cls(LinearInSteps.of(X, slopes, space), {})
        b = log_cost.logs(slopes)
        chosen = choice.choose(X, b, space.groups, space.ratios, history.fits.get("step_cost"))
        return cls(chosen.model, {"step_cost": chosen.state})

    def log_per_step(self, X: Array) -> Array:
        """log of the mean cost (c,) at X (c, f), which for an uncertain one lies above its median; 0 while nothing is
        known."""
        if self.model is None:
            return np.zeros(len(X))
        mean, variance = self.model.predict(X)
        return np.asarray(mean + 0.5 * np.minimum(variance, MOST_VARIANCE))

    def log_per_step_of(self, trial: Trial) -> float:
        own = _per_step(trial)
        return 0.0 if self.model is None or not own else float(np.log(own))


def _per_step(trial: Trial) -> float | None:
    """Mean cost of the steps of a trial, None where it has none."""
    known = [cost for cost in trial.curve.costs if cost is not None]
    return float(np.mean(known)) if known else None


@dataclass(frozen=True, eq=False)
class LinearInSteps(log_cost.CostModel):
    """BAPI's own: a process over x times a line through 0 over t, which is a process on the cost of a step."""

    process: gp.GP
    least: float  # the smallest cost seen

    @classmethod
    def of(cls, X: Array, slopes: Array, space: Space) -> LinearInSteps:
        positive = slopes[slopes > 0.0]
        return cls(gp.fit(X, slopes, space.groups), 0.1 * float(positive.min()) if len(positive) else 1e-12)

    def predict(self, X: Array) -> tuple[Array, Array]:
        """Mean (m,) and variance (m,) of the log, by the first terms of its series."""
        mean, variance = self.process.predict(X)
        held = np.maximum(mean, self.least)
        return np.log(held), variance / held**2
