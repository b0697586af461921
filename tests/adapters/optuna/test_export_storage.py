"""A Farthing study in an Optuna storage: what is there, and what a second export does."""

from __future__ import annotations

import json
import math
import shutil
import socket
import sqlite3
import subprocess
import sys
import urllib.request
import warnings
from contextlib import closing
from pathlib import Path

import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.storages import InMemoryStorage, JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import TrialState
from optuna_studies import PLAIN, SPACE, of_every_kind

import farthing as ft
from called import until
from farthing.adapters.optuna import from_optuna, to_optuna
from farthing.errors import InvalidArgument, StorageError

DASHBOARD = Path(sys.executable).with_name("optuna-dashboard")


@pytest.fixture(autouse=True)
def quiet():
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    yield
    optuna.logging.set_verbosity(before)


def url(folder: Path) -> str:
    return f"sqlite:///{folder / 'optuna.db'}"


class TestWhatIsThere:
    @pytest.mark.parametrize("maximize", [False, True])
    @pytest.mark.parametrize("kind", ["sqlite", "journal", "memory"])
    def test_every_trial_is_what_it_was(self, tmp_path, kind, maximize):
        with of_every_kind(tmp_path / "s.db", maximize=maximize):
            pass
        place = {"sqlite": url(tmp_path), "journal": str(tmp_path / "o.log"), "memory": InMemoryStorage()}[kind]
        to_optuna(tmp_path / "s.db", place)
        again = {
            "sqlite": lambda: RDBStorage(url(tmp_path)),
            "journal": lambda: JournalStorage(JournalFileBackend(str(tmp_path / "o.log"))),
            "memory": lambda: place,
        }
        theirs = optuna.load_study(study_name="s", storage=again[kind]())
        states = [trial.state for trial in theirs.trials]
        assert [trial.number for trial in theirs.trials] == list(range(7))
        assert states == [*[TrialState.COMPLETE] * 2, *[TrialState.PRUNED] * 2, *[TrialState.FAIL] * 3]
        best = (0.9, 0.8, 0.3) if maximize else (0.4, 0.7, 0.3)
        assert [trial.value for trial in theirs.trials] == [0.5, *best, None, None, None]
        assert theirs.trials[1].intermediate_values == {1: 0.9, 2: 0.4, 3: 0.6}
        assert theirs.trials[5].intermediate_values == {1: 0.95}
        assert theirs.direction.name == ("MAXIMIZE" if maximize else "MINIMIZE")
        assert (theirs.best_trial.number, theirs.best_value) == ((1, 0.9) if maximize else (1, 0.4))
        for trial in theirs.trials:
            trial._validate()
            assert trial.duration.total_seconds() == pytest.approx(3, abs=1e-5)
            assert trial.datetime_start.timestamp() == pytest.approx(1e9 + 10 * trial.number, abs=1e-5)

    def test_attributes_say_what_optuna_has_no_place_for(self):
        theirs = to_optuna(of_every_kind())
        assert theirs.trials[4].user_attrs == {
            "status": "failed", "cost": 6.5, "reason": "a known result", "ended_by": "objective",
            "error": "ValueError: no\n\x1b[2J", "attributes.epochs": 4, "attributes.note": "x",
        }  # fmt: skip
        assert (theirs.trials[5].user_attrs["value"], theirs.trials[5].user_attrs["ended_by"]) == (0.95, "budget")
        assert [trial.user_attrs["status"] for trial in theirs.trials[2:4]] == ["stopped", "paused"]
        said = theirs.user_attrs
        assert (said["budget"], said["unit"], said["spent"], said["seed"]) == ("100 cost", "cost", {"cost": 0.0}, 7)
        assert (said["best_trial"], said["best_value"], said["policy"], said["ended"]) == (3, 0.3, "auto", "")

    def test_a_trial_has_the_parameters_that_are_active_with_their_distributions(self):
        theirs = to_optuna(of_every_kind())
        assert "momentum" not in theirs.trials[0].params
        assert [trial.params["kind"] for trial in theirs.trials[:5]] == ["1", "a", "True", "(2, 3)", "None"]
        assert theirs.trials[1].distributions == {
            "rate": FloatDistribution(1e-4, 1.0, log=True), "depth": IntDistribution(1, 12),
            "width": IntDistribution(8, 512, log=True), "batch": CategoricalDistribution([16, 32, 64]),
            "kind": CategoricalDistribution(["a", "1", "True", "(2, 3)", "None"]),
            "momentum": FloatDistribution(0.0, 0.9),
        }  # fmt: skip

    def test_costs_and_predictions_of_a_study_that_ran(self, tmp_path):
        space = ft.Space(x=ft.Real(0, 1), n=ft.Integer(2, 20, step=3))
        with ft.Study(space, ft.Budget(cost=40), seed=0, storage=tmp_path / "s.db") as study:
            while study.ended is None:
                proposal = study.ask()
                study.tell(proposal, value=proposal.config["x"] ** 2, cost=1.0 + proposal.config["n"] / 10)
            ours = study.trials
        theirs = to_optuna(tmp_path / "s.db").trials
        assert [trial.user_attrs["cost"] for trial in theirs] == [trial.cost for trial in ours]
        assert theirs[-1].user_attrs["predicted_cost"] == ours[-1].predicted_cost > 0
        assert theirs[-1].user_attrs["reason"] == ours[-1].reason != ""
        assert [trial.params for trial in theirs] == [trial.config for trial in ours]
        assert theirs[0].distributions["n"] == IntDistribution(2, 20, step=3)

    def test_optunas_own_tools_read_it(self, tmp_path):
        space = {"x": (0.0, 1.0), "y": (0.0, 1.0), "kind": ["a", "b"]}
        study = ft.tune(
            lambda c: (c["x"] - 0.3) ** 2 + (c["kind"] == "a"), space, "12 evaluations", seed=0, progress=False
        )
        theirs = to_optuna(study, url(tmp_path), study_name="mine")
        plots = optuna.visualization
        history = plots.plot_optimization_history(theirs)
        assert list(history.data[0].y) == [trial.value for trial in study.trials]
        for plot in (plots.plot_slice, plots.plot_parallel_coordinate, plots.plot_timeline, plots.plot_edf):
            assert plot(theirs).data
        importance = optuna.importance.get_param_importances(
            theirs, evaluator=optuna.importance.PedAnovaImportanceEvaluator()
        )
        assert set(importance) == {"x", "y", "kind"}
        assert list(theirs.trials_dataframe()["user_attrs_status"]) == ["complete"] * 12

    def test_curves_are_plotted(self):
        lines = optuna.visualization.plot_intermediate_values(to_optuna(of_every_kind())).data
        assert [list(line.y) for line in lines] == [[0.9, 0.4, 0.6], [0.8, 0.7], [0.3]]

    def test_optuna_goes_on_with_it(self, tmp_path):
        """The distributions are those that a user would ask for, so that a sampler learns from them."""
        study = ft.tune(lambda c: c["x"] ** 2, {"x": (-1.0, 1.0)}, "12 evaluations", seed=0, progress=False)
        theirs = to_optuna(study, url(tmp_path))
        theirs.sampler = optuna.samplers.TPESampler(seed=0)
        theirs.optimize(lambda trial: trial.suggest_float("x", -1.0, 1.0) ** 2, n_trials=5)
        assert len(theirs.trials) == 17


