"""Two levels of training in one surrogate: GP-TGP and DGP of BOPT-HPO (Yang, Deng and Zhu, section 3).

Symbols and shapes
    X_e, y_e  (m, f), (m,)  eighty-percent runs: inputs in the unit cube and values
    X_c, y_c  (n, f), (n,)  complete runs; a row of X_c that equals one of X_e was seen at both levels
    delta     the bias, y_c(x) = rho y_e(x) + delta(x), observed as d = y_c - rho y_e where both levels were seen
    b1, b2    bounds of delta

Eq. (3.3): y_e is a Gaussian process and delta one truncated to [b1, b2], every vector of its values a normal cut to the
box. Given the observed d, the value at one more x is therefore a normal in an interval (Theorem 1, Eq. 3.7) whose mean
and variance before the cut are those of an ordinary process, so that with infinite bounds nothing is cut and the model
is DGP, Eq. (3.2). By Lemma 1 the levels are fitted one after the other: y_e by `gp`, delta by `bounded`.

Where the paper plugs in, we carry what is not known (`carry=True`, the default; measured in docs/bopt-toy.md):
    at an x without an eighty-percent run y_e(x) is imputed (Proposition 1), and its variance times rho^2 added;
    at a complete run without an eighty-percent one d is computed with the imputed y_e, and `joint` says what such a run
    tells of y_e and of delta. It bounds nothing: only the biases of runs seen at both levels are in the box.
At a row of X_e the run's own y_e stands for the process's, with no variance: it is that run which goes on to the end.

`bias="lognormal"` is the alternative of the paper's section 6: delta = -exp(GP) or exp(GP), by the sign of the bounds.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np

from farthing.errors import InvalidArgument
from farthing.numerics.arrays import Array, Ints
from farthing.numerics.truncated import Moments, interval_moments
from farthing.surrogates import gp
from farthing.surrogates.fitting import grouped, is_cold, number_of_groups
from farthing.surrogates.gp import GP
from farthing.surrogates.two_fidelity.bounded import Data, Kernel, Loss, best_theta, process
from farthing.surrogates.two_fidelity.joint import Joint, Pair
from farthing.surrogates.two_fidelity.paired import FREE, Bounds, Runs, keys, learned_bounds, log_bias, sign_of, spread

BiasKind = Literal["truncated", "lognormal"]
Learned = Literal["learned"]

FEWEST_FOR_FACTOR = 4  # complete runs below which rho is not estimated but 1


@dataclass(frozen=True)
class Hyperparameters:
    """All that a fit found; `mean` and `variance` of delta before it is cut, or of log |delta| if it is log-normal."""

    low: gp.Hyperparameters
    bias: gp.Hyperparameters  # cold_at counts complete runs
    mean: float
    variance: float
    rho: float
    bounds: Bounds = FREE
    kind: BiasKind = "truncated"
    kernel: Kernel = "matern52"

    def as_json(self) -> dict[str, Any]:
        """Plain values; an infinite bound is None, which JSON has a word for."""
        return {
            "low": self.low.as_json(), "bias": self.bias.as_json(), "mean": self.mean, "variance": self.variance,
            "rho": self.rho, "bounds": [b if np.isfinite(b) else None for b in self.bounds],
            "kind": self.kind, "kernel": self.kernel,
        }  # fmt: skip

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> Hyperparameters:
        lower, upper = stored["bounds"]
        return cls(
            gp.Hyperparameters.from_json(stored["low"]), gp.Hyperparameters.from_json(stored["bias"]),
            float(stored["mean"]), float(stored["variance"]), float(stored["rho"]),
            (-np.inf if lower is None else float(lower), np.inf if upper is None else float(upper)),
            stored["kind"], stored["kernel"],
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class TwoFidelity:
    """Both levels, fitted. `predict` speaks of the complete level, `predict_low` of the eighty-percent one."""

    joint: Joint
    hyperparameters: Hyperparameters
    carry: bool = True

    @property
    def low(self) -> GP:
        """The process of the eighty-percent runs alone."""
        return self.joint.low

    @property
    def bias(self) -> GP:
        """delta before it is cut; log |delta| where it is log-normal."""
        return self.joint.bias

    def with_pending(self, X: Array) -> TwoFidelity:
        """As if eighty-percent runs at X (k, f), which are on their way, had ended at their means."""
        if not len(X):
            return self
        return replace(self, joint=replace(self.joint, low=self.low.condition(X, self.low.mean_at(X))))

    def predict_low(self, X: Array) -> tuple[Array, Array]:
        """Mean (k,) and variance (k,) of the eighty-percent level at X (k, f): Proposition 1."""
        pair = self.joint.predict(X)
        return pair.low, pair.low_variance

    def predict_low_with_gradient(self, X: Array) -> tuple[Array, Array, Array, Array]:
        """The same and their gradients (k, f)."""
        pair, slopes = self.joint.predict_with_gradient(X)
        return pair.low, pair.low_variance, slopes.low, slopes.low_variance

    def predict(self, X: Array) -> tuple[Array, Array]:
        """Mean (k,) and variance (k,) of the complete level at X (k, f): Theorem 1."""
        pair = self._with_own_runs(X, self.joint.predict(X))
        return self._complete(pair, self._cut(pair.bias, pair.bias_variance))

    def predict_bias(self, X: Array) -> tuple[Array, Array]:
        """Mean (k,) and variance (k,) of delta at X (k, f), within its bounds."""
        pair = self.joint.predict(X)
        delta = self._cut(pair.bias, pair.bias_variance)
        return delta.mean, delta.variance

    def _complete(self, pair: Pair, delta: Moments) -> tuple[Array, Array]:
        """rho f + delta: what is cut from delta moves f by its regression on delta."""
        rho, slope = self.hyperparameters.rho, pair.covariance / pair.bias_variance
        left = np.maximum(pair.low_variance - slope * pair.covariance, 0.0)
        mean = rho * (pair.low + slope * (delta.mean - pair.bias)) + delta.mean
        return mean, self._carried * left + (1.0 + rho * slope) ** 2 * delta.variance

    def predict_with_gradient(self, X: Array) -> tuple[Array, Array, Array, Array]:
        """mean (k,), variance (k,), d mean / dX (k, f), d variance / dX (k, f): at an eighty-percent run the gradients
        are those around it."""
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
        """The mean y_e of each configuration with eighty-percent runs."""
        values = defaultdict(list)
        for key, y in zip(keys(self.low.X), self.low.y.tolist(), strict=True):
            values[key].append(y)
        return {key: float(np.mean(of)) for key, of in values.items()}

    def _with_own_runs(self, X: Array, pair: Pair) -> Pair:
        """With the eighty-percent level known where it was seen."""
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
        if self.hyperparameters.kind == "lognormal":
            return _lognormal(mean, variance, sign_of(bounds))
        if bounds == FREE:
            one, nothing = np.ones_like(mean), np.zeros_like(mean)
            return Moments(mean, variance, one, nothing, nothing, one)
        return interval_moments(mean, variance, *bounds)


def fit(
    X_e: Array,
    y_e: Array,
    X_c: Array,
    y_c: Array,
    groups: Sequence[int] | Ints | None = None,
    *,
    bounds: Bounds | Learned = FREE,
    rho: float | None = 1.0,
    bias: BiasKind = "truncated",
    kernel: Kernel = "matern52",
    carry: bool = True,
    warm: Hyperparameters | None = None,
) -> TwoFidelity:
    """Both levels with their most probable hyperparameters, searched from `warm` or, on a schedule, several starts.

    `bounds` are those of the bias y_c - rho y_e (infinite: DGP), or "learned" from the biases seen; `rho=None`
    estimates the factor.

    >>> X = np.linspace(0, 1, 9)[:, None]
    >>> y = np.sin(6 * X[:, 0])
    >>> model = fit(X, y, X[::4], y[::4] - 0.5 + 0.2 * X[::4, 0], bounds=(-1.0, 0.0))
    >>> mean, variance = model.predict(np.array([[0.75]]))
    >>> abs(mean[0] - (np.sin(4.5) - 0.35)) < 0.02
    np.True_
    """
    X_e, y_e, X_c, y_c = (np.ascontiguousarray(part, dtype=np.float64) for part in (X_e, y_e, X_c, y_c))
    columns = grouped(groups, X_e.shape[1])
    _check_runs(X_e, y_e, X_c, y_c)
    _check_options(bounds, rho, bias, kernel)
    if warm is not None and not _serves(warm, columns, bias, kernel):
        warm = None
    low = fit_plain(X_e, y_e, columns, kernel, None if warm is None else warm.low)
    runs = Runs.of(low, X_c, y_c, carry)
    if rho is None and len(y_c) < FEWEST_FOR_FACTOR:
        rho = 1.0
    first = runs.least_squares() if rho is None else rho
    limits = learned_bounds(runs.bias(first)[: runs.both], runs.slack) if isinstance(bounds, str) else bounds
    if rho is not None:
        runs.check(limits, rho)
    if bias == "lognormal":
        found = _fit_lognormal(low, runs, columns, limits, first, kernel, warm)
    else:
        found = _fit_truncated(low, runs, columns, limits, first, rho is None, kernel, warm)
    return _assembled(low, runs, found, columns, carry)


def at(
    X_e: Array, y_e: Array, X_c: Array, y_c: Array, hyperparameters: Hyperparameters, groups: Ints | None = None,
    *, carry: bool = True,
) -> TwoFidelity:  # fmt: skip
    """The model with the hyperparameters given; mean and variance of the low level in closed form."""
    columns = np.arange(X_e.shape[1]) if groups is None else groups
    low = _plain_at(X_e, y_e, columns, hyperparameters.kernel, hyperparameters.low)
    return _assembled(low, Runs.of(low, X_c, y_c, carry), hyperparameters, columns, carry)


def _assembled(low: GP, runs: Runs, h: Hyperparameters, groups: Ints, carry: bool) -> TwoFidelity:
    d, extra = runs.bias(h.rho), runs.extra(h.rho)
    if h.kind == "lognormal":  # what is not known of imputed values is not carried into a logarithm
        d, extra = log_bias(d, h.bounds), None
    bias = process(h.kernel, runs.X, d, groups, h.bias, h.mean, h.variance, extra)
    return TwoFidelity(Joint(low, bias, h.rho, 0 if extra is None else len(d) - runs.both), h, carry)


def fit_plain(X: Array, y: Array, groups: Ints, kernel: Kernel, warm: gp.Hyperparameters | None) -> GP:
    """One level alone, Eq. (3.4): the process of `gp`, or the same under the Gaussian kernel."""
    if kernel == "matern52":
        return gp.fit(X, y, groups, warm)
    cold = is_cold(len(X), warm)
    theta = best_theta(_plain(X, y, groups), kernel, None if warm is None else warm.theta, cold)
    return _plain_at(X, y, groups, kernel, _found(theta, theta.size - 1, len(X), warm, cold))


def _plain_at(X: Array, y: Array, groups: Ints, kernel: Kernel, hyperparameters: gp.Hyperparameters) -> GP:
    if kernel == "matern52":
        return gp.at(X, y, hyperparameters, groups)
    unit = spread(y)
    level = Loss(_plain(X, y, groups), kernel).level(hyperparameters.theta)
    if level is None:
        raise FloatingPointError("the matrix has no Cholesky factor at these hyperparameters")
    mean, variance = float(y.mean()) + unit * level.mean, unit**2 * level.variance
    return process(kernel, X, y, groups, hyperparameters, mean, variance)


def _plain(X: Array, y: Array, groups: Ints) -> Data:
    return Data(X, (y - y.mean()) / spread(y), np.zeros(len(y)), groups, 0.0)


def _fit_truncated(
    low: GP, runs: Runs, groups: Ints, bounds: Bounds, rho: float, is_free: bool, kernel: Kernel,
    warm: Hyperparameters | None,
) -> Hyperparameters:  # fmt: skip
    """Eq. (3.5), in units of the spread of d; `rho` is where a free factor begins."""
    d, extra = runs.bias(rho), runs.extra(rho)
    centre, unit, n = float(d.mean()), spread(d, float(low.y.std())), len(d)
    data = Data(
        runs.X,
        ((runs.y if is_free else d) - centre) / unit,
        runs.low / unit if is_free else np.zeros(n),
        groups,
        None if is_free else rho,
        ((bounds[0] - centre) / unit, (bounds[1] - centre) / unit),
        runs.both,
        None if extra is None else extra / unit**2,
        runs.factors(bounds) if is_free else (rho, rho),
    )
    start = None if warm is None else warm.bias.theta
    if warm is not None and start is not None and not data.has_closed_forms:
        start = np.append(start, [(warm.mean - centre) / unit, np.log(warm.variance / unit**2)])
    cold = is_cold(n, None if warm is None else warm.bias)
    theta = best_theta(data, kernel, start, cold)
    level = Loss(data, kernel).level(theta)
    assert level is not None  # the search ended at a finite loss
    return Hyperparameters(
        low.hyperparameters,
        _found(theta, data.g, n, None if warm is None else warm.bias, cold),
        centre + unit * level.mean,
        unit**2 * level.variance,
        level.rho,
        bounds,
        "truncated",
        kernel,
    )


def _fit_lognormal(
    low: GP, runs: Runs, groups: Ints, bounds: Bounds, rho: float, kernel: Kernel, warm: Hyperparameters | None
) -> Hyperparameters:  # fmt: skip
    """An ordinary process on log |d|."""
    fitted = fit_plain(runs.X, log_bias(runs.bias(rho), bounds), groups, kernel, None if warm is None else warm.bias)
    return Hyperparameters(
        low.hyperparameters, fitted.hyperparameters, fitted.mean, fitted.variance, rho, bounds, "lognormal", kernel
    )


def _found(theta: Array, g: int, n: int, warm: gp.Hyperparameters | None, cold: bool) -> gp.Hyperparameters:
    cold_at = n if cold or warm is None else warm.cold_at
    return gp.Hyperparameters(tuple(theta[:g].tolist()), float(theta[g]), cold_at)


def _lognormal(mean: Array, variance: Array, sign: float) -> Moments:
    """Moments of sign exp(N(mean, variance))."""
    centre = sign * np.exp(mean + 0.5 * variance)
    squared = centre * centre
    spread = squared * np.expm1(variance)
    return Moments(centre, spread, centre, 0.5 * centre, 2.0 * spread, spread + squared * np.exp(variance))


def _chain(by_mean: Array, mean_slope: Array, by_variance: Array, variance_slope: Array) -> Array:
    return np.asarray(by_mean[:, None] * mean_slope + by_variance[:, None] * variance_slope)


def _serves(warm: Hyperparameters, groups: Ints, bias: BiasKind, kernel: Kernel) -> bool:
    return warm.kind == bias and warm.kernel == kernel and len(warm.bias.log_scales) == number_of_groups(groups)


def _check_runs(X_e: Array, y_e: Array, X_c: Array, y_c: Array) -> None:
    if not len(X_e) or not len(X_c):
        raise InvalidArgument(f"both levels need a run, got {len(X_e)} eighty-percent and {len(X_c)} complete ones")
    if len(X_e) != len(y_e) or len(X_c) != len(y_c) or X_e.shape[1] != X_c.shape[1]:
        shapes = ", ".join(str(part.shape) for part in (X_e, y_e, X_c, y_c))
        raise InvalidArgument(f"X_e, y_e, X_c, y_c must be (m, f), (m,), (n, f), (n,), got {shapes}")


def _check_options(bounds: Bounds | str, rho: float | None, bias: str, kernel: str) -> None:
    for name, given, known in (("bias", bias, BiasKind), ("kernel", kernel, Kernel)):
        if given not in get_args(known):
            raise InvalidArgument(f"{name} must be one of {', '.join(get_args(known))}, got {given!r}")
    if isinstance(bounds, str):
        if bounds not in get_args(Learned):
            raise InvalidArgument(f'bounds must be two numbers or "learned", got {bounds!r}')
    elif not bounds[0] < bounds[1]:
        raise InvalidArgument(f"bounds must be (lower, upper) with lower < upper, got {bounds}")
    if bias == "lognormal" and (isinstance(bounds, str) or bounds[0] < 0.0 < bounds[1]):
        raise InvalidArgument(f"a log-normal bias has one sign: bounds must not lie on both sides of 0, got {bounds}")
    if bias == "lognormal" and rho is None:
        raise InvalidArgument("a log-normal bias needs rho: its logarithm has no closed form for the factor")
