"""Complete runs beside their own eighty-percent runs: pairs, biases and what bounds them.

Symbols: y, low (n,) the values of complete runs and of their eighty-percent runs; d = y - rho low (n,) the biases.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from farthing.errors import InvalidArgument
from farthing.numerics.arrays import Array
from farthing.surrogates.gp import GP

Bounds = tuple[float, float]

FREE: Bounds = (-np.inf, np.inf)
LEAST_SPREAD = 0.1  # of the spread of the low level: what one complete run says of how much the bias varies
LEAST_BIAS = 1e-3  # of the median |d|: what a log-normal bias takes 0 for
SLACK = 1e-9  # of the largest value: how far rounding may put a bias outside its bounds


@dataclass(frozen=True, eq=False)
class Runs:
    """The complete runs, those seen at both levels first, with their eighty-percent values, seen or imputed."""

    X: Array  # (n, f)
    y: Array  # (n,)
    low: Array  # (n,)
    both: int  # how many were seen at both levels
    imputed: Array  # (n - both, n - both) covariance of the rest; 0 where it is not carried

    @classmethod
    def of(cls, low: GP, X: Array, y: Array, carry: bool) -> Runs:
        """A run pairs with the eighty-percent run of the same inputs; repeated ones in the order they came."""
        waiting = defaultdict(list)
        for key, value in zip(reversed(keys(low.X)), reversed(low.y.tolist()), strict=True):
            waiting[key].append(value)
        values = np.full(len(y), np.nan)
        for i, key in enumerate(keys(X)):
            if key in waiting:
                values[i] = waiting[key].pop() if len(waiting[key]) > 1 else waiting[key][0]
        missing = np.isnan(values)
        mean, covariance = low.covariance(X[missing])
        values[missing] = mean
        order = np.argsort(missing, kind="stable")
        return cls(X[order], y[order], values[order], int((~missing).sum()), covariance * carry)

    def bias(self, rho: float) -> Array:
        return self.y - rho * self.low

    def extra(self, rho: float) -> Array | None:
        """Covariance (n, n) of d from what was imputed; None where nothing was."""
        if not self.imputed.any():
            return None
        extra = np.zeros((len(self.y), len(self.y)))
        extra[self.both :, self.both :] = rho**2 * self.imputed
        return extra

    def least_squares(self) -> float:
        """rho of y on the low level and a constant; 1 where that level does not vary."""
        centred = self.low - self.low.mean()
        square = float(centred @ centred)
        return float(centred @ self.y) / square if square > 0.0 else 1.0

    @property
    def slack(self) -> float:
        """How far rounding may move a bias."""
        return SLACK * float(np.abs(np.append(self.y, self.low)).max())

    def check(self, bounds: Bounds, rho: float) -> None:
        """Refuse bounds that a bias seen lies outside of."""
        seen = self.bias(rho)[: self.both]
        outside = seen[(seen < bounds[0] - self.slack) | (seen > bounds[1] + self.slack)]
        if len(outside):
            raise InvalidArgument(
                f"the bias y_c - rho y_e of {len(outside)} of {len(seen)} runs, the first {outside[0]:g}, "
                f'lies outside the bounds {bounds}: give wider ones, or bounds="learned"'
            )

    def factors(self, bounds: Bounds) -> Bounds:
        """The least and the largest rho that keep every bias seen within the bounds."""
        moving = np.flatnonzero(self.low[: self.both])
        wider = np.array(bounds) + np.array([-self.slack, self.slack])
        ends = (self.y[moving, None] - wider) / self.low[moving, None]
        least, largest = float(ends.min(axis=1).max(initial=-np.inf)), float(ends.max(axis=1).min(initial=np.inf))
        if least > largest:
            raise InvalidArgument(
                f"no factor rho keeps the biases y_c - rho y_e of {self.both} runs within the bounds {bounds}: "
                f'give wider ones, or bounds="learned"'
            )
        return least, largest


def learned_bounds(d: Array, slack: float = 0.0) -> Bounds:
    """Bounds from the biases seen: their range widened at each end by the mean gap between neighbours.

    None are learned from one bias, or from a range that is no more than `slack`.

    >>> learned_bounds(np.array([-3.0, -1.0, -2.0]))
    (-4.0, 0.0)
    """
    if len(d) < 2 or d.max() - d.min() <= slack:
        return FREE
    gap = float(d.max() - d.min()) / (len(d) - 1)
    return float(d.min()) - gap, float(d.max()) + gap


def spread(d: Array, of_low: float = 0.0) -> float:
    """The spread of d; a few equal ones do not say that the bias is constant."""
    own = float(np.sqrt(d.var() + (LEAST_SPREAD * of_low) ** 2 / len(d)))
    return max(own, 1e-8 * float(np.abs(d).max())) or 1.0


def sign_of(bounds: Bounds) -> float:
    """-1 where the bias cannot be positive, 1 where it cannot be negative."""
    return -1.0 if bounds[1] <= 0.0 else 1.0


def log_bias(d: Array, bounds: Bounds) -> Array:
    """log |d|, with what is 0 or of the wrong sign at a small share of the median."""
    size = sign_of(bounds) * d
    least = LEAST_BIAS * float(np.median(np.abs(d[d != 0.0]))) if np.any(d != 0.0) else 1e-12
    return np.asarray(np.log(np.maximum(size, least)))


def keys(X: Array) -> list[bytes]:
    """What tells rows apart: their bytes, 0 and -0 being the same."""
    return [row.tobytes() for row in np.asarray(X, dtype=np.float64) + 0.0]