class TestAgain:
    def written(self, folder: Path, evaluations: int = 3) -> ft.Study:
        study = ft.Study({"x": (0.0, 1.0)}, "50 evaluations", seed=0, policy="sobol", storage=folder / "s.db")
        for _ in range(evaluations):
            study.tell(study.ask(), value=0.5, cost=1.0)
        return study

    def test_the_same_again_changes_nothing(self, tmp_path):
        with of_every_kind(tmp_path / "s.db"):
            pass
        first = to_optuna(tmp_path / "s.db", str(tmp_path / "o.log"))
        before = (tmp_path / "o.log").read_bytes()
        second = to_optuna(tmp_path / "s.db", str(tmp_path / "o.log"))
        assert (tmp_path / "o.log").read_bytes() == before
        assert second.trials == first.trials

    @pytest.mark.parametrize("kind", ["sqlite", "journal"])
    def test_what_is_new_is_added_and_what_ran_has_ended(self, tmp_path, kind):
        place = url(tmp_path) if kind == "sqlite" else str(tmp_path / "o.log")
        with self.written(tmp_path) as study:
            running = study.ask()
            first = to_optuna(tmp_path / "s.db", place)
            assert [trial.state for trial in first.trials] == [*[TrialState.COMPLETE] * 3, TrialState.RUNNING]
            study.tell(running, value=0.25, cost=4.0, note="late")
            study.tell(study.ask(), failed="no")
            second = to_optuna(tmp_path / "s.db", place)
        assert [trial.state for trial in second.trials] == [*[TrialState.COMPLETE] * 4, TrialState.FAIL]
        assert (second.trials[3].value, second.trials[3].user_attrs["cost"]) == (0.25, 4.0)
        assert second.trials[3].user_attrs["attributes.note"] == "late"
        assert second.trials[3].user_attrs["status"] == "complete"
        assert second.trials[:3] == first.trials[:3]
        assert second.best_value == 0.25

    def test_a_paused_trial_of_a_study_that_is_run_is_running_and_ends_later(self, tmp_path):
        """Otherwise every export during a run would find trials that Optuna holds to have ended."""

        def states() -> list[str]:
            return [trial.state.name for trial in to_optuna(tmp_path / "s.db", tmp_path / "o.log").trials]

        def train(config):
            for step in range(1, 6):
                yield {"value": config["x"] + 1 / step, "cost": 1.0}

        seen = []

        def export(study, trial):
            seen.append((study.trial(trial.number).status.value, states()[trial.number]))

        with ft.tune(
            train, {"x": (0.0, 1.0)}, ft.Budget(cost=30), max_steps=5, seed=0, storage=tmp_path / "s.db",
            progress=False, callbacks=[export],
        ) as study:  # fmt: skip
            ended = [trial.status.value for trial in study.trials]
        assert ("paused", "RUNNING") in seen
        assert ("complete", "COMPLETE") in seen
        assert states() == [{"complete": "COMPLETE", "paused": "PRUNED", "stopped": "PRUNED"}[end] for end in ended]

    def paused_and_resumed(self, folder: Path) -> None:
        """A trial is paused when the study is exported first, and has gone on since."""

        def train(config):
            for step in range(1, 11):
                yield {"value": 1 / step, "cost": 1.0}

        options = {"max_steps": 10, "seed": 0, "policy": "sobol", "storage": folder / "s.db", "progress": False}
        with ft.tune(train, {"x": (0.0, 1.0)}, ft.Budget(cost=5), **options) as study:
            assert study.trials[0].status is ft.trial.Status.PAUSED
        to_optuna(folder / "s.db", url(folder)).set_user_attr("mine", "stays")
        with ft.Study.resume(folder / "s.db", budget=ft.Budget(cost=20)) as study:
            study.run(train, progress=False)

    def test_a_trial_that_went_on_is_refused_and_replaced_if_asked(self, tmp_path):
        self.paused_and_resumed(tmp_path)
        before = optuna.load_study(study_name="s", storage=url(tmp_path)).trials
        with pytest.raises(StorageError, match="1 trial that went on after they had ended there, such as trial 0"):
            to_optuna(tmp_path / "s.db", url(tmp_path))
        assert optuna.load_study(study_name="s", storage=url(tmp_path)).trials == before
        anew = to_optuna(tmp_path / "s.db", url(tmp_path), replace=True)
        assert (anew.trials[0].state, len(anew.trials[0].intermediate_values)) == (TrialState.COMPLETE, 10)
        assert anew.user_attrs["mine"] == "stays"
        assert anew.user_attrs["budget"] == "20 cost"

    def test_an_export_that_was_cut_short_is_completed(self, tmp_path, monkeypatch):
        with self.written(tmp_path, 6):
            pass
        whole, count = RDBStorage.create_new_trial, []

        def fail(self, *given, **named):
            count.append(1)
            if len(count) > 2:
                raise OSError("the disk is full")
            return whole(self, *given, **named)

        monkeypatch.setattr(RDBStorage, "create_new_trial", fail)
        with pytest.raises(StorageError, match="the disk is full"):
            to_optuna(tmp_path / "s.db", url(tmp_path))
        monkeypatch.undo()
        assert len(optuna.load_study(study_name="s", storage=url(tmp_path)).trials) == 2
        assert [trial.number for trial in to_optuna(tmp_path / "s.db", url(tmp_path)).trials] == list(range(6))


