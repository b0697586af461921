"""Two fidelities of training in one surrogate: GP-TGP and DGP of BOPT-HPO (Yang, Deng and Zhu, section 3).

Symbols and shapes
    X_e, y_e  (m, f), (m,)  low fidelity, "eighty-percent" runs in the paper: inputs in the unit cube and values
    X_c, y_c  (n, f), (n,)  complete runs; a row of X_c that equals one of X_e was seen at both fidelities
    delta     the bias, y_c(x) = rho y_e(x) + delta(x), observed as d = y_c - rho y_e where both were seen
    b1, b2    bounds of delta

Eq. (3.3): y_e is a Gaussian process and delta one truncated to [b1, b2], every vector of its values a normal cut to the
box. Given the observed d, the value at one more x is therefore a normal in an interval (Theorem 1, Eq. 3.7) whose mean
and variance before the cut are those of an ordinary process. With infinite bounds nothing is cut and the model is DGP,
Eq. (3.2). `fitting` fits y_e first, then delta.

Where the paper plugs in a point estimate, we carry its uncertainty (`carry=True`, the default; see docs/bopt-toy.md):
    at an x without a low-fidelity run y_e(x) is imputed (Proposition 1), and its variance times rho^2 is added;
    at a complete run without a low-fidelity one d is computed with the imputed y_e, and `joint` says what such a run
    tells about y_e and delta. It is not held to the bounds: only runs seen at both fidelities are in the box.
At a row of X_e the run's own y_e replaces the process's, without variance: it is that run which continues to the end.

`bias="lognormal"` is the alternative of the paper's section 6: delta = -exp(GP) or exp(GP), by the sign of the bounds,
and b2 - exp(GP) or b1 + exp(GP) where the bounds allow both signs (the paper does not say).
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

from farthing.numerics.arrays import Array
from farthing.numerics.truncated import Moments, interval_moments
from farthing.surrogates import gp
from farthing.surrogates.gp import GP
from farthing.surrogates.two_fidelity.bounded import Kernel
from farthing.surrogates.two_fidelity.joint import Joint, Pair
from farthing.surrogates.two_fidelity.paired import FREE, Bounds, keys, log_normal_end

BiasLaw = Literal["truncated", "lognormal"]


@dataclass(frozen=True)
class Hyperparameters:
    """The result of a fit; `mean` and `variance` of delta before it is cut, or of log |delta| if it is log-normal."""

    low: gp.Hyperparameters
    bias: gp.Hyperparameters  # cold_at counts complete runs
    mean: float
    variance: float
    rho: float
    bounds: Bounds = FREE
    law: BiasLaw = "truncated"
    kernel: Kernel = "matern52"
    priors: bool = True  # whether they were estimated with priors

    def as_json(self) -> dict[str, Any]:
        """Plain values; an infinite bound is None, because JSON has no infinity."""
        return {
            "low": self.low.as_json(), "bias": self.bias.as_json(), "mean": self.mean, "variance": self.variance,
            "rho": self.rho, "bounds": [b if np.isfinite(b) else None for b in self.bounds],
            "kind": self.law, "kernel": self.kernel, **({} if self.priors else {"priors": False}),
        }  # fmt: skip

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> Hyperparameters:
        lower, upper = stored["bounds"]
        return cls(
            gp.Hyperparameters.from_json(stored["low"]), gp.Hyperparameters.from_json(stored["bias"]),
            float(stored["mean"]), float(stored["variance"]), float(stored["rho"]),
            (-np.inf if lower is None else float(lower), np.inf if upper is None else float(upper)),
            stored["kind"], stored["kernel"], bool(stored.get("priors", True)),
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class TwoFidelity:
    """Both fidelities, fitted. Predictions are of complete runs."""

    joint: Joint
    hyperparameters: Hyperparameters
    carry: bool = True

    @property
    def low(self) -> GP:
        """The process of the low-fidelity runs alone."""
        return self.joint.low

    @property
    def bias(self) -> GP:
        """delta before it is cut; log |delta| if it is log-normal."""
        return self.joint.bias

    def with_pending(self, X: Array) -> TwoFidelity:
        """As if the pending low-fidelity runs at X (k, f) had ended at their predicted means."""
        if not len(X):
            return self
        return replace(self, joint=replace(self.joint, low=self.low.condition(X, self.low.mean_at(X))))

    def predict(self, X: Array) -> tuple[Array, Array]:
        """Mean (k,) and variance (k,) of complete runs at X (k, f): Theorem 1."""
        pair = self._with_own_runs(X, self.joint.predict(X))
        return self._complete(pair, self._cut(pair.bias, pair.bias_variance))

    def predict_bias(self, X: Array) -> tuple[Array, Array]:
        """Mean (k,) and variance (k,) of delta at X (k, f), within its bounds."""
        pair = self.joint.predict(X)
        delta = self._cut(pair.bias, pair.bias_variance)
        return delta.mean, delta.variance

    def _complete(self, pair: Pair, delta: Moments) -> tuple[Array, Array]:
        """rho f + delta: cutting delta moves f by its regression on delta."""
        rho, slope = self.hyperparameters.rho, pair.covariance / pair.bias_variance
        left = np.maximum(pair.low_variance - slope * pair.covariance, 0.0)
        mean = rho * (pair.low + slope * (delta.mean - pair.bias)) + delta.mean
        return mean, self._carried * left + (1.0 + rho * slope) ** 2 * delta.variance

    def predict_with_gradient(self, X: Array) -> tuple[Array, Array, Array, Array]:
        """mean (k,), variance (k,), d mean / dX (k, f), d variance / dX (k, f); at a low-fidelity run the gradients of
        the points around it."""
        around, by_x = self.joint.predict_with_gradient(X)
        pair = self._with_own_runs(X, around)
        delta, rho = self._cut(pair.bias, pair.bias_variance), self.hyperparameters.rho
        mean_slope = _chain(delta.mean_by_mean, by_x.bias, delta.mean_by_variance, by_x.bias_variance)
        variance_slope = _chain(delta.variance_by_mean, by_x.bias, delta.variance_by_variance, by_x.bias_variance)
        slope = (around.covariance / around.bias_variance)[:, None]
        by_slope = (by_x.covariance - slope * by_x.bias_variance) / around.bias_variance[:, None]
        moved = (delta.mean - pair.bias)[:, None]
        left = by_x.low_variance - slope * by_x.covariance - by_slope * around.covariance[:, None]
        share = 1.0 + rho * slope
        return (
            *self._complete(pair, delta),
            rho * (by_x.low + by_slope * moved + slope * (mean_slope - by_x.bias)) + mean_slope,
            self._carried * left + share * (2.0 * rho * by_slope * delta.variance[:, None] + share * variance_slope),
        )

    @property
    def _carried(self) -> float:
        return self.hyperparameters.rho**2 if self.carry else 0.0

    @cached_property
    def _own_runs(self) -> dict[bytes, float]:
        """The mean y_e of each configuration with low-fidelity runs."""
        values = defaultdict(list)
        for key, y in zip(keys(self.low.X), self.low.y.tolist(), strict=True):
            values[key].append(y)
        return {key: float(np.mean(of)) for key, of in values.items()}

    def _with_own_runs(self, X: Array, pair: Pair) -> Pair:
        """With the low fidelity known where it was seen."""
        own = np.array([self._own_runs.get(key, np.nan) for key in keys(X)])
        seen = ~np.isnan(own)
        if not seen.any():
            return pair
        return replace(
            pair,
            low=np.where(seen, own, pair.low),
            low_variance=np.where(seen, 0.0, pair.low_variance),
            covariance=np.where(seen, 0.0, pair.covariance),
        )

    def _cut(self, mean: Array, variance: Array) -> Moments:
        """Moments of delta from those of its process."""
        bounds = self.hyperparameters.bounds
        if self.hyperparameters.law == "lognormal":
            return _lognormal(mean, variance, *log_normal_end(bounds))
        if bounds == FREE:
            one, nothing = np.ones_like(mean), np.zeros_like(mean)
            return Moments(mean, variance, one, nothing, nothing, one)
        return interval_moments(mean, variance, *bounds)


def _lognormal(mean: Array, variance: Array, end: float, sign: float) -> Moments:
    """Moments of end + sign exp(N(mean, variance))."""
    centre = sign * np.exp(mean + 0.5 * variance)
    squared = centre * centre
    spread = squared * np.expm1(variance)
    return Moments(end + centre, spread, centre, 0.5 * centre, 2.0 * spread, spread + squared * np.exp(variance))


def _chain(by_mean: Array, mean_slope: Array, by_variance: Array, variance_slope: Array) -> Array:
    return np.asarray(by_mean[:, None] * mean_slope + by_variance[:, None] * variance_slope)
