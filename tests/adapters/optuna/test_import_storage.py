"""An Optuna study as a Farthing study: the space that its trials imply, its results, and what comes after."""

from __future__ import annotations

import json
import logging
import math
import warnings
from datetime import datetime, timedelta
from pathlib import Path

import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import FrozenTrial, TrialState
from optuna_studies import of_every_kind, seen

import farthing as ft
from farthing.adapters.optuna import from_optuna, to_optuna
from farthing.errors import FarthingError, InvalidArgument, InvalidBudget, InvalidSpace, StorageError
from farthing.trial import EndedBy, Status

BUDGET = ft.Budget(cost=50)
BEGAN = datetime(2020, 1, 1, 12)


@pytest.fixture(autouse=True)
def quiet():
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    yield
    optuna.logging.set_verbosity(before)


def frozen(params, distributions, value=1.0, state=TrialState.COMPLETE, seconds=0.0, steps=(), **attributes):
    return FrozenTrial(
        number=-1, trial_id=-1, state=state, value=value, params=params, datetime_start=BEGAN,
        datetime_complete=BEGAN + timedelta(seconds=seconds) if state.is_finished() else None,
        distributions={name: distributions[name] for name in params}, user_attrs=attributes, system_attrs={},
        intermediate_values=dict(steps),
    )  # fmt: skip


def study_of(*trials: FrozenTrial, direction: str = "minimize") -> optuna.Study:
    study = optuna.create_study(direction=direction)
    for trial in trials:
        study._storage.create_new_trial(study._study_id, trial)
    return study


X = {"x": FloatDistribution(0.0, 1.0)}


def at(x, value=1.0, **options):
    return frozen({"x": x}, X, value, **options)


class TestRoundTrip:
    @pytest.mark.parametrize("maximize", [False, True])
    @pytest.mark.parametrize("kind", ["sqlite", "journal", "memory"])
    def test_nothing_changes_on_the_way(self, tmp_path, kind, maximize):
        """The options of a tuple and of True and 1 come back as they were, the conditions too."""
        with of_every_kind(tmp_path / "s.db", maximize=maximize) as ours:
            expected = list(map(seen, ours.trials))
        place = {"sqlite": f"sqlite:///{tmp_path}/o.db", "journal": str(tmp_path / "o.log"), "memory": None}[kind]
        theirs = to_optuna(tmp_path / "s.db", place)
        with from_optuna(theirs if place is None else place, storage=tmp_path / "t.db") as back:
            assert list(map(seen, back.trials)) == expected
            assert (back.space, back.maximize) == (ours.space, maximize)
            assert back.ledger.budget == ft.Budget(cost=100)
            times = [time for trial in back.trials for time in (trial.began, trial.ended)]
            assert times == pytest.approx([time for t in ours.trials for time in (t.began, t.ended)], abs=1e-5)
        with ft.Study.open(tmp_path / "t.db") as again:
            assert list(map(seen, again.trials)) == expected

    def test_a_real_study_of_learners(self, tmp_path):
        def train(config):
            for step in range(1, 6):
                yield {"value": config["x"] + 1 / step, "cost": 1.0 + config["n"], "at": step}

        space = ft.Space(x=ft.Real(0, 1), n=ft.Integer(1, 4, log=True))
        study = ft.tune(
            train, space, ft.Budget(cost=50), max_steps=5, seed=1, storage=tmp_path / "s.db", progress=False
        )
        statuses = {trial.status for trial in study.trials}
        study.close()
        assert statuses >= {Status.COMPLETE, Status.PAUSED}
        to_optuna(tmp_path / "s.db", tmp_path / "o.log")
        back = from_optuna(tmp_path / "o.log", storage=tmp_path / "t.db")
        kept = [seen(trial)[:-1] for trial in study.trials]
        assert [seen(trial)[:-1] for trial in back.trials] == kept
        with back:
            back.run(train, progress=False)
        with ft.Study.open(tmp_path / "t.db") as after:
            assert after.ledger.total("cost") >= 50
            assert after.best.value <= study.best.value
            assert len(after.trials) > len(study.trials)

    def test_a_study_without_trials(self):
        study = ft.Study({"x": (0.0, 1.0)}, "4 evaluations", seed=0)
        assert from_optuna(to_optuna(study)).space == study.space


