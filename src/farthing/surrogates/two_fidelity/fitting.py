"""Fits both fidelities: the process of the low-fidelity runs first, then the bias between them and complete runs.

Symbols and shapes as in `model`. By Lemma 1 the two can be fitted one after the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np

from farthing.errors import InvalidArgument
from farthing.numerics.arrays import Array, Ints
from farthing.surrogates import gp
from farthing.surrogates.fitting import grouped, is_cold, number_of_groups
from farthing.surrogates.gp import GP
from farthing.surrogates.two_fidelity.bounded import (
    MOST_PROBABLE,
    Estimation,
    Kernel,
    Loss,
    Observations,
    best_theta,
    process,
)
from farthing.surrogates.two_fidelity.joint import Joint
from farthing.surrogates.two_fidelity.model import BiasLaw, Hyperparameters, TwoFidelity
from farthing.surrogates.two_fidelity.paired import (
    FREE,
    Bounds,
    PairedRuns,
    learned_bounds,
    log_bias,
    sign_bounds,
    spread,
)

Learned = Literal["learned"]

FEWEST_FOR_FACTOR = 4  # complete runs below which rho is not estimated but 1


def fit(
    X_e: Array,
    y_e: Array,
    X_c: Array,
    y_c: Array,
    groups: Sequence[int] | Ints | None = None,
    *,
    bounds: Bounds | Learned = FREE,
    rho: float | None = 1.0,
    bias: BiasLaw = "truncated",
    kernel: Kernel = "matern52",
    carry: bool = True,
    estimation: Estimation = MOST_PROBABLE,
    widen: bool = False,
    warm: Hyperparameters | None = None,
) -> TwoFidelity:
    """Both fidelities with their best hyperparameters, searched from `warm` or, on a schedule, several starts.

    `bounds` are those of the bias y_c - rho y_e (infinite: DGP), or "learned" from the observed biases. Biases outside
    of them are refused, or, with `widen`, widen them. `rho=None` estimates the factor, by Eq. (3.5) with given bounds;
    where they are learned, by that equation without bounds.

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
    if warm is not None and not _is_usable(warm, columns, bias, kernel):
        warm = None
    low = fit_plain(X_e, y_e, columns, kernel, None if warm is None else warm.low, estimation)
    runs = PairedRuns.of(low, X_c, y_c, carry)
    if rho is None and len(y_c) < FEWEST_FOR_FACTOR:
        rho = 1.0
    if rho is None and isinstance(bounds, str):
        rho = _free_factor(low, runs, columns, kernel, estimation, warm)
    first = runs.least_squares() if rho is None else rho
    limits = learned_bounds(runs.bias(first)[: runs.both], runs.slack) if isinstance(bounds, str) else bounds
    if bias == "lognormal" and limits == FREE:  # too few biases to learn bounds from
        limits = sign_bounds(runs.bias(first))
    if widen:
        limits = runs.widened(limits, first, rho is None)
    elif rho is not None:
        runs.check(limits, rho)
    if bias == "lognormal":
        found = _fit_lognormal(low, runs, columns, limits, first, kernel, estimation, warm)
    else:
        found = _fit_truncated(low, runs, columns, limits, first, rho is None, kernel, estimation, warm)
    return _assembled(low, runs, found, columns, carry)


def from_hyperparameters(
    X_e: Array, y_e: Array, X_c: Array, y_c: Array, hyperparameters: Hyperparameters, groups: Ints | None = None,
    *, carry: bool = True,
) -> TwoFidelity:  # fmt: skip
    """The model with given hyperparameters; mean and variance of the low fidelity in closed form."""
    columns = np.arange(X_e.shape[1]) if groups is None else groups
    estimation = Estimation(priors=hyperparameters.priors)
    low = _plain_at(X_e, y_e, columns, hyperparameters.kernel, hyperparameters.low, estimation)
    return _assembled(low, PairedRuns.of(low, X_c, y_c, carry), hyperparameters, columns, carry)


def _assembled(low: GP, runs: PairedRuns, h: Hyperparameters, groups: Ints, carry: bool) -> TwoFidelity:
    d, extra = runs.bias(h.rho), runs.extra(h.rho)
    if h.law == "lognormal":  # uncertainty of imputed values is not carried into a logarithm
        d, extra = log_bias(d, h.bounds), None
    bias = process(h.kernel, runs.X, d, groups, h.bias, h.mean, h.variance, extra)
    return TwoFidelity(Joint(low, bias, h.rho, 0 if extra is None else len(d) - runs.both), h, carry)


def fit_plain(
    X: Array, y: Array, groups: Ints, kernel: Kernel, warm: gp.Hyperparameters | None,
    estimation: Estimation = MOST_PROBABLE,
) -> GP:  # fmt: skip
    """One fidelity alone, Eq. (3.4): the process of `gp`, or one with the Gaussian kernel or estimated otherwise."""
    if kernel == "matern52" and estimation == MOST_PROBABLE:
        return gp.fit(X, y, groups, warm)
    cold = is_cold(len(X), warm)
    theta = best_theta(_plain(X, y, groups), kernel, None if warm is None else warm.theta, cold, estimation)
    return _plain_at(X, y, groups, kernel, _found(theta, theta.size - 1, len(X), warm, cold), estimation)


