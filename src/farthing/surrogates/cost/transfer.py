"""Log cost learned from earlier tasks: one shape for all, and an intercept that depends on the properties of a task.

Symbols and shapes
    X (n, f), b (n,)    features and log costs of all earlier evaluations;  task (n,) the task each belongs to
    M (t, q), m (q,)    properties of the tasks (log rows, log columns, ...), and those of the new task

    b_i = intercept[task_i] + g(x_i) + noise,   intercept = line(M) + noise

CEI's appendix B finds that slopes are much the same between data sets while intercepts are not. So the intercepts are
removed first, by a robust line with one intercept per task. g is the average of cost models that `choice` fits to the
rest. The intercepts follow a low-variance line in M, which with few tasks is little more than their mean. Sizes are
logs, so that twice the rows is the same step everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from farthing.numerics.arrays import Array, Ints
from farthing.surrogates.cost import lines
from farthing.surrogates.cost.choice import choose
from farthing.surrogates.cost.log_cost import CostModel, LogFeatures


@dataclass(frozen=True, eq=False)
class Transferred(CostModel):
    """Log cost on a task that was never seen: g plus the intercept expected there."""

    shape: CostModel
    intercept: float
    intercept_variance: float
    noise: float  # mean variance of g's predictions where it was learned

    @property
    def intercept_strength(self) -> float:
        """How many observations the intercept is worth: each has the noise of g."""
        return self.noise / self.intercept_variance

    def predict(self, X: Array) -> tuple[Array, Array]:
        """Mean (m,) and variance (m,) at X (m, f)."""
        mean, variance = self.shape.predict(X)
        return mean + self.intercept, variance + self.intercept_variance

    def predict_with_gradient(self, X: Array) -> tuple[Array, Array, Array, Array]:
        """mean (m,), variance (m,), d mean / dX (m, f), d variance / dX (m, f)."""
        mean, variance, mean_slope, variance_slope = self.shape.predict_with_gradient(X)
        return mean + self.intercept, variance + self.intercept_variance, mean_slope, variance_slope

    def mean_at(self, X: Array) -> Array:
        return self.shape.mean_at(X) + self.intercept

    def mean_with_gradient(self, X: Array) -> tuple[Array, Array]:
        mean, slope = self.shape.mean_with_gradient(X)
        return mean + self.intercept, slope


def fit(X: Array, b: Array, task: Ints, groups: Sequence[int] | Ints, ratios: Array, M: Array, m: Array) -> Transferred:
    """What the tasks 0 .. t - 1 say about a new one with properties m.

    >>> X, task = np.random.default_rng(0).random((40, 2)), np.repeat(np.arange(4), 10)
    >>> model = fit(X, task + 3.0 * X[:, 0], task, [0, 1], np.ones(2), np.arange(4.0)[:, None], np.array([4.0]))
    >>> bool(abs(model.predict(np.array([[0.5, 0.5]]))[0][0] - 5.5) < 0.5)
    True
    """
    intercepts = _intercepts(LogFeatures(np.asarray(ratios, dtype=np.float64))(X), b, task)
    shape = choose(X, b - intercepts[task], groups, ratios).model
    low, span = M.min(axis=0), np.ptp(M, axis=0)
    unit = np.where(span > 0.0, span, 1.0)
    mean, variance = lines.fit((M - low) / unit, intercepts).predict(((m - low) / unit)[None, :])
    return Transferred(shape, float(mean[0]), float(variance[0]), float(shape.predict(X)[1].mean()))


def _intercepts(Z: Array, b: Array, task: Ints) -> Array:
    """One intercept per task (t,), from a robust line in all parameters with a dummy for each task."""
    tasks = int(task.max()) + 1
    dummies = (task[:, None] == np.arange(tasks)).astype(np.float64)
    columns = np.arange(Z.shape[1] + tasks)
    line = lines.huber(np.column_stack([Z, dummies]), b, (0,), [columns], np.ones(len(b)))
    left = b - (Z - line.centre[: Z.shape[1]]) @ line.weights[: Z.shape[1]]
    weight = dummies * line.v[:, None]
    return np.asarray(left @ weight / weight.sum(axis=0))