class TestSpace:
    def test_every_kind_of_distribution(self):
        held = {
            "a": FloatDistribution(0.0, 1.0), "b": FloatDistribution(1e-3, 1.0, log=True),
            "c": FloatDistribution(0.0, 1.0, step=0.1), "d": IntDistribution(1, 9),
            "e": IntDistribution(1, 64, log=True),
            "f": IntDistribution(2, 10, step=4), "g": CategoricalDistribution(["u", "v"]),
            "h": CategoricalDistribution([1, 2, 4]), "i": CategoricalDistribution([True, None]),
            "j": IntDistribution(3, 3), "k": FloatDistribution(0.5, 0.5),
        }  # fmt: skip
        params = {"a": 0.5, "b": 0.01, "c": 0.3, "d": 9, "e": 7, "f": 6, "g": "v", "h": 2, "i": None, "j": 3, "k": 0.5}
        study = from_optuna(study_of(frozen(params, held)), BUDGET)
        assert study.space == ft.Space(
            a=ft.Real(0, 1), b=ft.Real(1e-3, 1, log=True), c=ft.Ordered([min(i * 0.1, 1.0) for i in range(11)]),
            d=ft.Integer(1, 9), e=ft.Integer(1, 64, log=True), f=ft.Integer(2, 10, step=4),
            g=ft.Choice(["u", "v"]), h=ft.Ordered([1, 2, 4], log=True), i=ft.Choice([True, None]), j=ft.Choice([3]),
            k=ft.Choice([0.5]),
        )  # fmt: skip
        assert study.trials[0].config == {**params, "c": pytest.approx(0.3)}

    def test_ranges_that_change_are_united(self):
        trials = [
            frozen({"x": 0.1, "n": 4, "s": 2}, {"x": FloatDistribution(0, 0.5), "n": IntDistribution(2, 8, step=2),
                                                "s": IntDistribution(0, 4, step=2)}),
            frozen({"x": 1.5, "n": 9, "s": 8}, {"x": FloatDistribution(1, 2), "n": IntDistribution(3, 9, step=3),
                                                "s": IntDistribution(2, 8, step=2)}),
        ]  # fmt: skip
        space = from_optuna(study_of(*trials), BUDGET).space
        assert space == ft.Space(x=ft.Real(0, 2), n=ft.Integer(2, 9), s=ft.Integer(0, 8, step=2))

    def test_conditions_are_found_from_what_optuna_users_write(self):
        def objective(trial):
            layers = trial.suggest_int("layers", 1, 4)
            for i in range(layers):
                trial.suggest_int(f"units{i}", 4, 64, log=True)
            if trial.suggest_categorical("model", ["svm", "forest", "linear"]) == "svm":
                trial.suggest_float("C", 1e-3, 10, log=True)
                if trial.suggest_categorical("kernel", ["rbf", "poly"]) == "poly":
                    trial.suggest_int("degree", 2, 5)
            elif trial.params["model"] == "forest":
                trial.suggest_int("trees", 1, 100)
            return layers

        theirs = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
        theirs.optimize(objective, n_trials=60)
        study = from_optuna(theirs, BUDGET)
        whens = {name: param.when for name, param in study.space.params.items() if param.when}
        assert whens == {
            "units1": {"layers": {2, 3, 4}}, "units2": {"layers": {3, 4}}, "units3": {"layers": 4},
            "C": {"model": "svm"}, "kernel": {"model": "svm"}, "degree": {"kernel": "poly"},
            "trees": {"model": "forest"},
        }  # fmt: skip
        assert [trial.config for trial in study.trials] == [trial.params for trial in theirs.trials]

    def test_a_threshold_is_filled_where_no_trial_was(self):
        held = {"n": IntDistribution(1, 9), "u": FloatDistribution(0, 1)}
        trials = [frozen({"n": n} | ({"u": 0.5} if n > 4 else {}), held) for n in (1, 3, 6, 8)]
        assert from_optuna(study_of(*trials), BUDGET).space.params["u"].when == {"n": {6, 7, 8, 9}}

    def test_what_nothing_explains_is_an_error_that_names_it(self):
        held = {**X, "late": FloatDistribution(0, 1), "k": CategoricalDistribution(["a", "b"])}
        trials = [
            frozen({"x": 0.1, "k": k} | ({"late": 0.5} if late else {}), held)
            for k, late in [("a", 0), ("b", 0), ("a", 1), ("b", 1)]
        ]
        with pytest.raises(InvalidSpace, match=r"some trials do not have 'late', .*give the space \(space=...\)"):
            from_optuna(study_of(*trials), BUDGET)
        space = {"x": (0.0, 1.0), "late": (0.0, 1.0), "k": ["a", "b"]}
        with pytest.warns(RuntimeWarning, match="2 trials left out: trial 0: parameter 'late': is missing"):
            study = from_optuna(study_of(*trials), BUDGET, space=space)
        assert [trial.config["late"] for trial in study.trials] == [0.5, 0.5]
        assert study.space == ft.Space.of(space)

    def test_a_trial_that_failed_before_it_had_all_parameters_says_nothing_of_conditions(self):
        held = {**X, "y": FloatDistribution(0, 1)}
        trials = [
            frozen({"x": 0.1, "y": 0.2}, held),
            frozen({"x": 0.1}, held, None, TrialState.FAIL),
            frozen({}, held, None, TrialState.FAIL),
            frozen({"x": 0.3, "y": 0.2}, held, None, TrialState.FAIL),
        ]
        with pytest.warns(RuntimeWarning, match="2 trials left out: trial 1: parameter 'y': is missing"):
            study = from_optuna(study_of(*trials), BUDGET)
        assert [trial.status.value for trial in study.trials] == ["complete", "failed"]
        assert all(param.when is None for param in study.space.params.values())

    def test_a_fine_step_is_left_out_and_said(self):
        held = {"x": FloatDistribution(0, 1, step=1e-6)}
        with pytest.warns(RuntimeWarning, match="its step of 1e-06 is left out"):
            study = from_optuna(study_of(frozen({"x": 0.25}, held)), BUDGET)
        assert study.space == ft.Space(x=ft.Real(0, 1))

    def test_no_parameter_at_all(self):
        with pytest.raises(InvalidSpace, match="no trial has a parameter"):
            from_optuna(optuna.create_study(), BUDGET)


