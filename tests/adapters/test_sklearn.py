"""FarthingSearchCV is a search of scikit-learn's: it passes its checks, and finds what GridSearchCV finds for the same
candidates."""

import pickle
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix
from scipy.stats import loguniform, randint, uniform
from sklearn import config_context
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.datasets import load_diabetes, load_iris
from sklearn.decomposition import PCA
from sklearn.exceptions import FitFailedWarning, NotFittedError
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, RandomizedSearchCV, cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import check_estimator, parametrize_with_checks
from sklearn_estimators import Picky, Refusal

import farthing as ft
from called import PATIENCE
from farthing.errors import InvalidArgument, InvalidBudget, InvalidConfig, InvalidSpace, NoTrial

X, y = load_iris(return_X_y=True)
CS = [0.01, 0.1, 1.0, 10.0]


def search(estimator, distributions, **options):
    given = {"budget": ft.Budget(evaluations=4), "policy": "sobol", "random_state": 0, "cv": 3, **options}
    return ft.FarthingSearchCV(estimator, distributions, **given)


# -- scikit-learn's own checks -----------------------------------------------------------------------------------------

CHECKED = [
    search(LogisticRegression(), {"C": ft.Real(0.1, 10, log=True)}, cv=2),
    search(Ridge(), {"alpha": ft.Real(0.1, 10, log=True)}, cv=2),
]
FAILS_BY_NATURE = {"check_supervised_y_2d": "Ridge takes several targets, and warns of nothing"}


def expected_failures(estimator):
    return FAILS_BY_NATURE if isinstance(estimator.estimator, Ridge) else {}


