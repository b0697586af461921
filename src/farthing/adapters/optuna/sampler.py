"""`FarthingSampler`: Farthing's policies, cost-aware and under a budget, in a study of Optuna's."""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence
from copy import copy
from datetime import datetime
from typing import Any

import numpy as np
from optuna import TrialPruned
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial, TrialState

from farthing.adapters.optuna.asking import Ask, Remembered
from farthing.adapters.optuna.distributions import translated
from farthing.adapters.optuna.proposed import SPENT, Proposed
from farthing.adapters.optuna.spaces import Part, settled
from farthing.adapters.optuna.spending import CostOf, Spending
from farthing.adapters.optuna.turns import in_turn
from farthing.budget import Budget, Ledger
from farthing.checks import optional, refuse, whole_number
from farthing.direction import Direction
from farthing.errors import InvalidArgument
from farthing.history import History
from farthing.policies import Policy, policy_of
from farthing.policies.protocol import needs_steps
from farthing.policies.thinking import Thinking

MOST_SEED = 2**32


class FarthingSampler(BaseSampler):
    """A sampler that spends a budget where it helps most.

    budget  the total of the study: a farthing.Budget, or text such as "10m", "$5 at $2.5/h" or "100 evaluations"
    policy  a name ("auto", "carbo", "ei", ...) or an object with options; those of learners that are paused and resumed
            have no place in Optuna: see `FarthingPruner`
    cost    where a trial has its cost in the budget's unit: None, its duration; the name of a user attribute; or a
            function of a trial that has ended
    seed    a whole number that makes proposals repeatable; None draws one

    When the budget is spent, `study.optimize` ends after the trials that are running, and `exhausted` is True.

    >>> import optuna
    >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
    >>> study = optuna.create_study(sampler=FarthingSampler("8 evaluations", seed=0))
    >>> study.optimize(lambda trial: (trial.suggest_float("x", 0, 1) - 0.3) ** 2)
    >>> len(study.trials), study.best_value < 0.01
    (8, True)
    """

    def __init__(
        self, budget: Budget | str, policy: str | Policy = "auto", *, cost: CostOf = None, seed: int | None = None
    ) -> None:
        self._spending = Spending(Budget.of(budget), cost)
        self._policy = _checked(policy_of(policy))
        seed = optional(whole_number, "seed", seed)
        self._seed = int(np.random.default_rng().integers(MOST_SEED)) if seed is None else seed
        self._exhausted = False
        self._thinking, self._remembered = Thinking(), Remembered()

    # -- what users ask -----------------------------------------------------------------------------------------------

    @property
    def exhausted(self) -> bool:
        """Whether the budget was spent when this sampler was last asked or told: for loops of ask and tell."""
        return self._exhausted

    def ledger(self, study: Study) -> Ledger:
        """What the trials of a study have spent, by account, and what is left."""
        with in_turn():
            self._remember(study)
            return self._ledger(trials_of(study))

    # -- what Optuna asks ---------------------------------------------------------------------------------------------

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """All parameters whose range is settled, also those that not every trial has. A trial that begins under
        `optimize` when the budget is spent, or promised to earlier ones, gets none."""
        require_single(study)
        others = trials_of(study, but=trial)
        with in_turn():
            self._remember(study)
            if self._is_spent(others, before=trial.number) and _stopped(study):
                Proposed(reason=SPENT).keep(study, trial)
                self._remembered.never_begin.add(trial.number)
                return {}
        return settled(others)

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        require_single(study)
        if trial.number in self._remembered.never_begin:
            return {}
        with in_turn():
            self._remember(study)
            others = trials_of(study, but=trial)
            ask = Ask(trial.number, self._seed, others, self._ledger(others), direction_of(study))
            proposed = ask.answered(self._policy, search_space, self._remembered, self._thinking)
            proposed.keep(study, trial)
        return {name: proposed.params[name] for name in search_space if name in proposed.params}

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """A parameter that nothing could be proposed for: uniform in its own scale; in the first trial of a study as
        the policy would begin with this parameter alone, which is where its name says that it is cheap. Trials that
        are not to begin are pruned here: Optuna 4 asks for the others outside of the objective."""
        require_single(study)
        if trial.number in self._remembered.never_begin:
            raise TrialPruned(f"{SPENT}: {self._spending.budget}")
        seed = zlib.crc32(param_name.encode(), self._seed)
        rng = np.random.default_rng([seed, trial.number])
        found = translated(param_name, param_distribution)
        if found is None:  # options that repeat each other
            choices = param_distribution.choices  # type: ignore[attr-defined]
            return choices[int(rng.integers(len(choices)))]
        part, config = Part.of({param_name: found}, {}), None
        if trial.number == 0:
            first = self._policy.propose(part.space, History(seed), Ledger(self._spending.budget), 1, rng)
            config = first[0].config if first else None
        return part.params(config or part.space.decode([rng.random()]))[param_name]

    def after_trial(
        self, study: Study, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None
    ) -> None:  # fmt: skip
        """Optuna has not stored yet that the trial has ended: it is charged as it will be stored."""
        ended = copy(trial)
        ended.state, ended.datetime_complete = state, datetime.now()
        with in_turn():
            self._remember(study)
            if self._is_spent([*trials_of(study, but=trial), ended]):
                _stopped(study)
            self._remembered.spent.pop(trial.number, None)
        self._spending.require_cost(ended)

    def reseed_rng(self) -> None:
        """Nothing to do: what is drawn follows from the seed and the number of the trial, which no two trials share."""

    # -- the budget ---------------------------------------------------------------------------------------------------

    def _is_spent(self, trials: Sequence[FrozenTrial], before: float = math.inf) -> bool:
        """Whether the budget is spent, or its last evaluations are promised to running trials of lower numbers."""
        ledger = self._ledger(trials)
        self._exhausted = ledger.reached is not None
        promised = sum(trial.state is TrialState.RUNNING and trial.number < before for trial in trials)
        return self._exhausted or ledger.left("evaluations") <= promised

    def _ledger(self, trials: Sequence[FrozenTrial]) -> Ledger:
        spent = self._remembered.spent_of(self._spending, trials)
        running = [trial for trial in trials if trial.state is TrialState.RUNNING]
        return self._spending.ledger(spent.values(), running)

    def _remember(self, study: Study) -> None:
        """Forget what was remembered of another study."""
        if not self._remembered.is_of(study):
            self._remembered = Remembered(study._storage, study._study_id)


def _stopped(study: Study) -> bool:
    """Let `optimize` end after the trials that are running; False outside of it, where Optuna refuses."""
    try:
        study.stop()
    except RuntimeError:
        return False
    return True


def _checked(policy: Policy) -> Policy:
    if needs_steps(policy):
        accepted = "a policy for objectives that return a value; Optuna cannot pause a trial: FarthingPruner ends it"
        refuse("policy", accepted, policy.name)
    return policy


def require_single(study: Study) -> None:
    if study._is_multi_objective():
        raise InvalidArgument("FarthingSampler: expected a study with one objective, got one with several")


def direction_of(study: Study) -> Direction:
    return Direction(study._storage.get_study_directions(study._study_id)[0] is StudyDirection.MAXIMIZE)


def trials_of(study: Study, but: FrozenTrial | None = None) -> list[FrozenTrial]:
    """All trials of a study in the order of their numbers; with HyperbandPruner also those of other brackets."""
    trials = study._storage.get_all_trials(study._study_id, deepcopy=False)
    return [trial for trial in trials if but is None or trial.number != but.number]