class TestResults:
    def test_every_state_becomes_what_it_is(self):
        trials = study_of(
            at(0.1, 0.5), at(0.2, None, state=TrialState.FAIL),
            at(0.3, 0.7, state=TrialState.PRUNED, steps={1: 0.9, 2: 0.7}),
            at(0.4, None, state=TrialState.PRUNED), at(0.5, None, state=TrialState.RUNNING), at(0.6, math.inf),
            at(0.7, 0.2, steps={0: 0.8, 1: 0.1, 2: 0.2}), at(0.8, None, state=TrialState.WAITING),
            at(0.9, None, state=TrialState.PRUNED, steps={10: 0.6, 20: math.nan, 30: 0.1}),
        )  # fmt: skip
        with pytest.warns(RuntimeWarning, match="1 trial left out: trial 7: it is waiting"):
            study = from_optuna(trials, BUDGET)
        found = [(t.status.value, t.value, t.curve.values, t.error) for t in study.trials]
        assert found == [
            ("complete", 0.5, (), None), ("failed", None, (), "failed in Optuna"), ("stopped", 0.7, (0.9, 0.7), None),
            ("interrupted", None, (), "pruned in Optuna before it reported a value"),
            ("interrupted", None, (), "it was running in Optuna"), ("failed", None, (), "its value was inf"),
            ("complete", 0.1, (0.8, 0.1, 0.2), None), ("stopped", 0.6, (0.6,), None),
        ]  # fmt: skip
        assert study._history.max_steps == 3
        assert study.best.number == 6

    def test_a_trial_that_runs_elsewhere_is_not_proposed_again(self):
        held = {"k": CategoricalDistribution(["a", "b"])}
        theirs = study_of(
            frozen({"k": "a"}, held, None, TrialState.RUNNING), frozen({"k": "b"}, held, None, TrialState.FAIL)
        )
        study = from_optuna(theirs, "9 evaluations")
        with pytest.raises(ft.errors.SpaceExhausted):
            study.ask()

    def test_curves_of_something_else_are_left_out(self):
        """Where a loss is reported and an accuracy is returned, one is not the other."""
        theirs = study_of(
            at(0.1, 0.9, steps={1: 5.0, 2: 3.0}), at(0.2, None, state=TrialState.PRUNED, steps={1: 4.0}),
            direction="maximize",
        )  # fmt: skip
        with pytest.warns(RuntimeWarning, match="intermediate values of this study are left out"):
            study = from_optuna(theirs, BUDGET)
        assert [(t.status.value, t.value, len(t.curve)) for t in study.trials] == [
            ("complete", 0.9, 0), ("interrupted", None, 0),
        ]  # fmt: skip

    def test_the_direction_is_kept(self):
        study = from_optuna(study_of(at(0.1, 0.5), at(0.2, 0.9), direction="maximize"), BUDGET)
        assert (study.maximize, study.best.value) == (True, 0.9)

    def test_attributes_are_kept(self):
        trial = from_optuna(study_of(at(0.1, epochs=3, status="mine")), BUDGET).trials[0]
        assert trial.attributes == {"epochs": 3, "status": "mine"}

    @pytest.mark.parametrize(
        ("budget", "cost", "expected"),
        [
            ("10m", None, [90.0, None, 30.0]), ("10m of compute", None, [90.0, None, 30.0]),
            ("$5 at $2/h", None, [0.05, None, pytest.approx(1 / 60)]), ("9 evaluations", None, [90.0, None, 30.0]),
            (BUDGET, None, [None] * 3), (BUDGET, "spent", [7.0, None, None]), ("$5", None, [None] * 3),
        ],
    )  # fmt: skip
    def test_costs_come_from_durations_or_an_attribute(self, budget, cost, expected):
        theirs = study_of(
            at(0.1, seconds=90, spent=7),
            at(0.2, spent=-1.0),
            at(0.3, None, state=TrialState.FAIL, seconds=30, spent="x"),
        )
        assert [trial.cost for trial in from_optuna(theirs, budget, cost=cost).trials] == expected

    def test_nothing_is_charged(self):
        study = from_optuna(study_of(at(0.1, seconds=90)), "10m")
        assert study.ledger.total("seconds") == 0.0


