"""Ask and tell, what ends a study, what its file holds, and that resuming is replaying."""

from __future__ import annotations

import json
import math
import re
import shutil
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import farthing as ft
from farthing.errors import (
    BudgetSpent,
    FarthingError,
    InvalidArgument,
    InvalidBudget,
    InvalidConfig,
    InvalidSpace,
    NoTrial,
    SpaceExhausted,
    StorageError,
    StudyEnded,
    StudyMismatch,
    TargetReached,
    UnknownTrial,
)
from farthing.policies import BY_NAME

LINE = ft.Space(x=ft.Real(-1, 1))
BOOSTER = ft.Space(
    eta=ft.Real(1e-4, 1.0, log=True),
    depth=ft.Integer(1, 16),
    booster=ft.Choice(["gbtree", "dart", "gblinear"]),
    drop=ft.Real(0.0, 0.5, when={"booster": "dart"}),
)
POLICIES = sorted(BY_NAME)


def line_study(budget: str | ft.Budget = "100 evaluations", **options: Any) -> ft.Study:
    return ft.Study(LINE, budget, **{"policy": "sobol", "seed": 0, **options})


def error_of(config: dict[str, Any]) -> float:
    """A smooth function of BOOSTER."""
    return (
        (math.log10(config["eta"]) + 2) ** 2
        + 0.1 * abs(config["depth"] - 6)
        + {"gbtree": 0.3, "dart": 0.0, "gblinear": 1.0}[config["booster"]]
        + (config.get("drop", 0.0) - 0.1) ** 2
    )


def tell_truth(study: ft.Study, proposal: ft.Proposal) -> ft.Trial:
    """Evaluate: deep trees cost more, and steps near 1 diverge."""
    config = proposal.config
    if config["eta"] > 0.3:
        return study.tell(proposal, failed="diverged", cost=0.1)
    return study.tell(proposal, value=error_of(config), cost=0.01 * 1.3 ** config["depth"])


def bodies(path: str | Path, kind: str) -> list[dict[str, Any]]:
    """The stored events of a kind, as they are in the file."""
    with closing(sqlite3.connect(path)) as connection:
        found = connection.execute("SELECT body FROM events WHERE kind = ? ORDER BY number", (kind,))
        return [json.loads(body) for (body,) in found]


class TestAskAndTell:
    def test_a_trial_runs_from_ask_to_tell(self):
        study = line_study()
        proposal = study.ask()
        assert isinstance(proposal, ft.Proposal)
        assert proposal.trial == 0
        assert study.trials[0].status is ft.Status.RUNNING
        assert study.trials[0].value is None
        trial = study.tell(proposal, value=0.25, cost=3.0)
        assert trial == study.trials[0] == study.best
        assert (trial.number, trial.config, trial.status) == (0, proposal.config, ft.Status.COMPLETE)
        assert (trial.value, trial.cost, trial.error) == (0.25, 3.0, None)

    def test_several_run_side_by_side_and_end_in_any_order(self):
        study = line_study()
        first, second, third = (study.ask() for _ in range(3))
        for proposal, value in ((third, 3.0), (first, 1.0), (second, 2.0)):
            study.tell(proposal, value=value)
        assert [trial.value for trial in study.trials] == [1.0, 2.0, 3.0]
        assert [trial.config for trial in study.trials] == [first.config, second.config, third.config]

    def test_ask_n_returns_a_list_of_n_with_consecutive_numbers(self):
        study = line_study()
        proposals = study.ask(4)
        assert [proposal.trial for proposal in proposals] == [0, 1, 2, 3]
        assert [proposal.trial for proposal in study.ask(1)] == [4]
        assert len(study.trials) == 5

    @pytest.mark.parametrize("n", [0, -1, 1.5, "3", math.nan])
    def test_ask_for_a_number_that_is_none_is_refused(self, n):
        with pytest.raises(InvalidArgument, match="at least 1"):
            line_study().ask(n)

    def test_tell_takes_the_number_of_the_trial_too(self):
        study = line_study()
        study.ask(2)
        assert study.tell(1, value=1.0).number == 1
        assert study.tell(np.int64(0), value=1.0).number == 0

    def test_best_is_the_least_value_and_the_earliest_of_equals(self):
        study = line_study()
        for value in (3.0, 1.0, 2.0, 1.0):
            study.tell(study.ask(), value=value)
        assert study.best.number == 1

    def test_best_before_a_success_says_how_many_failed(self):
        study = line_study()
        with pytest.raises(NoTrial, match="0 failed"):
            _ = study.best
        study.tell(study.ask(), failed="boom")
        with pytest.raises(NoTrial, match="1 failed"):
            _ = study.best
        with pytest.raises(LookupError):
            _ = study.best

    def test_what_ask_returned_is_the_callers_and_altering_it_changes_nothing(self, tmp_path):
        study = line_study(storage=tmp_path / "study.db")
        proposal = study.ask()
        asked = dict(proposal.config)
        proposal.config.clear()
        assert study.trials[0].config == asked
        study.tell(proposal, value=1.0)
        study.trials[0].config["x"] = 99.0
        study.best.config["y"] = 99.0
        assert study.trials[0].config == asked
        assert study.best.config == asked
        study.close()

    def test_the_trials_of_the_past_are_not_altered_by_later_ones(self):
        study = line_study()
        proposal = study.ask()
        before = study.trials
        study.tell(proposal, value=1.0)
        assert before[0].status is ft.Status.RUNNING

    def test_the_same_seed_proposes_the_same_and_another_seed_something_else(self):
        first, second, other = (line_study(seed=seed, policy="random") for seed in (1, 1, 2))
        assert [first.ask().config for _ in range(5)] == [second.ask().config for _ in range(5)]
        assert other.ask().config != line_study(seed=1, policy="random").ask().config


