"""Whether predicted curves fall, how improbable slopes are drawn, and how long it all takes.

What a Gaussian process does in random states takes minutes: it is kept in benchmarks/cache.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.common.fingerprints import code_hash, module_file
from benchmarks.common.kept_runs import once
from benchmarks.extrapolation.random_curves import DECAYING, SHAPES, T_MAX, State, random_state
from benchmarks.extrapolation.scenes import points_of
from benchmarks.extrapolation.scores import gp_files
from farthing.numerics import tilting
from farthing.surrogates.curves import monotone, network
from farthing.surrogates.curves.monotone import Curves
from farthing.surrogates.curves.network import CurveOutlook
from farthing.surrogates.curves.time_kernels import TimeKernel

Array = NDArray[np.float64]

KERNELS: tuple[TimeKernel, ...] = ("decay", "rbf")
MODULES = ("extrapolation.properties", "extrapolation.random_curves", "extrapolation.scenes")


@dataclass(frozen=True)
class Rises:
    """By how much curves rise, as shares of the data's range: (states,) each the worse of two curves."""

    mean: Array
    unconstrained: Array
    drawn: Array  # mean over 20 joint draws along the curve
    worst_slope: float  # of all draws at virtual places, by the range per t_max
    exact: float  # share of states whose draws are exact


STATES_OF: dict[str, tuple[TimeKernel, Sequence[str]]] = {
    "`decay`": ("decay", DECAYING),
    "`decay`, sigmoids alone": ("decay", ("sigmoid",)),
    "`rbf`": ("rbf", tuple(SHAPES)),
}


def kept(states: int) -> tuple[dict[str, Rises], Draws]:
    """Of all kernels and states, and the draws; done once."""
    key = [states, code_hash([*gp_files(), *map(module_file, MODULES)])]
    rises = {}
    for i, (title, of) in enumerate(STATES_OF.items()):
        rises[title] = once(f"extrapolation-rises-{i}", [title, *key], partial(_found_rises, *of, states))
    draws = once("extrapolation-draws", key, lambda: _as_json(improbable_draws(states)))
    return {title: Rises(**_as_arrays(one)) for title, one in rises.items()}, Draws(**_as_arrays(draws))


def _found_rises(kernel: TimeKernel, shapes: Sequence[str], states: int) -> dict[str, Any]:
    return _as_json(rises_of(kernel, shapes, states))


def _as_json(found: Rises | Draws) -> dict[str, Any]:
    return {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in asdict(found).items()}


def _as_arrays(stored: dict[str, Any]) -> dict[str, Any]:
    return {name: np.array(value) if isinstance(value, list) else value for name, value in stored.items()}


def rise(curve: Array) -> Array:
    return np.asarray((curve - np.minimum.accumulate(curve, axis=-1)).max(axis=-1))


def rises_of(kernel: TimeKernel, shapes: Sequence[str], states: int) -> Rises:
    rows, slopes, exact = [], [], []
    for seed in range(states):
        rng = np.random.default_rng([7, seed])
        state = random_state(rng, shapes)
        curves = monotone.fit(state.X, state.t, state.y, t_max=T_MAX, kernel=kernel, rng=rng)
        rows.append(np.max([rises_along(curves, state, x, rng) for x in state.asked], axis=0))
        slopes.append(curves.paths.drawn().max(initial=-np.inf) / np.ptp(state.y))
        exact.append(curves.paths.exact)
    mean, plain, drawn = np.array(rows).T
    return Rises(mean, plain, drawn, float(np.max(slopes)), float(np.mean(exact)))


def rises_along(curves: Curves, state: State, x: Array, rng: np.random.Generator) -> Array:
    t = np.linspace(1.0, T_MAX, 99)
    X = np.repeat(x[None], len(t), axis=0)
    found = curves.predict(X, t)[0], curves.plain.predict(X, t)[0], curves.sample(X, t, 20, rng)
    return np.array([rise(curve).mean() for curve in found]) / np.ptp(state.y)


@dataclass(frozen=True)
class Draws:
    """Of boxes with probability under 1e-6: all (n,)."""

    dimension: Array
    log_probability: Array
    acceptance: Array
    exact: Array
    inside: Array
    milliseconds: Array