class TestWhatComesAfter:
    def objective(self, config):
        return {"value": (config["x"] - 0.3) ** 2 + (config["kind"] == "a"), "cost": 1 + config["x"]}

    def theirs(self, place=None):
        study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=1), storage=place, study_name="theirs")

        def objective(trial):
            x, kind = trial.suggest_float("x", 0, 1), trial.suggest_categorical("kind", ["a", "b"])
            trial.set_user_attr("cost", 1 + x)
            return (x - 0.3) ** 2 + (kind == "a")

        study.optimize(objective, n_trials=12)
        return study

    def test_it_goes_on_from_the_file_and_learns_from_what_is_known(self, tmp_path):
        place = f"sqlite:///{tmp_path}/o.db"
        known = self.theirs(place).best_value
        from_optuna(place, ft.Budget(cost=12), storage=tmp_path / "s.db", cost="cost", policy="ei", seed=0).close()
        with ft.Study.resume(tmp_path / "s.db") as study:
            first = study.ask()
            assert (first.trial, first.config["kind"]) == (12, "b")
            assert first.predicted_cost == pytest.approx(1 + first.config["x"], rel=0.2)
            study.tell(first, **self.objective(first.config))
            study.run(self.objective, progress=False)
            assert study.best.value < known
        with ft.Study.open(tmp_path / "s.db") as again:
            assert again.trials == study.trials

    def test_another_study_learns_from_the_file(self, tmp_path):
        from_optuna(self.theirs(), BUDGET, storage=tmp_path / "s.db", cost="cost").close()
        warm = ft.Study({"x": (0.0, 1.0), "kind": ["a", "b"]}, BUDGET, seed=0, warm_start=[tmp_path / "s.db"])
        first = warm.ask()
        assert "earlier studies" in first.reason
        assert first.config["kind"] == "b"

    def test_what_was_exported_twice_is_one_study(self, tmp_path):
        """An imported study is exported again under another name, next to the first."""
        place = f"sqlite:///{tmp_path}/o.db"
        self.theirs(place)
        from_optuna(place, BUDGET, storage=tmp_path / "s.db", cost="cost").close()
        again = to_optuna(tmp_path / "s.db", place, study_name="again")
        assert [trial.params for trial in again.trials] == [
            trial.params for trial in optuna.load_study(study_name="theirs", storage=place).trials
        ]