class TestTellErrors:
    """A report that cannot be right is refused and leaves the trial running."""

    @pytest.mark.parametrize("number", [1, 99, -1])
    def test_a_trial_that_was_never_asked_for(self, number):
        study = line_study()
        study.ask()
        with pytest.raises(UnknownTrial, match=f"trial {number} was never asked for"):
            study.tell(number, value=1.0)
        with pytest.raises(KeyError):
            study.tell(number, value=1.0)

    @pytest.mark.parametrize("number", ["0", None, 0.5, {"x": 0.0}])
    def test_what_is_no_trial_at_all(self, number):
        study = line_study()
        study.ask()
        with pytest.raises(FarthingError):
            study.tell(number, value=1.0)

    def test_before_any_trial(self):
        with pytest.raises(UnknownTrial):
            line_study().tell(0, value=1.0)

    @pytest.mark.parametrize("first", [{"value": 1.0}, {"failed": "boom"}])
    def test_told_twice(self, first):
        study = line_study()
        proposal = study.ask()
        told = study.tell(proposal, **first)
        with pytest.raises(UnknownTrial, match=f"trial 0 is {told.status.value}"):
            study.tell(proposal, value=2.0)
        assert study.trials == [told]

    @pytest.mark.parametrize("report", [{}, {"value": 1.0, "failed": "boom"}, {"cost": 1.0}])
    def test_neither_or_both_of_value_and_failed(self, report):
        study = line_study()
        proposal = study.ask()
        with pytest.raises(InvalidArgument, match=r"either value=\.\.\. or failed"):
            study.tell(proposal, **report)
        assert study.trials[0].status is ft.Status.RUNNING

    @pytest.mark.parametrize(
        "cost", [-1.0, -1e-300, math.nan, math.inf, -math.inf, "much", "5", [1.0], 1j, pytest.param(10**400, id="huge")]
    )
    @pytest.mark.parametrize("ended", [{"value": 1.0}, {"failed": "boom"}])
    def test_a_cost_that_is_no_finite_number_of_at_least_zero(self, cost, ended):
        study = line_study()
        proposal = study.ask()
        with pytest.raises(InvalidArgument, match="cost: expected a finite number"):
            study.tell(proposal, cost=cost, **ended)
        assert study.trials[0].status is ft.Status.RUNNING
        assert study.ledger.spent == 0.0


class Awkward:
    """Looks like a number until it is read, as a tensor of two elements does."""

    def __float__(self) -> float:
        raise RuntimeError("a Tensor with 2 elements cannot be converted to Scalar")


