"""Trials at two levels of training, and what they say together: one scale and the joint surrogate.

Symbols: y_e the value when the fast period of a training ended, y_c that of the complete training.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np

from farthing.history import TrackedTrial, Way, units
from farthing.history.ways import HURRIED_ROWS, MOST_FEW, few_rows
from farthing.numerics.arrays import Array
from farthing.space import Space
from farthing.surrogates import two_fidelity
from farthing.surrogates.fitting import number_of_groups
from farthing.trial import Status

ValueIs: TypeAlias = Literal["best", "last"]  # the value at a level: the best that was reported so far, or the last


@dataclass(frozen=True)
class TrainingRun:
    """A trial at its two levels of training."""

    trial: TrackedTrial
    fast: float  # y_e
    complete: float | None  # y_c
    fast_cost: float | None
    complete_cost: float | None  # of the rest, after the fast period

    @classmethod
    def of(cls, trial: TrackedTrial, step: int | None, value_is: ValueIs) -> TrainingRun | None:
        """From the step at which its fast period ended; None while that lasts. A trial that is complete without a
        report counts for both levels."""
        if trial.status is Status.COMPLETE and not len(trial.curve) and trial.value is not None:
            return cls(trial, trial.value, trial.value, trial.cost, None)
        if step is None or step > len(trial.curve):
            return None
        ended = trial.status in (Status.COMPLETE, Status.STOPPED)
        values, costs = np.array(trial.curve.values), [cost or 0.0 for cost in trial.curve.costs]
        value_of = np.min if value_is == "best" else _last
        known = any(cost is not None for cost in trial.curve.costs)
        return cls(
            trial, float(value_of(values[:step])), float(value_of(values)) if ended else None,
            sum(costs[:step]) if known else None, sum(costs[step:]) if known and ended else None,
        )  # fmt: skip


def _last(values: Array) -> float:
    return float(values[-1])


SurrogateKind: TypeAlias = Literal["tgp", "dgp"]
BiasKind: TypeAlias = Literal["truncated", "lognormal"]

WORST = 3.0  # interquartile ranges above the upper quartile at which a value is cut: a diverged run is just bad
LEAST_SPREAD = 1e-12  # of values divided by the largest: below, they differ only by rounding


@dataclass(frozen=True)
class Scale:
    """One affine map for the values of both levels, after a cut that limits diverged runs."""

    unit: float  # the largest size, divided by first so that nothing overflows
    cut: float
    centre: float
    spread: float

    @classmethod
    def of(cls, values: Array) -> Scale:
        unit = float(np.max(np.abs(values), initial=0.0)) or 1.0
        z = values / unit
        low, middle, high = np.percentile(z, [25, 50, 75])
        cut = float(high + WORST * (high - low)) if high > low else float(z.max())
        spread = float(np.std(np.minimum(z, cut)))
        return cls(unit, cut, float(middle), spread if spread > LEAST_SPREAD else 1.0)

    def __call__(self, values: Array) -> Array:
        return np.asarray((np.minimum(values / self.unit, self.cut) - self.centre) / self.spread)

    @property
    def reach(self) -> float:
        """How far above 0 the cut is, in spreads."""
        return self.cut / self.spread


@dataclass(frozen=True, eq=False)
class TwoLevels:
    """The joint surrogate of all runs, fitted at most once per ask. Options as in `bopt`."""

    space: Space
    runs: list[TrainingRun]
    stored: dict[str, Any] | None  # hyperparameters of the last fit
    surrogate: SurrogateKind
    bias: BiasKind
    value_is: ValueIs
    rho: float | None
    way: Way = Way.FULL

    @cached_property
    def _scale(self) -> Scale:
        return Scale.of(np.array([run.fast for run in self.runs]))

    def scaled(self, values: Sequence[float]) -> Array:
        return self._scale(np.array(values, dtype=np.float64))

    @cached_property
    def model(self) -> two_fidelity.TwoFidelity:
        """The joint surrogate of both levels; if nothing is to be fitted again, with the hyperparameters of the last
        fit, or of one to few runs."""
        warm = two_fidelity.Hyperparameters.from_json(self.stored) if self.stored else None
        if self.way.refits:
            return self._fitted(self.runs, warm)
        if warm is None or warm.law != self.bias or len(warm.bias.log_scales) != number_of_groups(self.space.groups):
            warm = self._fitted(self._few(HURRIED_ROWS)).hyperparameters
        bounds = self._bounds()
        kept = warm if isinstance(bounds, str) else replace(warm, bounds=bounds)
        runs = self.runs if self.way is Way.KEPT else self._few()
        return two_fidelity.from_hyperparameters(*self._data(runs), kept, self.space.groups)

    def _fitted(
        self, runs: Sequence[TrainingRun], warm: two_fidelity.Hyperparameters | None = None
    ) -> two_fidelity.TwoFidelity:
        return two_fidelity.fit(
            *self._data(runs), self.space.groups, bounds=self._bounds(), rho=self.rho, bias=self.bias, warm=warm
        )  # fmt: skip

    def _data(self, runs: Sequence[TrainingRun]) -> tuple[Array, Array, Array, Array]:
        """X_e, y_e, X_c and y_c, scaled."""
        X = self.features(runs)
        both = [i for i, run in enumerate(runs) if run.complete is not None]
        y_e = self.scaled([run.fast for run in runs])
        return X, y_e, X[both], self.scaled([runs[i].complete or 0.0 for i in both])

    def _few(self, most: int = MOST_FEW) -> list[TrainingRun]:
        """Few of the runs: half of them complete ones, without which there would be no bias to learn."""
        complete = [run for run in self.runs if run.complete is not None]
        others = [run for run in self.runs if run.complete is None]
        half = [[some[i] for i in few_rows(len(some), _ends(some), most // 2)] for some in (complete, others)]
        return [*half[0], *half[1]]

    def features(self, runs: Sequence[TrainingRun]) -> Array:
        return self.space.features(units([run.trial for run in runs], len(self.space)))

    def _bounds(self) -> tuple[float, float] | Literal["learned"]:
        if self.surrogate == "dgp" and self.bias == "truncated":
            return (-np.inf, np.inf)
        if self.value_is == "last":
            return "learned"
        lowest = min(run.fast if run.complete is None else run.complete for run in self.runs)
        return (-self._scale.reach if lowest >= 0.0 and self._scale.reach > 0.0 else -np.inf, 0.0)

    @property
    def target(self) -> float:
        """The best complete value so far."""
        return float(min(self.scaled([run.complete for run in self.runs if run.complete is not None] or [0.0])))

    @property
    def fits(self) -> dict[str, Any]:
        """The fit, for the next ask to start from; nothing if no model was needed."""
        return {"bopt": self.model.hyperparameters.as_json()} if "model" in self.__dict__ else {}


def _ends(runs: Sequence[TrainingRun]) -> Array:
    """The value of each run where it is."""
    return np.array([run.fast if run.complete is None else run.complete for run in runs], dtype=np.float64)
