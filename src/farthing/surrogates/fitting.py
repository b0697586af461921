"""How every Gaussian process here finds its hyperparameters: priors, starting points, schedule, optimiser.

Symbols and shapes
    theta  (p,)    what is searched: the log length-scales first, then whatever else a model has
    l      (g,)    length-scales, one per parameter;  groups (f,) the parameter each input column belongs to
    W      (n, n)  symmetric: the derivative of a loss by the kernel matrix, times the kernel's decay

The prior on l is that of Hvarfner et al. 2024 (arXiv 2402.02229): log l ~ Normal(m + log(g) / 2, sqrt 3), so that the
complexity of the model does not grow with the dimension. Their m is sqrt 2 (`LONG`): a parameter counts as having no
influence until the data say otherwise. Where that keeps a search too close to its first finds, m = 0 (`MEDIUM`).

A fit is cold or warm. A cold one starts from three places, on a subset of the data if there are many, and polishes the
best result on all of it. A warm one only polishes the hyperparameters of the last fit. A fit is cold when there is none
before it, and when the data have grown by COLD_GROWTH since the last cold one.

A search that would pass a deadline (`numerics.deadline`) is given up as a whole. It never returns what it has so far:
that would depend on the speed of the machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np

from farthing.numerics.arrays import Array, Ints
from farthing.numerics.deadline import keep_to_deadline
from farthing.numerics.late_scipy import minimize

LONG, MEDIUM = float(np.sqrt(2.0)), 0.0  # m of the prior on length-scales
LOG_SCALE_SD = float(np.sqrt(3.0))  # of the same prior
LOG_SCALE_BOUNDS = (float(np.log(5e-3)), float(np.log(1e3)))  # beyond what the prior makes likely
START_SHIFTS = (float(np.log(0.5)), float(np.log(1.5)), LONG)  # log l less log(g) / 2 at the starts: short to long
COLD_ITERATIONS = 40  # of L-BFGS from each start; the best is polished afterwards
COLD_GROWTH = 1.3  # with so much more data the optimum may lie in another valley


class Loss(Protocol):
    """What is minimised over theta, with its gradient; `bounds` has a (lower, upper) pair for each coordinate."""

    @property
    def bounds(self) -> Sequence[tuple[float, float]]: ...
    def __call__(self, theta: Array) -> tuple[float, Array]: ...


class Found(Protocol):
    """The hyperparameters of an earlier fit, and the number of observations at its last cold start."""

    @property
    def theta(self) -> Array: ...
    @property
    def cold_at(self) -> int: ...


@dataclass(frozen=True, eq=False)
class NormalPrior:
    """Independent normals on the coordinates of theta; an infinite sd means no prior."""

    mean: Array  # (p,)
    sd: Array  # (p,)

    def __call__(self, theta: Array) -> tuple[float, Array]:
        """Minus the log density, up to a constant, and its gradient (p,)."""
        z = (theta - self.mean) / self.sd
        return 0.5 * float(z @ z), z / self.sd


def log_median(m: float, g: int) -> float:
    """m + log(g) / 2: log of the prior's median length-scale for g parameters."""
    return float(m + 0.5 * np.log(max(g, 1)))


def starts(g: int, others: Iterable[Sequence[float]]) -> list[Array]:
    """The starting points of a cold fit: short, medium and long length-scales, each with its `others` of theta."""
    return [
        np.concatenate([np.full(g, log_median(shift, g)), rest])
        for shift, rest in zip(START_SHIFTS, others, strict=True)
    ]


def number_of_groups(groups: Ints) -> int:
    """g, the number of parameters that the columns belong to."""
    return int(groups.max()) + 1 if len(groups) else 0


def grouped(groups: Sequence[int] | Ints | None, columns: int) -> Ints:
    """`groups` as an array; by default every column is a parameter of its own."""
    return np.arange(columns) if groups is None else np.asarray(groups, dtype=np.intp)


def is_cold(n: int, warm: Found | None) -> bool:
    """Whether a fit to n observations starts from several places."""
    return warm is None or n >= COLD_GROWTH * max(warm.cold_at, 1)


def search(
    loss: Loss, subset: Callable[[], Loss], begin: Sequence[Array], n: int, warm: Found | None, iterations: int
) -> tuple[Array, int]:
    """The best theta for n observations and the number of observations at the last cold fit.

    `subset` makes the loss that a cold fit tries its starting points `begin` on.
    """
    if warm is not None and not is_cold(n, warm):
        return polished(loss, warm.theta, iterations), warm.cold_at
    few = subset()
    tried = [polished(few, start, COLD_ITERATIONS) for start in begin]
    tried += [] if warm is None else [warm.theta]
    return polished(loss, best_of(loss, tried), iterations), n


def best_of(loss: Loss, thetas: Sequence[Array]) -> Array:
    """The theta of least loss, the first of equals."""
    return min(thetas, key=lambda theta: _in_time(loss, theta)[0])


def polished(loss: Loss, start: Array, iterations: int, *, ftol: float = 1e-5, line_search: int = 10) -> Array:
    """Where L-BFGS-B gets from a start, within the bounds.

    The tolerances are loose: hyperparameters that differ by a percent give the same predictions.
    """
    options = {"maxiter": iterations, "ftol": ftol, "gtol": 1e-2, "maxls": line_search}
    found = minimize(
        partial(_in_time, loss), start, jac=True, method="L-BFGS-B", bounds=loss.bounds, options=options
    )  # fmt: skip
    return np.asarray(found.x)


def _in_time(loss: Loss, theta: Array) -> tuple[float, Array]:
    """The loss, if there is time for it: one of thousands of observations takes most of a second."""
    keep_to_deadline()
    return loss(theta)


def by_log_scales(scaled: Array, W_scaled: Array, W_one: Array, groups: Ints, g: int) -> Array:
    """sum_ij W_ij (x_ik - x_jk)^2 / 2 for each parameter k, (g,), from W X (n, f) and W 1 (n,).

    For symmetric W it is sum_i (W 1)_i x_ik^2 - sum_i x_ik (W X)_ik, so no (n, n, f) array is ever made.
    """
    columns = W_one @ (scaled * scaled) - np.einsum("ij,ij->j", scaled, W_scaled)
    return np.asarray(np.bincount(groups, weights=columns, minlength=g), dtype=np.float64)
