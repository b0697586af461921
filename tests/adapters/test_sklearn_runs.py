"""What becomes of a search when its budget ends, and when it is interrupted, killed and continued."""

import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import loguniform
from sklearn.datasets import load_iris
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold
from sklearn_child import search
from sklearn_estimators import Greedy, Restless, Slow

import farthing as ft
from called import PATIENCE, until
from farthing.errors import StudyMismatch

X, y = load_iris(return_X_y=True)
CHILD = Path(__file__).with_name("sklearn_child.py")


class Child:
    """sklearn_child.py under way."""

    def __init__(self, folder, budget, seconds, file="search.db"):
        self.file, self.notes = folder / file, folder / "notes"
        arguments = ["-" if file == "-" else str(self.file), str(self.notes), budget, str(seconds)]
        self.process = subprocess.Popen([sys.executable, CHILD, *arguments], stdout=subprocess.PIPE, text=True)

    def after_fits(self, count):
        until(lambda: len(self.fits) >= count or self.process.poll() is not None)
        assert self.process.poll() is None
        return self

    @property
    def fits(self):
        return self.notes.read_text().split() if self.notes.exists() else []

    def send(self, number):
        self.process.send_signal(number)
        return self.process.communicate(timeout=PATIENCE)[0]


def test_seconds_are_kept(tmp_path):
    """The second fit would take an hour: at the end of the budget it is killed, and is no candidate.

    The first comes from the file: how fast processes start on a busy machine does not matter.
    """
    found = ft.FarthingSearchCV(
        Slow(), {"seconds": ft.Choice([0.0, 3600.0])}, start=[{"seconds": 0.0}, {"seconds": 3600.0}],
        budget="1 evaluations", cv=[(np.arange(0, 150, 2), np.arange(1, 150, 2))], storage=tmp_path / "search.db",
        random_state=0, refit=False,
    )  # fmt: skip
    found.fit(X, y)
    found.set_params(budget="3s").fit(X, y)
    assert np.all(np.isfinite(found.cv_results_["mean_test_score"]))
    first, *later = [trial.status.value for trial in found.trials_]
    assert first == "complete"
    assert later in (["killed"], []), "none, if all the time went into starting a process"
    assert found.cv_results_["params"] == [{"seconds": 0.0}]
    assert 3.0 <= found.ledger_.spent <= 60.0


def test_a_limit_of_memory_makes_a_failed_candidate():
    with pytest.warns() as said:
        found = ft.FarthingSearchCV(
            Greedy(), {"bytes": ft.Choice([0, 10**9])}, start=[{"bytes": 10**9}, {"bytes": 0}], cv=2,
            budget="2 evaluations", trial_memory="700MB", random_state=0,
        ).fit(X, y)  # fmt: skip
    assert any("the limit of a trial" in str(w.message) for w in said)
    assert found.best_params_ == {"bytes": 0}


def test_a_limit_of_seconds_makes_a_failed_candidate():
    with pytest.raises(ValueError, match=r"took longer than 0\.5s, the limit of a trial"):
        ft.FarthingSearchCV(
            Slow(seconds=3600.0), {"C": ft.Real(0.1, 1)}, cv=2, budget="1 evaluations", trial_seconds=0.5
        ).fit(X, y)


class TestGoingOn:
    def test_after_a_kill(self, tmp_path):
        """The scores of finished candidates come from the file, the seed too, and nothing finished is fitted again."""
        child = Child(tmp_path, "30 evaluations", 0.05).after_fits(9)
        child.send(signal.SIGKILL)
        fits = len(child.fits)
        with ft.Study.resume(child.file) as study:
            finished = study.count(ft.Status.COMPLETE)
        assert finished >= 3
        found = search(child.file, child.notes, "10 evaluations", 0.0).fit(X, y)
        params = found.cv_results_["params"]
        assert len(params) == 10
        assert len(child.fits) == fits + 2 * (10 - finished)
        grid = GridSearchCV(Slow(seconds=0), [{"C": [p["C"]]} for p in params], cv=2).fit(X, y)
        for name in ("split0_test_score", "split1_test_score", "mean_test_score", "rank_test_score"):
            np.testing.assert_array_equal(found.cv_results_[name], grid.cv_results_[name])
        assert np.all(found.cv_results_["mean_fit_time"][:finished] >= 0.05)

    def test_with_a_larger_budget(self, tmp_path):
        given = {"policy": "ei", "storage": tmp_path / "search.db", "random_state": 0, "cv": 2}
        first = ft.FarthingSearchCV(LogisticRegression(max_iter=500), {"C": loguniform(0.01, 10)}, **given)
        first.set_params(budget="6 evaluations").fit(X, y)
        again = first.set_params(budget="6 evaluations").fit(X, y)
        assert len(again.cv_results_["params"]) == 6
        more = first.set_params(budget="8 evaluations").fit(X, y)
        whole = first.set_params(storage=None).fit(X, y)
        assert more.cv_results_["params"] == whole.cv_results_["params"]

    def test_what_is_not_the_same_search_is_refused(self, tmp_path):
        def fit(cv, low=0.01, target=y, **options):
            return ft.FarthingSearchCV(
                LogisticRegression(max_iter=500), {"C": loguniform(low, 10)}, budget="2 evaluations", cv=cv,
                **{"storage": tmp_path / "search.db", "policy": "sobol", **options},
            ).fit(X, target)  # fmt: skip

        shuffled = KFold(2, shuffle=True, random_state=0)
        fit(shuffled)
        assert len(fit(shuffled).trials_) == 2
        for other in (KFold(2, shuffle=True, random_state=1), KFold(3, shuffle=True, random_state=0)):
            with pytest.raises(StudyMismatch, match=r"search\.db: the scores in the file come from other folds"):
                fit(other)
        with pytest.raises(StudyMismatch, match="other folds or other data"):
            fit(shuffled, target=y[::-1].copy())
        with pytest.raises(StudyMismatch, match="another space"):
            fit(shuffled, low=0.1)
        with pytest.raises(StudyMismatch, match="policy"):
            fit(shuffled, policy="random")

    def test_paused_trainings_go_on_from_their_checkpoints(self, tmp_path):
        estimator = GradientBoostingClassifier(n_estimators=20, random_state=0)
        given = {"policy": Restless(), "iterative": True, "storage": tmp_path / "search.db", "random_state": 0, "cv": 2}
        first = ft.FarthingSearchCV(estimator, {"learning_rate": loguniform(0.01, 1)}, **given)
        first.set_params(budget=ft.Budget(cost=60, evaluations=1)).fit(X, y)
        assert [(trial.status.value, len(trial.curve)) for trial in first.trials_] == [("paused", 1)]
        more = first.set_params(budget=ft.Budget(cost=60, evaluations=50)).fit(X, y)
        assert [(trial.status.value, len(trial.curve)) for trial in more.trials_] == [("complete", 20)] * 2
        assert more.ledger_.account("retrained") == 0


class TestInterrupts:
    @pytest.mark.parametrize("budget", ["100 evaluations", "60s"])
    def test_ctrl_c_keeps_what_was_found(self, tmp_path, budget):
        child = Child(tmp_path, budget, 0.05, file="-").after_fits(5)
        said = child.send(signal.SIGINT).split()
        assert said[0] == "interrupted"
        assert 2 <= int(said[1]) <= len(child.fits) // 2 < 50, "two fits each"
        assert said[2] == "True"
