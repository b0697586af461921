"""Trials at two levels of training, and what they say together: one scale and the joint surrogate.

Symbols: y_e the value when the fast period of a training ended, y_c that of the complete training.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np

from farthing.history import History, TrackedTrial, Way, units
from farthing.history.ways import HURRIED_ROWS, MOST_FEW
from farthing.numerics.arrays import Array
from farthing.numerics.rows import few_rows
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

    @property
    def latest(self) -> float:
        """The value where it is: that of the complete training, if there is one."""
        return self.fast if self.complete is None else self.complete


class Levelled(Protocol):
    """A policy that trains at two levels."""

    @property
    def level(self) -> ValueIs: ...
    def fast_end(self, trial: TrackedTrial, max_steps: int | None) -> int | None: ...


def training_runs(policy: Levelled, history: History) -> list[TrainingRun]:
    """The trials whose fast period has ended."""
    steps = history.max_steps
    ended = (TrainingRun.of(trial, policy.fast_end(trial, steps), policy.level) for trial in history.trials)
    return [run for run in ended if run is not None]


def _last(values: Array) -> float:
    return float(values[-1])


SurrogateKind: TypeAlias = Literal["tgp", "dgp"]
BiasKind: TypeAlias = Literal["truncated", "lognormal"]
Kernel: TypeAlias = Literal["matern52", "gaussian"]
Imputation: TypeAlias = Literal["carry", "plug-in"]
Fit: TypeAlias = Literal["map", "mle"]
Noise: TypeAlias = Literal["fitted", "none"]
LevelValues: TypeAlias = Literal["cut", "plain"]
BiasBounds: TypeAlias = tuple[float | None, float | None]  # b1 and b2; None where the bias has no bound


@dataclass(frozen=True)
class Modelling:
    """The options of `bopt` that say how both levels are modelled."""

    surrogate: SurrogateKind = "tgp"
    bias: BiasKind = "truncated"
    level: ValueIs = "best"
    rho: float | None = 1.0
    values: LevelValues = "cut"
    bounds: BiasBounds | None = None
    kernel: Kernel = "matern52"
    imputation: Imputation = "carry"
    fit: Fit = "map"
    noise: Noise = "fitted"

    @property
    def has_one_size(self) -> bool | None:
        """Whether values of both levels are of one size, so that one cut is right for both; None if the values have to
        tell. The best so far only falls, so that what is extreme in the end was extreme before."""
        if self.level == "best":
            return True
        return None if self.rho == 1.0 else False

    @property
    def is_bounded(self) -> bool:
        return self.surrogate == "tgp" or self.bias == "lognormal"

    @property
    def estimation(self) -> two_fidelity.Estimation:
        return two_fidelity.Estimation(priors=self.fit == "map", noise=self.noise == "fitted")

    def has_found(self, fit: two_fidelity.Hyperparameters, parameters: int) -> bool:
        """Whether a stored fit is one of this model."""
        same = fit.law == self.bias and fit.kernel == self.kernel and fit.priors == self.estimation.priors
        return same and len(fit.bias.log_scales) == parameters


WORST = 3.0  # interquartile ranges above the upper quartile at which a value is cut: a diverged run is just bad
LEAST_SPREAD = 1e-12  # of values divided by the largest: below, they differ only by rounding
LEAST_SIZE = 1e-6  # of cut values divided by the largest before the cut: below, they are the unit, not what diverged
FARTHEST = 1e9  # spreads of the fast level: how far a complete value may lie from it, so that its square is no infinity


@dataclass(frozen=True)
class Scale:
    """One affine map for the values of both levels, after a cut at each that limits diverged runs."""

    unit: float  # the largest size, or that of cut values; divided by first so that nothing overflows
    cut: float  # of the fast level, after that division
    centre: float
    spread: float
    complete_cut: float
    has_one_size: bool  # whether values of both levels are of about one size

    @classmethod
    def of(cls, runs: Sequence[TrainingRun], options: Modelling) -> Scale:
        fast = np.array([run.fast for run in runs])
        pairs = np.array([(run.fast, y) for run in runs if (y := run.complete) is not None]).reshape(-1, 2)
        unit = float(np.max(np.abs(fast), initial=0.0)) or 1.0
        cut, middle = _cut_and_median(fast / unit, options)
        size = float(np.abs(np.minimum(fast / unit, cut)).max())
        if 0.0 < size < LEAST_SIZE:  # next to a run that diverged to 1e200, all others would be one number
            unit *= size
            cut, middle = cut / size, middle / size
        with np.errstate(over="ignore"):
            spread = float(np.std(np.minimum(fast / unit, cut)))
        spread = spread if spread > LEAST_SPREAD else 1.0
        # With a free factor, the bounds that a user gives hold for y_c - rho y_e only if no centre is subtracted.
        centre = 0.0 if options.rho is None and options.bounds is not None else middle
        farthest = middle + FARTHEST * spread
        with np.errstate(over="ignore"):  # of a run that diverged: it is cut
            before, after = np.minimum(pairs / unit, farthest).T
        one_size = options.has_one_size
        if one_size is None:  # not if a common cut would cut most of the complete level
            one_size = bool(np.sum(after > cut) <= len(after) / 2)
        complete_cut = cut if one_size or not len(after) else min(_carried(cut, before, after), farthest)
        return cls(unit, cut, centre, spread, farthest if options.values == "plain" else complete_cut, one_size)

    def __call__(self, values: Array) -> Array:
        """Values of the fast level."""
        return self._scaled(values, self.cut)

    def complete(self, values: Array) -> Array:
        """Values of the complete level."""
        return self._scaled(values, self.complete_cut)

    def _scaled(self, values: Array, cut: float) -> Array:
        with np.errstate(over="ignore"):
            z = values / self.unit
        return np.asarray((np.minimum(z, cut) - self.centre) / self.spread)

    def inverse(self, z: Array) -> Array:
        """Values from scaled ones."""
        with np.errstate(over="ignore"):
            y = (z * self.spread + self.centre) * self.unit
        return np.asarray(np.clip(y, -np.finfo(float).max, np.finfo(float).max))

    @property
    def highest(self) -> tuple[float, float]:
        """Where values of the fast and of the complete level are cut."""
        return (self.cut - self.centre) / self.spread, (self.complete_cut - self.centre) / self.spread

    @property
    def reach(self) -> float:
        """How far above 0 the cut is, in spreads."""
        return self.cut / self.spread

    def bias(self, bound: float, rho: float) -> float:
        """A bound of y_c - rho y_e, given in the units of the values."""
        return (bound / self.unit - (1.0 - rho) * self.centre) / self.spread


def _cut_and_median(z: Array, options: Modelling) -> tuple[float, float]:
    """Where values of the fast level are cut, the largest of them if nothing is; and their median."""
    low, middle, high = np.percentile(z, [25, 50, 75])
    cut = high + WORST * (high - low) if high > low and options.values == "cut" else z.max()
    return float(cut), float(middle)


def _carried(cut: float, before: Array, after: Array) -> float:
    """The cut of the fast level carried over to the complete one: as far from the median of complete runs, in
    interquartile ranges of the level. So a line between the levels is still one after the cuts. The quartiles are
    values themselves: one of four may be anything."""
    (low, middle, high), (low_after, middle_after, high_after) = (
        np.percentile(level, [25, 50, 75], method="inverted_cdf") for level in (before, after)
    )
    if high <= low:  # nothing to carry over by
        return float(high_after + WORST * (high_after - low_after))
    ratio = (high_after - low_after) / (high - low) or 1.0
    return float(middle_after + ratio * max(cut - middle, high - low))


@dataclass(frozen=True, eq=False)
class TwoLevels:
    """The joint surrogate of all runs, fitted at most once per ask."""

    space: Space
    runs: list[TrainingRun]
    stored: dict[str, Any] | None  # hyperparameters of the last fit
    options: Modelling
    way: Way = Way.FULL

    @classmethod
    def kept(cls, space: Space, runs: list[TrainingRun], history: History, options: Modelling) -> TwoLevels:
        """With the hyperparameters that the study found last: nothing is searched for."""
        return cls(space, runs, history.fits.get("bopt"), options, Way.KEPT)

    @cached_property
    def _scale(self) -> Scale:
        return Scale.of(self.runs, self.options)

    def scaled(self, fast: Sequence[float]) -> Array:
        """Values of the fast level."""
        return self._scale(np.array(fast, dtype=np.float64))

    def scaled_complete(self, complete: Sequence[float]) -> Array:
        """Values of the complete level."""
        return self._scale.complete(np.array(complete, dtype=np.float64))

    def unscaled(self, z: Array) -> Array:
        """Values of either level from scaled ones: one map for both."""
        return self._scale.inverse(z)

    @property
    def has_one_size(self) -> bool:
        """Whether values of both levels can be compared."""
        return self._scale.has_one_size

    @cached_property
    def model(self) -> two_fidelity.TwoFidelity:
        """The joint surrogate of both levels; if nothing is to be fitted again, with the hyperparameters of the last
        fit, or of one to few runs."""
        warm = two_fidelity.Hyperparameters.from_json(self.stored) if self.stored else None
        if self.way.refits:
            return self._fitted(self.runs, warm)
        if warm is None or not self.options.has_found(warm, number_of_groups(self.space.groups)):
            warm = self._fitted(self._few(HURRIED_ROWS)).hyperparameters
        bounds = self._bounds()
        kept = warm if isinstance(bounds, str) else replace(warm, bounds=bounds)
        runs = self.runs if self.way is Way.KEPT else self._few()
        return two_fidelity.from_hyperparameters(*self._data(runs), kept, self.space.groups, carry=self._carries)

    def _fitted(
        self, runs: Sequence[TrainingRun], warm: two_fidelity.Hyperparameters | None = None
    ) -> two_fidelity.TwoFidelity:
        options = self.options
        return two_fidelity.fit(
            *self._data(runs), self.space.groups, bounds=self._bounds(), rho=options.rho, bias=options.bias,
            kernel=options.kernel, carry=self._carries, estimation=options.estimation, widen=True, warm=warm,
        )  # fmt: skip

    @property
    def _carries(self) -> bool:
        return self.options.imputation == "carry"

    def _data(self, runs: Sequence[TrainingRun]) -> tuple[Array, Array, Array, Array]:
        """X_e, y_e, X_c and y_c, scaled."""
        X = self.features(runs)
        both = [i for i, run in enumerate(runs) if run.complete is not None]
        y_e = self.scaled([run.fast for run in runs])
        return X, y_e, X[both], self._ends_of(y_e[both], self.scaled_complete([runs[i].complete or 0.0 for i in both]))

    def _ends_of(self, y_e: Array, y_c: Array) -> Array:
        """Values of complete runs: a cut does not move a bias out of its bounds."""
        bounds, rho, (highest, highest_end) = self._bounds(), self.options.rho, self._scale.highest
        if isinstance(bounds, str) or rho is None or self.options.values == "plain":
            return y_c
        bias = y_c - rho * y_e
        moved = ((y_e >= highest) | (y_c >= highest_end)) & ((bias < bounds[0]) | (bias > bounds[1]))
        return np.where(moved, rho * y_e + np.clip(bias, *bounds), y_c)

    def _few(self, most: int = MOST_FEW) -> list[TrainingRun]:
        """Few of the runs: half of them complete ones, without which there would be no bias to learn."""
        complete = [run for run in self.runs if run.complete is not None]
        others = [run for run in self.runs if run.complete is None]
        half = [[some[i] for i in few_rows(len(some), _ends(some), most // 2)] for some in (complete, others)]
        return [*half[0], *half[1]]

    def features(self, runs: Sequence[TrainingRun]) -> Array:
        return self.space.features(units([run.trial for run in runs], len(self.space)))

    def _bounds(self) -> tuple[float, float] | Literal["learned"]:
        """Of the scaled bias: none (DGP), as given, by what the best so far can be, or learned from the runs."""
        options, scale = self.options, self._scale
        if not options.is_bounded:
            return (-np.inf, np.inf)
        if options.bounds is not None:
            rho = 1.0 if options.rho is None else options.rho
            lower, upper = options.bounds
            return (
                -np.inf if lower is None else scale.bias(lower, rho),
                np.inf if upper is None else scale.bias(upper, rho),
            )
        if options.level == "last":
            return "learned"
        is_positive = bool(_ends(self.runs).min() >= 0.0) and scale.reach > 0.0
        if options.rho in (1.0, None):
            return (-scale.reach if is_positive else -np.inf, 0.0)
        if not is_positive:
            return "learned"
        # 0 <= y_c <= y_e <= M, so that y_c - rho y_e lies between -rho M and (1 - rho) M, or 0 if that is less.
        largest, rho = scale.cut * scale.unit, options.rho
        return scale.bias(-rho * largest, rho), scale.bias(max(1.0 - rho, 0.0) * largest, rho)

    @property
    def target(self) -> float:
        """The best complete value so far."""
        return float(min(self.scaled_complete([y for run in self.runs if (y := run.complete) is not None] or [0.0])))

    @property
    def fits(self) -> dict[str, Any]:
        """The fit, for the next ask to start from; nothing if no model was needed."""
        return {"bopt": self.model.hyperparameters.as_json()} if "model" in self.__dict__ else {}


def _ends(runs: Sequence[TrainingRun]) -> Array:
    """The value of each run where it is."""
    return np.array([run.latest for run in runs], dtype=np.float64)
