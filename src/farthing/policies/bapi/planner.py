"""What the rest of a budget could buy: a horizon of training runs, and the first of them to take.

BAPI, Algorithms 2 and 4 (see `policy.py`). Candidates are new configurations and paused trials; the draws of the curve
model carry what the runs planned earlier would change.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from farthing.acquisitions.maximize import perturbed
from farthing.budget import Ledger
from farthing.history import History, TrackedTrial
from farthing.numerics.arrays import Array
from farthing.numerics.deadline import keep_to_deadline
from farthing.numerics.late_scipy import logsumexp
from farthing.numerics.normal import log_h
from farthing.policies.bapi.curves import TrainingCurves
from farthing.policies.candidates import ANCHORS, FreshSpace
from farthing.policies.cost_models import LEAST_COST
from farthing.policies.fits import success_model
from farthing.policies.run_candidates import RunCandidates, new_points
from farthing.policies.step_costs import StepCostModel, StepCosts
from farthing.space import Space
from farthing.surrogates.cost.choice import CostModelName
from farthing.surrogates.curves.paths import Mixture, Paths
from farthing.surrogates.curves.unconstrained import different_rows
from farthing.surrogates.feasibility import Feasibility
from farthing.trial import Proposal, Status

POOL = 256  # evenly spread points for each run of the horizon, in addition to perturbations of the best
KEPT = 48  # best of the pool by the process alone, which are then scored with draws, and again for the next runs
NEARBY = 16  # best of the perturbed points, which are scored with draws
MOST_RUNNING = 64  # trainings that draws are given the ends of, those that were begun last: each takes milliseconds
ROUNDS = 2  # of perturbing the best found so far: two coarse steps, since the model is uncertain anyway


class PlanOptions(Protocol):
    """What a policy says about its plans."""

    @property
    def horizon(self) -> int: ...
    @property
    def cost(self) -> StepCostModel: ...
    @property
    def cost_model(self) -> CostModelName: ...
    @property
    def plans_end(self) -> bool: ...
    def steps_of_period(self, max_steps: int) -> int: ...


@dataclass(frozen=True, eq=False)
class PlannedRun:
    """A run of the horizon: the candidate, the step it stops at, its cost and gain."""

    run: RunCandidates  # one
    stop: int
    cost: float  # of its steps
    log_gain: float  # per price

    @property
    def price(self) -> float:
        """The cost of its steps, and what it takes until they can begin."""
        return self.cost + float(self.run.start[0])


@dataclass(frozen=True, eq=False)
class Planner:
    """Plans the horizon of one ask, and proposes its best run."""

    options: PlanOptions
    space: Space
    ledger: Ledger
    fresh: FreshSpace
    curves: TrainingCurves
    costs: StepCosts
    paused: list[TrackedTrial]
    paths: Paths  # draws of the curves, given those of running trials at the ends of their trainings
    success: Feasibility | None
    start: float  # cost until a process is ready for a new run
    rng: np.random.Generator

    @classmethod
    def of(
        cls, options: PlanOptions, space: Space, history: History, ledger: Ledger, fresh: FreshSpace,
        curves: TrainingCurves, rng: np.random.Generator,
    ) -> Planner:  # fmt: skip
        paths = curves.paths
        for trial in history.running[-MOST_RUNNING:]:
            paths = paths.extend(space.features(trial.unit[None, :])[0], float(curves.t_max))
        costs = StepCosts.of(options.cost, options.cost_model, space, history)
        success = success_model(space, history)
        paused, start = history.of(Status.PAUSED), history.start_price(ledger.unit)
        return cls(options, space, ledger, fresh, curves, costs, paused, paths, success, start, rng)

    def with_running(self, proposal: Proposal) -> Planner:
        """As if the proposal were running."""
        x = self.space.features(self.space.encode(proposal.config)[None, :])[0]
        paused = [trial for trial in self.paused if trial.number != proposal.trial]
        return replace(
            self, paused=paused, paths=self.paths.extend(x, float(self.curves.t_max)),
            ledger=self.ledger.promised(proposal.predicted_cost or 0.0, 1),
        )  # fmt: skip

    def next_proposal(self, number: int) -> Proposal | None:
        """The run of the horizon that gains most per cost (Algorithm 2, line 6), under `number` if it is new."""
        horizon = self.horizon()
        while horizon:
            best = max(horizon, key=lambda planned: planned.log_gain)
            trial = best.run.trials[0]
            runs = "1 planned run" if len(horizon) == 1 else f"{len(horizon)} planned runs"
            reason = f"largest improvement per cost of {runs}, to step {best.stop}{self._by}"
            if trial is not None:
                return Proposal(
                    trial.number, trial.config, best.cost, reason, self.fits, trial.kept_step, best.stop
                )  # fmt: skip
            config = self.fresh.claim(best.run.U)
            if config is not None:
                return Proposal(number, config, best.cost, reason, self.fits, 0, best.stop)
            horizon.remove(best)
        return None

    @property
    def _by(self) -> str:
        """Which kernel was chosen, in words; nothing if none was."""
        return f", by the {self.curves.choice.kernel} kernel" if self.curves.choice.at else ""

    @property
    def fits(self) -> dict[str, Any]:
        choice = self.curves.choice
        chosen = {"curve_choice": choice.as_json()} if choice.at else {}
        return {"bapi": self.curves.model.hyperparameters.as_json(), **chosen, **self.costs.fits}

    # -- the horizon -------------------------------------------------------------------------------------------------

    def horizon(self) -> list[PlannedRun]:
        """Algorithm 4: sequential greedy q-EI at the ends of trainings, by draws of the model."""
        left, paths, chosen = self.ledger.available, self.paths, list[PlannedRun]()
        candidates = self._candidates(self._screened(self._points(), KEPT, left))
        while len(chosen) < self.options.horizon and left > 0.0:
            candidates, utility = self._refined(candidates, chosen, paths, left)
            if not len(utility) or utility[0] == -np.inf:
                break
            planned = self._planned(candidates[:1], left)
            if planned is None:
                break
            chosen.append(planned)
            left -= planned.price
            paths = paths.extend(candidates.X[0], float(self.curves.t_max))
            candidates = candidates[1 : KEPT + 1]
        return chosen

    def _refined(
        self, candidates: RunCandidates, chosen: Sequence[PlannedRun], paths: Paths, left: float
    ) -> tuple[RunCandidates, Array]:
        """Candidates and others near the best of them, by decreasing utility; none that was chosen."""
        utility = self._utility(candidates, paths, left)
        for _ in range(ROUNDS):
            best = np.argsort(-utility, kind="stable")[:ANCHORS]
            near = self.fresh.snap(perturbed(candidates.U[best], self.fresh.levels, self.rng))
            near = near[self.fresh.admissible(near)]
            near = _without(near, np.concatenate([candidates.U, *(planned.run.U for planned in chosen)]))
            near = self._screened(near, NEARBY, left)
            nearby = self._candidates(near, paused=False)
            candidates = candidates.joined(nearby)
            utility = np.concatenate([utility, self._utility(nearby, paths, left)])
        order = np.argsort(-utility, kind="stable")
        return candidates[order], utility[order]

    def _screened(self, U: Array, most: int, left: float) -> Array:
        """The best of new configurations (c, p) by the process without draws, which is much less work."""
        X = self.space.features(U)
        reach = self._reach(np.zeros(len(X)), self.costs.log_per_step(X), left - self.start)
        mean, variance = self.paths.gp.predict(X, np.maximum(reach, 1.0))
        sd = np.sqrt(variance)
        utility = np.log(sd) + log_h((self.curves.best - mean) / sd)[0] + self._log_success(X)
        return np.asarray(U[np.argsort(-np.where(reach > 0.0, utility, -np.inf), kind="stable")[:most]])

    def _reach(self, step: Array, log_cost: Array, left: Array | float) -> Array:
        """The last step (c,) that is affordable, at most t_max; t_max if the end of the budget is not planned for."""
        if not self.options.plans_end:
            return np.full(len(step), float(self.curves.t_max))
        return np.minimum(float(self.curves.t_max), step + np.floor(left / np.exp(log_cost)))

    def _points(self) -> Array:
        return new_points(self.fresh, self.curves.anchors, POOL, self.rng)

    def _candidates(self, U: Array, paused: bool = True) -> RunCandidates:
        return RunCandidates.of(self.space, self.costs, self.start, U, self.paused if paused else [])

    def _utility(self, candidates: RunCandidates, paths: Paths, left: float) -> Array:
        """log EI (c,) at the last affordable step, given the draws of the runs planned before."""
        keep_to_deadline()
        if not len(candidates.U):
            return np.empty(0)
        reach = self._reach(candidates.step, candidates.log_cost, left - candidates.start)
        values = paths.drawn()[:, paths.carried.order == 0]  # (S, k) of the runs planned before
        best = np.minimum(self.curves.best, values.min(axis=1, initial=np.inf))  # (S,)
        utility = log_improvement(paths.at(candidates.X, np.maximum(reach, 1.0)), best)
        utility = utility + self._log_success(candidates.X)
        return np.where(reach > candidates.step, utility, -np.inf)

    def _log_success(self, X: Array) -> Array:
        return np.zeros(len(X)) if self.success is None else self.success.log_success(X)

    def _planned(self, run: RunCandidates, left: float) -> PlannedRun | None:
        """Where a run stops, what that costs and gains; None if not even one step is affordable."""
        step, per_step, start = float(run.step[0]), float(np.exp(run.log_cost[0])), float(run.start[0])
        least = step + 1.0 if step else float(self.options.steps_of_period(self.curves.t_max))
        stop = max(float(self.curves.stops(run.X)[0]), least)
        stop = min(stop, float(self._reach(run.step, run.log_cost, left - start)[0]))
        if stop <= step:
            return None
        gain = log_improvement(self.curves.paths.at(run.X, np.array([stop])), np.full(1, self.curves.best))
        gain = gain + self._log_success(run.X)
        cost = per_step * (stop - step)
        return PlannedRun(run, int(stop), cost, float(gain[0]) - float(np.log(max(cost + start, LEAST_COST))))


def _without(U: Array, known: Array) -> Array:
    """The different rows of U (c, p) that are not among `known` (k, p)."""
    rows, of = different_rows(np.concatenate([known, U]))
    return rows[of[: len(known)].max(initial=-1) + 1 :]


def log_improvement(mixture: Mixture, best: Array) -> Array:
    """log E[max(best_s - f, 0)] (c,) over the draws s of a mixture, each a normal, with its own best (S,) or (1,)."""
    sd = np.sqrt(mixture.variance)
    log_each = np.log(sd) + log_h((best[:, None] - mixture.means) / sd)[0]
    with np.errstate(over="ignore"):  # inside, where a weight is next to nothing; the sum is finite
        return np.asarray(logsumexp(log_each, b=mixture.weights, axis=0))
