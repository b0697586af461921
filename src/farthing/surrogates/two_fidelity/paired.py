"""Complete runs paired with their own low-fidelity runs: the biases and their bounds.

Symbols: y, low (n,) the values of complete runs and of their low-fidelity runs; d = y - rho low (n,) the biases.
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
LEAST_SPREAD = 0.1  # of the spread of the low fidelity: how much the bias is taken to vary after one complete run
LEAST_BIAS = 1e-3  # of the median |d|: stands for a bias of 0 under a logarithm
SLACK = 1e-9  # of the largest value: how far rounding may put a bias outside its bounds


@dataclass(frozen=True, eq=False)
class PairedRuns:
    """The complete runs, those seen at both fidelities first, with their low-fidelity values, seen or imputed."""

    X: Array  # (n, f)
    y: Array  # (n,)
    low: Array  # (n,)
    both: int  # how many were seen at both fidelities
    imputed: Array  # (n - both, n - both) covariance of the rest; 0 where it is not carried

    @classmethod
    def of(cls, low: GP, X: Array, y: Array, carry: bool) -> PairedRuns:
        """Pairs a run with the low-fidelity run of the same inputs; repeated ones in the order they came."""
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
        """Covariance (n, n) of d from imputed values; None if there are none."""
        if not self.imputed.any():
            return None
        extra = np.zeros((len(self.y), len(self.y)))
        extra[self.both :, self.both :] = rho**2 * self.imputed
        return extra

    def least_squares(self) -> float:
        """rho of y on the low fidelity and a constant; 1 if the low fidelity does not vary."""
        centred = self.low - self.low.mean()
        square = float(centred @ centred)
        return float(centred @ self.y) / square if square > 0.0 else 1.0

    @property
    def slack(self) -> float:
        """How far rounding may move a bias."""
        return SLACK * float(np.abs(np.append(self.y, self.low)).max())

    def check(self, bounds: Bounds, rho: float) -> None:
        """Refuse bounds that an observed bias lies outside of."""
        seen = self.bias(rho)[: self.both]
        outside = seen[(seen < bounds[0] - self.slack) | (seen > bounds[1] + self.slack)]
        if len(outside):
            raise InvalidArgument(
                f"bounds: expected bounds that hold every bias y_c - rho y_e, got {bounds}; {len(outside)} of "
                f'{len(seen)} lie outside, the first at {outside[0]:g}: give wider bounds, or bounds="learned"'
            )

    def widened(self, bounds: Bounds, rho: float, is_free: bool) -> Bounds:
        """The bounds, widened where an observed bias lies outside of them. A free rho may be any that keeps to them;
        `rho` is where it begins."""
        if is_free and (ends := self._factor_range(bounds))[0] <= ends[1]:
            return bounds
        seen = self.bias(rho)[: self.both]
        least, largest = float(seen.min(initial=np.inf)), float(seen.max(initial=-np.inf))
        return (
            least if least < bounds[0] - self.slack else bounds[0],
            largest if largest > bounds[1] + self.slack else bounds[1],
        )

    def factors(self, bounds: Bounds) -> Bounds:
        """The smallest and the largest rho that keep every observed bias within the bounds."""
        least, largest = self._factor_range(bounds)
        if least > largest:
            raise InvalidArgument(
                f"bounds: expected bounds that hold the biases y_c - rho y_e of {self.both} runs for some rho, got "
                f'{bounds}: give wider bounds, or bounds="learned"'
            )
        return least, largest

    def _factor_range(self, bounds: Bounds) -> Bounds:
        moving = np.flatnonzero(self.low[: self.both])
        wider = np.array(bounds) + np.array([-self.slack, self.slack])
        ends = (self.y[moving, None] - wider) / self.low[moving, None]
        return float(ends.min(axis=1).max(initial=-np.inf)), float(ends.max(axis=1).min(initial=np.inf))


def learned_bounds(d: Array, slack: float = 0.0) -> Bounds:
    """Bounds from the observed biases: their range widened at each end by the mean gap between neighbours.

    One bias, or a range of at most `slack`, gives no bounds.

    >>> learned_bounds(np.array([-3.0, -1.0, -2.0]))
    (-4.0, 0.0)
    """
    if len(d) < 2 or d.max() - d.min() <= slack:
        return FREE
    gap = float(d.max() - d.min()) / (len(d) - 1)
    return float(d.min()) - gap, float(d.max()) + gap


def spread(d: Array, of_low: float = 0.0) -> float:
    """The spread of d; a few equal values do not prove that the bias is constant."""
    own = float(np.sqrt(d.var() + (LEAST_SPREAD * of_low) ** 2 / len(d)))
    return max(own, 1e-8 * float(np.abs(d).max())) or 1.0


def sign_bounds(d: Array) -> Bounds:
    """Bounds of a log-normal bias when only its sign is known: that of most biases, negative if they are even."""
    return (0.0, np.inf) if np.sign(d).sum() > 0.0 else (-np.inf, 0.0)


def log_normal_end(bounds: Bounds) -> tuple[float, float]:
    """(end, sign) of a log-normal bias end + sign exp(GP): it is -exp(GP) or exp(GP) where the bounds tell its sign.
    Otherwise it lies below its upper bound, since training improves a value, or above its lower one.

    >>> log_normal_end((-1.0, 0.0)), log_normal_end((-1.0, 0.5)), log_normal_end((-1.0, np.inf))
    ((0.0, -1.0), (0.5, -1.0), (-1.0, 1.0))
    """
    if bounds[1] <= 0.0:
        return 0.0, -1.0
    if bounds[0] >= 0.0:
        return 0.0, 1.0
    return (bounds[1], -1.0) if np.isfinite(bounds[1]) else (bounds[0], 1.0)


def log_bias(d: Array, bounds: Bounds) -> Array:
    """log of the distance of d from the end of a log-normal bias; one at the end, or beyond it, counts as a small
    share of the median."""
    end, sign = log_normal_end(bounds)
    size = sign * (d - end)
    least = LEAST_BIAS * float(np.median(np.abs(size[size != 0.0]))) if np.any(size != 0.0) else 1e-12
    return np.asarray(np.log(np.maximum(size, least)))


def keys(X: Array) -> list[bytes]:
    """What identifies a row: its bytes, with 0 and -0 the same."""
    return [row.tobytes() for row in np.asarray(X, dtype=np.float64) + 0.0]