class TestValues:
    @pytest.mark.parametrize(
        ("value", "text"),
        [
            (math.nan, "finite"),
            (math.inf, "finite"),
            (-math.inf, "finite"),
            (np.float64("nan"), "finite"),
            ("0.5", "text '0.5'"),
            (b"1", "text b'1'"),
            ("low", "number"),
            ([0.5], "number"),
            ({"value": 1.0}, "number"),
            (1j, "number"),
            (object(), "number"),
            (np.array([1.0, 2.0]), "number"),
            (Awkward(), "number"),
            pytest.param(10**400, "finite|number", id="huge"),
        ],
    )
    def test_a_value_that_is_no_finite_number_is_a_failed_trial_with_that_reason(self, value, text):
        study = line_study(ft.Budget(cost=10))
        trial = study.tell(study.ask(), value=value, cost=2.0)
        assert trial.status is ft.Status.FAILED
        assert trial.value is None
        assert re.search(text, trial.error)
        assert study.ledger.account("failed") == 2.0
        assert study.ledger.account("evaluation") == 0.0
        assert study.ask().trial == 1

    @pytest.mark.parametrize(
        "value", [2, 0.5, np.float32(0.5), np.int8(3), np.array(0.5), Fraction(1, 4), Decimal("0.25"), -0.0, 1e308]
    )
    def test_any_finite_number_is_a_value_and_a_python_float(self, value):
        study = line_study()
        trial = study.tell(study.ask(), value=value)
        assert trial.status is ft.Status.COMPLETE
        assert type(trial.value) is float
        assert trial.value == float(value)

    def test_an_array_of_one_number_does_not_raise(self):
        """NumPy may refuse to read it; then the trial has failed, and the study goes on."""
        study = line_study()
        assert study.tell(study.ask(), value=np.array([0.5])).status in (ft.Status.COMPLETE, ft.Status.FAILED)

    def test_failed_keeps_the_reason_and_counts_as_an_evaluation(self):
        study = line_study("2 evaluations")
        trial = study.tell(study.ask(), failed="out of memory")
        assert (trial.status, trial.error) == (ft.Status.FAILED, "out of memory")
        assert study.ledger.account("failed", "evaluations") == 1.0
        assert study.ledger.left("evaluations") == 1.0


class TestAttributes:
    GIVEN: ClassVar[dict[str, Any]] = {
        "scalar": np.float32(0.5),
        "count": np.int64(3),
        "flag": np.bool_(True),
        "array": np.arange(3.0),
        "nested": {"a": (1, [2.5, None]), 7: "seven"},
        "text": "naïve\n\x00 \N{SNOWMAN}",
        "path": Path("a/b"),
        "nothing": None,
    }
    KEPT: ClassVar[dict[str, Any]] = {
        "scalar": 0.5,
        "count": 3,
        "flag": True,
        "array": [0.0, 1.0, 2.0],
        "nested": {"a": [1, [2.5, None]], "7": "seven"},
        "text": "naïve\n\x00 \N{SNOWMAN}",
        "path": repr(Path("a/b")),
        "nothing": None,
    }

    def test_attributes_are_kept_json_safe_in_the_file(self, tmp_path):
        path = tmp_path / "study.db"
        with line_study(storage=path) as study:
            study.tell(study.ask(), value=1.0, **self.GIVEN)
            study.tell(study.ask(), failed="boom", why="because")
        with ft.Study.resume(path) as again:
            assert again.trials[0].attributes == self.KEPT
            assert again.trials[1].attributes == {"why": "because"}

    def test_attributes_are_the_same_before_and_after_resuming(self, tmp_path):
        """Memory knows what the file knows, not more."""
        path = tmp_path / "study.db"
        with line_study(storage=path) as study:
            told = study.tell(study.ask(), value=1.0, **self.GIVEN)
            assert told.attributes == self.KEPT
            assert study.trials[0].attributes == self.KEPT

    def test_altering_a_list_that_was_told_does_not_alter_the_trial(self):
        study = line_study()
        curve = [1.0, 0.5]
        study.tell(study.ask(), value=1.0, curve=curve)
        curve.append(99.0)
        assert study.trials[0].attributes == {"curve": [1.0, 0.5]}


class TestMaximize:
    """The sign turns at the edge and nowhere else."""

    def both(self, tmp_path: Path, policy: str) -> tuple[ft.Study, ft.Study]:
        """One study of error_of, and one that maximises its negative."""
        low = ft.Study(BOOSTER, "12 evaluations", policy=policy, seed=3, storage=tmp_path / "low.db")
        high = ft.Study(BOOSTER, "12 evaluations", policy=policy, seed=3, storage=tmp_path / "high.db", maximize=True)
        for _ in range(12):
            for study, sign in ((low, 1.0), (high, -1.0)):
                proposal = study.ask()
                study.tell(proposal, value=sign * error_of(proposal.config))
        return low, high

    @pytest.mark.parametrize("policy", POLICIES)
    def test_maximising_the_negative_proposes_the_same(self, tmp_path, policy):
        low, high = self.both(tmp_path, policy)
        assert [trial.config for trial in high.trials] == [trial.config for trial in low.trials]
        assert [trial.value for trial in high.trials] == [-trial.value for trial in low.trials]
        assert high.best.number == low.best.number
        assert high.best.value == max(trial.value for trial in high.trials)
        low.close()
        high.close()

    def test_the_file_holds_the_users_own_sign(self, tmp_path):
        path = tmp_path / "study.db"
        with line_study(storage=path, maximize=True, stop_at=9.0) as study:
            for value in (5.0, -2.0, 7.0):
                study.tell(study.ask(), value=value)
            assert [trial.value for trial in study.trials] == [5.0, -2.0, 7.0]
            assert study.best.value == 7.0
            assert "best 7," in repr(study)
        assert [body["value"] for body in bodies(path, "told")] == [5.0, -2.0, 7.0]
        assert bodies(path, "opened")[0]["stop_at"] == 9.0
        with ft.Study.resume(path) as again:
            assert [trial.value for trial in again.trials] == [5.0, -2.0, 7.0]
            assert again.best.value == 7.0

    def test_zero_stays_a_plain_zero(self):
        study = line_study(maximize=True)
        assert math.copysign(1.0, study.tell(study.ask(), value=0.0).value) == 1.0