class TestErrors:
    def test_which_study(self, tmp_path):
        storage = optuna.storages.InMemoryStorage()
        for name in ("a", "b"):
            optuna.create_study(study_name=name, storage=storage)
        with pytest.raises(InvalidArgument, match="holds 2 studies; expected one of 'a', 'b'"):
            from_optuna(storage, BUDGET)
        with pytest.raises(InvalidArgument, match="holds no study 'c'; it holds 'a', 'b'"):
            from_optuna(storage, BUDGET, study_name="c")

    def test_arguments(self, tmp_path):
        study = study_of(at(0.5))
        for options, error, why in [
            ({}, InvalidBudget, "budget: is missing"),
            ({"budget": BUDGET, "cost": "spent"}, InvalidArgument, "no trial has a user attribute 'spent'"),
            ({"budget": BUDGET, "cost": 5}, InvalidArgument, "expected the name of a user attribute"),
            ({"budget": BUDGET, "policy": "none"}, InvalidArgument, "policy"),
            ({"budget": BUDGET, "storage": tmp_path / "no" / "s.db"}, StorageError, "does not exist"),
            ({"budget": BUDGET, "space": {"y": (0.0, 1.0)}}, InvalidArgument, "no trial can be taken over"),
        ]:
            with pytest.raises(error, match=why), _warnings_logged():
                from_optuna(study, **options)
        assert list(tmp_path.iterdir()) == []

    def test_several_objectives(self):
        with pytest.raises(InvalidArgument, match="2 objectives; Farthing tunes one"):
            from_optuna(optuna.create_study(directions=["minimize", "maximize"]), BUDGET)

    def test_a_file_that_is_there_stays(self, tmp_path):
        (tmp_path / "s.db").write_text("mine")
        with pytest.raises(StorageError, match="is there already"):
            from_optuna(study_of(at(0.5)), BUDGET, storage=tmp_path / "s.db")
        assert (tmp_path / "s.db").read_text() == "mine"

    def test_reading_makes_nothing(self, tmp_path):
        (tmp_path / "empty.db").touch()
        with of_every_kind(tmp_path / "f.db"):
            pass
        before = sorted(tmp_path.iterdir())
        for place in ("sqlite:///{}/no.db", "{}/no.log", "sqlite:///{}/empty.db", "sqlite:///{}/f.db", "{}/f.db", "{}"):
            with pytest.raises((StorageError, InvalidArgument)):
                from_optuna(place.format(tmp_path), BUDGET, storage=tmp_path / "s.db")
        assert sorted(tmp_path.iterdir()) == before

    def test_an_import_that_fails_late_leaves_nothing(self, tmp_path, monkeypatch):
        from farthing.adapters.optuna import importing

        def fail(part: Path, path: Path, name: str) -> None:
            assert part.stat().st_size > 0
            raise OSError("the disk is full")

        monkeypatch.setattr(importing, "_rename", fail)
        with pytest.raises(OSError, match="the disk is full"):
            from_optuna(study_of(at(0.5)), BUDGET, storage=tmp_path / "s.db")
        assert list(tmp_path.iterdir()) == []

    def test_only_the_new_file_is_there(self, tmp_path):
        from_optuna(study_of(at(0.5)), BUDGET, storage=tmp_path / "s.db").close()
        assert [path.name for path in tmp_path.iterdir() if ".lock" not in path.name] == ["s.db"]
        assert (tmp_path / "s.db").stat().st_nlink == 1


