"""What the errors of cost models say: averages over data sets, ratios to the best single model, intervals.

R (d, r, s)  errors of one model on d data sets, with r training sets each, at s sizes

Two averages over data sets: the mean, in which data sets whose costs are hard to predict weigh most, and the geometric
mean, in which a ratio of errors counts the same everywhere. Intervals are bootstrap 95 % ones: the training sets of
every data set are drawn again, for all models alike.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from benchmarks.common.statistics import Interval, interval, resampled
from benchmarks.cost_models.fits import AUTO, SINGLE

Array = NDArray[np.float64]
Average = Callable[[Array], Array]  # (..., d, s) to (..., s)

RESAMPLES = 1_000


def mean(per_set: Array) -> Array:
    return np.asarray(per_set.mean(axis=-2))


def geometric_mean(per_set: Array) -> Array:
    return np.asarray(np.exp(np.log(per_set).mean(axis=-2)))


AVERAGES: dict[str, Average] = {"mean": mean, "geometric mean": geometric_mean}


class Findings:
    """Errors by data set and model, all (r, s)."""

    def __init__(self, errors: dict[str, dict[str, Array]], sizes: Sequence[int], models: Sequence[str]) -> None:
        self.errors, self.sizes, self.models = errors, tuple(sizes), tuple(models)
        self.sets = tuple(errors)
        shape = next(iter(errors.values()))[AUTO].shape
        drawn = resampled(shape[0], RESAMPLES, len(self.sets))
        self._R = {name: np.stack([errors[source][name] for source in self.sets]) for name in self.models}
        self._again = {name: self._resampled(R, drawn) for name, R in self._R.items()}  # (RESAMPLES, d, s) each

    @staticmethod
    def _resampled(R: Array, drawn: NDArray[np.int64]) -> Array:
        """Mean over the training sets drawn again; as counts, since indices would copy R a thousand times."""
        repetitions = R.shape[1]
        counts = np.stack([(drawn == r).sum(axis=2) for r in range(repetitions)], axis=2)  # (RESAMPLES, d, r)
        return np.asarray(np.einsum("bdr,drs->bds", counts / repetitions, R))

    def on(self, sets: Sequence[str], models: Sequence[str]) -> Findings:
        """Some data sets and models only."""
        return Findings({name: self.errors[name] for name in sets}, self.sizes, models)

    def per_set(self, model: str) -> Array:
        """Mean over the training sets, (d, s)."""
        return np.asarray(self._R[model].mean(axis=1))

    def average(self, model: str, how: Average) -> list[Interval]:
        """Over the data sets, per size."""
        return self._intervals(how(self.per_set(model)), how(self._again[model]))

    def ratio(self, model: str, other: str, how: Average) -> list[Interval]:
        """Of the averages of two models, per size, paired."""
        drawn = how(self._again[model]) / how(self._again[other])
        return self._intervals(how(self.per_set(model)) / how(self.per_set(other)), drawn)

    @staticmethod
    def _intervals(values: Array, drawn: Array) -> list[Interval]:
        return [interval(value, column) for value, column in zip(values, drawn.T, strict=True)]

    def best_single(self, how: Average) -> list[str]:
        """Per size, the single model of least average error."""
        singles = [name for name in self.models if name in SINGLE]
        averages = np.stack([how(self.per_set(name)) for name in singles])
        return [singles[i] for i in averages.argmin(axis=0)]

    def ratios_to_own_best(self, model: str) -> tuple[Array, list[list[str]]]:
        """Of a model to the best single model of each data set and size: ratios (d, s) and those models' names."""
        singles = [name for name in self.models if name in SINGLE]
        every = np.stack([self.per_set(name) for name in singles])
        names = [[singles[i] for i in row] for row in every.argmin(axis=0)]
        return np.asarray(self.per_set(model) / every.min(axis=0)), names

    def to_best(self, how: Average) -> list[tuple[str, Interval]]:
        """Per size, the best single model and the ratio of the automatic choice to it."""
        names = self.best_single(how)
        ratios = {name: self.ratio(AUTO, name, how) for name in set(names)}
        return [(name, ratios[name][i]) for i, name in enumerate(names)]
