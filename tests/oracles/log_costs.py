"""Log costs to choose a model for, and choices made one after the other."""

from __future__ import annotations

import json

import numpy as np

from farthing.surrogates.cost.choice import Chosen, choose


def wavy(n: int, seed: int = 0, d: int = 5) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.random((n, d))
    return X, np.sin(9.0 * X[:, 0]) + 2.0 * X[:, 1] + 0.02 * rng.standard_normal(n)


def straight(n: int, seed: int = 0, d: int = 5) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.random((n, d))
    return X, 4.0 * X[:, 2] + 0.3 * rng.standard_normal(n)


def chosen_for(X: np.ndarray, b: np.ndarray, stored: dict | None = None) -> Chosen:
    return choose(X, b, np.arange(X.shape[1]), np.ones(X.shape[1]), stored)


def played(X: np.ndarray, b: np.ndarray, sizes: range) -> list[Chosen]:
    """Choices one after the other, each from the state of the last as it comes out of a file."""
    choices: list[Chosen] = []
    for n in sizes:
        stored = json.loads(json.dumps(choices[-1].state)) if choices else None
        choices.append(chosen_for(X[:n], b[:n], stored))
    return choices
