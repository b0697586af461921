"""Synthetic functions with a known minimum, for tests and benchmarks.

Each is a `Problem`: a space, an objective that takes a configuration, the least value it reaches (`optimum`)
and one configuration that reaches it (`minimizer`). Simple regret is `problem.regret(best value)`.

* branin       2 Real; three global minima.
* hartmann6    6 Real; six local minima.
* ackley5      5 Real; many local minima around one funnel. The box is the usual one, the optimum is moved off
               its centre, because a method that tries the centre first would otherwise find it at once.
* rosenbrock4  4 Real; a narrow curved valley, values over six orders of magnitude.
* mixed6       3 Real (one log), 2 Integer (one log), 1 Choice; smooth, with interactions.

Formulas: Surjanovic and Bingham, "Virtual Library of Simulation Experiments"; mixed6 is ours.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from farthing.space import Choice, Integer, Real, Space

Config = Mapping[str, Any]


@dataclass(frozen=True)
class Problem:
    """A function to minimise, with its known minimum.

    >>> problem = FUNCTIONS["branin"]
    >>> problem.objective(problem.minimizer) - problem.optimum < 1e-12
    True
    """

    name: str
    space: Space
    objective: Callable[[Config], float]
    optimum: float
    minimizer: Config

    def regret(self, value: float) -> float:
        """How far `value` is above the optimum.

        >>> FUNCTIONS["rosenbrock4"].regret(2.5)
        2.5
        """
        return value - self.optimum


def _coordinates(config: Config) -> NDArray[np.float64]:
    """The values of a configuration whose parameters are x1, x2, ... in that order."""
    return np.array([config[f"x{i}"] for i in range(1, len(config) + 1)], dtype=np.float64)


def _named(values: tuple[float, ...]) -> Config:
    return MappingProxyType({f"x{i}": value for i, value in enumerate(values, start=1)})


def _box(dimensions: int, low: float, high: float) -> Space:
    return Space({f"x{i}": Real(low, high) for i in range(1, dimensions + 1)})


def branin(config: Config) -> float:
    """Branin's function; the least value 10 / (8 pi) is reached at three points.

    >>> round(branin({"x1": math.pi, "x2": 2.275}), 6)
    0.397887
    """
    x1, x2 = _coordinates(config)
    valley = x2 - 5.1 / (4.0 * math.pi**2) * x1**2 + 5.0 / math.pi * x1 - 6.0
    return float(valley**2 + 10.0 * (1.0 - 1.0 / (8.0 * math.pi)) * math.cos(x1) + 10.0)


_HARTMANN_WEIGHTS: Final = np.array([1.0, 1.2, 3.0, 3.2])  # (4,)
_HARTMANN_SCALES: Final = np.array(  # (4, 6)
    [
        [10.0, 3.0, 17.0, 3.5, 1.7, 8.0],
        [0.05, 10.0, 17.0, 0.1, 8.0, 14.0],
        [3.0, 3.5, 1.7, 10.0, 17.0, 8.0],
        [17.0, 8.0, 0.05, 10.0, 0.1, 14.0],
    ]
)
_HARTMANN_CENTRES: Final = 1e-4 * np.array(  # (4, 6)
    [
        [1312, 1696, 5569, 124, 8283, 5886],
        [2329, 4135, 8307, 3736, 1004, 9991],
        [2348, 1451, 3522, 2883, 3047, 6650],
        [4047, 8828, 8732, 5743, 1091, 381],
    ]
)


def hartmann6(config: Config) -> float:
    """Hartmann's function in six dimensions: four overlapping wells.

    >>> hartmann6(_named((0.5,) * 6)) < 0
    True
    """
    distances = (_HARTMANN_SCALES * (_coordinates(config) - _HARTMANN_CENTRES) ** 2).sum(axis=1)  # (4,)
    return float(-(_HARTMANN_WEIGHTS @ np.exp(-distances)))


_ACKLEY_SHIFT: Final = (11.3, -7.9, 4.6, -13.1, 8.2)


def ackley5(config: Config) -> float:
    """Ackley's function in five dimensions, its optimum moved to (11.3, -7.9, 4.6, -13.1, 8.2).

    >>> ackley5(_named((11.3, -7.9, 4.6, -13.1, 8.2)))
    0.0
    """
    offset = _coordinates(config) - np.array(_ACKLEY_SHIFT)
    radius = math.sqrt(float(np.mean(offset**2)))
    ripple = float(np.mean(np.cos(2.0 * math.pi * offset)))
    # expm1 keeps the digits of 20 - 20 exp(-radius / 5) and e - exp(ripple) close to the optimum.
    return -20.0 * math.expm1(-0.2 * radius) - math.e * math.expm1(ripple - 1.0)


def rosenbrock4(config: Config) -> float:
    """Rosenbrock's function in four dimensions.

    >>> rosenbrock4({"x1": 1.0, "x2": 1.0, "x3": 1.0, "x4": 1.0})
    0.0
    """
    x = _coordinates(config)
    return float(np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2))


@dataclass(frozen=True)
class _Activation:
    """The effect of an option of `mixed6`: a penalty, and a shift of the best learning rate in decades."""

    penalty: float
    shift: float


_ACTIVATIONS: Final = {
    "relu": _Activation(0.04, 0.3),
    "gelu": _Activation(0.0, 0.0),
    "tanh": _Activation(0.10, -0.5),
    "sigmoid": _Activation(0.25, -1.0),
}


def mixed6(config: Config) -> float:
    """A smooth stand-in for a network's loss: three Real, two Integer and one Choice that interact.

    Every term is at least 0 and all are 0 at the minimizer, so the optimum is 0 by construction.

    >>> mixed6({"learning_rate": 1e-3, "momentum": 0.9, "dropout": 0.2,
    ...         "layers": 4, "units": 128, "activation": "gelu"})
    0.0
    """
    activation = _ACTIVATIONS[config["activation"]]
    width = math.log2(config["units"] / 128)
    depth = (config["layers"] - 4) / 4
    # Wider networks and other activations want another learning rate; it in turn moves the best momentum.
    rate = math.log10(config["learning_rate"] / 1e-3) + 0.25 * width - activation.shift
    inertia = (config["momentum"] - 0.9) + 0.1 * rate
    # Larger networks want more dropout.
    size = depth + 0.25 * width
    dropping = (config["dropout"] - 0.2) - 0.15 * size
    return float(
        0.30 * rate**2
        + 2.00 * inertia**2
        + 3.00 * dropping**2
        + 0.20 * size**2
        + 0.05 * width**2
        + 0.05 * (1.0 - math.cos(2.0 * math.pi * (rate + depth)))
        + activation.penalty
    )


_MIXED_SPACE: Final = Space(
    learning_rate=Real(1e-5, 1e-1, log=True),
    momentum=Real(0.0, 0.99),
    dropout=Real(0.0, 0.6),
    layers=Integer(1, 12),
    units=Integer(16, 1024, log=True),
    activation=Choice(list(_ACTIVATIONS)),
)

_HARTMANN_MINIMIZER: Final = (
    0.20168951100670543,
    0.15001069182345797,
    0.476873974221897,
    0.2753324304940561,
    0.31165161660011326,
    0.6573005340656203,
)

_MIXED_MINIMIZER: Final = MappingProxyType(
    {
        "learning_rate": 1e-3,
        "momentum": 0.9,
        "dropout": 0.2,
        "layers": 4,
        "units": 128,
        "activation": "gelu",
    }
)

_BRANIN_SPACE: Final = Space(x1=Real(-5.0, 10.0), x2=Real(0.0, 15.0))

_ALL: Final = (
    Problem("branin", _BRANIN_SPACE, branin, 0.39788735772973816, _named((math.pi, 2.275))),
    Problem("hartmann6", _box(6, 0.0, 1.0), hartmann6, -3.3223680114155147, _named(_HARTMANN_MINIMIZER)),
    Problem("ackley5", _box(5, -32.768, 32.768), ackley5, 0.0, _named(_ACKLEY_SHIFT)),
    Problem("rosenbrock4", _box(4, -5.0, 10.0), rosenbrock4, 0.0, _named((1.0,) * 4)),
    Problem("mixed6", _MIXED_SPACE, mixed6, 0.0, _MIXED_MINIMIZER),
)

FUNCTIONS: Final[Mapping[str, Problem]] = MappingProxyType({problem.name: problem for problem in _ALL})