class TestNothingOfOthersIsTouched:
    def test_a_study_of_somebody_else(self, tmp_path):
        theirs = optuna.create_study(study_name="s", storage=url(tmp_path))
        theirs.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=2)
        with pytest.raises(StorageError, match="holds another study of the name 's'"):
            to_optuna(of_every_kind(), url(tmp_path), study_name="s", replace=True)
        assert len(theirs.trials) == 2
        assert theirs.user_attrs == {}

    def test_another_run_of_the_same_study(self, tmp_path):
        """Same space, seed and policy, but begun at another time."""
        for name in ("a", "b"):
            with of_every_kind(tmp_path / f"{name}.db"):
                pass
        to_optuna(tmp_path / "a.db", url(tmp_path), study_name="s")
        with pytest.raises(StorageError, match="another study of the name 's'; give another study_name"):
            to_optuna(tmp_path / "b.db", url(tmp_path), study_name="s", replace=True)

    def test_trials_that_optuna_added(self, tmp_path):
        study = ft.tune(lambda c: c["x"], {"x": (0.0, 1.0)}, "4 evaluations", storage=tmp_path / "s.db", progress=False)
        study.close()
        theirs = to_optuna(tmp_path / "s.db", url(tmp_path))
        theirs.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=1)
        with pytest.raises(StorageError, match="trial 4 of 's' does not come from this study"):
            to_optuna(tmp_path / "s.db", url(tmp_path), replace=True)
        assert len(theirs.trials) == 5

    @pytest.mark.parametrize("form", ["sqlite:///{}", "{}", "sqlite:////{}"])
    def test_a_study_is_not_exported_into_itself(self, tmp_path, form):
        path = tmp_path / "s.db"
        with of_every_kind(path):
            pass
        before = path.read_bytes()
        with pytest.raises(InvalidArgument, match="is the study itself"):
            to_optuna(path, form.format(path))
        assert path.read_bytes() == before

    def test_files_that_are_not_optunas(self, tmp_path):
        with of_every_kind(tmp_path / "s.db"):
            pass
        shutil.copy(tmp_path / "s.db", tmp_path / "copy.db")
        (tmp_path / "notes.txt").write_text("my notes\n")
        with closing(sqlite3.connect(tmp_path / "other.db")) as other:
            other.execute("CREATE TABLE mine (x)")
        to_optuna(tmp_path / "s.db", url(tmp_path))
        before = {path: path.read_bytes() for path in tmp_path.iterdir()}
        for place, why in [
            (f"sqlite:///{tmp_path}/copy.db", "is a Farthing study"),
            (f"sqlite:///{tmp_path}/other.db", "it has no table of studies"),
            (f"sqlite:///{tmp_path}/notes.txt", "is not an SQLite database"),
            (f"sqlite:///{tmp_path}/none/o.db", "the folder .* does not exist"),
            (f"{tmp_path}/notes.txt", "is not an Optuna journal"),
            (f"{tmp_path}/optuna.db", "is an SQLite file; write sqlite:///"),
            (f"{tmp_path}", "is not an ordinary file"),
            ("sqlite:///:memory:", "expected the path of a file"),
            ("sqlite://", "expected the path of a file"),
            ("nonsense://me:secret@host/x", r"nonsense://me:\*\*\*@host/x"),
            (5, "expected a database URL"),
            ("", "expected a database URL"),
        ]:
            with pytest.raises((StorageError, InvalidArgument), match=why) as error:
                to_optuna(tmp_path / "s.db", place)
            assert "secret" not in str(error.value)
        assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before

    @pytest.mark.parametrize("name", ["", "x" * 513, "a\0b", 5])
    def test_names_that_no_database_holds(self, name):
        with pytest.raises(InvalidArgument, match="study_name"):
            to_optuna(of_every_kind(), study_name=name)


