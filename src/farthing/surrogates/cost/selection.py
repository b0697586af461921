"""Which parameters a linear model of log cost needs: greedy forward selection by evidence.

Symbols and shapes (those of `lines`). The log evidence of a set S of parameters with q columns, up to what all sets
share, is that of

    RIDGE^(q/2) |A|^(-1/2) (NOISE_STRENGTH NOISE_PRIOR^2 + Q)^(-(NOISE_STRENGTH + n - 1) / 2),

which charges a categorical parameter for its dummies. All sets read the same Gram matrix Zc' V Zc, with the v of the
fit on all parameters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg.lapack import dpotrf

from farthing.numerics.arrays import Array, Ints
from farthing.numerics.linalg import forward
from farthing.surrogates.cost.residuals import NOISE_PRIOR, NOISE_STRENGTH

RIDGE = 0.05  # a parameter moves log cost by about NOISE_PRIOR / sqrt(RIDGE) = 1.3 until the data say otherwise


def solved(L: Array, B: Array) -> Array:
    """L^-1 B, also for an empty L."""
    return forward(L, B) if len(L) else B


def ridge_factor(gram: Array) -> Array:
    """Lower factor of Zc' V Zc + RIDGE I; the ridge makes it exist."""
    return np.asarray(dpotrf(gram + RIDGE * np.eye(len(gram)), lower=1, clean=1)[0]) if len(gram) else gram


@dataclass(frozen=True, eq=False)
class Evidence:
    """log evidence of sets of parameters, all from one Gram matrix."""

    owned: Sequence[Ints]  # columns of each parameter
    gram: Array  # (f, f) Zc' V Zc
    moment: Array  # (f,) Zc' V b
    total: float  # b' V b
    n: int

    @classmethod
    def of(cls, Z: Array, b: Array, owned: Sequence[Ints], v: Array) -> Evidence:
        C, t = Z - v @ Z / v.sum(), b - v @ b / v.sum()
        return cls(owned, (C * v[:, None]).T @ C, C.T @ (v * t), float(v @ t**2), len(b))

    def __call__(self, parameters: tuple[int, ...]) -> float:
        S = np.concatenate([np.empty(0, dtype=np.intp), *(self.owned[j] for j in parameters)])
        L = ridge_factor(self.gram[np.ix_(S, S)])
        half = solved(L, self.moment[S])
        left = NOISE_STRENGTH * NOISE_PRIOR**2 + max(self.total - float(half @ half), 0.0)
        determinant = 0.5 * len(S) * np.log(RIDGE) - float(np.log(L.diagonal()).sum())
        return float(determinant - 0.5 * (NOISE_STRENGTH + self.n - 1.0) * np.log(left))

    def forward_selection(self, size: int) -> tuple[int, ...]:
        """The `size` most significant parameters, each the one that adds most evidence to those before it."""
        chosen: tuple[int, ...] = ()
        while len(chosen) < size:
            others = [j for j in range(len(self.owned)) if j not in chosen]
            chosen = (*chosen, max(others, key=lambda j, chosen=chosen: self((*chosen, j))))  # type: ignore[misc]
        return chosen