def _warnings_logged():
    return warnings.catch_warnings(action="ignore")


JOURNAL = [
    {"op_code": 0, "worker_id": "w", "study_name": "s", "directions": [1]},
    {
        "op_code": 4, "worker_id": "w", "study_id": 0, "state": 1, "value": 0.5, "values": None,
        "datetime_start": "2020-01-01T00:00:00+00:00", "datetime_complete": "2020-01-01T00:01:00+00:00",
        "distributions": {"x": '{"name": "FloatDistribution", "attributes": {"step": null, "low": 0.0, "high": 1.0, '
                               '"log": false}}'},
        "params": {"x": 0.5}, "user_attrs": {"a": 1}, "system_attrs": {}, "intermediate_values": {},
    },
]  # fmt: skip


class TestStrangers:
    """Journals by hand: what Optuna itself would not write, and reads all the same."""

    def read(self, folder: Path, *, study=(), **changed) -> ft.Study:
        lines = [{**JOURNAL[0], **dict(study)}, JOURNAL[1], {**JOURNAL[1], **changed}]
        (folder / "o.log").write_text("".join(json.dumps(line) + "\n" for line in lines))
        return from_optuna(folder / "o.log", BUDGET, storage=folder / "s.db")

    @pytest.mark.parametrize(
        ("field", "value"),
        [
            ("value", "abc"), ("value", [1]), ("value", 10**400), ("value", math.nan), ("value", None), ("value", {}),
            ("params", {"x": "abc"}), ("params", {"x": math.nan}), ("params", {"x": 7.0}), ("params", {"x": [1]}),
            ("params", {"x": 10**400}), ("params", {}), ("params", 5), ("user_attrs", 5), ("user_attrs", [1]),
            ("user_attrs", {"x" * 100_000: "\x1b\0" * 50_000}), ("user_attrs", {"a": math.inf, "b": 10**4000}),
            ("user_attrs", {"farthing": 1}), ("intermediate_values", {"-5": "abc", "7": 1.0}),
            ("intermediate_values", {"1": [1]}), ("intermediate_values", {"9" * 4000: 0.5}),
            ("datetime_start", "0001-01-01T00:00:00"), ("datetime_complete", "9999-12-31T23:59:59+00:00"),
            ("datetime_start", "never"), ("state", 99), ("state", "1"), ("system_attrs", 5),
            ("distributions", {"x": "{}"}), ("distributions", {"x": "not JSON"}), ("distributions", 5),
        ],
    )  # fmt: skip
    def test_a_damaged_trial_is_refused_or_left_out(self, tmp_path, field, value):
        """A study file that is made can be read, and has the trial that was whole; or there is none."""
        refused = ""
        try:
            with _warnings_logged():
                self.read(tmp_path, **{field: value}).close()
        except FarthingError as error:
            refused = str(error)
        if refused:
            assert len(refused) < 2_000
            assert sorted(path.name for path in tmp_path.iterdir()) == ["o.log"]
            return
        with ft.Study.open(tmp_path / "s.db") as again:
            assert (again.trials[0].value, again.trials[0].config) == (0.5, {"x": 0.5})
            assert again.best.value == 0.5
        with ft.Study.resume(tmp_path / "s.db") as on:
            on.tell(on.ask(), value=1.0, cost=1.0)

    @pytest.mark.parametrize(
        "attributes",
        [
            {"farthing": {"format": 1, "budget": {"cost": "x"}}, "farthing.space": {"parameters": 5}},
            {"farthing": {"budget": {"evaluations": -1}}, "unit": ["cost"]},
            {"farthing": {}, "farthing.space": {"parameters": [{"name": "x", "type": "Real", "low": 5, "high": 1}]}},
            {"farthing": {}, "farthing.space": ft.Space(y=ft.Real(0, 1)).as_json()},
            {"farthing": {}, "farthing.space": ft.Space(x=ft.Real(0, 9)).as_json()},
        ],
    )
    def test_a_study_that_only_pretends_to_be_exported(self, tmp_path, attributes):
        lines = [JOURNAL[0]]
        lines += [{"op_code": 2, "worker_id": "w", "study_id": 0, "user_attr": {k: v}} for k, v in attributes.items()]
        lines += [
            JOURNAL[1],
            {**JOURNAL[1], "user_attrs": {"status": "killed", "ended_by": 5, "cost": "x", "error": 5}},
        ]
        (tmp_path / "o.log").write_text("".join(json.dumps(line) + "\n" for line in lines))
        study = from_optuna(tmp_path / "o.log", BUDGET)
        assert study.space == ft.Space(x=ft.Real(0, 1))
        assert [trial.status.value for trial in study.trials] == ["complete", "complete"]
        with pytest.raises(InvalidBudget, match="budget: is missing"):
            from_optuna(tmp_path / "o.log")

    def test_a_journal_that_is_cut(self, tmp_path):
        (tmp_path / "o.log").write_text(json.dumps(JOURNAL[0]) + "\n" + json.dumps(JOURNAL[1])[:50] + "\n{}\n")
        with pytest.raises(StorageError, match=r"o\.log"):
            from_optuna(tmp_path / "o.log", BUDGET, storage=tmp_path / "s.db")
        assert sorted(path.name for path in tmp_path.iterdir()) == ["o.log"]

    def test_names_and_errors_of_any_kind(self, tmp_path):
        names = ["\x1b[2J", "a\0b", "half \ud800", "n" * 5_000]
        held = {name: FloatDistribution(0, 1) for name in names} | {
            "k": CategoricalDistribution(["\x1b", "\ud800", "x" * 100_000, math.nan, math.inf, None])
        }
        params = dict.fromkeys(names, 0.5)
        theirs = study_of(
            *(frozen(params | {"k": option}, held) for option in held["k"].choices),
            frozen(params | {"k": None}, held, None, TrialState.FAIL, error="\x1b" * 200_000),
        )
        with from_optuna(theirs, BUDGET, storage=tmp_path / "s.db") as study:
            assert set(study.space.names) == {*names, "k"}
        with ft.Study.open(tmp_path / "s.db") as again:
            assert len(again.trials) == 7
            assert math.isnan(again.trials[3].config["k"])


