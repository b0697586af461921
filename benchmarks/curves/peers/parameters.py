"""Hyperparameters of ConfigSpace, of which peers have different versions."""

from __future__ import annotations

from typing import Any

from ConfigSpace import Categorical, Float, Integer

from benchmarks.common.described_spaces import Described


def hyperparameter(one: Described) -> Any:
    if one["type"] == "categorical":
        return Categorical(one["name"], one["choices"])
    kind = Integer if one["type"] == "uniform_int" else Float
    return kind(one["name"], (one["lower"], one["upper"]), log=one["log"])
