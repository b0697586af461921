"""Random curves that fall: what the properties of the surrogate are checked on, and one more kind to extrapolate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
T_MAX = 50
SHAPES: dict[str, Callable[[Array], Array]] = {
    "power law": lambda x: (1.0 + 30.0 * x) ** -0.7,
    "exponential": lambda x: np.exp(-5.0 * x),
    "line": lambda x: 1.0 - 0.5 * x,
    "flat": np.zeros_like,
    "sigmoid": lambda x: 1.0 / (1.0 + np.exp(np.minimum(15.0 * (x - 0.6), 30.0))),
}
DECAYING = ("power law", "exponential", "line", "flat")


@dataclass(frozen=True)
class State:
    """Observations, as many as three of each run, and two configurations to ask for: one of the runs and a new one."""

    X: Array
    t: Array
    y: Array
    asked: Array  # (2, f)


def random_curves(rng: np.random.Generator, R: Array, shapes: Sequence[str]) -> Array:
    """Curves (m, T_MAX) of configurations R (m, f), all of one shape, with noise of one of three sizes."""
    f = R.shape[1]
    level, rate = R @ rng.normal(size=f), np.exp(R @ rng.normal(size=f))
    falls = SHAPES[shapes[int(rng.integers(len(shapes)))]](rate[:, None] * np.arange(1, T_MAX + 1) / T_MAX)
    noise = rng.choice([0.0, 0.01, 0.1]) * rng.normal(size=falls.shape)
    return np.asarray(level[:, None] + 2.0 * rng.random() * falls + noise)


def random_state(rng: np.random.Generator, shapes: Sequence[str]) -> State:
    """3 to 15 runs of 1 to 5 parameters, their curves of one shape, as the running best."""
    runs, f = int(rng.integers(3, 16)), int(rng.integers(1, 6))
    R = rng.random((runs, f))
    Y = np.minimum.accumulate(random_curves(rng, R, shapes), axis=1)
    last = np.where(rng.random(runs) < 0.4, T_MAX, rng.integers(4, T_MAX, size=runs))
    pairs = [(i, at) for i, end in enumerate(last) for at in sorted({end // 4, end // 2, end})]
    of, t = np.array(pairs).T
    asked = np.array([R[int(rng.integers(runs))], rng.random(f)])
    return State(R[of], t.astype(np.float64), Y[of, t - 1], asked)