@parametrize_with_checks(CHECKED, expected_failed_checks=expected_failures)
def test_it_passes_the_checks_of_scikit_learn(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # checks that expect some look for them
        check(estimator)


@pytest.mark.parametrize("ours", CHECKED, ids=["classifier", "regressor"])
def test_only_checks_that_randomized_search_fails_too_are_expected_to_fail(ours):
    (name,) = ours.param_distributions
    theirs = RandomizedSearchCV(ours.estimator, {name: loguniform(0.1, 10)}, n_iter=2, random_state=0, cv=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(theirs, on_fail=None, on_skip=None)
    assert {r["check_name"] for r in results if r["status"] == "failed"} == set(expected_failures(ours))


# -- the same candidates, by GridSearchCV ------------------------------------------------------------------------------


def both(estimator, name, values, *data, fit=None, budget=None, **options):
    """The same candidates in the same order."""
    ours = ft.FarthingSearchCV(
        estimator, {name: ft.Choice(values)}, budget=budget or ft.Budget(evaluations=len(values)), random_state=0,
        start=[{name: value} for value in values], **{"cv": 3, **options},
    ).fit(*data, **(fit or {}))  # fmt: skip
    theirs = GridSearchCV(estimator, [{name: [value]} for value in values], **{"cv": 3, **options})
    return ours, theirs.fit(*data, **(fit or {}))


def require_same(ours, theirs):
    timed = [name for name in theirs.cv_results_ if "time" in name]
    assert set(ours.cv_results_) - set(theirs.cv_results_) == {"cost", "predicted_cost", "budget_share"}
    for name, column in theirs.cv_results_.items():
        if name not in timed:
            np.testing.assert_array_equal(ours.cv_results_[name], column, err_msg=name)
    assert all(np.all(ours.cv_results_[name] >= 0) for name in timed)
    assert ours.multimetric_ == theirs.multimetric_
    assert ours.n_splits_ == theirs.n_splits_
    for name in ("best_index_", "best_score_", "best_params_"):
        assert getattr(ours, name, None) == getattr(theirs, name, None)
    assert hasattr(ours, "best_estimator_") == hasattr(theirs, "best_estimator_")


def is_even(estimator, X, y=None):
    return {"even": float(estimator.predict(X)[0] % 2 == 0), "accuracy": estimator.score(X, y)}


def cheapest(results):
    return int(np.argmin(results["param_C"]))


class TestTheSameAsGridSearch:
    @pytest.mark.parametrize(
        "options",
        [
            {},
            {"return_train_score": True},
            {"scoring": "neg_log_loss"},
            {"scoring": make_scorer(accuracy_score)},
            {"scoring": ["accuracy", "f1_macro"], "refit": "f1_macro", "return_train_score": True},
            {"scoring": {"a": "accuracy", "b": "f1_macro"}, "refit": False},
            {"scoring": is_even, "refit": "accuracy"},
            {"refit": False},
            {"refit": cheapest},
            {"scoring": ["accuracy", "f1_macro"], "refit": cheapest},
            {"cv": KFold(4, shuffle=True, random_state=3)},
            {"cv": [(np.arange(0, 150, 2), np.arange(1, 150, 2))]},
        ],
        ids=lambda options: ",".join(options) or "plain",
    )
    def test_for_what_can_be_asked_of_a_search(self, options):
        require_same(*both(LogisticRegression(max_iter=500), "C", CS, X, y, **options))

    def test_in_worker_processes_two_at_a_time(self):
        ours, theirs = both(LogisticRegression(max_iter=500), "C", CS, X, y, budget="60s, 4 evaluations", n_jobs=2)
        require_same(ours, theirs)
        np.testing.assert_array_equal(ours.predict_proba(X), theirs.predict_proba(X))

    def test_for_sparse_rows_and_for_frames(self):
        require_same(*both(SVC(), "C", CS, csr_matrix(X), y))
        frame = pd.DataFrame(X, columns=list("abcd"))
        ours, theirs = both(SVC(), "C", CS, frame, pd.Series(y))
        require_same(ours, theirs)
        assert list(ours.feature_names_in_) == list("abcd")

    def test_for_groups_and_weights(self):
        groups = np.arange(len(X)) % 5
        ours, theirs = both(SVC(), "C", CS, X, y, fit={"groups": groups}, cv=GroupKFold(3))
        require_same(ours, theirs)
        weights = {"sample_weight": np.where(y == 2, 5.0, 1.0)}
        require_same(*both(SVC(), "C", CS, X, y, fit=weights))

    def test_with_metadata_routing(self):
        with config_context(enable_metadata_routing=True):
            estimator = SVC().set_fit_request(sample_weight=True)
            scorer = make_scorer(accuracy_score).set_score_request(sample_weight=True)
            fit = {"sample_weight": np.where(y == 2, 5.0, 1.0), "groups": np.arange(len(X)) % 5}
            require_same(*both(estimator, "C", CS, X, y, fit=fit, scoring=scorer, cv=GroupKFold(3)))

    def test_for_estimators_without_a_target(self):
        ours, theirs = both(KMeans(random_state=0, n_init=1), "n_clusters", [2, 3, 4], X)
        require_same(ours, theirs)
        np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))

    def test_for_pipelines_and_for_steps_that_are_searched(self):
        pipeline = Pipeline([("scale", StandardScaler()), ("model", SVC())])
        require_same(*both(pipeline, "model__C", CS, X, y))
        require_same(*both(pipeline, "model", [SVC(), DecisionTreeClassifier(random_state=0)], X, y))
        require_same(*both(pipeline, "scale", [StandardScaler(), "passthrough", PCA(2)], X, y))

    def test_where_some_fits_fail(self):
        for error_score in (np.nan, 0.0):
            with pytest.warns() as ours_said:
                ours = search(
                    Picky(), {"C": ft.Choice([0.5, 1.0, 2.0])}, budget="3 evaluations", error_score=error_score,
                    start=[{"C": 0.5}, {"C": 1.0}, {"C": 2.0}],
                ).fit(X, y)  # fmt: skip
            with pytest.warns() as theirs_said:
                theirs = GridSearchCV(Picky(), {"C": [0.5, 1.0, 2.0]}, cv=3, error_score=error_score).fit(X, y)
            require_same(ours, theirs)
            assert {w.category for w in ours_said} == {w.category for w in theirs_said}
            assert FitFailedWarning in {w.category for w in ours_said}
            assert [trial.status.value for trial in ours.trials_] == ["complete", "complete", "failed"]

    def test_where_one_fold_of_a_candidate_fails(self):
        """The fold has error_score, as in scikit-learn; to the study the candidate failed, and teaches."""
        estimator = Picky(first=tuple(X[0]))
        with pytest.warns(FitFailedWarning, match="2 fits failed out of a total of 6"):
            ours = search(
                estimator, {"C": ft.Choice([1.0, 2.0])}, budget="2 evaluations", error_score=0.0,
                start=[{"C": 1.0}, {"C": 2.0}],
            ).fit(X, y)  # fmt: skip
        with pytest.warns(FitFailedWarning):
            theirs = GridSearchCV(estimator, {"C": [1.0, 2.0]}, cv=3, error_score=0.0).fit(X, y)
        require_same(ours, theirs)
        assert [trial.status.value for trial in ours.trials_] == ["complete", "failed"]


# -- failures ----------------------------------------------------------------------------------------------------------


