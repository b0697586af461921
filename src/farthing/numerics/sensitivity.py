"""How much of a function's variance each of its inputs makes: Sobol's indices, by pick and freeze.

Symbols and shapes
    A, B (n, p)   independent points, uniform in the unit cube;  A_i (n, p)  A with column i of B
    V             variance of f
    main (p,)     V(E(f | x_i)) / V, of input i alone           (Saltelli et al. 2010, Table 2, row b)
    total (p,)    1 - V(E(f | all but x_i)) / V, of input i and all its interactions      (row f, by Jansen)

The main effects of independent inputs and the interactions between them sum to 1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from farthing.numerics.arrays import Array

FLAT = 1e-12  # of the largest value: a smaller standard deviation is rounding


@dataclass(frozen=True)
class Indices:
    """Shares of the variance; all 0 for a function that does not vary."""

    main: Array  # (p,)
    total: Array  # (p,), at least main

    @property
    def interactions(self) -> float:
        """The share that no input makes alone."""
        return max(1.0 - float(self.main.sum()), 0.0) if self.total.any() else 0.0


def indices(f: Callable[[Array], Array], A: Array, B: Array) -> Indices:
    """The indices of f, which gives values (m,) at points (m, p).

    >>> from farthing.designs.filling import sobol
    >>> points = sobol(256, 4, np.random.default_rng(0))
    >>> found = indices(lambda X: 3.0 * X[:, 0] + X[:, 1], points[:, :2], points[:, 2:])
    >>> found.main.round(2).tolist(), round(found.interactions, 2)
    ([0.9, 0.1], 0.0)
    """
    p = A.shape[1]
    f_A, f_B = f(A), f(B)
    both = np.concatenate([f_A, f_B])
    centre, spread = float(both.mean()), float(both.std())
    if not spread > FLAT * float(np.abs(both).max()):
        return Indices(np.zeros(p), np.zeros(p))
    y_A, y_B = (f_A - centre) / spread, (f_B - centre) / spread
    main, total = np.empty(p), np.empty(p)
    for i in range(p):
        A_i = A.copy()
        A_i[:, i] = B[:, i]
        y_i = (f(A_i) - centre) / spread
        main[i], total[i] = np.mean(y_B * (y_i - y_A)), 0.5 * np.mean((y_A - y_i) ** 2)
    main = np.clip(main, 0.0, 1.0)
    return Indices(main, np.maximum(total, main))