def _plain_at(
    X: Array, y: Array, groups: Ints, kernel: Kernel, hyperparameters: gp.Hyperparameters, estimation: Estimation
) -> GP:
    if kernel == "matern52" and estimation.priors:
        return gp.from_hyperparameters(X, y, hyperparameters, groups)
    unit = spread(y)
    parts = Loss(_plain(X, y, groups), kernel, estimation=estimation).profiled(hyperparameters.theta)
    if parts is None:
        raise FloatingPointError("the matrix has no Cholesky factor at these hyperparameters")
    mean, variance = float(y.mean()) + unit * parts.mean, unit**2 * parts.variance
    return process(kernel, X, y, groups, hyperparameters, mean, variance)


def _plain(X: Array, y: Array, groups: Ints) -> Observations:
    return Observations(X, (y - y.mean()) / spread(y), np.zeros(len(y)), groups, 0.0)


def _fit_truncated(
    low: GP, runs: PairedRuns, groups: Ints, bounds: Bounds, rho: float, is_free: bool, kernel: Kernel,
    estimation: Estimation, warm: Hyperparameters | None,
) -> Hyperparameters:  # fmt: skip
    """Eq. (3.5), in units of the spread of d; `rho` is where a free factor begins."""
    d, extra = runs.bias(rho), runs.extra(rho)
    centre, unit, n = float(d.mean()), spread(d, float(low.y.std())), len(d)
    data = Observations(
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
    theta = best_theta(data, kernel, start, cold, estimation)
    parts = Loss(data, kernel, estimation=estimation).profiled(theta)
    assert parts is not None  # the search ended at a finite loss
    return Hyperparameters(
        low.hyperparameters,
        _found(theta, data.g, n, None if warm is None else warm.bias, cold),
        centre + unit * parts.mean,
        unit**2 * parts.variance,
        parts.rho,
        bounds,
        "truncated",
        kernel,
        estimation.priors,
    )


def _free_factor(
    low: GP, runs: PairedRuns, groups: Ints, kernel: Kernel, estimation: Estimation, warm: Hyperparameters | None
) -> float:
    """rho of DGP, Eq. (3.2), for bounds that are learned from the biases: with bounds that were learned around some
    factor, Eq. (3.5) would only find that factor again."""
    return _fit_truncated(low, runs, groups, FREE, runs.least_squares(), True, kernel, estimation, warm).rho


def _fit_lognormal(
    low: GP, runs: PairedRuns, groups: Ints, bounds: Bounds, rho: float, kernel: Kernel, estimation: Estimation,
    warm: Hyperparameters | None,
) -> Hyperparameters:  # fmt: skip
    """An ordinary process on log |d|, or on the log of the distance from the end that d cannot pass."""
    logs = log_bias(runs.bias(rho), bounds)
    fitted = fit_plain(runs.X, logs, groups, kernel, None if warm is None else warm.bias, estimation)
    return Hyperparameters(
        low.hyperparameters, fitted.hyperparameters, fitted.mean, fitted.variance, rho, bounds, "lognormal", kernel,
        estimation.priors,
    )  # fmt: skip


def _found(theta: Array, g: int, n: int, warm: gp.Hyperparameters | None, cold: bool) -> gp.Hyperparameters:
    cold_at = n if cold or warm is None else warm.cold_at
    return gp.Hyperparameters(tuple(theta[:g].tolist()), float(theta[g]), cold_at)


def _is_usable(warm: Hyperparameters, groups: Ints, bias: BiasLaw, kernel: Kernel) -> bool:
    return warm.law == bias and warm.kernel == kernel and len(warm.bias.log_scales) == number_of_groups(groups)


def _check_runs(X_e: Array, y_e: Array, X_c: Array, y_c: Array) -> None:
    if not len(X_e) or not len(X_c):
        raise InvalidArgument(f"X_e, X_c: expected at least one run of each, got {len(X_e)} and {len(X_c)}")
    if len(X_e) != len(y_e) or len(X_c) != len(y_c) or X_e.shape[1] != X_c.shape[1]:
        shapes = ", ".join(str(part.shape) for part in (X_e, y_e, X_c, y_c))
        raise InvalidArgument(f"X_e, y_e, X_c, y_c: expected shapes (m, f), (m,), (n, f), (n,), got {shapes}")


def _check_options(bounds: Bounds | str, rho: float | None, bias: str, kernel: str) -> None:
    for name, given, known in (("bias", bias, BiasLaw), ("kernel", kernel, Kernel)):
        if given not in get_args(known):
            raise InvalidArgument(f"{name}: expected one of {', '.join(get_args(known))}, got {given!r}")
    if isinstance(bounds, str):
        if bounds not in get_args(Learned):
            raise InvalidArgument(f'bounds: expected two numbers or "learned", got {bounds!r}')
    elif not bounds[0] < bounds[1]:
        raise InvalidArgument(f"bounds: expected (lower, upper) with lower < upper, got {bounds}")
    if bias == "lognormal" and not isinstance(bounds, str) and not np.isfinite(bounds).any():
        raise InvalidArgument(f"bounds: expected a finite bound for a log-normal bias, got {bounds}")
    if bias == "lognormal" and rho is None:
        raise InvalidArgument(
            "rho: expected a number with a log-normal bias, for which it cannot be estimated, got None"
        )
