"""Policy `bapi`: budget-aware planning for iterative learners (BAPI; Belakaria, Doppa, Fusi and Sheth 2023).

Training curves are a Gaussian process over configuration and time that only falls (surrogates/monotone.py). Each ask
plans what the rest of the budget could buy, and takes the first step of that plan (Algorithms 2 and 4):

    the horizon     configurations, one after the other, each with the largest expected improvement at the end of its
                    training given those before it, until their costs use up the budget or there are `horizon` of them
    its stop        the first step from which the rest of the curve gains less than eps                 (Eq. 8)
    the next run    of the horizon, the one whose improvement at its stop is largest per cost

A run is paused at its stop, and earlier where the curve so far says that it will not win (Algorithm 5): every `period`
of a training, if the value foretold for its stop is not better than the best there is and about as certain as the
present. Paused runs are candidates as any other, at the cost of the steps they still need: one that was given up is
taken up again when the model changes its mind.

Symbols: t steps, t_max those of a complete training; mu and s mean and standard deviation of the process; y the running
best of what was reported, warped; R what is left of the budget.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
from scipy.special import logsumexp

from farthing.acquisitions.maximize import perturbed
from farthing.budget import Ledger
from farthing.designs.filling import sobol
from farthing.errors import InvalidArgument
from farthing.history import History, units
from farthing.numerics.arrays import Array
from farthing.numerics.normal import log_h
from farthing.policies.bapi.curves import RunCosts, TrainingCurves
from farthing.policies.candidates import FreshSpace
from farthing.policies.fits import success_model
from farthing.policies.sampling import next_of_design
from farthing.space import Space
from farthing.surrogates.curves.mixture import Mixture
from farthing.surrogates.curves.paths import Paths
from farthing.surrogates.curves.time_kernels import TimeKernel
from farthing.surrogates.feasibility import Feasibility
from farthing.trial import Decision, Proposal, Status, Trial

INITIAL = 5
POOL = 256  # points looked at for each place of the horizon, beside perturbations of the best
ANCHORS = 3
KEPT = 48  # of them, the best by the process alone, are looked at closely; and again for the next places
ROUNDS = 2  # of perturbing what was found
OVERRUN = 1.25  # of the predicted cost, from which on a run is weighed again
NEARBY = 16  # of the perturbed are looked at closely


@dataclass(frozen=True)
class BAPI:
    """Budget-aware planning.

    horizon   how many runs are planned ahead, at most
    points    of each curve enter the data: up to three, those of largest variance ("variance"), or the "last"
    kernel    over time: "decay" for curves that fall fast and then slowly, "rbf" for those that may stay flat first
    monotone  let the model know that curves only fall
    eps       gain below which training on is not worth it, in the units of the value; None: 5 % of the way from
              the median of the values seen to the best
    tau       a run is given up only if the end foretold is at most so many times as uncertain as the present
    period    share of a complete training after which a run is looked at again
    initial   configurations of the design, each trained for one period
    cost      of a step: by the project's low-variance models ("lines"), or a process times the steps ("process")
    """

    name: ClassVar[str] = "bapi"
    horizon: int = 4
    points: Literal["variance", "last"] = "variance"
    kernel: TimeKernel = "decay"
    monotone: bool = True
    eps: float | None = None
    tau: float = 2.0
    period: float = 0.2
    initial: int = INITIAL
    cost: Literal["lines", "process"] = "lines"

    def __post_init__(self) -> None:
        for option, accepted in (
            ("points", ("variance", "last")), ("kernel", ("decay", "rbf")), ("cost", ("lines", "process")),
            ("monotone", (True, False)),
        ):  # fmt: skip
            if getattr(self, option) not in accepted:
                raise InvalidArgument(f"bapi: {option} must be one of {accepted}, got {getattr(self, option)!r}")
        for option in ("horizon", "initial"):
            given = getattr(self, option)
            if isinstance(given, bool) or not isinstance(given, int) or given < 1:
                raise InvalidArgument(f"bapi: {option} must be a whole number of at least 1, got {given!r}")
        for option, low, high in (("tau", 1.0, np.inf), ("period", 0.0, 1.0), ("eps", 0.0, np.inf)):
            given = getattr(self, option)
            if given is not None and not low < given <= high:
                raise InvalidArgument(f"bapi: {option} must be a number above {low:g}, got {given!r}")

    def steps_of_period(self, max_steps: int) -> int:
        return max(round(self.period * max_steps), 1)

    def decide(
        self, space: Space, history: History, ledger: Ledger, trial: Trial, rng: np.random.Generator
    ) -> Decision:
        """Pause a run that will not win (Algorithm 5), or that costs more than was planned, to weigh it again with its
        true cost. Where to stop one that may win was said when it was proposed."""
        if history.max_steps is None:
            return Decision.CONTINUE
        if _is_dearer_than_planned(trial):
            return Decision.PAUSE
        if len(history.trials) <= self.initial:
            return Decision.CONTINUE
        if trial.kept_step % self.steps_of_period(history.max_steps):
            return Decision.CONTINUE
        known = TrainingCurves.of(self, space, history, rng)
        if known is None:
            return Decision.CONTINUE
        x = space.features(trial.unit[None, :])
        stop = int(known.stops(x)[0])
        here = float(trial.kept_step)
        mean, variance = known.paths.at(np.repeat(x, 2, axis=0), np.array([max(stop, here), here])).moments()
        wins = mean[0] < known.best
        sure = variance[0] <= self.tau**2 * variance[1]
        return Decision.PAUSE if sure and not wins else Decision.CONTINUE

    def propose(
        self, space: Space, history: History, ledger: Ledger, n: int, rng: np.random.Generator
    ) -> list[Proposal]:
        fresh = FreshSpace(space, history)
        proposals: list[Proposal] = []
        known = None if len(history.trials) < self.initial else TrainingCurves.of(self, space, history, rng)
        plan = None if known is None else Plan.of(self, space, history, ledger, fresh, known, rng)
        while len(proposals) < n:
            proposal = None if plan is None else plan.next(len(history.trials) + _new(proposals, history))
            if proposal is None:
                proposal = self._designed(fresh, history, proposals, rng)
            if proposal is None:
                break
            proposals.append(proposal)
            if plan is not None:
                plan = plan.with_running(proposal)
        return proposals

    def _designed(
        self, fresh: FreshSpace, history: History, proposals: Sequence[Proposal], rng: np.random.Generator
    ) -> Proposal | None:
        """A point of a Sobol sequence for one period; the first run goes to its end where nobody knows how long."""
        number = len(history.trials) + _new(proposals, history)
        config = next_of_design(fresh, history, number, rng)
        if config is None:
            return None
        until = None if history.max_steps is None else self.steps_of_period(history.max_steps)
        return Proposal(number, config, reason="initial design", until_step=until)


def _is_dearer_than_planned(trial: Trial) -> bool:
    spent = sum(cost or 0.0 for cost in trial.curve.costs[trial.from_step :])
    return trial.predicted_cost is not None and spent > OVERRUN * trial.predicted_cost


def _new(proposals: Sequence[Proposal], history: History) -> int:
    return sum(proposal.trial >= len(history.trials) for proposal in proposals)


@dataclass(frozen=True, eq=False)
class Candidates:
    """Runs to choose from: new configurations, and paused ones by their trials."""

    U: Array  # (c, p)
    X: Array  # (c, f)
    step: Array  # (c,) where each could go on from
    log_cost: Array  # (c,) of one more step
    trials: Sequence[Trial | None]

    def __getitem__(self, rows: Any) -> Candidates:
        which = np.arange(len(self.U))[rows]
        trials = [self.trials[i] for i in which]
        return Candidates(self.U[rows], self.X[rows], self.step[rows], self.log_cost[rows], trials)


@dataclass(frozen=True, eq=False)
class Planned:
    """A run of the horizon: who, until which step, what that costs and gains."""

    run: Candidates
    stop: int
    cost: float
    log_gain: float  # per cost


@dataclass(frozen=True, eq=False)
class Plan:
    """What the rest of the budget could buy."""

    policy: BAPI
    space: Space
    ledger: Ledger
    fresh: FreshSpace
    known: TrainingCurves
    costs: RunCosts
    paused: list[Trial]
    paths: Paths  # with the runs on their way, to the ends of their trainings
    success: Feasibility | None
    rng: np.random.Generator

    @classmethod
    def of(
        cls, policy: BAPI, space: Space, history: History, ledger: Ledger, fresh: FreshSpace, known: TrainingCurves,
        rng: np.random.Generator,
    ) -> Plan:  # fmt: skip
        paths = known.paths
        for trial in history.running:
            paths = paths.extend(space.features(trial.unit[None, :])[0], float(known.t_max))
        costs = RunCosts.of(policy.cost, space, history)
        success = success_model(space, history)
        paused = history.of(Status.PAUSED)
        return cls(policy, space, ledger, fresh, known, costs, paused, paths, success, rng)

    def with_running(self, proposal: Proposal) -> Plan:
        """As if the proposal were on its way."""
        x = self.space.features(self.space.encode(proposal.config)[None, :])[0]
        paused = [trial for trial in self.paused if trial.number != proposal.trial]
        return replace(
            self, paused=paused, paths=self.paths.extend(x, float(self.known.t_max)),
            ledger=self.ledger.promised(proposal.predicted_cost or 0.0, 1),
        )  # fmt: skip

    def next(self, number: int) -> Proposal | None:
        """The run of the horizon that gains most per cost (Algorithm 2, line 6)."""
        horizon = self.horizon()
        while horizon:
            best = max(horizon, key=lambda planned: planned.log_gain)
            trial = best.run.trials[0]
            reason = f"most improvement per cost of {len(horizon)} planned runs, to step {best.stop}"
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
    def fits(self) -> dict[str, Any]:
        return {"bapi": self.known.curves.hyperparameters.as_json(), **self.costs.fits}

    # -- the horizon -------------------------------------------------------------------------------------------------

    def horizon(self) -> list[Planned]:
        """Algorithm 4: sequential greedy q-EI at the ends of trainings, by the draws of the model."""
        left, paths, chosen = self.ledger.available, self.paths, list[Planned]()
        candidates = self._candidates(self._screened(self._points(), KEPT, left))
        while len(chosen) < self.policy.horizon and left > 0.0:
            candidates, utility = self._refined(candidates, paths, left)
            if not len(utility) or utility[0] == -np.inf:
                break
            planned = self._planned(candidates[:1], left)
            if planned is None:
                break
            chosen.append(planned)
            left -= planned.cost
            paths = paths.extend(candidates.X[0], float(self.known.t_max))
            candidates = candidates[1 : KEPT + 1]
        return chosen

    def _refined(self, candidates: Candidates, paths: Paths, left: float) -> tuple[Candidates, Array]:
        """Candidates and others near the best of them, by decreasing utility."""
        utility = self._utility(candidates, paths, left)
        for _ in range(ROUNDS):
            best = np.argsort(-utility, kind="stable")[:ANCHORS]
            near = self.fresh.snap(perturbed(candidates.U[best], self.fresh.levels, self.rng))
            near = self._screened(near[self.fresh.admissible(near)], NEARBY, left)
            nearby = self._candidates(near, paused=False)
            candidates = _joined(candidates, nearby)
            utility = np.concatenate([utility, self._utility(nearby, paths, left)])
        order = np.argsort(-utility, kind="stable")
        return candidates[order], utility[order]

    def _screened(self, U: Array, most: int, left: float) -> Array:
        """Of new configurations (c, p) the best ones by the process without draws, which is much less work."""
        X = self.space.features(U)
        reach = self._reach(np.zeros(len(X)), self.costs.log_per_step(X), left)
        mean, variance = self.paths.gp.predict(X, np.maximum(reach, 1.0))
        sd = np.sqrt(variance)
        utility = np.log(sd) + log_h((self.known.best - mean) / sd)[0] + self._log_success(X)
        return np.asarray(U[np.argsort(-np.where(reach > 0.0, utility, -np.inf), kind="stable")[:most]])

    def _reach(self, step: Array, log_cost: Array, left: float) -> Array:
        """The last step (c,) that is trained and can be paid."""
        return np.minimum(float(self.known.t_max), step + np.floor(left / np.exp(log_cost)))

    def _points(self) -> Array:
        """New configurations to look at, (c, p)."""
        spread = self.fresh.snap(sobol(POOL, len(self.space), self.rng))
        near = self.fresh.snap(perturbed(self.known.anchors, self.fresh.levels, self.rng))
        U = np.concatenate([spread, near])
        return U[self.fresh.admissible(U)]

    def _candidates(self, U: Array, paused: bool = True) -> Candidates:
        X = self.space.features(U)
        new = Candidates(U, X, np.zeros(len(U)), self.costs.log_per_step(X), [None] * len(U))
        if not paused or not self.paused:
            return new
        V = units(self.paused, len(self.space))
        step = np.array([float(trial.kept_step) for trial in self.paused])
        own = np.array([self.costs.log_per_step_of(trial) for trial in self.paused])
        return _joined(new, Candidates(V, self.space.features(V), step, own, self.paused))

    def _utility(self, candidates: Candidates, paths: Paths, left: float) -> Array:
        """log EI (c,) at the last step that is trained and can be paid, given the draws of the runs planned before."""
        if not len(candidates.U):
            return np.empty(0)
        reach = self._reach(candidates.step, candidates.log_cost, left)
        values = paths.drawn()[:, paths.carried.order == 0]  # (S, k) of the runs planned before
        best = np.minimum(self.known.best, values.min(axis=1, initial=np.inf))  # (S,)
        utility = log_improvement(paths.at(candidates.X, np.maximum(reach, 1.0)), best)
        utility = utility + self._log_success(candidates.X)
        return np.where(reach > candidates.step, utility, -np.inf)

    def _log_success(self, X: Array) -> Array:
        return np.zeros(len(X)) if self.success is None else self.success.log_success(X)

    def _planned(self, run: Candidates, left: float) -> Planned | None:
        """Where a run stops, what that costs and gains; None where nothing can be paid."""
        step, per_step = float(run.step[0]), float(np.exp(run.log_cost[0]))
        least = step + 1.0 if step else float(self.policy.steps_of_period(self.known.t_max))
        stop = max(float(self.known.stops(run.X)[0]), least)
        stop = min(stop, step + float(np.floor(left / per_step)), float(self.known.t_max))
        if stop <= step:
            return None
        gain = log_improvement(self.known.paths.at(run.X, np.array([stop])), np.full(1, self.known.best))
        gain = gain + self._log_success(run.X)
        cost = per_step * (stop - step)
        return Planned(run, int(stop), cost, float(gain[0]) - float(np.log(max(cost, 1e-300))))


def _joined(a: Candidates, b: Candidates) -> Candidates:
    U, X = np.concatenate([a.U, b.U]), np.concatenate([a.X, b.X])
    step, log_cost = np.concatenate([a.step, b.step]), np.concatenate([a.log_cost, b.log_cost])
    return Candidates(U, X, step, log_cost, [*a.trials, *b.trials])


def log_improvement(mixture: Mixture, best: Array) -> Array:
    """log E[max(best_s - f, 0)] (c,) over the draws s of a mixture, each a normal, with its own best (S,) or (1,)."""
    sd = np.sqrt(mixture.variance)
    log_each = np.log(sd) + log_h((best[:, None] - mixture.means) / sd)[0]
    with np.errstate(over="ignore"):  # inside, where a weight is next to nothing; the sum is finite
        return np.asarray(logsumexp(log_each, b=mixture.weights, axis=0))
