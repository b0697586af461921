"""The models that predict the ends of curves: Gaussian processes of several kinds, and the network of `thaw`.

Every log density is of the value itself, in the units of the task: a model that sees transformed values has the
derivative of its transform added. A training that gets no better ends on a value that it had: then a density says how
finely a model resolves values as well as how sure it is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp, ndtri

from benchmarks.extrapolation.scenes import Scene
from farthing.policies.bapi import BAPI
from farthing.surrogates import gp
from farthing.surrogates.curves import monotone, network
from farthing.surrogates.curves.monotone import Curves
from farthing.surrogates.curves.network import EDGES, CurveOutlook
from farthing.surrogates.curves.paths import Mixture
from farthing.surrogates.curves.time_kernels import TimeKernel
from farthing.surrogates.curves.tokens import BUCKETS, SHARP, Scale
from farthing.surrogates.outputs import Warp

Array = NDArray[np.float64]

LAST, PLAIN, LOGS, BAPIS, NETWORK = "last value", "plain GP", "decay, monotone, of logarithms", "`bapi`", "network"
DEFAULT, UNCONSTRAINED = "decay, monotone", "decay, unconstrained"
FITTED = (LAST, PLAIN, "rbf, unconstrained", "rbf, monotone", UNCONSTRAINED, DEFAULT, LOGS, BAPIS)
QUANTILES = "network, quantiles as they are"  # intervals alone
LEARNED = (NETWORK, QUANTILES)
METHODS = (*FITTED, *LEARNED)

LEAST_ERROR = 1e-3  # below, logarithms would tell noise apart
LOW, HIGH = 0.05, 0.95  # ends of a 90 % interval
REACH = float(ndtri(HIGH))


@dataclass(frozen=True, eq=False)
class Guess:
    """Final values (c + k,), the ends of their 90 % intervals, and the log density of the true ones; NaN if none."""

    value: Array
    low: Array
    high: Array
    log_density: Array


def fitted_guesses(scene: Scene, rng: np.random.Generator) -> dict[str, Guess]:
    """Of all models but the network; without that of logarithms where there are values below 0."""
    found = {LAST: last_guess(scene), PLAIN: ordinary_guess(scene)}
    X, t, y = scene.points()
    kernels: dict[str, TimeKernel] = {"decay": "decay", "rbf": "rbf"}
    for name, kernel in kernels.items():
        curves = monotone.fit(X, t, y, scene.groups, t_max=scene.T, kernel=kernel, rng=rng)
        mean, variance = curves.plain.predict(scene.asked, scene.ends)
        found[f"{name}, unconstrained"] = normal_guess(mean, variance + curves.plain.noise, scene.final)
        found[f"{name}, monotone"] = mixture_guess(curves, scene, scene.final)
    if min(y.min(), scene.final.min()) >= 0.0:
        found[LOGS] = log_guess(scene, rng)
    found[BAPIS] = bapi_guess(scene, rng)
    return found


# -- Gaussian processes ------------------------------------------------------------------------------------------------


def last_guess(scene: Scene) -> Guess:
    """What a training had when it was cut; nothing for one that was not begun."""
    none = np.full(len(scene.final), np.nan)
    value = none.copy()
    value[: len(scene.cut)] = scene.reached[scene.cut]
    return Guess(value, none, none, none)


def normal_guess(mean: Array, variance: Array, final: Array) -> Guess:
    reach = REACH * np.sqrt(variance)
    density = -0.5 * (np.square(final - mean) / variance + np.log(2.0 * np.pi * variance))
    return Guess(mean, mean - reach, mean + reach, density)


def mixture_guess(curves: Curves, scene: Scene, final: Array) -> Guess:
    """Of curves that were fitted to values, or to transformed ones: then `final` is transformed as they are."""
    parts = curves.paths.at(scene.asked, scene.ends)
    seen = Mixture(parts.weights, parts.means, parts.variance + curves.plain.noise)
    each = -0.5 * (np.square(final - seen.means) / seen.variance + np.log(2.0 * np.pi * seen.variance))
    density = logsumexp(each, b=seen.weights, axis=0)
    return Guess(seen.moments()[0], seen.quantiles(LOW), seen.quantiles(HIGH), density)


def ordinary_guess(scene: Scene) -> Guess:
    """The exact Gaussian process that the other policies use, with time as one more input."""
    X, t, y = scene.points()
    groups = np.append(scene.groups, scene.groups.max() + 1)
    model = gp.fit(np.column_stack([X, t / scene.T]), y, groups)
    mean, variance = model.predict(np.column_stack([scene.asked, np.ones(len(scene.asked))]))
    return normal_guess(mean, variance + model.noise, scene.final)


def log_guess(scene: Scene, rng: np.random.Generator) -> Guess:
    """The default on logarithms of the errors: curves that fall still do, and small errors are told apart."""
    X, t, y = scene.points()
    curves = monotone.fit(
        X, t, np.log(np.maximum(y, LEAST_ERROR)), scene.groups, t_max=scene.T, rng=rng
    )  # fmt: skip
    final = np.log(np.maximum(scene.final, LEAST_ERROR))
    guess = mixture_guess(curves, scene, final)
    return Guess(np.exp(guess.value), np.exp(guess.low), np.exp(guess.high), guess.log_density - final)


def bapi_guess(scene: Scene, rng: np.random.Generator) -> Guess:
    """The model of the policy `bapi` with its defaults: of warped values."""
    X, t, y = scene.points()
    warp, policy = Warp.of(scene.reached), BAPI()
    kernel, falling = policy.kernel, policy.monotone
    if kernel == "auto" or falling == "auto":
        from farthing.surrogates.curves.choice import choose

        running = [warp(np.minimum.accumulate(curve)) for curve in scene.curves]
        chosen = choose(scene.X, running, scene.groups, float(scene.T), kernel, falling)
        kernel, falling = chosen.kernel, chosen.falling
    curves = monotone.fit(
        X, t, warp(y), scene.groups, t_max=scene.T, kernel=kernel, rng=rng, falling=falling
    )  # fmt: skip
    guess = mixture_guess(curves, scene, warp(scene.final))
    value, low, high = (warp.inverse(part) for part in (guess.value, guess.low, guess.high))
    return Guess(value, low, high, guess.log_density + log_slope(warp, scene.final))


def log_slope(warp: Warp, y: Array) -> Array:
    """The logarithm of the derivative (n,) of a warp at values y (n,)."""
    z = (y - warp.median) / warp.spread
    return np.asarray(np.sign(z) * (warp.power - 1.0) * np.log1p(np.abs(z)) - math.log(warp.spread))


# -- the network -------------------------------------------------------------------------------------------------------


def network_guesses(scene: Scene) -> dict[str, Guess]:
    """The network of `thaw`: medians of what it predicts, and its intervals in two ways, see `within_reach`."""
    outlook = CurveOutlook.of(scene.X, scene.curves, scene.T, scene.groups, network.weights())
    cut, steps = len(scene.cut), scene.ends[:, None]
    p = np.concatenate([outlook.begun(scene.cut, steps[:cut]), outlook.new(scene.new, steps[cut:])])[:, 0]
    value, low, high = (outlook.quantile(p, level) for level in (0.5, LOW, HIGH))
    density, none = network_density(p, outlook.scale, scene.final), np.full(len(p), np.nan)
    ends = within_reach(low[:cut], high[:cut], outlook.scale, scene.reached[scene.cut])
    closed = [np.concatenate([end, whole[cut:]]) for end, whole in zip(ends, (low, high), strict=True)]
    return {NETWORK: Guess(value, closed[0], closed[1], density), QUANTILES: Guess(none, low, high, none)}


def within_reach(low: Array, high: Array, scale: Scale, reached: Array) -> tuple[Array, Array]:
    """Intervals (c,) of trainings that have reached values (c,) and do not get worse.

    A training that gets no better ends on just that value, with a probability that the network can only spread over a
    part of u. An interval that ends in that part includes the value.
    """
    part = np.searchsorted(EDGES, scale.u(reached), side="right") - 1
    beginning = scale.best + scale.spread * network.unsquashed(EDGES[part])
    return np.minimum(low, reached), np.where(high >= beginning, reached, high)


def network_density(p: Array, scale: Scale, y: Array) -> Array:
    """log density (n,) at values y (n,) from probabilities p (n, BUCKETS) of equal parts of u; -inf beyond them."""
    sharp = SHARP * scale.z(y)
    u = np.arcsinh(sharp) / math.asinh(SHARP)
    part = np.searchsorted(EDGES, u, side="right") - 1
    inside = (part >= 0) & (part < BUCKETS)
    mass = np.where(inside, np.take_along_axis(p, np.clip(part, 0, BUCKETS - 1)[:, None], axis=1)[:, 0], 0.0)
    slope = SHARP / (math.asinh(SHARP) * np.hypot(1.0, sharp) * scale.spread)  # du / dy
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(mass / (EDGES[1] - EDGES[0])) + np.log(slope))
