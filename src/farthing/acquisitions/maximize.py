"""The point of a mixed space where an acquisition is largest.

Evenly spread points and perturbations of the best known points are scored. The best of them are polished: batched
L-BFGS over the continuous coordinates, then the best single move of a discrete one, in turn, until neither gains. The
result is a ranking, best first, never worse than the best scored point, so that a caller who must refuse the first
point has a second.

Symbols: U (m, p) unit coordinates, one per parameter; X (m, f) features, what the surrogates see.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from farthing.acquisitions.improvement import Acquisition
from farthing.designs.filling import sobol
from farthing.numerics.arrays import Array, Mask
from farthing.numerics.deadline import keep_to_deadline
from farthing.numerics.optimize import Rows, minimize_rows

Utility = Callable[[Array], Array]

POOL = 512  # evenly spread points that are scored
SPREADS = (0.2, 0.05, 0.01)  # standard deviations of the perturbations, in units of the box
PER_SPREAD = 24  # perturbations of each size
WORTH = 1e-3  # gain in log utility below which polishing ends


class Effort(NamedTuple):
    """How much a search does."""

    starts: int = 4  # polished from the spread points, and as many from the perturbations
    rounds: int = 8  # of L-BFGS at least, each time numbers are polished
    turns: int = 4  # alternations of continuous and discrete moves
    steps: int = 1_000  # discrete moves of a row in each turn

    def rounds_in(self, dimensions: int) -> int:
        """Rounds of L-BFGS: it takes about as many as there are coordinates. In 60 dimensions 10 rounds end 0.15 of log
        EI too low, 24 end 0.002; in 25 of whole numbers 24 take less time, since few discrete moves are left to make.

        >>> [Effort().rounds_in(p) for p in (2, 13, 60)]
        [8, 13, 24]
        """
        return min(max(self.rounds, dimensions), 3 * self.rounds)


FULL = Effort()


class Slice(Protocol):
    """The points around some rows in which only numbers move; `rows` (m,) says which of them a point belongs to."""

    def features(self, V: Array, rows: Rows) -> Array: ...
    def pull(self, G: Array, rows: Rows) -> Array: ...


class Domain(Protocol):
    """What the search needs to know about a space: `levels` has the number of values of each discrete coordinate, and
    `slides` says whether there are numbers, along which a gradient can be followed."""

    @property
    def levels(self) -> Sequence[int | None]: ...
    @property
    def slides(self) -> bool: ...
    def snap(self, U: Array) -> Array: ...
    def features(self, U: Array) -> Array: ...
    def sliced(self, U: Array) -> Slice: ...
    def neighbours(self, U: Array) -> tuple[Array, Rows]: ...
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
    effort: Effort = FULL,
) -> Ranking:
    """Admissible points by decreasing utility; empty if none was found.

    `anchors` (k, p) are the best known points, to be perturbed; `pool` (m, p) replaces the evenly spread points, in
    spaces that are small enough to list and where a search before has found where to look.
    """
    spread = domain.snap(sobol(POOL, len(domain.levels), rng)) if pool is None else pool
    near = domain.snap(perturbed(anchors, domain.levels, rng))
    U = np.concatenate([spread, near])
    utility = _utility(acquisition, domain, U)
    if np.any(utility > -np.inf):
        best = [top(utility[: len(spread)], effort.starts), len(spread) + top(utility[len(spread) :], effort.starts)]
        starts = np.unique(np.concatenate(best))
        climb = uphill(acquisition, effort.rounds_in(len(domain.levels)))
        polished, gained = stepped(acquisition, domain, U[starts], utility[starts], climb, effort)
        U, utility = np.concatenate([polished, U]), np.concatenate([gained, utility])
    return ranked(U, utility)


def ranked(U: Array, utility: Array) -> Ranking:
    """Points by decreasing utility, without the inadmissible ones."""
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


def _utility(utility: Utility, domain: Domain, U: Array) -> Array:
    """Utility (m,), -inf where a point is not admissible."""
    keep_to_deadline()
    values = utility(domain.features(U))
    return np.where(domain.admissible(U) & np.isfinite(values), values, -np.inf)


def top(utility: Array, count: int) -> NDArray[np.intp]:
    """Indices of the largest finite utilities, at most `count`."""
    order = np.argsort(-utility, kind="stable")[:count]
    return order[utility[order] > -np.inf]


def stepped(
    utility: Utility, domain: Domain, U: Array, values: Array, climb: Callable[[Domain, Array], Array],
    effort: Effort = FULL,
) -> tuple[Array, Array]:  # fmt: skip
    """Rows U (b, p) of the given values, improved by `climb` and by discrete moves in turn until neither gains, or the
    effort is made."""
    U, values = U.copy(), values.copy()
    rows = np.arange(len(U))
    has_discrete = any(count is not None for count in domain.levels)
    for _ in range(effort.turns):
        if domain.slides:
            _keep_better(utility, domain, U, values, rows, domain.snap(climb(domain, U[rows])))
        if not has_discrete:
            break
        before = values[rows].copy()
        _step(utility, domain, U, values, rows, effort.steps)
        rows = rows[values[rows] > before + WORTH]  # where no discrete move gains, a climb has just ended
        if not len(rows):
            break
    return U, values


def uphill(acquisition: Acquisition, rounds: int) -> Callable[[Domain, Array], Array]:
    """The climb of an acquisition over the continuous coordinates, all rows at once."""

    def climb(domain: Domain, U: Array) -> Array:
        part = domain.sliced(U)

        def descent(V: Array, rows: Rows) -> tuple[Array, Array]:
            values, slopes = acquisition.with_gradient(part.features(V, rows))
            return -values, -part.pull(slopes, rows)

        return minimize_rows(descent, U, rounds=rounds, ftol=WORTH)[0]

    return climb


def _keep_better(utility: Utility, domain: Domain, U: Array, values: Array, rows: Rows, moved: Array) -> None:
    """Keep the moved rows that are admissible and better."""
    reached = _utility(utility, domain, moved)
    better = reached > values[rows]
    U[rows[better]], values[rows[better]] = moved[better], reached[better]


def _step(utility: Utility, domain: Domain, U: Array, values: Array, rows: Rows, most: int) -> None:
    """Make the best move of one discrete coordinate in each row, and repeat while it gains, at most so many times."""
    for _ in range(most):
        if not len(rows):
            return
        moves, owners = domain.neighbours(U[rows])
        if not len(moves):
            return
        reached = _utility(utility, domain, moves)
        best = _first_largest(reached, owners)
        gains = reached[best] > values[rows[owners[best]]] + WORTH
        best, rows = best[gains], rows[owners[best[gains]]]
        U[rows], values[rows] = moves[best], reached[best]


def _first_largest(values: Array, owners: Rows) -> Rows:
    """The index of the largest value of each owner, the first of equal ones; `owners` (m,) rise."""
    order = np.lexsort((-values, owners))  # stable: of equal values the first stays first
    leads = np.concatenate([[True], owners[order][1:] != owners[order][:-1]])
    return np.asarray(order[leads])
