"""What ends a study, what its ledger says then, and which arguments are refused."""

from __future__ import annotations

import math

import numpy as np
import pytest

import farthing as ft
from farthing.errors import (
    BudgetSpent,
    InvalidArgument,
    InvalidBudget,
    InvalidSpace,
    SpaceExhausted,
    StudyEnded,
    TargetReached,
)
from farthing.policies import BY_NAME
from studies import BOOSTER, LINE, POLICIES, line_study, tell_truth


class TestEnds:
    """Each end has its own exception, and all are a StudyEnded."""

    def test_the_evaluations_are_counted_with_those_that_run(self):
        study = line_study("3 evaluations")
        proposals = study.ask(2)
        study.ask()
        with pytest.raises(BudgetSpent, match="running"):
            study.ask()
        study.tell(proposals[0], value=1.0)
        with pytest.raises(BudgetSpent, match="running"):
            study.ask()
        study.tell(proposals[1], failed="boom")
        study.tell(2, value=2.0)
        with pytest.raises(BudgetSpent, match="3 evaluations is spent"):
            study.ask()
        assert len(study.trials) == 3

    def test_ask_n_gives_no_more_than_the_evaluations_left(self):
        study = line_study("3 evaluations")
        assert len(study.ask(10)) == 3

    def test_the_end_says_how_to_go_on_and_is_a_study_ended(self):
        study = line_study("1 evaluation")
        study.tell(study.ask(), value=1.0)
        for _ in range(2):
            with pytest.raises(StudyEnded, match=r"Study\.resume\(file, budget=") as ended:
                study.ask()
            assert isinstance(ended.value, BudgetSpent)
        assert isinstance(study.ended, BudgetSpent)

    def test_a_simulated_budget_is_charged_with_what_is_told_and_nothing_else(self):
        study = line_study(ft.Budget(cost=10, seconds=1e-9))  # any measured time would end it at once
        for cost in (4.0, 0.0, None, 5.0):
            study.tell(study.ask(), value=1.0, cost=cost)
        assert study.ledger.spent == 9.0
        assert study.ledger.accounts == {"evaluation": {"cost": 9.0, "evaluations": 4.0}}
        study.tell(study.ask(), failed="boom", cost=1.5)
        assert study.ledger.spent == 10.5
        assert study.ledger.account("failed") == 1.5
        with pytest.raises(BudgetSpent, match="10 cost"):
            study.ask()

    def test_a_budget_in_seconds_counts_told_seconds(self):
        study = line_study("10s")
        study.tell(study.ask(), value=1.0, cost=10.0)
        assert study.ledger.spent == 10.0
        with pytest.raises(BudgetSpent, match="10s"):
            study.ask()

    def test_a_running_trial_may_be_told_after_the_end(self):
        study = line_study(ft.Budget(cost=1.0))
        first, second = study.ask(2)
        study.tell(first, value=2.0, cost=1.0)
        with pytest.raises(BudgetSpent):
            study.ask()
        study.tell(second, value=1.0, cost=1.0)
        assert study.best.number == 1
        assert study.ledger.spent == 2.0

    @pytest.mark.parametrize(
        ("maximize", "misses", "reaches"),
        [(False, 0.051, 0.05), (False, 0.06, -3.0), (True, 0.049, 0.05), (True, -1.0, 0.07)],
    )
    def test_stop_at_ends_once_the_target_is_reached(self, maximize, misses, reaches):
        study = line_study(stop_at=0.05, maximize=maximize)
        study.tell(study.ask(), value=misses)
        assert study.ended is None
        study.tell(study.ask(), value=reaches)
        with pytest.raises(TargetReached, match="trial 1"):
            study.ask()

    def test_a_failed_trial_reaches_no_target(self):
        study = line_study(stop_at=1e9)
        study.tell(study.ask(), failed="boom")
        assert study.ended is None

    @pytest.mark.parametrize("target", [math.nan, math.inf])
    def test_a_target_that_is_not_finite_is_refused(self, target):
        with pytest.raises(InvalidArgument, match="stop_at"):
            line_study(stop_at=target)

    @pytest.mark.parametrize("policy", POLICIES)
    @pytest.mark.parametrize("batch", [1, 4])
    def test_a_finite_space_is_exhausted_exactly_after_all_its_configs(self, monkeypatch, policy, batch):
        monkeypatch.setattr("farthing.policies.candidates.RANDOM_TRIES", 100)  # thousands take long, and find no more
        space = ft.Space(
            a=ft.Integer(1, 3),
            b=ft.Choice(["u", "v"]),
            c=ft.Ordered([1, 2, 4], when={"b": "v"}),
            forbid=[{"a": 2, "b": "u"}, {"a": 3, "c": 4}],
        )
        allowed = {space.key(config) for config in space.enumerate()}
        assert len(allowed) == 3 * (1 + 3) - 2
        study = ft.Study(space, "100 evaluations", policy=policy, seed=5)
        seen = []
        while len(seen) < 10:
            for proposal in study.ask(batch):
                seen.append(space.key(proposal.config))
                study.tell(proposal, value=float(len(seen) % 3))
        with pytest.raises(SpaceExhausted, match="all 10 allowed"):
            study.ask(batch)
        assert len(seen) == len(set(seen)) == 10
        assert set(seen) == allowed


