"""Ask and tell: values, failures, attributes, signs, given configurations, and looking at what was found."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import farthing as ft
from farthing.errors import (
    FarthingError,
    InvalidArgument,
    InvalidConfig,
    NoTrial,
    StorageError,
    UnknownTrial,
)
from learners import bodies
from studies import BOOSTER, POLICIES, Awkward, error_of, line_study


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

    def test_several_run_at_the_same_time_and_end_in_any_order(self):
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
    def test_asking_for_an_invalid_number_is_refused(self, n):
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
        with pytest.raises(NoTrial, match=r"no trial has succeeded yet$"):
            _ = study.best
        study.tell(study.ask(), failed="boom")
        with pytest.raises(NoTrial, match=r"yet \(1 failed\); the last error: boom$"):
            _ = study.best
        with pytest.raises(LookupError):
            _ = study.best

    def test_changing_what_ask_returned_does_not_change_the_study(self, tmp_path):
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
    def test_something_that_is_not_a_trial(self, number):
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
    def test_a_cost_that_is_not_finite_and_at_least_zero(self, cost, ended):
        study = line_study()
        proposal = study.ask()
        with pytest.raises(InvalidArgument, match="cost: expected a finite number"):
            study.tell(proposal, cost=cost, **ended)
        assert study.trials[0].status is ft.Status.RUNNING
        assert study.ledger.spent == 0.0


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
    def test_a_value_that_is_not_finite_makes_a_failed_trial_with_that_reason(self, value, text):
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

    def test_leaving_the_context_closes_the_file_and_raises_errors(self, tmp_path):
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