class TestStart:
    """Configurations given by the user come first."""

    def test_they_come_in_order_and_each_once(self):
        given = [{"x": 0.5}, {"x": -0.25}, {"x": 0.5}, {"x": 1}]
        study = line_study(start=given)
        proposals = [study.ask() for _ in range(5)]
        assert [proposal.config["x"] for proposal in proposals[:3]] == [0.5, -0.25, 1.0]
        assert [proposal.trial for proposal in proposals] == [0, 1, 2, 3, 4]
        assert all("start" in proposal.reason for proposal in proposals[:3])
        assert proposals[3].reason == proposals[4].reason == line_study().ask().reason

    def test_ask_n_hands_them_out_in_order_too(self):
        study = line_study(start=[{"x": 0.5}, {"x": -0.25}, {"x": 1.0}])
        xs = [proposal.config["x"] for proposal in study.ask(2)] + [study.ask().config["x"]]
        assert xs == [0.5, -0.25, 1.0]

    @pytest.mark.parametrize("policy", POLICIES)
    def test_no_policy_proposes_them_again(self, policy):
        space = ft.Space(a=ft.Integer(1, 3), b=ft.Choice(["u", "v"]))
        study = ft.Study(space, "10 trials", policy=policy, seed=0, start=[{"a": 2, "b": "v"}])
        configs = []
        for _ in range(6):
            proposal = study.ask()
            configs.append(tuple(proposal.config.values()))
            study.tell(proposal, value=proposal.config["a"])
        assert configs[0] == (2, "v")
        assert len(set(configs)) == 6

    @pytest.mark.parametrize("config", [{"x": 5.0}, {"x": "low"}, {}, {"y": 0.0}, {"x": 0.0, "y": 1.0}])
    def test_a_config_outside_the_space_is_refused(self, tmp_path, config):
        with pytest.raises(InvalidConfig, match=r"'[xy]'"):
            line_study(start=[{"x": 0.0}, config], storage=tmp_path / "study.db")
        assert not list(tmp_path.iterdir()), "a refused study leaves no file"

    def test_a_forbidden_config_is_refused(self):
        space = ft.Space(a=ft.Integer(1, 3), forbid=[{"a": 2}])
        with pytest.raises(InvalidConfig, match=r"start.*forbid"):
            ft.Study(space, "3 trials", start=[{"a": 1}, {"a": 2}])

    def test_one_config_instead_of_a_list_is_refused_with_how_to_write_it(self):
        with pytest.raises(InvalidArgument, match=r"start=\[config\]"):
            line_study(start={"x": 0.5})

    def test_resuming_goes_on_where_the_list_was_left(self, tmp_path):
        path = tmp_path / "study.db"
        with line_study(start=[{"x": 0.5}, {"x": -0.25}], storage=path) as study:
            study.tell(study.ask(), value=1.0)
        with ft.Study.resume(path) as study:
            assert study.ask().config == {"x": -0.25}


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
    def test_a_finite_space_is_exhausted_exactly_after_all_its_configs(self, policy, batch):
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
    def test_what_runs_is_committed_at_its_predicted_cost(self):
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
    def test_a_seed_that_is_none_is_refused(self, seed):
        with pytest.raises(InvalidArgument, match="seed"):
            line_study(seed=seed)

    @pytest.mark.parametrize("seed", [0, 2**32, 2**70, np.int64(7)])
    def test_any_whole_number_is_a_seed(self, tmp_path, seed):
        with line_study(seed=seed, storage=tmp_path / "study.db") as study:
            assert study.seed == seed
            config = study.ask().config
        assert line_study(seed=int(seed)).ask().config == config

    @pytest.mark.parametrize("space", [{"x": ft.Real(0, 1)}, None, ft.Space])
    def test_what_is_no_space_is_refused(self, space):
        with pytest.raises(InvalidArgument, match=r"farthing\.Space"):
            ft.Study(space, "1 trial")

    def test_an_unknown_policy_is_refused_with_the_names_there_are(self):
        with pytest.raises(InvalidArgument, match="magic") as refused:
            line_study(policy="magic")
        for name in BY_NAME:
            assert name in str(refused.value)

    @pytest.mark.parametrize("policy", [ft.policies.EI, 3, None])
    def test_what_is_no_policy_is_refused(self, policy):
        with pytest.raises(InvalidArgument, match="policy"):
            line_study(policy=policy)

    @pytest.mark.parametrize("budget", [10, "10", None])
    def test_a_study_refused_for_its_budget_leaves_no_file(self, tmp_path, budget):
        with pytest.raises(InvalidBudget):
            line_study(budget, storage=tmp_path / "study.db")
        assert not list(tmp_path.iterdir())