class TestFailures:
    @pytest.mark.parametrize("budget", ["4 evaluations", "60s, 4 evaluations"])
    def test_raise_raises_the_error_itself(self, budget, tmp_path):
        """Also from another process, with what it holds; what was done before is in the file."""
        file = tmp_path / "search.db"
        given = {"error_score": "raise", "storage": file, "start": [{"C": 0.5}, {"C": 9.0}]}
        with pytest.raises(Refusal, match="C is too large") as caught:
            search(Picky(), {"C": uniform(0, 10)}, budget=budget, **given).fit(X, y)
        assert caught.value.number == 9.0
        with ft.Study.resume(file) as study:
            assert [trial.status.value for trial in study.trials] == ["complete", "failed"]

    def test_if_all_fits_fail_it_says_so_as_scikit_learn_does(self):
        with pytest.raises(ValueError, match=r"All the 12 fits failed(.|\n)*C is too large"):
            search(Picky(limit=0.0), {"C": uniform(1, 2)}).fit(X, y)

    def test_a_candidate_that_kills_its_process_is_one_that_failed(self):
        with pytest.warns() as said:
            found = search(
                Picky(dies=True), {"C": ft.Choice([0.5, 2.0])}, budget="60s, 2 evaluations", scoring=["accuracy"],
                refit="accuracy", start=[{"C": 2.0}, {"C": 0.5}],
            ).fit(X, y)  # fmt: skip
        assert any("died of SIGKILL" in str(w.message) for w in said)
        assert found.best_params_ == {"C": 0.5}
        np.testing.assert_array_equal(np.isnan(found.cv_results_["mean_test_accuracy"]), [True, False])

    def test_a_parameter_that_does_not_exist_is_told_at_once(self):
        with pytest.raises(ValueError, match="Invalid parameter 'D' for estimator SVC"):
            search(SVC(), {"D": uniform(0, 1)}, budget="1000 evaluations").fit(X, y)

    def test_a_score_that_is_no_number_is_told_at_once(self):
        with pytest.raises(ValueError, match="scoring must return a number"):
            search(SVC(), {"C": uniform(0.1, 1)}, budget="1000 evaluations", scoring=lambda *_: "good").fit(X, y)

    @pytest.mark.parametrize(
        ("distributions", "options", "error", "message"),
        [
            ({"C": "abc"}, {}, InvalidSpace, "'C'"),
            ({}, {}, InvalidSpace, "at least one parameter"),
            ([{"C": [1]}, 3], {}, InvalidArgument, "param_distributions: expected a dict from names to parameters"),
            ([], {}, InvalidArgument, "param_distributions: expected a dict from names to parameters"),
            ([{}, {}], {}, InvalidSpace, "all dicts are empty"),
            ({"C": uniform(0, 1)}, {"budget": "soon"}, InvalidBudget, "soon"),
            ({"C": uniform(0, 1)}, {"budget": 5}, InvalidBudget, "text with a unit"),
            ({"C": uniform(0, 1)}, {"iterative": "maybe"}, InvalidArgument, "iterative: expected one of 'auto', True"),
            ({"C": uniform(0, 1)}, {"iterative": 1}, InvalidArgument, "iterative: expected"),
            (
                {"C": uniform(0, 1)},
                {"max_steps": 0},
                InvalidArgument,
                "max_steps: expected a whole number of at least 1",
            ),
            ({"C": uniform(0, 1)}, {"max_steps": True}, InvalidArgument, "max_steps: expected .*, or None, got True"),
            (
                {"C": uniform(0, 1)},
                {"skip_folds": "yes"},
                InvalidArgument,
                "skip_folds: expected True or False, got 'yes'",
            ),
            (
                {"C": uniform(0, 1)},
                {"storage": 3},
                InvalidArgument,
                "storage: expected the path of a file, or None, got 3",
            ),
            (
                {"C": uniform(0, 1)},
                {"start": "mine"},
                InvalidArgument,
                "start: expected a list of dicts, or 'own', got",
            ),
            ({"C": uniform(0, 1)}, {"start": [0.5]}, InvalidArgument, "start: expected a list of dicts"),
            ({"C": uniform(0, 1)}, {"start": {"C": 0.5}}, InvalidArgument, "start: expected a list of dicts"),
            ({"C": uniform(0, 1)}, {"trial_seconds": -1}, InvalidArgument, "trial_seconds: expected"),
            ({"C": uniform(0, 1)}, {"trial_memory": "much"}, InvalidArgument, "trial_memory: expected"),
            ({"C": uniform(0, 1)}, {"policy": 5}, InvalidArgument, "policy"),
            ({"C": uniform(0, 1)}, {"n_jobs": "all"}, InvalidArgument, "'n_jobs' parameter of FarthingSearchCV"),
            (
                {"C": uniform(0, 1)},
                {"random_state": "x"},
                InvalidArgument,
                "'random_state' parameter of FarthingSearchCV",
            ),
            (
                {"C": uniform(0, 1)},
                {"error_score": "no"},
                InvalidArgument,
                "'error_score' parameter of FarthingSearchCV",
            ),
            ({"C": uniform(0, 1)}, {"verbose": "yes"}, InvalidArgument, "'verbose' parameter of FarthingSearchCV"),
            ({"C": uniform(0, 1)}, {"return_train_score": 2}, InvalidArgument, "'return_train_score' parameter"),
            ({"C": uniform(0, 1)}, {"policy": "best"}, ValueError, "policy: expected one of auto, .*got 'best'"),
            ({"C": uniform(0, 1)}, {"start": [{"C": 5.0}]}, InvalidConfig, "'C'"),
            ({"C": uniform(0, 1)}, {"scoring": ["accuracy", "f1_macro"]}, ValueError, "refit"),
            ({"C": uniform(0, 1)}, {"scoring": is_even, "refit": "odd"}, ValueError, "'odd'.*'even', 'accuracy'"),
            ({"C": uniform(0, 1)}, {"cv": []}, ValueError, "inconsistent|iterable"),
        ],
    )
    def test_what_makes_no_sense_is_refused_by_name(self, distributions, options, error, message):
        with pytest.raises(error, match=message):
            search(SVC(), distributions, **options).fit(X, y)

    def test_before_fit_there_is_nothing_to_predict_with(self):
        with pytest.raises(NotFittedError):
            search(SVC(), {"C": uniform(0, 1)}).predict(X)

    def test_scikit_learn_missing_is_told_with_the_way_to_get_it(self):
        script = (
            "import sys\n"
            "class Hidden:\n"
            "    def find_spec(self, name, path=None, target=None):\n"
            "        if name.partition('.')[0] in ('sklearn', 'joblib'):\n"
            "            raise ModuleNotFoundError(name)\n"
            "sys.meta_path.insert(0, Hidden())\n"
            "import farthing\n"
            "try:\n"
            "    farthing.FarthingSearchCV(None, {}, budget='1m')\n"
            "except ImportError as error:\n"
            "    print(error)\n"
        )
        ended = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, timeout=PATIENCE, check=True
        )
        assert 'pip install "farthing[sklearn]"' in ended.stdout


