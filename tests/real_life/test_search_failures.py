"""What a search says when nothing comes of it: every fit fails, time was too short, or Ctrl-C came."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import loguniform
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import load_iris
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.exceptions import FitFailedWarning, NotFittedError
from sklearn.model_selection import KFold
from sklearn.svm import SVC
from sklearn.utils.validation import check_is_fitted

import farthing as ft
from called import PATIENCE, until
from farthing.errors import NoTrial

X, y = load_iris(return_X_y=True)
C = {"C": loguniform(0.01, 10)}


class Broken(ClassifierMixin, BaseEstimator):
    """Fails if it is fitted; with `rows`, only if the first of its rows is this one."""

    def __init__(self, C=1.0, rows=None, notes=None):
        self.C = C
        self.rows = rows
        self.notes = notes

    def fit(self, X, y):
        if self.notes is not None:
            with Path(self.notes).open("a") as file:
                file.write("fit\n")
        if self.rows is None or tuple(X[0]) == self.rows:
            raise ZeroDivisionError("no rows of the right kind\nin: all of them")
        self.model_ = DummyClassifier().fit(X, y)
        self.classes_ = self.model_.classes_
        return self

    def predict(self, X):
        return self.model_.predict(X)


class Interrupting(Broken):
    """The keyboard, in the middle of a fit of the third candidate."""

    def fit(self, X, y):
        with Path(self.notes).open("a") as file:
            file.write("fit\n")
        if len(Path(self.notes).read_text().split()) > self.C:
            raise KeyboardInterrupt
        self.model_ = DummyClassifier().fit(X, y)
        self.classes_ = self.model_.classes_
        return self


def search(estimator, distributions=C, **options):
    given = {"budget": "40 evaluations", "policy": "sobol", "random_state": 0, "cv": 2}
    return ft.FarthingSearchCV(estimator, distributions, **{**given, **options})


class TestEveryFitFails:
    def test_it_ends_after_five_candidates_with_their_error(self, tmp_path):
        with pytest.raises(ValueError, match=r"All the \d+ fits failed(.|\n)*no rows of the right kind") as caught:
            search(Broken(notes=tmp_path / "fits")).fit(X, y)
        fits = len((tmp_path / "fits").read_text().split())
        assert fits == 10, "candidates after the first five were fitted"
        assert "All the 10 fits failed" in str(caught.value)

    def test_none_goes_on(self, tmp_path):
        assert "max_failures" in search(SVC()).get_params()
        with pytest.raises(ValueError, match="All the 16 fits failed"):
            search(Broken(notes=tmp_path / "fits"), max_failures=None, budget="8 evaluations").fit(X, y)

    def test_in_steps_too(self, tmp_path):
        boosting = GradientBoostingClassifier(n_estimators=4, loss="none")
        with pytest.raises(ValueError, match="fits failed") as caught:
            search(boosting, {"learning_rate": loguniform(0.01, 1)}, iterative=True).fit(X, y)
        assert "All the 10 fits failed" in str(caught.value)

    def test_not_if_one_fold_could_be_fitted(self):
        """As in scikit-learn, there are then results, with a warning."""
        folds = KFold(2)
        first = tuple(X[next(folds.split(X))[0][0]])
        with pytest.warns(FitFailedWarning, match="7 fits failed out of a total of 14"):
            found = search(Broken(rows=first), cv=folds, error_score=0.0, budget="7 evaluations").fit(X, y)
        assert len(found.cv_results_["params"]) == 7

    def test_raise_raises_the_type_of_the_error(self):
        for budget in ("3 evaluations", "60s, 3 evaluations"):
            with pytest.raises(ZeroDivisionError, match="no rows of the right kind"):
                search(Broken(), budget=budget, error_score="raise").fit(X, y)


def test_a_budget_that_went_into_starting_processes_is_said_to_have_gone_there():
    """Folds have nothing to do with it."""
    with pytest.raises(NoTrial, match=r"no candidate was fitted on all 2 folds within 0\.3s") as caught:
        search(SVC(), budget="0.3s").fit(X, y)
    assert "fewer folds" not in str(caught.value)
    assert "starting worker processes" in str(caught.value)


CHILD = """
import sys
sys.path[:0] = [".", ".."]
from sklearn.datasets import load_iris
import farthing as ft
from test_search_failures import Sleepy

X, y = load_iris(return_X_y=True)
search = ft.FarthingSearchCV(Sleepy(notes=sys.argv[1]), {"C": [0.1, 1.0, 10.0]}, budget=sys.argv[2], cv=2, start=[])
search.fit(X, y)
print(search.score(X, y) > 0, flush=True)
search.set_params(estimator=Sleepy(notes=sys.argv[1], seconds=float(sys.argv[3])))
try:
    search.fit(X, y)
except KeyboardInterrupt:
    for method in (search.predict, lambda X: search.score(X, y)):
        try:
            method(X)
        except Exception as error:
            print(type(error).__name__, flush=True)
    print("results" if hasattr(search, "cv_results_") else "none", hasattr(search, "best_params_"), flush=True)
"""


class Sleepy(Broken):
    """Takes its time."""

    def __init__(self, C=1.0, notes=None, seconds=0.0):
        super().__init__(C, None, notes)
        self.seconds = seconds

    def fit(self, X, y):
        with Path(self.notes).open("a") as file:
            file.write("fit\n")
        time.sleep(self.seconds)
        self.model_ = DummyClassifier().fit(X, y)
        self.classes_ = self.model_.classes_
        return self


class TestCtrlC:
    @pytest.mark.parametrize(
        ("seconds", "fits", "found"), [(3600, 8, "none False"), (0.5, 10, "results True")], ids=["nothing", "some"]
    )
    def test_there_is_nothing_to_predict_with(self, tmp_path, seconds, fits, found):
        """Also not the model of an earlier fit; what was found is there."""
        notes = tmp_path / "fits"
        child = subprocess.Popen(
            [sys.executable, "-c", CHILD, str(notes), "40 evaluations", str(seconds)],
            cwd=Path(__file__).parent, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        until(lambda: (notes.exists() and len(notes.read_text().split()) >= fits) or child.poll() is not None)
        child.send_signal(signal.SIGINT)
        said = child.communicate(timeout=PATIENCE)[0].splitlines()
        assert said == ["True", "NotFittedError", "NotFittedError", found]

    def test_an_interrupt_inside_a_fit_is_one_too(self, tmp_path):
        found = search(Interrupting(C=5.0, notes=tmp_path / "fits"), {"rows": [None, (1,), (2,), (3,)]})
        with pytest.raises(KeyboardInterrupt):
            found.fit(X, y)
        assert len(found.cv_results_["params"]) == 2
        with pytest.raises((NotFittedError, AttributeError)) as caught:
            found.predict(X)
        assert caught.type is NotFittedError

    def test_a_search_without_a_last_fit_is_fitted(self):
        found = search(SVC(), refit=False, budget="2 evaluations").fit(X, y)
        check_is_fitted(found)
        with pytest.raises(NotFittedError):
            check_is_fitted(clone(found))
        assert np.isfinite(found.best_score_)
