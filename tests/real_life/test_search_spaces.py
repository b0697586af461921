"""A list of dicts is a search space as in RandomizedSearchCV: each candidate comes from one of them."""

from collections import Counter

import numpy as np
import pandas as pd
import pytest
from scipy.stats import loguniform, randint
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import RandomizedSearchCV
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import farthing as ft
from farthing.errors import FarthingError, InvalidConfig

X, y = load_iris(return_X_y=True)
KERNELS = [
    {"kernel": ["linear"], "C": loguniform(1e-2, 1e1)},
    {"kernel": ["rbf"], "C": loguniform(1e0, 1e3), "gamma": loguniform(1e-4, 1e-1)},
]


def search(estimator, distributions, **options):
    given = {"budget": "12 evaluations", "policy": "random", "random_state": 0, "cv": 2, "start": []}
    return ft.FarthingSearchCV(estimator, distributions, **{**given, **options})


def fitted(search, *data):
    """An error of ours becomes a failed assertion."""
    try:
        return search.fit(*(data or (X, y)))
    except FarthingError as error:
        raise AssertionError(error) from error


def test_cv_results_are_built_as_those_of_randomized_search():
    ours = fitted(search(SVC(), KERNELS))
    theirs = RandomizedSearchCV(SVC(), KERNELS, n_iter=12, cv=2, random_state=0).fit(X, y)
    assert set(ours.cv_results_) - set(theirs.cv_results_) == {"cost", "predicted_cost", "budget_share"}
    assert set(theirs.cv_results_) <= set(ours.cv_results_)
    for name in ("param_kernel", "param_C", "param_gamma"):
        here, there = ours.cv_results_[name], theirs.cv_results_[name]
        assert (type(here), here.dtype) == (type(there), there.dtype)
    for results in (ours.cv_results_, theirs.cv_results_):
        linear = np.array([params["kernel"] == "linear" for params in results["params"]])
        np.testing.assert_array_equal(results["param_gamma"].mask, linear)
        assert not np.any(results["param_C"].mask)
        assert {frozenset(params) for params in results["params"]} == {
            frozenset({"kernel", "C"}), frozenset({"kernel", "C", "gamma"}),
        }  # fmt: skip
    assert set(ours.best_params_) <= {"kernel", "C", "gamma"}
    assert ours.best_estimator_.get_params()["kernel"] == ours.best_params_["kernel"]
    assert pd.DataFrame(ours.cv_results_).shape[0] == 12


def test_each_dict_has_its_own_range_of_a_name():
    found = fitted(search(SVC(), KERNELS))
    for params in found.cv_results_["params"]:
        low, high = (1e-2, 1e1) if params["kernel"] == "linear" else (1e0, 1e3)
        assert low <= params["C"] <= high


def test_trials_have_plain_names_too():
    found = fitted(search(SVC(), KERNELS, budget="3 evaluations"))
    assert [trial.config for trial in found.trials_] == found.cv_results_["params"]


def test_each_dict_is_as_likely_as_the_others():
    """However many parameters or values it has."""
    dicts = [{"C": [1.0]}, {"C": loguniform(0.1, 1), "gamma": loguniform(1e-3, 1)}, {"tol": loguniform(1e-4, 1e-2)}]
    estimator = SVC()
    found = fitted(search(estimator, dicts, budget="60 evaluations"), X[::5], y[::5])
    kinds = Counter(
        tuple(sorted(params)) if len(params) > 1 else next(iter(params)) for params in found.cv_results_["params"]
    )
    assert kinds["C"] == 1, "the only candidate of its dict is tried once"
    assert 15 <= kinds["C", "gamma"] <= 44
    assert 15 <= kinds["tol"] <= 44


def test_the_estimators_own_parameters_come_first_in_the_dict_that_has_them():
    found = fitted(search(SVC(C=5.0, gamma=0.01), KERNELS, start="own", budget="1 evaluations"))
    assert found.cv_results_["params"] == [{"kernel": "rbf", "C": 5.0, "gamma": 0.01}]
    found = fitted(search(SVC(kernel="linear", C=0.5), KERNELS, start="own", budget="1 evaluations"))
    assert found.cv_results_["params"] == [{"kernel": "linear", "C": 0.5}]


def test_another_option_is_farther_from_the_estimator_than_another_number():
    found = fitted(search(SVC(C=5.0), KERNELS, start="own", budget="1 evaluations"))
    assert found.cv_results_["params"] == [{"kernel": "rbf", "C": 5.0, "gamma": pytest.approx(10**-2.5)}]


def test_a_dict_without_parameters_is_the_estimator_as_it_is():
    found = fitted(search(SVC(C=5.0), [*KERNELS, {}], start="own", budget="1 evaluations"))
    assert found.cv_results_["params"] == [{}]


def test_start_is_given_by_plain_names():
    start = [{"kernel": "linear", "C": 0.1}, {"kernel": "rbf", "C": 100.0, "gamma": 0.001}]
    found = fitted(search(SVC(), KERNELS, start=start, budget="2 evaluations"))
    assert found.cv_results_["params"] == start
    for wrong in ({"kernel": "linear", "C": 500.0}, {"kernel": "linear", "C": 0.1, "gamma": 0.01}, {"degree": 3}):
        with pytest.raises(InvalidConfig, match="start: "):
            search(SVC(), KERNELS, start=[wrong]).fit(X, y)


def test_steps_of_a_pipeline_that_differ_from_dict_to_dict(tmp_path):
    """With a policy that learns, and a file to continue from."""
    pipeline = Pipeline([("reduce", StandardScaler()), ("model", SVC())])
    dicts = [
        {"model": [SVC()], "model__C": loguniform(1e-2, 1e2)},
        {"model": [LogisticRegression(max_iter=500)], "model__C": loguniform(1e-2, 1e2), "reduce": [PCA(2), PCA(3)]},
        {},
    ]
    given = {"policy": "ei", "storage": tmp_path / "search.db"}
    found = fitted(search(pipeline, dicts, budget="10 evaluations", **given))
    assert {} in found.cv_results_["params"], "an empty dict is the pipeline as it is"
    more = fitted(search(pipeline, dicts, budget="12 evaluations", **given))
    assert len(more.cv_results_["params"]) == 12
    assert repr(more.cv_results_["params"][:10]) == repr(found.cv_results_["params"])


def test_trained_in_steps_if_no_dict_searches_the_number_of_steps():
    boosting = GradientBoostingClassifier(n_estimators=6, random_state=0)
    dicts = [{"max_depth": randint(1, 4)}, {"max_leaf_nodes": randint(2, 8), "learning_rate": loguniform(0.01, 1)}]
    found = fitted(search(boosting, dicts, iterative=True, budget="4 evaluations"))
    assert all("n_estimators" in params for params in found.cv_results_["params"])
    assert all(len(trial.curve) == 6 for trial in found.trials_)


def test_a_list_with_one_dict_is_that_dict():
    listed = fitted(search(SVC(), [{"C": loguniform(0.1, 10)}], budget="4 evaluations"))
    plain = search(SVC(), {"C": loguniform(0.1, 10)}, budget="4 evaluations").fit(X, y)
    assert listed.cv_results_["params"] == plain.cv_results_["params"]