# -- what a search is --------------------------------------------------------------------------------------------------


class TestAsAnObject:
    def test_a_fitted_search_can_be_pickled_and_cloned(self):
        found = search(SVC(), {"C": loguniform(0.1, 10), "kernel": ["rbf", "linear"]}, verbose=0).fit(X, y)
        again = pickle.loads(pickle.dumps(found))
        np.testing.assert_array_equal(again.predict(X), found.predict(X))
        assert again.ledger_ == found.ledger_
        assert [trial.value for trial in again.trials_] == [trial.value for trial in found.trials_]
        assert clone(found).fit(X, y).best_params_ == found.best_params_

    def test_the_score_is_that_of_cross_validation_with_the_best_parameters(self):
        distributions = {
            "svc__C": loguniform(0.01, 100),
            "svc__gamma": loguniform(1e-4, 1),
            "pca__n_components": randint(1, 5),
        }
        pipeline = make_pipeline(StandardScaler(), PCA(), SVC())
        found = search(pipeline, distributions, policy="auto", budget="12 evaluations").fit(X, y)
        best = clone(pipeline).set_params(**found.best_params_)
        assert found.best_score_ == np.mean(cross_val_score(best, X, y, cv=3))
        assert found.best_score_ == max(found.cv_results_["mean_test_score"])
        assert found.score(X, y) == best.fit(X, y).score(X, y)

    def test_random_states_are_what_they_are_in_scikit_learn(self):
        def params(state):
            return search(SVC(), {"C": loguniform(0.1, 10)}, policy="random", random_state=state).fit(X, y).cv_results_

        assert params(3)["params"] == params(3)["params"] != params(4)["params"]
        first, second = np.random.RandomState(1), np.random.RandomState(1)
        assert params(first)["params"] == params(second)["params"]
        assert params(first)["params"] != params(np.random.RandomState(1))["params"]  # it has moved on

    def test_parameters_with_conditions(self):
        space = ft.Space(
            kernel=ft.Choice(["rbf", "linear"]),
            gamma=ft.Real(1e-3, 1.0, log=True, when={"kernel": "rbf"}),
        )
        found = search(SVC(), space, budget="8 evaluations").fit(X, y)
        linear = np.array([params["kernel"] == "linear" for params in found.cv_results_["params"]])
        np.testing.assert_array_equal(found.cv_results_["param_gamma"].mask, linear)
        assert 0 < linear.sum() < 8

    def test_a_finite_space_ends_the_search_and_not_the_program(self):
        found = search(SVC(), {"C": [0.1, 1.0]}, budget="50 evaluations").fit(X, y)
        assert len(found.cv_results_["params"]) == 2

    def test_costs_predictions_and_shares(self):
        options = {"policy": "carbo", "budget": ft.Budget(cost=0.6), "iterative": False}
        found = search(SVC(), {"C": loguniform(0.1, 10)}, **options).fit(X, y)
        results, folds = found.cv_results_, 3
        seconds = folds * (results["mean_fit_time"] + results["mean_score_time"])
        np.testing.assert_allclose(results["cost"], seconds)
        np.testing.assert_allclose(results["budget_share"], results["cost"] / 0.6)
        assert np.isnan(results["predicted_cost"][0])
        assert np.all(results["predicted_cost"][-3:] > 0)
        assert found.ledger_.spent == pytest.approx(np.sum(results["cost"]))

    def test_shares_of_evaluations(self):
        found = search(SVC(), {"C": loguniform(0.1, 10)}).fit(X, y)
        np.testing.assert_array_equal(found.cv_results_["budget_share"], [0.25] * 4)
        assert np.all(found.cv_results_["cost"] > 0)

    def test_regression_inside_cross_validation(self):
        data = load_diabetes(return_X_y=True)
        inner = search(Ridge(), {"alpha": loguniform(1e-3, 10)})
        outer = cross_val_score(inner, *data, cv=3)
        assert np.all(outer > 0.4)

    def test_silent_by_default_and_not_with_verbose(self, capfd):
        search(SVC(), {"C": loguniform(0.1, 10)}).fit(X, y)
        assert capfd.readouterr() == ("", "")
        search(SVC(), {"C": loguniform(0.1, 10)}, verbose=1).fit(X, y)
        assert "trial" in capfd.readouterr().err

    def test_no_time_for_a_single_candidate_is_told(self):
        with pytest.raises(NoTrial, match=r"no candidate was fitted on all 3 folds within 0\.05s"):
            search(SVC(), {"C": loguniform(0.1, 10)}, budget="0.05s").fit(X, y)


