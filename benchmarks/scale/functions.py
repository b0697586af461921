"""Functions whose studies have thousands of observations: smooth, rugged, noisy, in 5 and 20 dimensions, and mixed.

How models deal with thousands of observations was chosen on one half of them and is judged on the other (`HELD_OUT`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import farthing as ft

Array = NDArray[np.float64]


def rosenbrock(x: Array) -> float:
    z = 4.0 * x - 1.5
    return float((100.0 * (z[1:] - z[:-1] ** 2) ** 2 + (1.0 - z[:-1]) ** 2).sum())


def bowl(x: Array) -> float:
    """Ill-conditioned: the last coordinate weighs 100 times as much as the first."""
    weights = 10.0 ** np.linspace(0.0, 2.0, len(x))
    return float((weights * (x - 0.3 - 0.4 * np.arange(len(x)) / len(x)) ** 2).sum())


def rastrigin(x: Array) -> float:
    z = 6.0 * (x - 0.37)
    return float((z**2 - 4.0 * np.cos(2.0 * np.pi * z) + 4.0).sum())


def ackley(x: Array) -> float:
    z = 30.0 * (x - 0.41)
    waves = np.exp(np.cos(2.0 * np.pi * z).mean())
    return float(20.0 + np.e - 20.0 * np.exp(-0.2 * np.sqrt((z**2).mean())) - waves)


def levy(x: Array) -> float:
    w = 1.0 + (20.0 * (x - 0.5) - 1.0) / 4.0
    inner = (w[:-1] - 1.0) ** 2 * (1.0 + 10.0 * np.sin(np.pi * w[:-1] + 1.0) ** 2)
    last = (w[-1] - 1.0) ** 2 * (1.0 + np.sin(2.0 * np.pi * w[-1]) ** 2)
    return float(np.sin(np.pi * w[0]) ** 2 + inner.sum() + last)


@dataclass(frozen=True)
class Task:
    """A function of unit coordinates over a space, and the standard deviation of its noise. Its least value is 0."""

    name: str
    space: ft.Space
    function: Callable[[Array], float]
    noise: float = 0.0

    def value(self, u: Array) -> float:
        """Without noise."""
        if "kind" not in self.space.params:
            return self.function(u)
        apart = {"a": 0.0, "b": 0.15, "c": 0.3}[str(self.space.decode(u)["kind"])]
        return self.function(np.clip(u[:-1] + 0.5 * apart, 0.0, 1.5)) + 3.0 * apart


def cube(dimensions: int) -> ft.Space:
    return ft.Space({f"x{i}": ft.Real(0, 1) for i in range(dimensions)})


MIXED = ft.Space(
    momentum=ft.Real(0, 1), dropout=ft.Real(0, 1), rate=ft.Real(1e-4, 1, log=True), depth=ft.Integer(1, 20),
    width=ft.Integer(8, 512, log=True), kind=ft.Choice(["a", "b", "c"]),
)  # fmt: skip

CHOOSING = (
    Task("Rosenbrock, 5", cube(5), rosenbrock), Task("Rastrigin, 20", cube(20), rastrigin),
    Task("noisy bowl, 5", cube(5), bowl, 0.5), Task("Ackley, 20", cube(20), ackley), Task("mixed Levy, 6", MIXED, levy),
)  # fmt: skip
HELD_OUT = (
    Task("Rosenbrock, 20", cube(20), rosenbrock), Task("Rastrigin, 5", cube(5), rastrigin),
    Task("noisy bowl, 20", cube(20), bowl, 2.0), Task("Ackley, 5", cube(5), ackley),
    Task("mixed Rosenbrock, 6", MIXED, rosenbrock),
)  # fmt: skip


def searched(task: Task, n: int, seed: int) -> tuple[Array, Array]:
    """n observations as a long search leaves them: three tenths evenly spread, then variations of the best 5 %."""
    rng, p = np.random.default_rng(seed), len(task.space)
    U = list(task.space.snap(rng.random((3 * n // 10, p))))
    y = [task.value(u) + task.noise * rng.standard_normal() for u in U]
    while len(y) < n:
        best = np.argsort(y)[: max(len(y) // 20, 5)]
        mother, father = U[rng.choice(best)], U[rng.choice(best)]
        moved = rng.choice([0.2, 0.05, 0.02]) * rng.standard_normal(p) * (rng.random(p) < max(0.3, 2.0 / p))
        u = np.clip(np.where(rng.random(p) < 0.8, mother, father) + moved, 0.0, 1.0)
        U.append(task.space.snap(u[None, :])[0])
        y.append(task.value(U[-1]) + task.noise * rng.standard_normal())
    return np.array(U), np.array(y)