class TestStrangers:
    @pytest.mark.parametrize("kind", ["sqlite", "journal"])
    def test_names_options_and_texts_of_any_kind(self, tmp_path, kind):
        """What is exported can be read back, by Optuna and by Farthing; nothing raises, nothing is lost in silence."""
        names = ["\x1b[2J", "a\0b", "half \ud800", "n" * 600, "n" * 601, "café", "a\nb"]
        strange = ["\ud800", "\0", "x" * 100_000, "x" * 100_001, math.inf, 10**30, 10**2000, b"\xff", ["a"], -0.0]
        space = ft.Space(
            {name: ft.Choice(strange) for name in names} | {"wide": ft.Integer(-(2**62), 2**62, step=2**20)}
        )
        study = ft.Study(space, "9 evaluations", seed=0, storage=tmp_path / "s.db")
        with study:
            for option in strange:
                config = dict.fromkeys(names, option) | {"wide": 2**62 - 2**20}
                study.add(config, value=1.0, **{"k" * 700: math.nan, "\x1b\0\ud800": [math.inf, 10**400, "\ud800"]})
            study.add(config, failed="\x1b]0;title\x07\0\ud800" * 9_000, big="y" * 9_000_000)
        place = url(tmp_path) if kind == "sqlite" else str(tmp_path / "o.log")
        theirs = to_optuna(tmp_path / "s.db", place)
        assert len(theirs.trials) == 11
        assert to_optuna(tmp_path / "s.db", place).trials == theirs.trials
        for name in theirs.trials[0].params:
            assert len(name) <= 512
        assert len({trial.params["café"] for trial in theirs.trials}) == len(strange)
        for value in theirs.trials[-1].user_attrs.values():
            assert len(json.dumps(value)) <= 60_000
        assert theirs.trials[-1].user_attrs["attributes.big"].startswith("yyy")

    def test_times_that_no_calendar_knows(self, tmp_path):
        study = ft.Study({"x": (0.0, 1.0)}, "9 evaluations", seed=0)
        from farthing.record.added import Added

        for number, times in enumerate([(None, None), (1e300, None), (1e9, 1e9 - 5)]):
            study._session.record.write(Added(number, {"x": 0.5}, 0.5, began=times[0], ended=times[1]))
        for trial in to_optuna(study, url(tmp_path)).trials:
            assert trial.duration.total_seconds() >= 0

    def test_a_space_without_its_objects(self, tmp_path):
        """Options that a file cannot hold are exported under their description."""
        space = ft.Space(f=ft.Choice([min, max]), x=ft.Real(0, 1, when={"f": {min, max}}))
        with ft.Study(space, "4 evaluations", storage=tmp_path / "s.db", seed=0) as study:
            study.tell(study.ask(), value=1.0)
        theirs = to_optuna(tmp_path / "s.db")
        assert theirs.trials[0].params["f"] in ("<built-in function min>", "<built-in function max>")
        back = from_optuna(theirs)
        assert back.space.params["f"] == ft.Choice(["<built-in function min>", "<built-in function max>"])
        assert back.trials[0].config == theirs.trials[0].params