class TestContinuing:
    """An existing file is continued as the study it holds, or not at all."""

    def made(self, tmp_path: Path, **options: Any) -> Path:
        path = tmp_path / "study.db"
        with ft.Study(BOOSTER, "30 evaluations", **{"policy": "ei", "seed": 7, **options}, storage=path) as study:
            for _ in range(3):
                tell_truth(study, study.ask())
        return path

    def test_the_same_study_goes_on_with_its_trials_and_ledger(self, tmp_path):
        path = self.made(tmp_path)
        with (
            ft.Study.resume(path) as resumed,
            ft.Study(BOOSTER, "30 evaluations", policy="ei", seed=7, storage=path) as again,
        ):
            assert again.trials == resumed.trials
            assert len(again.trials) == 3
            assert again.ledger == resumed.ledger
            assert again.ledger.total("evaluations") == 3.0
            assert (resumed.seed, resumed.policy, resumed.maximize) == (7, ft.policies.EI(), False)
            assert resumed.space == BOOSTER
            assert resumed.storage == str(path)

    def test_opening_again_writes_nothing(self, tmp_path):
        path = self.made(tmp_path)
        before = path.read_bytes()
        ft.Study(BOOSTER, "30 evaluations", policy="ei", seed=7, storage=path).close()
        ft.Study.resume(path).close()
        assert path.read_bytes() == before

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"seed": 8}, "seed is 7 in the file and 8 here"),
            ({"policy": "sobol"}, "policy is .*'ei'.* in the file and .*'sobol'"),
            ({"policy": ft.policies.EI(initial=5)}, "policy is .*None.* in the file and .*5"),
            ({"maximize": True}, "maximize is False in the file and True here"),
            ({"space": LINE}, "another space: parameter 'x'"),
            ({"space": ft.Space({**BOOSTER.params, "depth": ft.Integer(1, 12)})}, "'depth': high is 12.* 16"),
        ],
    )
    def test_a_difference_is_named_and_the_file_kept(self, tmp_path, change, message):
        path = self.made(tmp_path)
        before = path.read_bytes()
        options = {"policy": "ei", "seed": 7, **change}
        with pytest.raises(StudyMismatch, match=message) as refused:
            ft.Study(options.pop("space", BOOSTER), "30 evaluations", **options, storage=path)
        assert str(path) in str(refused.value)
        assert isinstance(refused.value, StorageError)
        assert path.read_bytes() == before

    def test_no_seed_draws_one_and_stores_it(self, tmp_path):
        path = self.made(tmp_path, seed=None)
        stored = bodies(path, "opened")[0]["seed"]
        with ft.Study.resume(path) as resumed, ft.Study(BOOSTER, "30 evaluations", policy="ei", storage=path) as again:
            assert resumed.seed == again.seed == stored
            following = resumed.ask().config
        with ft.Study(BOOSTER, "30 evaluations", policy="ei", seed=stored) as replayed:
            for _ in range(3):
                tell_truth(replayed, replayed.ask())
            assert replayed.ask().config == following
        assert line_study(seed=None).seed != line_study(seed=None).seed

    def test_a_spent_study_goes_on_with_a_raised_budget(self, tmp_path):
        path = tmp_path / "study.db"
        with line_study("2 evaluations", storage=path) as study:
            for _ in range(2):
                study.tell(study.ask(), value=1.0, cost=2.0)
        with ft.Study.resume(path) as study, pytest.raises(BudgetSpent):
            study.ask()
        with ft.Study.resume(path, budget="5 evaluations, 100s") as study:
            assert study.ledger.budget == ft.Budget(evaluations=5, seconds=100)
            assert study.ledger.left("evaluations") == 3.0, "the budget is the new total"
            assert study.ledger.spent == 4.0
            study.tell(study.ask(), value=1.0)
        with ft.Study.resume(path) as study:
            assert study.ledger.budget == ft.Budget(evaluations=5, seconds=100), "it is kept"
            assert len(study.trials) == 3

    def test_continuing_by_the_constructor_takes_the_new_budget(self, tmp_path):
        path = self.made(tmp_path)
        with ft.Study(BOOSTER, "$3, 50 trials", policy="ei", seed=7, storage=path) as study:
            assert study.ledger.budget == ft.Budget(usd=3, evaluations=50)
            assert study.ledger.total("evaluations") == 3.0

    def test_a_running_trial_is_interrupted_in_the_file_of_another_process(self, tmp_path):
        path = tmp_path / "study.db"
        study = ft.Study(BOOSTER, "20 evaluations", policy="ei", seed=0, storage=path)
        for _ in range(8):
            tell_truth(study, study.ask())
        running = study.ask()
        study.close()
        with ft.Study.resume(path) as again:
            assert again.trials[8].status is ft.Status.INTERRUPTED
            assert (again.ledger.running, again.ledger.committed) == (0, 0.0)
            with pytest.raises(UnknownTrial, match="interrupted"):
                again.tell(8, value=1.0)
            back = again.ask()
            assert (back.trial, back.config, back.predicted_cost) == (8, running.config, running.predicted_cost)
            assert again.trials[8].status is ft.Status.RUNNING
            tell_truth(again, back)
            assert again.ask().trial == 9

    def test_several_running_trials_come_back_first_in_order(self, tmp_path):
        path = tmp_path / "study.db"
        with line_study(storage=path) as study:
            asked = study.ask(4)
            study.tell(asked[1], value=1.0)
        with ft.Study.resume(path) as study:
            back = [study.ask() for _ in range(4)]
            assert [proposal.trial for proposal in back] == [0, 2, 3, 4]
            assert [proposal.config for proposal in back[:3]] == [asked[i].config for i in (0, 2, 3)]

    def test_options_that_no_file_holds_are_given_again(self, tmp_path):
        space = ft.Space(aggregate=ft.Choice([min, max]), forbid=lambda config: False)
        path = tmp_path / "study.db"
        with ft.Study(space, "2 trials", policy="sobol", seed=0, storage=path) as study:
            study.tell(study.ask(), value=1.0)
            first = study.trials
        with pytest.raises(InvalidSpace, match="space="):
            ft.Study.resume(path)
        with ft.Study.resume(path, space=space) as study:
            assert study.trials == first
            assert {study.ask().config["aggregate"], first[0].config["aggregate"]} == {min, max}
        with pytest.raises(StudyMismatch, match="aggregate"):
            ft.Study.resume(path, space=ft.Space(aggregate=ft.Choice([min, sum])))

    def test_a_policy_of_ones_own_is_given_again(self, tmp_path):
        path = tmp_path / "study.db"
        with line_study(policy=Corners(scale=0.5), storage=path) as study:
            assert study.ask().config == {"x": -0.5}
        with pytest.raises(InvalidArgument, match="policy="):
            ft.Study.resume(path)
        with pytest.raises(StudyMismatch, match="corners"):
            ft.Study.resume(path, policy=Corners(scale=0.25))
        with ft.Study.resume(path, policy=Corners(scale=0.5)) as study:
            assert [study.ask().config["x"] for _ in range(2)] == [-0.5, 0.5]


