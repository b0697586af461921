"""The cost-effective initial design of CArBO, Algorithm 1: cheap points, far from each other.

Each point of the design is the last of a set of candidates, after dropping in turn the most expensive one and the one
closest to the design. Costs and distances do not change while points are dropped, so two sorted lists and a mask of
dropped points do it in O(m log m).

The paper's notation is unclear in one place: all candidates are available again for every point. It does not say what
happens where costs or distances are equal, but it says that the algorithm is the greedy one where all costs are: each
point is then the one farthest from the design. So of equally expensive candidates the closest is dropped, and of
equally close ones the most expensive.
"""

from __future__ import annotations

import numpy as np

from farthing.numerics.arrays import Array
from farthing.numerics.linalg import squared_distances

DIGITS = 9  # after the point: distances on a grid, and costs that depend on few parameters, are equal but for rounding


def next_point(log_cost: Array, distance: Array) -> int:
    """The index of the last candidate, from costs (m,) and distances (m,) to the design so far.

    >>> next_point(np.array([0.0, 1.0, 5.0, 1.5]), np.array([0.1, 0.9, 2.0, 0.2]))
    1
    """
    near, expense = distance.round(DIGITS), log_cost.round(DIGITS)
    most_expensive = iter(np.lexsort((near, -expense)).tolist())  # the last key comes first
    closest = iter(np.lexsort((-expense, near)).tolist())
    dropped = np.zeros(len(log_cost), dtype=np.bool_)
    left, turn = len(log_cost), 0
    while left > 1:
        drop = next(i for i in (most_expensive, closest)[turn] if not dropped[i])
        dropped[drop] = True
        left, turn = left - 1, 1 - turn
    return int(np.argmin(dropped))


def distances(candidates: Array, design: Array) -> Array:
    """Distance (m,) of each candidate (m, f) to the nearest point of the design (n, f); all the same when n is 0."""
    if not len(design):
        return np.full(len(candidates), np.inf)
    return np.asarray(np.sqrt(squared_distances(candidates, design).min(axis=1)))