def improbable_draws(states: int) -> Draws:
    rows = []
    for seed in range(states):
        rng = np.random.default_rng([8, seed])
        d = int(rng.integers(2, 41))
        t = np.sort(rng.random(d))
        K = np.exp(-0.5 * ((t[:, None] - t) / rng.uniform(0.1, 1.0)) ** 2) + 1e-6 * np.eye(d)
        mean = rng.uniform(2.0, 8.0) + rng.normal(size=d)
        start = time.process_time()
        found = tilting.sample(mean, K, np.full(d, -np.inf), np.zeros(d), 300, rng)
        taken = 1e3 * (time.process_time() - start)
        if found.log_probability < np.log(1e-6):
            inside = bool(np.all(np.isfinite(found.X)) and found.X.max() <= 0.0)
            rows.append((d, found.log_probability, found.acceptance, found.exact, inside, taken))
    return Draws(*np.array(rows).T)


def timings(repeats: int) -> dict[str, dict[str, float]]:
    """Milliseconds, the median of some repeats, with 200 runs of three points each in seven parameters."""
    return {kernel: _timings(kernel, repeats) for kernel in KERNELS}


def network_timings(repeats: int) -> dict[str, float]:
    """Milliseconds of the network in the same situation: it gets all steps of the runs."""
    rng = np.random.default_rng(0)
    runs, t_max = 200, 52
    X, groups, many = rng.random((runs, 7)), np.arange(7), rng.random((100, 7))
    lengths = np.where(rng.random(runs) < 0.5, t_max, 10)
    curves = [
        0.3 * x[0] + (0.2 + x[1]) * (1.0 + np.arange(1, n + 1) / 3.0) ** -0.7 for x, n in zip(X, lengths, strict=True)
    ]
    weights = network.weights()
    look: Callable[[], CurveOutlook] = lambda: CurveOutlook.of(X, curves, t_max, groups, weights)  # noqa: E731
    outlook, end = look(), np.full((100, 1), float(t_max))
    return {
        "looking at all runs": _median(look, repeats),
        "100 configurations at the end": _median(lambda: outlook.new(many, end), repeats),
    }


def _timings(kernel: TimeKernel, repeats: int) -> dict[str, float]:
    rng = np.random.default_rng(0)
    runs, t_max = 200, 52
    R = rng.random((runs + 1, 7))
    last = np.where(rng.random(runs + 1) < 0.5, t_max, 10)
    pairs = np.array([(i, at) for i, end in enumerate(last) for at in points_of(int(end))])
    X, t = R[pairs[:, 0]], pairs[:, 1].astype(np.float64)
    y = 0.3 * X[:, 0] + (0.2 + X[:, 1]) * (1.0 + t / 3.0) ** -(0.3 + X[:, 2]) + 0.01 * rng.normal(size=len(t))
    before = pairs[:, 0] < runs
    fit: Callable[..., Curves] = lambda rows, warm: monotone.fit(  # noqa: E731
        X[rows], t[rows], y[rows], t_max=t_max, kernel=kernel, warm=warm, rng=np.random.default_rng(0)
    )
    old = fit(before, None)
    curves = fit(np.full(len(t), True), old.hyperparameters)
    one, many = np.repeat(rng.random((1, 7)), t_max, axis=0), rng.random((100, 7))
    steps, end = np.arange(1.0, t_max + 1.0), np.full(100, float(t_max))
    work: dict[str, Callable[[], object]] = {
        "fit from nothing": lambda: fit(before, None),
        "fit from the last one, a run later": lambda: fit(np.full(len(t), True), old.hyperparameters),
        "of it, virtual slopes and draws": lambda: monotone.constrained(curves.plain, 0),
        "one configuration along 52 steps": lambda: curves.predict(one, steps),
        "100 configurations at the end": lambda: curves.predict(many, end),
        "carry one more curve": lambda: curves.paths.extend(many[0], float(t_max)),
        "500 joint samples of 4 curves": lambda: curves.sample(many[:4], end[:4], 500, rng),
        "condition on one fantasy": lambda: curves.condition(many[:1], end[:1], np.array([0.1])),
    }
    return {name: _median(call, repeats) for name, call in work.items()}


def _median(call: Callable[[], object], repeats: int) -> float:
    taken = []
    for _ in range(repeats):
        start = time.process_time()
        call()
        taken.append(1e3 * (time.process_time() - start))
    return float(np.median(taken))