@dataclass(frozen=True)
class Corners:
    """A policy as a user may write one."""

    name: ClassVar[str] = "corners"
    scale: float = 1.0

    def propose(self, space, history, ledger, n, rng):
        number = len(history.trials)
        return [ft.Proposal(number, {"x": (-1.0, 1.0)[number % 2] * self.scale})]


@dataclass(frozen=True)
class Drawn:
    """A policy that shows the generator it is given."""

    name: ClassVar[str] = "drawn"

    def propose(self, space, history, ledger, n, rng):
        first = len(history.trials)
        return [ft.Proposal(number, {"x": float(rng.random())}) for number in range(first, first + n)]


def test_the_randomness_of_an_ask_is_the_seed_and_the_number_of_the_ask(tmp_path):
    """In batches, after a failure, resumed, or interrupted: the k-th ask draws from default_rng([seed, k])."""
    path = tmp_path / "study.db"
    expected = [np.random.default_rng([3, ask]).random(2).tolist() for ask in range(5)]
    with line_study(policy=Drawn(), seed=3, storage=path) as study:
        assert [proposal.config["x"] for proposal in study.ask(2)] == expected[0]
        study.tell(0, failed="boom")
        study.tell(1, value=1.0)
        assert study.ask().config["x"] == expected[1][0]
    with ft.Study.resume(path, policy=Drawn()) as study:
        assert study.ask().config["x"] == expected[1][0], "the interrupted one again"
        assert [proposal.config["x"] for proposal in study.ask(2)] == expected[2]
    with ft.Study.resume(path, policy=Drawn()) as study:
        assert [proposal.trial for proposal in study.ask(3)] == [2, 3, 4], "three were interrupted"
        assert study.ask().config["x"] == expected[3][0]
        assert study.ask().config["x"] == expected[4][0]


Asked = list[tuple[Any, ...]]


