"""The EI-cost Pareto front: which improvement can be expected at which cost, given the evaluations so far.

Symbols: c log cost, e log EI, (m,) each; U (m, p) unit coordinates.
    dominated (CEI, section 3.1):   another point has no more c and no less e, and one of the two strictly
    EI / cost^alpha (CEI, Eq. 1):   e - alpha c, so its maximiser is a vertex of the front's upper concave hull
                                    and alpha lies between the slopes of the hull's edges to the right and the left
A point of the front below its concave hull does not maximise EI / cost^alpha for any alpha, but contextual EI can reach
it (CEI, section 4 and Figure 5, right). The alpha at which it is short of the maximum by least is the slope of the edge
above it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from farthing.acquisitions.cost import TIE, PerCost, contextual
from farthing.acquisitions.improvement import Acquisition
from farthing.acquisitions.maximize import Domain, Ranking
from farthing.errors import InvalidArgument
from farthing.numerics.arrays import Array, Mask
from farthing.surrogates.cost.log_cost import CostModel

Search = Callable[[Acquisition], Ranking]  # points of a domain by an acquisition, best first

TRADEOFFS = (0.0, 0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 0.97, 1.0)  # contextual EI is solved at these for the front
ALPHAS = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0)  # and those of EI / cost^alpha
KEPT = 32  # best points of each: the others are those that every search looks at
ROUNDING = 1e-9  # of log EI
INDISTINCT = 1e-3  # of log utility: no search is accurate to a tenth of a percent of EI


@dataclass(frozen=True)
class Pick:
    """The point that one acquisition would evaluate next."""

    u: Array  # (p,)
    log_cost: float
    log_ei: float


@dataclass(frozen=True)
class Front:
    """The non-dominated points by increasing cost, and where some acquisitions would pick.

    `alphas` is the interval of alpha for which EI / cost^alpha is largest at the pick of contextual EI; None if there
    is none, because the pick is below the concave hull. Rows of U are unit coordinates: `space.decode(front.U[0])`.
    """

    U: Array  # (m, p)
    log_cost: Array  # (m,), strictly increasing
    log_ei: Array  # (m,), strictly increasing
    picks: Mapping[str, Pick]
    alphas: tuple[float, float] | None

    def __post_init__(self) -> None:
        if not len(self.U) == len(self.log_cost) == len(self.log_ei) > 0:
            sizes = f"{len(self.U)}, {len(self.log_cost)} and {len(self.log_ei)}"
            raise InvalidArgument(f"Front: expected U, log_cost and log_ei of one length above 0, got {sizes}")
        if np.any(np.diff(self.log_cost) <= 0.0) or np.any(np.diff(self.log_ei) <= 0.0):
            raise InvalidArgument(
                "Front: expected log_cost and log_ei that both increase from point to point, got one that does not"
            )

    def shortfall(self, log_cost: Array, log_ei: Array) -> Array:
        """How much more log EI the front has for at most the same cost, (m,): above 0 for dominated points.

        >>> front = Front(np.array([[0.1], [0.9]]), np.array([0.0, 1.0]), np.array([-3.0, -1.0]), {}, None)
        >>> front.shortfall(np.array([0.5, 1.0]), np.array([-4.0, -1.0]))
        array([1., 0.])
        """
        return _shortfall(self.log_cost, self.log_ei, log_cost, log_ei)


@dataclass(frozen=True)
class ImpliedAlpha:
    """The alphas that lead to what contextual EI picked when a trial was asked for (CEI, Figure 5, right).

    `interval` is None where none does, because the pick is below the concave hull. `alpha` is one number for a mean
    over trials or studies, which the paper does not define: the middle of the interval, its lower end where it has no
    upper one, and without an interval the alpha that comes nearest.
    """

    trial: int
    interval: tuple[float, float] | None
    alpha: float


@dataclass(frozen=True)
class Landscape:
    """Improvement and cost over a domain, given the evaluations so far."""

    improvement: Acquisition
    log_cost: CostModel
    domain: Domain

    def at(self, U: Array) -> tuple[Array, Array]:
        """log cost and log EI at U (m, p), (m,) each."""
        X = self.domain.features(U)
        return self.log_cost.mean_at(X), self.improvement(X)


@dataclass(frozen=True)
class Persistence:
    """An earlier front, the one of now, and where the points of the earlier one are now (CEI, Figure 7)."""

    before: Front  # of m points
    now: Front
    log_cost: Array  # (m,) of the points of `before`, by the models of now
    log_ei: Array  # (m,)
    kept: Mask  # (m,), still not dominated

    @property
    def share(self) -> float:
        """The share of the earlier front that is still not dominated."""
        return float(np.mean(self.kept))


def non_dominated(log_cost: Array, log_ei: Array) -> NDArray[np.intp]:
    """Indices of the non-dominated points, by increasing cost; of duplicates the first.

    >>> non_dominated(np.array([1.0, 2.0, 1.0, 3.0, 2.0]), np.array([0.0, 5.0, 1.0, 4.0, 5.0]))
    array([2, 1])
    """
    order = np.lexsort((-log_ei, log_cost))  # stable: by cost, at equal cost the largest EI first
    e = log_ei[order]
    best_cheaper = np.concatenate([[-np.inf], np.maximum.accumulate(e)[:-1]]) if len(e) else e
    return np.asarray(order[e > best_cheaper])


def alpha_interval(
    log_cost: Array, log_ei: Array, index: int, tolerance: float = ROUNDING
) -> tuple[float, float] | None:
    """The alphas of at least 0 for which e - alpha c is largest at a point, to within `tolerance`; None if there are
    none.

    The steepest slope up to a more expensive point is the hull's edge to the right, the flattest one down to a cheaper
    point the edge to the left. If the first is above the second, the point lies below the hull.

    >>> c, e = np.array([0.0, 1.0, 2.0, 4.0]), np.array([0.0, 3.0, 3.5, 5.5])
    >>> [None if i is None else tuple(round(a, 6) for a in i) for i in (alpha_interval(c, e, k) for k in range(4))]
    [(3.0, inf), (0.833333, 3.0), None, (0.0, 0.833333)]
    """
    run, rise = log_cost - log_cost[index], log_ei - log_ei[index] - tolerance
    if np.any(rise[run == 0.0] > 0.0):
        return None
    with np.errstate(over="ignore"):
        low = float(np.max(rise[run > 0.0] / run[run > 0.0], initial=0.0))
        high = float(np.min(rise[run < 0.0] / run[run < 0.0], initial=np.inf))
    return (low, high) if low <= high and low < np.inf else None


def nearest_alpha(log_cost: Array, log_ei: Array, index: int) -> float:
    """The alpha of at least 0 at which e - alpha c of a point is short of the maximum by least.

    It is the slope of the hull's edge above the point: of all lines from a cheaper to a more expensive point the one
    that is highest there.

    >>> c, e = np.array([0.0, 1.0, 2.0, 4.0]), np.array([0.0, 3.0, 3.5, 5.5])
    >>> round(nearest_alpha(c, e, 2), 6)
    0.833333
    """
    run, rise = log_cost - log_cost[index], log_ei - log_ei[index]
    left, right = run < 0.0, run > 0.0
    if not left.any():  # nothing is cheaper: the larger alpha, the nearer
        return max(float(np.max(rise[right] / run[right], initial=0.0)), 0.0)
    if not right.any():  # nothing is more expensive
        return 0.0
    width = run[right] - run[left][:, None]  # (cheaper, more expensive)
    height = (rise[left][:, None] * run[right] - rise[right] * run[left][:, None]) / width
    i, j = np.unravel_index(int(np.argmax(height)), height.shape)
    return max(float((rise[right][j] - rise[left][i]) / width[i, j]), 0.0)


def implied_alpha(trial: int, front: Front, pick: Pick) -> ImpliedAlpha:
    """The alphas that lead to a pick at a front, and the one number for them."""
    if front.alphas is not None:
        low, high = front.alphas
        return ImpliedAlpha(trial, front.alphas, 0.5 * (low + high) if high < np.inf else low)
    c, e = np.append(front.log_cost, pick.log_cost), np.append(front.log_ei, pick.log_ei)
    return ImpliedAlpha(trial, None, nearest_alpha(c, e, len(c) - 1))


def candidates(landscape: Landscape, search: Search) -> Array:
    """Points (m, p) to find the front among.

    All points that the search for EI scores, and the best ones for contextual EI and EI / cost^alpha from one end of
    the front to the other.
    """
    improvement, log_cost, domain = landscape.improvement, landscape.log_cost, landscape.domain
    found = search(improvement)
    cheapest = [contextual(improvement, log_cost, domain, found, tradeoff).U[:KEPT] for tradeoff in TRADEOFFS]
    weighed = [search(PerCost(improvement, log_cost, alpha)).U[:KEPT] for alpha in ALPHAS]
    return np.unique(np.concatenate([found.U, *cheapest, *weighed]), axis=0)


def front_among(landscape: Landscape, U: Array, picked: Mapping[str, Array], contextual_name: str) -> Front:
    """The front of points U (m, p) and of the picked ones, (p,) each, by name; `alphas` is that of `contextual_name`.

    Costs that count as equal for contextual EI are equal here.
    """
    U = np.concatenate([U, *(u[None, :] for u in picked.values())])
    log_cost, log_ei = landscape.at(U)
    last = range(len(U) - len(picked), len(U))
    picks = {name: Pick(U[i], float(log_cost[i]), float(log_ei[i])) for name, i in zip(picked, last, strict=True)}
    on_front = _distinct(log_cost, log_ei)
    c, e = log_cost[on_front], log_ei[on_front]
    chosen = picks.get(contextual_name)
    return Front(U[on_front], c, e, picks, None if chosen is None else _alphas(c, e, chosen))


def persistence(before: Front, now: Front, landscape: Landscape) -> Persistence:
    """The points of an earlier front under the models of now, and which of them are not dominated, either by the front
    of now or by each other."""
    log_cost, log_ei = landscape.at(before.U)
    c, e = np.concatenate([log_cost, now.log_cost]), np.concatenate([log_ei, now.log_ei])
    best = _distinct(c, e)
    kept = _shortfall(c[best], e[best], log_cost, log_ei) <= ROUNDING
    return Persistence(before, now, log_cost, log_ei, kept)


def _distinct(log_cost: Array, log_ei: Array) -> NDArray[np.intp]:
    """The non-dominated points, where costs less than TIE apart count as equal."""
    kept: list[int] = []
    for i in non_dominated(log_cost, log_ei)[::-1].tolist():  # of equal costs the larger EI is the later one
        if not kept or log_cost[i] + TIE < log_cost[kept[-1]]:
            kept.append(i)
    return np.array(kept[::-1], dtype=np.intp)


def _alphas(log_cost: Array, log_ei: Array, pick: Pick) -> tuple[float, float] | None:
    """The alphas that lead to a pick, even if another search found a slightly better point, in cost or in EI."""
    as_cheap = (log_cost < pick.log_cost) & (log_cost >= pick.log_cost - TIE)
    c = np.append(np.where(as_cheap, pick.log_cost, log_cost), pick.log_cost)
    e = np.append(log_ei, pick.log_ei)
    return alpha_interval(c, e, len(c) - 1, INDISTINCT)


def _shortfall(front_cost: Array, front_ei: Array, log_cost: Array, log_ei: Array) -> Array:
    """The largest log EI of a front at no more than these costs (to within TIE), less these log EI; -inf where all of
    it is more expensive."""
    best = np.concatenate([[-np.inf], front_ei])[np.searchsorted(front_cost, log_cost + TIE, side="right")]
    return np.asarray(best - log_ei)
