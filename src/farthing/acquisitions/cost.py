"""Improvement weighed against cost, in logarithms.

Symbols: e(x) = log EI(x), c(x) = mean of log cost at x, lambda the tradeoff in [0, 1].
    EI per cost^alpha (CEI, Eq. 1; alpha = 0 is EI, 1 is EIpu):   e(x) - alpha c(x)
    contextual EI (CEI, Eq. 2):   the least c(x) subject to e(x) >= max e + log(1 - lambda)

Cost is uncertain, and we weigh by exp(mean of log cost), its median: that neither rewards uncertainty, as
E[1 / c^alpha] would, nor penalises it, as 1 / E[c]^alpha would.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from farthing.acquisitions.improvement import Acquisition
from farthing.acquisitions.maximize import Domain, Effort, Ranking, Slice, ranked, stepped, top
from farthing.numerics.arrays import Array
from farthing.numerics.optimize import Function, Rows, minimize_rows
from farthing.surrogates.cost.log_cost import CostModel

TIE = 1e-6  # log costs closer than this are equal, and the larger EI decides
DEEPEST = 50.0  # log EI further below the best no longer decides a tie
STARTS = 6  # feasible points, and as many that miss by at most SLACK of log EI: a cheaper point may lie near them
SLACK = 1.0
# Of the augmented Lagrangian, and of L-BFGS in each of them; what still ends outside is moved back inside.
ROUNDS = (4, 7)
EFFORT = Effort(turns=2)  # more turns hardly find cheaper points, and take as long each
FIRST_PENALTY, PENALTY_GROWTH = 2.0, 3.0  # log cost and log EI are both of size 1, so no scaling is needed
MARGIN = 1e-5  # of log EI: aim this far inside the constraint
NO_INFLUENCE = 1e-9  # a smaller slope of log cost is rounding
STEPS_BACK = np.linspace(1.0, 0.0, 17)[:, None, None]  # shares of a move that are tried if its end is not feasible


@dataclass(frozen=True)
class PerCost:
    """log EI - alpha log cost."""

    improvement: Acquisition
    log_cost: CostModel
    alpha: float

    def __call__(self, X: Array) -> Array:
        """Values (m,)."""
        return self.improvement(X) - self.alpha * self.log_cost.mean_at(X)

    def with_gradient(self, X: Array) -> tuple[Array, Array]:
        """Values (m,) and gradients (m, f)."""
        value, slope = self.improvement.with_gradient(X)
        log_cost, log_cost_slope = self.log_cost.mean_with_gradient(X)
        return value - self.alpha * log_cost, slope - self.alpha * log_cost_slope


@dataclass(frozen=True)
class Contextual:
    """The utility whose maximum is contextual EI: minus log cost where EI is high enough, else -inf.

    Ties in cost are broken by EI, whose whole range weighs less than TIE.
    """

    improvement: Acquisition
    log_cost: CostModel
    best: float  # max e
    threshold: float  # max e + log(1 - lambda)
    rounds: tuple[int, int] = ROUNDS

    def __call__(self, X: Array) -> Array:
        """Values (m,)."""
        return self.of(self.improvement(X), self.log_cost.mean_at(X))

    def of(self, log_ei: Array, log_cost: Array) -> Array:
        """Utility from log EI and log cost, (m,) each."""
        bonus = TIE * np.maximum((log_ei - self.best) / DEEPEST, -1.0)
        return np.where(log_ei >= self.threshold, bonus - log_cost, -np.inf)

    def climb(self, domain: Domain, U: Array) -> Array:
        """Cheaper points that are still feasible, by moving the continuous coordinates of feasible rows (b, p).

        An augmented Lagrangian (Nocedal and Wright 2006, section 17.3) on the constraint g = threshold - e <= 0, then
        a climb of EI over the coordinates that do not influence the cost. Points that end outside are moved back.
        """
        cheaper = self._back_inside(domain, U, self._cheapest(domain, U))
        return self._back_inside(domain, cheaper, self._better_at_equal_cost(domain, cheaper))

    def _cheapest(self, domain: Domain, U: Array) -> Array:
        part, everyone = domain.sliced(U), np.arange(len(U))
        multiplier, penalty = np.zeros(len(U)), FIRST_PENALTY
        aim = min(self.threshold + MARGIN, self.best)
        for left in reversed(range(self.rounds[0])):
            lagrangian = self._lagrangian(part, multiplier, penalty, aim)
            U = minimize_rows(lagrangian, U, rounds=self.rounds[1])[0]
            if left:
                g = aim - self.improvement(part.features(U, everyone))
                multiplier = np.maximum(multiplier + penalty * g, 0.0)
                penalty *= PENALTY_GROWTH
        return U

    def _lagrangian(self, part: Slice, multiplier: Array, penalty: float, aim: float) -> Function:
        """log cost + [max(0, multiplier + penalty g)^2 - multiplier^2] / (2 penalty), with its gradient."""

        def function(U: Array, rows: Rows) -> tuple[Array, Array]:
            X = part.features(U, rows)
            log_ei, log_ei_slope = self.improvement.with_gradient(X)
            log_cost, log_cost_slope = self.log_cost.mean_with_gradient(X)
            force = np.maximum(multiplier[rows] + penalty * (aim - log_ei), 0.0)
            value = log_cost + (force**2 - multiplier[rows] ** 2) / (2.0 * penalty)
            return value, part.pull(log_cost_slope - force[:, None] * log_ei_slope, rows)

        return function

    def _better_at_equal_cost(self, domain: Domain, U: Array) -> Array:
        """Larger EI at the same cost: only coordinates without influence on the cost move."""
        part, everyone = domain.sliced(U), np.arange(len(U))
        slope = self.log_cost.mean_with_gradient(part.features(U, everyone))[1]
        same_cost = np.abs(part.pull(slope, everyone)) <= NO_INFLUENCE
        if not same_cost.any():
            return U

        def descent(V: Array, rows: Rows) -> tuple[Array, Array]:
            value, gradient = self.improvement.with_gradient(part.features(V, rows))
            return -value, np.where(same_cost[rows], -part.pull(gradient, rows), 0.0)

        return minimize_rows(descent, U, rounds=self.rounds[1])[0]

    def _back_inside(self, domain: Domain, safe: Array, moved: Array) -> Array:
        """The point of largest utility on the way from `moved` back to `safe`, row by row."""
        if np.array_equal(safe, moved):
            return safe
        way = safe + STEPS_BACK * (moved - safe)  # (steps, b, p)
        flat = domain.snap(way.reshape(-1, safe.shape[1]))
        utility = self(domain.features(flat)).reshape(len(way), len(safe))
        return np.asarray(flat.reshape(way.shape)[np.argmax(utility, axis=0), np.arange(len(safe))])


def contextual(
    improvement: Acquisition, log_cost: CostModel, domain: Domain, found: Ranking, tradeoff: float,
    rounds: tuple[int, int] = ROUNDS, effort: Effort = EFFORT,
) -> Ranking:  # fmt: skip
    """Contextual EI from a ranking by log EI: the cheapest points whose EI is at least (1 - tradeoff) of the best.

    At tradeoff 0 that is the ranking itself, at 1 the cheapest point of all.
    """
    if tradeoff == 0.0 or not len(found.U):
        return found
    best = float(found.utility[0])
    with np.errstate(divide="ignore"):
        utility = Contextual(improvement, log_cost, best, best + float(np.log1p(-tradeoff)), rounds)
    costs = log_cost.mean_at(domain.features(found.U))
    values = utility.of(found.utility, costs)
    close = np.where(np.isinf(values) & (found.utility >= utility.threshold - SLACK), -costs, -np.inf)
    starts = np.unique(np.concatenate([[0], top(values, STARTS), top(close, STARTS)]))  # the best EI is always feasible
    U, gained = stepped(utility, domain, found.U[starts], values[starts], utility.climb, effort)
    return ranked(np.concatenate([U, found.U]), np.concatenate([gained, values]))