def asked_events(path: Path) -> Asked:
    """What was asked, bit for bit as it is in the file; of a trial that ran twice, the first."""
    first: dict[int, tuple[Any, ...]] = {}
    for body in bodies(path, "asked"):
        part = tuple(json.dumps(body[name]) for name in ("config", "predicted_cost", "reason", "fits", "ask"))
        first.setdefault(body["trial"], (body["trial"], *part))
    return list(first.values())


def open_study(path: Path, policy: str, total: int) -> ft.Study:
    return ft.Study(BOOSTER, f"{total} evaluations", policy=policy, seed=11, storage=path)


def go_on(study: ft.Study, until: int) -> None:
    """Serially, until so many trials have ended."""
    while study.ledger.total("evaluations") < until:
        tell_truth(study, study.ask())


@pytest.fixture(scope="module", params=POLICIES)
def straight(request, tmp_path_factory) -> tuple[str, Path, Asked]:
    """20 trials without a break."""
    path = tmp_path_factory.mktemp(request.param) / "straight.db"
    with open_study(path, request.param, 20) as study:
        go_on(study, 20)
        statuses = {trial.status for trial in study.trials}
    assert statuses == {ft.Status.COMPLETE, ft.Status.FAILED}, "the example has both"
    return request.param, path, asked_events(path)