def test_known_results_of_every_status_are_checked_when_they_are_read(tmp_path):
    """A file may come from anywhere: statuses that do not go with their values are refused."""
    from farthing.record.added import Added

    study = ft.Study({"x": (0.0, 1.0)}, BUDGET, seed=0)
    state, config = study._session.record.state, {"x": 0.5}
    for wrong in [
        {"status": Status.RUNNING}, {"status": Status.COMPLETE},
        {"status": Status.COMPLETE, "value": 1.0, "error": "x"},
        {"status": Status.KILLED, "value": 1.0, "error": "x"}, {"status": Status.KILLED}, {"status": Status.STOPPED},
        {"status": Status.PAUSED}, {"status": Status.STOPPED, "value": 1.0, "curve": (2.0,)},
        {"status": Status.PAUSED, "value": 1.0, "curve": (1.0,), "ended_by": EndedBy.BUDGET},
        {"value": 1.0, "error": "x"},
        {},
    ]:  # fmt: skip
        with pytest.raises(ValueError):
            Added(0, config, **wrong).check(state)
    Added(0, config, 1.0, status=Status.PAUSED, curve=(1.0,)).check(state)


def test_the_level_of_a_message(caplog):
    """Under warnings as errors, what is left out is logged."""
    with caplog.at_level(logging.WARNING, logger="farthing"):
        from_optuna(study_of(at(0.5), at(0.6, None, state=TrialState.WAITING)), BUDGET)
    assert "1 trial left out: trial 1: it is waiting" in caplog.text
