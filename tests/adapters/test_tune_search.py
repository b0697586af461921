"""`FarthingSearch` as Ray Tune uses a searcher, without a cluster."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest
from ray import tune
from ray.tune.search import ConcurrencyLimiter, Searcher
from ray.tune.utils.util import merge_dicts

import farthing as ft
from farthing.adapters.ray.tune_search import FarthingSearch
from farthing.adapters.ray.tune_space import NestedSpace
from farthing.errors import EveryTrialFailed, InvalidArgument, InvalidBudget, InvalidConfig, InvalidSpace, StudyMismatch

EVERY_KIND = {
    "constant": 7,
    "layers": [tune.randint(8, 65), "relu", {"dropout": tune.quniform(0.0, 0.5, 0.1)}],
    "optimizer": {"name": tune.choice(["adam", "sgd"]), "rate": tune.loguniform(1e-4, 1e-1), "nesterov": True},
    "batch": tune.grid_search([16, 32, 64]),
    "depth": tune.lograndint(1, 100),
    "width": tune.qrandint(10, 50, 10),
    "noise": tune.uniform(-1.0, 1.0),
}
LINE = {"x": tune.uniform(0.0, 1.0)}


def searching(budget: Any = "5 evaluations", space: Any = LINE, **options: Any) -> FarthingSearch:
    """A search that a Tuner has told its param_space."""
    spec = options.pop("spec", {})
    search = FarthingSearch(budget=budget, **{"seed": 0, "policy": "sobol", **options})
    assert search.set_search_properties("loss", "min", space, **spec)
    return search


def result(loss: float, seconds: float = 1.0, **more: Any) -> dict[str, Any]:
    return {"loss": loss, "time_total_s": seconds, "training_iteration": 1, **more}


class TestSpaces:
    def test_all_kinds_of_domains_are_found_wherever_they_are(self):
        space = NestedSpace.of_tune(EVERY_KIND).space
        assert {name: type(param).__name__ for name, param in space.params.items()} == {
            "layers/0": "Integer", "layers/2/dropout": "Ordered", "optimizer/name": "Choice", "optimizer/rate": "Real",
            "batch": "Ordered", "depth": "Integer", "width": "Integer", "noise": "Real",
        }  # fmt: skip

    def test_a_suggestion_has_the_form_of_the_space_without_its_constants_but_for_those_in_lists(self):
        config = searching(space=EVERY_KIND).suggest("a")
        assert set(config) == {"layers", "optimizer", "batch", "depth", "width", "noise"}
        assert set(config["optimizer"]) == {"name", "rate"}
        size, activation, rest = config["layers"]
        assert 8 <= size <= 64
        assert activation == "relu"
        assert set(rest) == {"dropout"}

    def test_tune_puts_the_constants_back(self):
        """As it does with the suggestions of all searchers."""
        config = merge_dicts(EVERY_KIND, searching(space=EVERY_KIND).suggest("a"))
        assert config["constant"] == 7
        assert config["optimizer"]["nesterov"] is True
        assert config["batch"] in (16, 32, 64)

    def test_a_nested_config_and_its_flat_form_are_one(self):
        nested = NestedSpace.of_tune(EVERY_KIND)
        for key in range(5):
            config = nested.space.decode([0.1 + 0.2 * key] * 8)
            assert nested.flat({"constant": 7, **nested.nested(config)}) == config

    def test_conditions_come_with_a_space_of_farthing(self):
        space = ft.Space(
            **{"model/kind": ft.Choice(["tree", "net"]), "model/width": ft.Integer(1, 9, when={"model/kind": "net"})}
        )
        search = FarthingSearch(space, "loss", "min", budget="9 evaluations", seed=0, policy="random")
        configs = [search.suggest(str(i)) for i in range(9)]
        assert {len(config["model"]) for config in configs} == {1, 2}
        assert all(("width" in config["model"]) == (config["model"]["kind"] == "net") for config in configs)

    def test_a_dict_of_dicts_may_hold_whatever_a_space_reads(self):
        search = FarthingSearch(
            {"a": {"rate": (1e-3, 1.0, "log")}, "b": [1, 2, 3], "c": tune.uniform(0, 1)}, "loss", "min", budget="1h"
        )
        assert set(search.suggest("a")) == {"a", "b", "c"}

    @pytest.mark.parametrize(
        ("given", "said"),
        [
            ({"x": tune.randn(0, 1)}, "parameter 'x'.*Normal sampler has no counterpart"),
            ({"o": {"x": tune.sample_from(lambda spec: 1)}}, "parameter 'o/x'.*has no counterpart"),
            ({"a/b": tune.uniform(0, 1), "a": {"b": tune.uniform(0, 1)}}, "two parameters are called 'a/b'"),
        ],
    )
    def test_what_has_no_counterpart_is_refused_by_name(self, given, said):
        with pytest.raises(InvalidSpace, match=said):
            NestedSpace.of_tune(given)

    def test_a_name_cannot_be_a_parameter_and_a_place_of_others(self):
        with pytest.raises(InvalidSpace, match="'a' is a parameter, and so is 'a/b' within it"):
            NestedSpace.of(ft.Space(**{"a": ft.Real(0, 1), "a/b": ft.Real(0, 1)}))

    def test_two_search_spaces_are_one_too_many(self):
        search = FarthingSearch({"x": (0.0, 1.0)}, budget="1h")
        assert search.set_search_properties("loss", "min", {"constant": 1})
        assert not search.set_search_properties("loss", "min", LINE)


class TestAsking:
    def test_several_trials_are_pending_at_once_and_then_the_budget_is_spent(self):
        """Three of five evaluations have ended: two more may begin, then Tune waits, and then it is told to end."""
        search = searching()
        for i in range(3):
            assert 0 <= search.suggest(f"t{i}")["x"] <= 1
            search.on_trial_complete(f"t{i}", result(0.1 * i, seconds=2.0))
        assert isinstance(search.suggest("t3"), dict)
        assert isinstance(search.suggest("t4"), dict)
        assert len(search.study.pending) == 2
        assert search.suggest("t5") is None
        search.on_trial_complete("t3", result(0.5))
        search.on_trial_complete("t4", result(0.5))
        assert search.suggest("t6") == Searcher.FINISHED
        assert [trial.value for trial in search.study.trials] == [0.0, 0.1, 0.2, 0.5, 0.5]
        assert [trial.cost for trial in search.study.trials] == [2.0, 2.0, 2.0, 1.0, 1.0]

    def test_points_to_evaluate_are_first(self):
        search = searching(points_to_evaluate=[{"x": 0.25}, {"x": 0.75}])
        assert [search.suggest(name)["x"] for name in "ab"] == [0.25, 0.75]

    def test_a_failure_is_a_failed_trial_and_takes_one_evaluation(self):
        search = searching("1 evaluations")
        search.suggest("a")
        search.on_trial_complete("a", error=True)
        (trial,) = search.study.trials
        assert (trial.status, trial.value) == (ft.Status.FAILED, None)
        assert search.suggest("b") == Searcher.FINISHED

    def test_five_first_trials_that_fail_alike_are_an_error(self):
        search = searching("100 evaluations")
        for i in range(5):
            search.suggest(f"t{i}")
            search.on_trial_complete(f"t{i}", error=True)
        with pytest.raises(EveryTrialFailed, match="the first 5 trials all failed"):
            search.suggest("t5")

    def test_a_value_that_is_no_number_and_a_missing_one_are_failures(self):
        search = searching()
        search.suggest("a")
        search.suggest("b")
        search.on_trial_complete("a", result(float("nan")))
        search.on_trial_complete("b", {})
        assert [trial.status.value for trial in search.study.trials] == ["failed", "failed"]
        assert "without a result that has 'loss'" in search.study.trials[1].error

    def test_an_end_that_is_told_twice_counts_once(self):
        search = searching()
        search.suggest("a")
        search.on_trial_complete("a", result(0.1))
        search.on_trial_complete("a", result(0.9))
        assert (search.study.best.value, search.study.ledger.total("evaluations")) == (0.1, 1)

    def test_mode_max_finds_the_largest(self):
        search = FarthingSearch(budget="3 evaluations", seed=0)
        search.set_search_properties("accuracy", "max", LINE)
        for name, value in {"a": 0.2, "b": 0.9}.items():
            search.suggest(name)
            search.on_trial_complete(name, {"accuracy": value})
        assert search.study.best.value == 0.9

    def test_costs_come_from_a_result_or_a_function_of_it_in_the_budgets_unit(self):
        for cost in ("energy", lambda result: result["energy"]):
            search = searching(ft.Budget(joules=10), cost=cost)
            search.suggest("a")
            search.on_trial_complete("a", result(0.1, energy=7.5))
            assert (search.study.trials[0].cost, search.study.ledger.spent) == (7.5, 7.5)

    def test_seconds_are_paid_at_the_rate_of_a_budget_of_dollars(self):
        search = searching("$5 at $3.6/h")
        search.suggest("a")
        search.on_trial_complete("a", result(0.1, seconds=1000.0))
        assert search.study.trials[0].cost == pytest.approx(1.0)

    def test_a_limit_of_concurrent_trials_is_kept_without_counting_those_that_have_ended(self):
        search = searching("100 evaluations")
        limited = ConcurrencyLimiter(search, max_concurrent=2)
        assert isinstance(limited.suggest("a"), dict)
        assert isinstance(limited.suggest("b"), dict)
        assert limited.suggest("c") is None
        limited.on_trial_complete("a", result(0.1))
        assert isinstance(limited.suggest("c"), dict)

    def test_tunes_number_of_samples_is_a_limit_too(self):
        search = searching("1h", spec={"num_samples": 2})
        assert search.study.ledger.budget == ft.Budget(seconds=3600, evaluations=2)
        assert searching("1h", spec={"num_samples": 2**63 - 1}).study.ledger.budget == ft.Budget(seconds=3600)

    def test_one_sample_is_warned_of(self):
        with pytest.warns(RuntimeWarning, match="num_samples=-1"):
            searching("1h", spec={"num_samples": 1}).suggest("a")

    def test_the_stop_of_the_tuner_is_the_length_of_a_training(self):
        assert searching(spec={"stop": {"training_iteration": 9}}).study._session.history.max_steps == 9

    def test_known_results_are_added_and_not_charged(self):
        search = searching(space=EVERY_KIND)
        config = {"constant": 7, **NestedSpace.of_tune(EVERY_KIND).nested(search.study.space.decode([0.5] * 8))}
        search.add_evaluated_point(config, 0.3)
        search.add_evaluated_point(config, 0.0, error=True)
        search.add_evaluated_point(config, 0.2, pruned=True, intermediate_values=[0.5, 0.2])
        with pytest.warns(RuntimeWarning, match="pruned trial"):
            search.add_evaluated_point(config, 0.1, pruned=True)
        assert [(trial.value, len(trial.curve)) for trial in search.study.trials] == [(0.3, 0), (None, 0), (0.2, 2)]
        assert search.study.ledger.total("evaluations") == 0


class TestRefusals:
    @pytest.mark.parametrize(
        ("options", "error", "said"),
        [
            ({"budget": "soon"}, InvalidBudget, "budget: expected"),
            ({"budget": "1h", "mode": "least"}, InvalidArgument, "mode: expected one of 'min', 'max'"),
            ({"budget": "1h", "policy": "best"}, InvalidArgument, "policy"),
            ({"budget": "1h", "cost": 3}, InvalidArgument, "cost: expected the name of a result, or a function"),
            ({"budget": ft.Budget(joules=5)}, InvalidArgument, "budget is in joules, and Tune measures seconds"),
            ({"budget": "$5"}, InvalidArgument, r"or a rate: '\$5 at"),
            ({"budget": "1h", "points_to_evaluate": {"x": 1}}, InvalidArgument, "a list of configs"),
        ],
    )
    def test_arguments_that_make_no_sense_are_refused_at_once(self, options, error, said):
        with pytest.raises(error, match=said):
            FarthingSearch(**options)

    def test_what_is_missing_is_said(self):
        with pytest.raises(InvalidArgument, match="nothing to search"):
            FarthingSearch(metric="loss", mode="min", budget="1h").suggest("a")
        with pytest.raises(InvalidArgument, match="mode: expected 'min' or 'max', here or in TuneConfig"):
            FarthingSearch({"x": (0.0, 1.0)}, budget="1h").suggest("a")

    def test_two_metrics_are_one_too_many(self):
        search = FarthingSearch(metric="loss", mode="min", budget="1h")
        with pytest.raises(InvalidArgument, match="metric: it is 'loss' here and 'accuracy' in TuneConfig"):
            search.set_search_properties("accuracy", None, LINE)

    def test_a_point_that_is_not_in_the_space_is_refused(self):
        with pytest.raises(InvalidConfig, match="start: parameter 'x'"):
            searching(points_to_evaluate=[{"x": 2.0}]).suggest("a")

    def test_a_cost_that_is_not_reported_is_named(self):
        search = searching(ft.Budget(cost=9), cost="energie")
        search.suggest("a")
        with pytest.raises(InvalidArgument, match=r"'energie'.*'energy'"):
            search.on_trial_complete("a", result(0.1, energy=7.5))


class TestSaving:
    def grown(self, **options: Any) -> FarthingSearch:
        search = searching("40 evaluations", policy="ei", **options)
        for i in range(6):
            config = search.suggest(f"t{i}")
            search.on_trial_complete(f"t{i}", result((config["x"] - 0.3) ** 2))
        search.suggest("running")
        return search

    def test_a_restored_search_goes_on_as_the_saved_one_does(self, tmp_path):
        """The same trials, the same pending one, and the same next proposals, told alike."""
        search = self.grown()
        search.save(str(tmp_path / "state.pkl"))
        other = FarthingSearch(budget="40 evaluations", policy="ei")
        other.restore(str(tmp_path / "state.pkl"))
        assert other.study.trials == search.study.trials
        assert other.study.pending == search.study.pending
        for one in (search, other):
            one.on_trial_complete("running", result(0.5))
        assert [search.suggest(name) for name in "ab"] == [other.suggest(name) for name in "ab"]
        assert other.study.trials == search.study.trials

    def test_what_happened_after_the_save_is_forgotten_with_it(self, tmp_path):
        search = self.grown()
        search.save(str(tmp_path / "state.pkl"))
        search.on_trial_complete("running", result(0.5))
        search.suggest("later")
        search.restore(str(tmp_path / "state.pkl"))
        assert [proposal.trial for proposal in search.study.pending] == [6]
        assert len(search.study.trials) == 7

    def test_a_file_of_its_own_knows_what_happened_after_the_save(self, tmp_path):
        """It had told the end of the running trial: that it is told again changes nothing."""
        search = self.grown(storage=tmp_path / "study.db")
        search.save(str(tmp_path / "state.pkl"))
        search.on_trial_complete("running", result(0.5))
        search.study.close()
        other = FarthingSearch(budget="40 evaluations", policy="ei", storage=tmp_path / "study.db")
        other.restore(str(tmp_path / "state.pkl"))
        other.on_trial_complete("running", result(0.7))
        assert other.study.trials[6].value == 0.5

    def test_a_file_of_another_study_is_refused(self, tmp_path):
        self.grown().save(str(tmp_path / "state.pkl"))
        ft.Study({"x": (0.0, 1.0)}, "3 evaluations", storage=tmp_path / "study.db").add({"x": 0.5}, value=1.0)
        other = FarthingSearch(budget="40 evaluations", policy="ei", storage=tmp_path / "study.db")
        with pytest.raises(StudyMismatch, match="another study than the checkpoint"):
            other.restore(str(tmp_path / "state.pkl"))

    def test_a_new_tuner_continues_a_file(self, tmp_path):
        search = self.grown(storage=tmp_path / "study.db")
        search.study.close()
        again = searching("40 evaluations", policy="ei", storage=tmp_path / "study.db")
        assert len(again.study.trials) == 7

    def test_a_search_is_pickled_before_it_begins_and_later(self):
        fresh = pickle.loads(pickle.dumps(FarthingSearch(LINE, "loss", "min", budget="9 evaluations", seed=3)))
        same = FarthingSearch(LINE, "loss", "min", budget="9 evaluations", seed=3)
        assert fresh.suggest("a") == same.suggest("a")
        assert pickle.loads(pickle.dumps(fresh)).study.trials == fresh.study.trials

    def test_nothing_is_left_behind(self, tmp_path):
        search = self.grown()
        folder = Path(search.study.storage).parent
        assert folder.exists()
        search.study.close()
        del search
        assert not folder.exists()
