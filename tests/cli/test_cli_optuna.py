"""`farthing export --optuna` and `farthing import`."""

from __future__ import annotations

import json
import subprocess
import sys

import optuna
import pytest

import farthing as ft

OBJECTIVE = """
def objective(config):
    return {"value": (config["x"] - 0.3) ** 2, "cost": 1 + config["x"]}
"""


@pytest.fixture
def theirs(folder) -> optuna.Study:
    """An Optuna study in a journal of the folder."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    backend = optuna.storages.journal.JournalFileBackend(str(folder.path / "o.log"))
    study = optuna.create_study(
        storage=optuna.storages.JournalStorage(backend), study_name="theirs",
        sampler=optuna.samplers.RandomSampler(seed=0),
    )  # fmt: skip

    def objective(trial):
        x = trial.suggest_float("x", 0, 1)
        trial.set_user_attr("spent", 1 + x)
        return (x - 0.3) ** 2

    study.optimize(objective, n_trials=6)
    optuna.logging.set_verbosity(before)
    return study


def exported(folder, **options) -> ft.Study:
    study = ft.Study(
        {"x": (0.0, 1.0)}, "9 evaluations", seed=0, policy="sobol", storage=folder.path / "s.db", **options
    )
    with study:
        for _ in range(3):
            study.tell(study.ask(), value=study.ledger.total("evaluations"), cost=1.0)
    return study


class TestExport:
    def test_it_says_where_the_study_is(self, folder):
        exported(folder, maximize=True)
        told = folder.call("export", "s.db", "--optuna", "sqlite:///o.db", "--study-name", "mine")
        assert told.stdout == "exported    3 trials, as study 'mine' of sqlite:///o.db\n"
        assert told.stderr == ""
        theirs = optuna.load_study(study_name="mine", storage=f"sqlite:///{folder.path}/o.db")
        assert (len(theirs.trials), theirs.best_value, theirs.direction.name) == (3, 2.0, "MAXIMIZE")

    def test_again_and_into_a_journal(self, folder):
        exported(folder)
        for _ in range(2):
            assert (
                folder.answer("export", "s.db", "--optuna", "o.log") == "exported    3 trials, as study 's' of o.log\n"
            )

    def test_errors(self, folder):
        exported(folder)
        before = (folder.path / "s.db").read_bytes()
        for given, why in [
            (["--optuna", "s.db"], "s.db is the study itself"),
            (["--optuna", "sqlite:///s.db"], "is the study itself"),
            (["--optuna", "o.log", "--csv"], "it goes with none of --csv"),
            (["--study-name", "x"], "--study-name and --replace go with --optuna"),
            (["--optuna", "x://me:secret@host/y"], "x://me:***@host/y"),
        ]:
            error = folder.error("export", "s.db", *given)
            assert why in error
            assert "secret" not in error
        assert "no such study file" in folder.error("export", "no.db", "--optuna", "o.log", status=1)
        assert (folder.path / "s.db").read_bytes() == before
        assert not (folder.path / "o.log").exists()

    def test_what_to_do_is_said_in_options(self, folder, theirs):
        exported(folder)
        error = folder.error("export", "s.db", "--optuna", "o.log", "--study-name", "theirs", status=1)
        assert error == "o.log: holds another study of the name 'theirs'; give another --study-name"

    def test_without_optuna(self, folder):
        exported(folder)
        hidden = "import sys; sys.modules['optuna'] = None; from farthing.cli import main; sys.exit(main())"
        told = subprocess.run(
            [sys.executable, "-c", hidden, "export", "s.db", "--optuna", "o.log"], cwd=folder.path,
            capture_output=True, text=True, timeout=60,
        )  # fmt: skip
        assert (told.returncode, told.stdout) == (1, "")
        assert told.stderr == "farthing: error: this needs Optuna: pip install 'farthing[optuna]'\n"


class TestImport:
    def test_a_file_that_resumes(self, folder, theirs):
        told = folder.answer(
            "import", "o.log", "--storage", "s.db", "--budget", "cost=6", "--cost", "spent", "--seed", "0"
        )
        assert told.splitlines()[0] == "trials      6: 6 complete"
        assert f"best        {theirs.best_value:.6g}  (trial {theirs.best_trial.number}" in told
        assert told.endswith("budget      6 cost\n")
        folder.write("train.py", OBJECTIVE)
        folder.call("resume", "s.db", "--objective", "train.py:objective", "--isolate", "no", "--quiet")
        with ft.Study.open(folder.path / "s.db") as study:
            assert study.why_ended == "the budget of 6 cost is spent"
            assert len(study.trials) > 6

    def test_json_and_a_space(self, folder, theirs):
        folder.write("x.toml", '[x]\ntype = "real"\nlow = 0.0\nhigh = 0.5\n')
        told = folder.answer(
            "import", "o.log", "--study-name", "theirs", "--storage", "s.db", "--budget", "9 evaluations", "--space",
            "x.toml", "--json", "--policy", "ei", "--max-steps", "5",
        )  # fmt: skip
        inside = [trial for trial in theirs.trials if trial.params["x"] <= 0.5]
        found = json.loads(told)
        assert found["trials"] == {"complete": len(inside)}
        assert found["best"]["value"] == min(trial.value for trial in inside)
        assert found["budget"] == {"evaluations": 9}
        with ft.Study.open(folder.path / "s.db") as study:
            assert (study.policy.name, study.space) == ("ei", ft.Space(x=ft.Real(0, 0.5)))

    def test_what_is_left_out_is_said(self, folder, theirs):
        theirs.enqueue_trial({"x": 0.5})
        told = folder.call("import", "o.log", "--storage", "s.db", "--budget", "9 evaluations")
        assert told.stderr == "farthing: warning: 1 trial left out: trial 6: it is waiting to be evaluated\n"

    def test_errors_leave_no_file(self, folder, theirs):
        for given, why, status in [
            (["o.log", "--budget", "10x"], "budget", 2),
            (["o.log"], "budget: is missing", 2),
            (["o.log", "--budget", "1m", "--study-name", "no"], "holds no study 'no'; it holds 'theirs'", 2),
            (["no.log", "--budget", "1m"], "no.log: there is no such file", 1),
            (["sqlite:///no.db", "--budget", "1m"], "no.db: there is no such file", 1),
            (["space.toml", "--budget", "1m"], "space.toml: is not an Optuna journal", 1),
            (["o.log", "--budget", "1m", "--cost", "no"], "no trial has a user attribute 'no'", 2),
        ]:
            before = sorted(folder.path.iterdir())
            assert why in folder.error("import", *given, "--storage", "s.db", status=status)
            assert sorted(folder.path.iterdir()) == before
        assert "Missing option '--storage'" in folder.error("import", "o.log")

    def test_conditions_that_nothing_explains_name_the_option(self, folder, theirs):
        for _ in range(2):
            trial = theirs.ask()
            trial.suggest_float("x", 0, 1)
            trial.suggest_float("late", 0, 1)
            theirs.tell(trial, 1.0)
        error = folder.error("import", "o.log", "--storage", "s.db", "--budget", "1m")
        assert "some trials do not have 'late'" in error
        assert "give the space (--space FILE)" in error