class TestLedgerOfAStudy:
    def test_a_running_trial_is_committed_at_its_predicted_cost(self):
        study = ft.Study(BOOSTER, ft.Budget(cost=100), policy="ei", seed=0)
        for _ in range(8):
            tell_truth(study, study.ask())
        proposal = study.ask()
        assert proposal.predicted_cost > 0
        assert study.ledger.committed == proposal.predicted_cost
        assert study.ledger.running == 1
        tell_truth(study, proposal)
        assert study.ledger.committed == pytest.approx(0.0, abs=1e-12)
        assert study.ledger.running == 0

    def test_costs_of_zero_are_costs(self):
        study = ft.Study(LINE, ft.Budget(cost=1), policy="ei", seed=0)
        for _ in range(8):
            study.tell(study.ask(), value=1.0, cost=0.0)
        assert study.ledger.spent == 0.0


class TestArguments:
    @pytest.mark.parametrize("seed", [-1, 1.5, "0", True])
    def test_an_invalid_seed_is_refused(self, seed):
        with pytest.raises(InvalidArgument, match="seed"):
            line_study(seed=seed)

    @pytest.mark.parametrize("seed", [0, 2**32, 2**70, np.int64(7)])
    def test_any_whole_number_is_a_seed(self, tmp_path, seed):
        with line_study(seed=seed, storage=tmp_path / "study.db") as study:
            assert study.seed == seed
            config = study.ask().config
        assert line_study(seed=int(seed)).ask().config == config

    @pytest.mark.parametrize("space", [{"x": 5}, None, ft.Space])
    def test_anything_but_a_space_is_refused(self, space):
        with pytest.raises(InvalidSpace, match=r"^space: "):
            ft.Study(space, "1 trial")

    def test_an_unknown_policy_is_refused_and_the_error_lists_the_names(self):
        with pytest.raises(InvalidArgument, match="magic") as refused:
            line_study(policy="magic")
        for name in BY_NAME:
            assert name in str(refused.value)

    @pytest.mark.parametrize("policy", [ft.policies.EI, 3, None])
    def test_anything_but_a_policy_is_refused(self, policy):
        with pytest.raises(InvalidArgument, match="policy"):
            line_study(policy=policy)

    @pytest.mark.parametrize("budget", [10, "10", None])
    def test_a_study_refused_for_its_budget_leaves_no_file(self, tmp_path, budget):
        with pytest.raises(InvalidBudget):
            line_study(budget, storage=tmp_path / "study.db")
        assert not list(tmp_path.iterdir())
