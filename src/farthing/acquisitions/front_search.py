"""Points along the EI-cost front, found for all weights of cost at once.

Searching for each weight by itself (`maximize`) takes as many climbs as there are weights. Here every turn takes, for
each weight, the best points of one pool, lets all of them climb together, and adds what they reach and the
neighbours of that to the pool, where the next turn finds them for whichever weight they are good.

Symbols: w (k,) weights of log cost; e, c (m,) log EI and log cost of the pool U (m, p); e - w c is largest on the upper
concave hull of the front.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from farthing.acquisitions.maximize import POOL, WORTH, perturbed, top
from farthing.acquisitions.pareto import Landscape
from farthing.designs.filling import sobol
from farthing.numerics.arrays import Array, Mask
from farthing.numerics.optimize import Rows, minimize_rows

WEIGHTS = (0.0, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0)
BEST = 1  # points of each part of the pool that climb for each weight
ROUNDS = 10  # of L-BFGS in each turn
TURNS = 3


@dataclass(frozen=True)
class Pool:
    """Points and what they promise."""

    U: Array  # (m, p)
    log_cost: Array  # (m,)
    log_ei: Array  # (m,), -inf where a point is not admissible

    @classmethod
    def of(cls, landscape: Landscape, U: Array) -> Pool:
        log_cost, log_ei = landscape.at(U)
        possible = landscape.domain.admissible(U) & np.isfinite(log_cost) & ~np.isnan(log_ei)
        return cls(U, log_cost, np.where(possible, log_ei, -np.inf))

    def __add__(self, other: Pool) -> Pool:
        parts = ("U", "log_cost", "log_ei")
        return Pool(*(np.concatenate([getattr(self, part), getattr(other, part)]) for part in parts))

    def best(self, weight: float, count: int) -> Rows:
        """Indices of the best points at a weight."""
        return top(self.log_ei - weight * self.log_cost, count)

    def where(self, kept: Rows | Mask) -> Pool:
        """Some of the points, by their indices or by a mask."""
        return Pool(self.U[kept], self.log_cost[kept], self.log_ei[kept])


def search(
    landscape: Landscape, anchors: Array, rng: np.random.Generator, listed: Array | None, others: tuple[float, ...] = ()
) -> Pool:
    """Admissible points, the best of each weight among them; `others` are more weights. As in `maximize`, `anchors`
    (k, p) are the best known points and `listed` (m, p) all points of a small space."""
    domain = landscape.domain
    spread = domain.snap(sobol(POOL, len(domain.levels), rng)) if listed is None else listed
    parts = [Pool.of(landscape, U) for U in (spread, domain.snap(perturbed(anchors, domain.levels, rng)))]
    pool = parts[0] + parts[1]
    if listed is None:
        weights = np.array([*WEIGHTS, *others])
        for _ in range(TURNS):
            pool += Pool.of(landscape, _reached(landscape, parts, weights))
            parts = [pool]
    return pool.where(pool.log_ei > -np.inf)


def _reached(landscape: Landscape, parts: Sequence[Pool], weights: Array) -> Array:
    """From the best points of each part for each weight, where they get by climbing, and the neighbours of that."""
    domain = landscape.domain
    best = [(part.U[part.best(weight, BEST)], weight) for weight in weights for part in parts]
    U, w = np.concatenate([V for V, _ in best]), np.repeat([weight for _, weight in best], [len(V) for V, _ in best])
    reached = domain.snap(_climbed(landscape, U, w)) if domain.slides else U
    return np.unique(np.concatenate([reached, domain.neighbours(reached)[0]]), axis=0)


def _climbed(landscape: Landscape, U: Array, weights: Array) -> Array:
    """Where rows U (b, p) get by climbing e - w c, each with its weight (b,), along the numbers."""
    part = landscape.domain.sliced(U)

    def descent(V: Array, rows: Rows) -> tuple[Array, Array]:
        X, w = part.features(V, rows), weights[rows]
        log_ei, slope = landscape.improvement.with_gradient(X)
        log_cost, cost_slope = landscape.log_cost.mean_with_gradient(X)
        return w * log_cost - log_ei, part.pull(w[:, None] * cost_slope - slope, rows)

    return minimize_rows(descent, U, rounds=ROUNDS, ftol=WORTH)[0] if len(U) else U
