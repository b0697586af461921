"""Search spaces as the benchmarks describe them to every system: a list with one dictionary per hyperparameter.

    {"name": "rate", "type": "uniform_float", "lower": 1e-5, "upper": 1.0, "log": true}
    {"name": "units", "type": "uniform_int", "lower": 8, "upper": 512, "log": true}
    {"name": "optimiser", "type": "categorical", "choices": ["sgd", "adam"]}

The names of the types are those of ConfigSpace, as in the files of YAHPO Gym.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Described = Mapping[str, Any]  # one hyperparameter
Config = Mapping[str, Any]


def drawn(space: Sequence[Described], rng: np.random.Generator) -> dict[str, Any]:
    """A random configuration."""
    return {one["name"]: _drawn(one, rng) for one in space}


def _drawn(one: Described, rng: np.random.Generator) -> Any:
    if one["type"] == "categorical":
        return one["choices"][int(rng.integers(len(one["choices"])))]
    low, high = float(one["lower"]), float(one["upper"])
    if one["type"] == "uniform_int":
        low, high = low - 0.5 + 1e-9, high + 0.5 - 1e-9  # the ends are as likely as what lies between them
    u = rng.random()
    value = low * (high / low) ** u if one["log"] else low + (high - low) * u
    return round(value) if one["type"] == "uniform_int" else value


def place(space: Sequence[Described], config: Config) -> Array:
    """A configuration as a point: ranges become [0, 1], and two different choices are 1 apart."""
    return np.concatenate([_place(one, config[one["name"]]) for one in space])


def _place(one: Described, value: Any) -> Array:
    if one["type"] == "categorical":
        return np.array([math.sqrt(0.5) * (value == choice) for choice in one["choices"]])
    low, high = float(one["lower"]), float(one["upper"])
    u = math.log(value / low) / math.log(high / low) if one["log"] else (value - low) / (high - low)
    return np.array([u])