def cut(path: Path, events: int) -> None:
    """Only so many events: what a process leaves behind that is killed then, as an event is a transaction."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DELETE FROM events WHERE number > ?", (events,))
        connection.commit()


class TestResumingIsReplaying:
    """Interrupted and resumed, a study proposes exactly what it would have proposed uninterrupted.

    From each state the next proposal is the same; so are all that follow.
    """

    @pytest.mark.parametrize("k", [0, 3, 7, 12, 18])
    @pytest.mark.parametrize("pending", [False, True], ids=["told", "asked but not told"])
    def test_after_k_trials(self, straight, tmp_path, k, pending):
        _, original, expected = straight
        path = tmp_path / "study.db"
        shutil.copy(original, path)
        cut(path, 2 + 2 * k + pending)
        with ft.Study.resume(path) as study:
            assert [trial.number for trial in study.trials] == list(range(k + pending))
            if pending:
                back = study.ask()
                assert back.trial == k, "it comes back under its number"
                tell_truth(study, back)
            assert study.ask().trial == k + pending
        assert asked_events(path) == expected[: k + pending + 1]

    @pytest.mark.parametrize("policy", ["sobol", "ei"])
    def test_at_every_trial(self, tmp_path, policy):
        """Interrupted twenty times, in both states by turns, to the very end."""
        with open_study(tmp_path / "straight.db", policy, 20) as study:
            go_on(study, 20)
        path = tmp_path / "study.db"
        open_study(path, policy, 20).close()
        for k in range(1, 21):
            with ft.Study.resume(path) as study:
                go_on(study, k)
                if k % 2 and k < 20:
                    study.ask()
        assert asked_events(path) == asked_events(tmp_path / "straight.db")
        with ft.Study.resume(tmp_path / "straight.db") as uninterrupted, ft.Study.resume(path) as study:
            assert study.trials == uninterrupted.trials
            assert study.ledger == uninterrupted.ledger


class TestEveryPrefix:
    """Every state a killed process can leave behind goes on to the same end: one event is one transaction."""

    TOTAL = 8

    @pytest.mark.parametrize("policy", ["random", "ei"])
    def test_a_file_cut_after_any_event_goes_on_as_if_nothing_had_happened(self, tmp_path, policy):
        whole = tmp_path / "whole.db"
        with open_study(whole, policy, self.TOTAL) as study:
            go_on(study, self.TOTAL)
        expected, path = asked_events(whole), tmp_path / "cut.db"
        for kept in range(2 * self.TOTAL + 2):
            shutil.copy(whole, path)
            cut(path, kept)
            with open_study(path, policy, self.TOTAL) as study:
                go_on(study, self.TOTAL)
            assert asked_events(path) == expected, f"cut after event {kept}"

    def test_resume_with_a_budget_repairs_a_file_that_ends_before_its_budget(self, tmp_path):
        path = tmp_path / "cut.db"
        open_study(path, "sobol", 5).close()
        cut(path, 1)
        with ft.Study.resume(path, budget="5 evaluations") as study:
            go_on(study, 5)
            assert len(study.trials) == 5


class TestBatchesResumed:
    """Side by side in rounds of three, closed between rounds, a study proposes what it would have."""

    @pytest.mark.parametrize("policy", POLICIES)
    def test_rounds(self, tmp_path, policy):
        def round_of_three(study: ft.Study) -> None:
            for proposal in reversed(study.ask(3)):
                tell_truth(study, proposal)

        with open_study(tmp_path / "straight.db", policy, 12) as study:
            while study.ended is None:
                round_of_three(study)
        with open_study(tmp_path / "broken.db", policy, 12) as study:
            round_of_three(study)
        while True:
            with ft.Study.resume(tmp_path / "broken.db") as study:
                if study.ended is not None:
                    break
                round_of_three(study)
        assert asked_events(tmp_path / "broken.db") == asked_events(tmp_path / "straight.db")


class TestLooking:
    def told(self, **options: Any) -> ft.Study:
        study = ft.Study(BOOSTER, "10 evaluations", policy="sobol", seed=0, **options)
        study.tell(study.ask(), value=2.5, cost=1.5, accuracy=0.75)
        study.tell(study.ask(), failed="Traceback\nValueError: boom")
        study.ask()
        return study

    @pytest.mark.parametrize("maximize", [False, True])
    def test_to_frame_has_one_row_per_trial(self, maximize):
        pandas = pytest.importorskip("pandas")
        study = self.told(maximize=maximize)
        frame = study.to_frame()
        assert isinstance(frame, pandas.DataFrame)
        assert frame["number"].tolist() == [0, 1, 2]
        assert frame["status"].tolist() == ["complete", "failed", "running"]
        assert frame["value"].tolist()[0] == 2.5
        assert frame["value"].isna().tolist() == [False, True, True]
        assert frame["cost"].tolist()[0] == 1.5
        assert frame["attributes.accuracy"].tolist()[0] == 0.75
        assert frame["error"].tolist()[1] == "Traceback\nValueError: boom"
        for row, trial in zip(frame.to_dict("records"), study.trials, strict=True):
            for name in BOOSTER.names:
                if name in trial.config:
                    assert row[f"config.{name}"] == trial.config[name]
                else:
                    assert pandas.isna(row[f"config.{name}"])

    def test_the_frame_of_a_study_without_trials_is_empty(self):
        pytest.importorskip("pandas")
        assert len(line_study().to_frame()) == 0

    def test_its_repr_says_policy_trials_best_and_budget(self):
        assert repr(line_study()) == "<Study sobol: 0 trials, best none yet, 0% of 100 evaluations used>"
        assert repr(self.told()) == "<Study sobol: 3 trials, best 2.5, 20% of 10 evaluations used>"

    def test_leaving_the_context_closes_the_file_and_lets_errors_through(self, tmp_path):
        class Mine(Exception):
            pass

        path = tmp_path / "study.db"
        with pytest.raises(Mine), line_study(storage=path) as study:
            raise Mine
        with pytest.raises(StorageError, match=r"study\.db"):
            study.ask()
        assert [entry.name for entry in tmp_path.iterdir()] == ["study.db"]

    def test_a_closed_study_can_still_be_looked_at(self, tmp_path):
        with line_study(storage=tmp_path / "study.db") as study:
            study.tell(study.ask(), value=1.0)
        assert study.best.value == 1.0

    def test_closing_twice_does_no_harm(self, tmp_path):
        study = line_study(storage=tmp_path / "study.db")
        study.close()
        study.close()


def test_a_failed_write_changes_nothing_in_memory(tmp_path):
    """The event is on disk before memory knows of it: without the disk, memory does not change."""
    study = line_study(storage=tmp_path / "study.db")
    proposal = study.ask()
    trials, ledger = study.trials, study.ledger
    study.close()
    for use in (study.ask, lambda: study.tell(proposal, value=1.0)):
        with pytest.raises(StorageError):
            use()
        assert study.trials == trials
        assert study.ledger == ledger


class TestRecommended:
    def test_with_noise_it_is_truly_better_than_the_luckiest_observation(self):
        """Over 10 studies of a noisy parabola, the recommended points are on average closer to its minimum."""
        best, recommended = [], []
        for seed in range(10):
            rng = np.random.default_rng(seed)
            study = ft.Study(ft.Space(x=ft.Real(0, 1)), "40 evaluations", policy="sobol", seed=seed)
            while study.ended is None:
                proposal = study.ask()
                x = proposal.config["x"]
                study.tell(proposal, value=(x - 0.4) ** 2 + 0.1 * rng.standard_normal())
            best.append(abs(study.best.config["x"] - 0.4))
            recommended.append(abs(study.recommended.config["x"] - 0.4))
        assert np.mean(recommended) < np.mean(best)

    def test_it_is_in_the_users_sign_and_needs_one_success(self):
        study = ft.Study(ft.Space(x=ft.Real(0, 1)), "9 evaluations", policy="sobol", maximize=True, seed=0)
        with pytest.raises(NoTrial):
            _ = study.recommended
        for _ in range(6):
            proposal = study.ask()
            study.tell(proposal, value=1.0 - proposal.config["x"] ** 2)
        assert study.recommended.value == study.best.value