WIDTHS = {"C": loguniform(1e-2, 1e2), "gamma": loguniform(1e-3, 1)}


class TestOwnParameters:
    def test_they_come_first_and_the_search_ends_no_lower(self):
        own = SVC(C=3.0, gamma=0.25)
        found = ft.FarthingSearchCV(own, WIDTHS, budget="5 evaluations", cv=3, random_state=0).fit(X, y)
        assert found.cv_results_["params"][0] == {"C": 3.0, "gamma": 0.25}
        assert found.best_score_ >= cross_val_score(own, X, y, cv=3).mean()

    @pytest.mark.parametrize(
        ("estimator", "first"),
        [
            (SVC(C=1e9, gamma=0.25), {"C": 1e2, "gamma": 0.25}),
            (SVC(C=3.0), {"C": 3.0, "gamma": pytest.approx(10**-1.5)}),
        ],
    )
    def test_numbers_are_moved_into_the_space_and_what_has_no_counterpart_begins_in_the_middle(self, estimator, first):
        found = ft.FarthingSearchCV(estimator, WIDTHS, budget="1 evaluations", cv=3, random_state=0).fit(X, y)
        assert found.best_params_ == first

    def test_where_nothing_has_a_counterpart_the_policy_begins(self):
        found = ft.FarthingSearchCV(
            SVC(), {"gamma": loguniform(1e-3, 1)}, budget="1 evaluations", cv=3, random_state=0
        ).fit(X, y)
        without = clone(found).set_params(start=()).fit(X, y)
        assert found.best_params_ == without.best_params_

    def test_with_conditions_only_what_is_active_counts(self):
        space = ft.Space(
            kernel=ft.Choice(["rbf", "linear"]), gamma=ft.Real(1e-3, 1.0, log=True, when={"kernel": "rbf"})
        )
        found = ft.FarthingSearchCV(SVC(kernel="linear"), space, budget="1 evaluations", cv=3).fit(X, y)
        assert found.best_params_ == {"kernel": "linear"}
