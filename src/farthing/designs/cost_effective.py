"""The cost-effective initial design of CArBO, Algorithm 1: cheap points, far from each other.

Each point of the design is what is left of a set of candidates after dropping, in turn, the most expensive one and the
one closest to the design, until one remains. Costs and distances do not change while points are dropped, so two sorted
lists and a mark for what is gone do it in O(m log m).

The paper's notation slips in one place: the candidates are all there again for every point chosen.
"""

from __future__ import annotations

import numpy as np

from farthing.numerics.arrays import Array
from farthing.numerics.linalg import squared_distances


def next_point(log_cost: Array, distance: Array) -> int:
    """The index of the candidate that is left, from costs (m,) and distances (m,) to the design so far.

    >>> next_point(np.array([0.0, 1.0, 5.0, 1.5]), np.array([0.1, 0.9, 2.0, 0.2]))
    1
    """
    dearest = iter(np.argsort(-log_cost, kind="stable").tolist())
    closest = iter(np.argsort(distance, kind="stable").tolist())
    gone = np.zeros(len(log_cost), dtype=np.bool_)
    left, turn = len(log_cost), 0
    while left > 1:
        drop = next(i for i in (dearest, closest)[turn] if not gone[i])
        gone[drop] = True
        left, turn = left - 1, 1 - turn
    return int(np.argmin(gone))


def distances(candidates: Array, design: Array) -> Array:
    """Distance (m,) of each candidate (m, f) to the nearest point of the design (n, f); all the same when n is 0."""
    if not len(design):
        return np.full(len(candidates), np.inf)
    return np.asarray(np.sqrt(squared_distances(candidates, design).min(axis=1)))
