"""The point of a mixed space where an acquisition is largest.

A pool of evenly spread points and of perturbations of the best points known is scored; the best of them are polished:
batched L-BFGS over the continuous coordinates, then the best single move of a discrete one, in turn, until neither
gains. The answer is a ranking, best first, never worse than the best of the pool, so that a caller who must refuse the
first point for a reason of its own has a second.

Symbols: U (m, p) unit coordinates, one per parameter; X (m, f) features, what the surrogates see.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from farthing.acquisitions.improvement import Acquisition
from farthing.designs.filling import sobol
from farthing.numerics.optimize import minimize_rows

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

POOL = 512
SPREADS = (0.2, 0.05, 0.01)  # standard deviations of the perturbations, in units of the box
PER_SPREAD = 24
STARTS = 4  # polished from the spread points, and as many from the perturbations
ROUNDS = 20  # of L-BFGS in one polish
TURNS = 4  # of continuous and discrete moves
WORTH = 1e-5  # gain in log utility below which polishing ends


class Domain(Protocol):
    """What the search needs to know of a space."""

    @property
    def levels(self) -> Sequence[int | None]: ...
    def snap(self, U: Array) -> Array: ...
    def features(self, U: Array) -> Array: ...
    def pull(self, U: Array, G: Array) -> Array: ...
    def neighbours(self, u: Array) -> Array: ...
    def admissible(self, U: Array) -> Mask: ...


@dataclass(frozen=True)
class Ranking:
    """Candidates and their utilities, best first."""

    U: Array  # (m, p)
    utility: Array  # (m,)


def maximize(
    acquisition: Acquisition,
    domain: Domain,
    anchors: Array,
    rng: np.random.Generator,
    pool: Array | None = None,
) -> Ranking:
    """Admissible points by decreasing utility; empty when no admissible one was found.

    `anchors` (k, p) are the best points known, to be perturbed; `pool` (m, p) replaces the evenly spread points, for
    spaces small enough to list.
    """
    spread = domain.snap(sobol(POOL, len(domain.levels), rng)) if pool is None else pool
    near = domain.snap(perturbed(anchors, domain.levels, rng))
    U = np.concatenate([spread, near])
    utility = _utility(acquisition, domain, U)
    if np.any(utility > -np.inf):
        starts = np.unique(np.concatenate([_top(utility[: len(spread)]), len(spread) + _top(utility[len(spread) :])]))
        polished, gained = _polish(acquisition, domain, U[starts], utility[starts])
        U, utility = np.concatenate([polished, U]), np.concatenate([gained, utility])
    order = np.argsort(-utility, kind="stable")
    order = order[utility[order] > -np.inf]
    return Ranking(U[order], utility[order])


def perturbed(anchors: Array, levels: Sequence[int | None], rng: np.random.Generator) -> Array:
    """Anchors moved by normal steps of several sizes; each discrete coordinate is redrawn with probability 1 / p."""
    if not len(anchors):
        return anchors
    p = len(levels)
    rows = np.resize(np.arange(len(anchors)), PER_SPREAD * len(SPREADS))
    sizes = np.repeat(SPREADS, PER_SPREAD)[:, None]
    moved = anchors[rows] + sizes * rng.standard_normal((len(rows), p))
    redrawn = rng.random((len(rows), p)) < 1.0 / max(p, 1)
    discrete = np.array([count is not None for count in levels])
    moved = np.where(discrete, np.where(redrawn, rng.random((len(rows), p)), anchors[rows]), moved)
    return np.clip(moved, 0.0, 1.0)


def _utility(acquisition: Acquisition, domain: Domain, U: Array) -> Array:
    """Utility (m,), -inf where a point is not admissible."""
    values = acquisition(domain.features(U))
    return np.where(domain.admissible(U) & np.isfinite(values), values, -np.inf)


def _top(utility: Array) -> NDArray[np.intp]:
    """Indices of the STARTS largest finite utilities."""
    order = np.argsort(-utility, kind="stable")[:STARTS]
    return order[utility[order] > -np.inf]


def _polish(acquisition: Acquisition, domain: Domain, U: Array, utility: Array) -> tuple[Array, Array]:
    U, utility = U.copy(), utility.copy()
    rows = np.arange(len(U))
    has_continuous = any(count is None for count in domain.levels)
    has_discrete = any(count is not None for count in domain.levels)
    for _ in range(TURNS):
        before = utility[rows].copy()
        if has_continuous:
            _climb(acquisition, domain, U, utility, rows)
        if not has_discrete:
            break
        _step(acquisition, domain, U, utility, rows)
        rows = rows[utility[rows] > before + WORTH]
        if not len(rows):
            break
    return U, utility


def _climb(acquisition: Acquisition, domain: Domain, U: Array, utility: Array, rows: NDArray[np.intp]) -> None:
    """Move the continuous coordinates of the rows uphill; keep a move only where it is admissible and better."""

    def descent(V: Array) -> tuple[Array, Array]:
        values, slopes = acquisition.with_gradient(domain.features(V))
        return -values, -domain.pull(V, slopes)

    points, values = minimize_rows(descent, U[rows], rounds=ROUNDS, ftol=WORTH)
    points = domain.snap(points)
    better = (-values > utility[rows]) & domain.admissible(points)
    U[rows[better]], utility[rows[better]] = points[better], -values[better]


def _step(acquisition: Acquisition, domain: Domain, U: Array, utility: Array, rows: NDArray[np.intp]) -> None:
    """Take the best move of one discrete coordinate for each row, again and again while it gains."""
    while len(rows):
        neighbours = [domain.neighbours(U[row]) for row in rows]
        owners = np.repeat(np.arange(len(rows)), [len(block) for block in neighbours])
        if not len(owners):
            return
        moves = np.concatenate(neighbours)
        values = _utility(acquisition, domain, moves)
        gained = np.zeros(len(rows), dtype=bool)
        for k, row in enumerate(rows):
            own = np.flatnonzero(owners == k)
            best = own[np.argmax(values[own])] if len(own) else -1
            if best >= 0 and values[best] > utility[row] + WORTH:
                U[row], utility[row], gained[k] = moves[best], values[best], True
        rows = rows[gained]