class TestDashboard:
    def test_optuna_dashboard_serves_it(self, tmp_path):
        with of_every_kind(tmp_path / "s.db") as study:
            study.tell(study.ask(), value=0.1, cost=1.0)
            trials = study.trials
        to_optuna(tmp_path / "s.db", url(tmp_path))
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        served = subprocess.Popen(
            [str(DASHBOARD), url(tmp_path), "--host", "127.0.0.1", "--port", str(port)],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        found: dict[str, bytes] = {}

        def answers(path: str) -> bool:
            assert served.poll() is None, "the dashboard ended"
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=30) as response:
                    found[path] = response.read()
            except OSError:
                return False
            return True

        try:
            until(lambda: answers("/api/studies"))
            (summary,) = json.loads(found["/api/studies"])["study_summaries"]
            assert (summary["study_name"], summary["directions"]) == ("s", ["minimize"])
            path = f"/api/studies/{summary['study_id']}"
            assert answers(path)
            assert answers("/dashboard")
        finally:
            served.kill()
            served.wait()
        assert b"<title>Optuna Dashboard</title>" in found["/dashboard"]
        shown = json.loads(found[path])
        assert [trial["state"] for trial in shown["trials"]] == [
            "Complete", "Complete", "Pruned", "Pruned", "Fail", "Fail", "Fail", "Complete",
        ]  # fmt: skip
        assert (shown["best_trials"][0]["number"], shown["best_trials"][0]["values"]) == (7, [0.1])
        assert shown["has_intermediate_values"]
        costs = [{a["key"]: a["value"] for a in trial["user_attrs"]}["cost"] for trial in shown["trials"]]
        assert [float(cost) for cost in costs] == [trial.cost for trial in trials]
        names = {param["name"] for param in shown["union_search_space"]}
        assert names == set(SPACE.names)
        assert {param["name"] for param in shown["intersection_search_space"]} == set(PLAIN)


def test_nothing_warns(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        to_optuna(of_every_kind(), url(tmp_path))
