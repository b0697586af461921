"""Estimators of CatBoost train step by step in a search."""

import pickle

import numpy as np
import pytest
from catboost import CatBoostClassifier, CatBoostRegressor
from scipy.stats import loguniform
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_iris
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import farthing as ft
from farthing.adapters.sklearn.step_plan import StepPlan, step_plan
from farthing.adapters.sklearn.step_training import Learner

IRIS, DIABETES = (load(return_X_y=True) for load in (load_iris, load_diabetes))
QUIET = {"verbose": 0, "allow_writing_files": False, "thread_count": 1, "depth": 2}
SAME = {**QUIET, "bootstrap_type": "No", "random_strength": 0, "learning_rate": 0.2}


def search(estimator, distributions, **options):
    given = {"budget": "2 evaluations", "policy": "sobol", "iterative": True, "random_state": 0, "cv": 2}
    return ft.FarthingSearchCV(estimator, distributions, **{**given, **options})


def plan_of(estimator, searched=()):
    return step_plan(estimator, list(searched), IRIS[1], 150, {}, None, asked_for=True)


@pytest.mark.parametrize(
    ("estimator", "data", "prefix", "rounds"),
    [
        (CatBoostClassifier(iterations=10, **SAME), IRIS, "", "iterations"),
        (CatBoostRegressor(n_estimators=10, **SAME), DIABETES, "", "n_estimators"),
        (
            make_pipeline(StandardScaler(), CatBoostClassifier(iterations=10, **SAME)),
            IRIS, "catboostclassifier__", "catboostclassifier__iterations",
        ),
    ],
    ids=["classifier", "regressor", "pipeline"],
)  # fmt: skip
def test_scores_are_those_of_cross_validation_with_the_parameters_shown(estimator, data, prefix, rounds):
    found = search(estimator, {f"{prefix}learning_rate": loguniform(0.05, 0.5)}).fit(*data)
    assert [len(trial.curve) for trial in found.trials_] == [10, 10]
    for number, params in enumerate(found.cv_results_["params"]):
        scores = cross_val_score(clone(estimator).set_params(**params), *data, cv=2)
        shown = [found.cv_results_[f"split{fold}_test_score"][number] for fold in range(2)]
        np.testing.assert_allclose(shown, scores, rtol=1e-6)
    again = clone(estimator).set_params(**found.best_params_).fit(*data)
    np.testing.assert_array_equal(found.predict(data[0]), again.predict(data[0]))
    assert found.best_estimator_.get_params()[rounds] == found.best_params_[rounds]


def test_a_checkpoint_goes_on_with_all_trees():
    """What is written to a file loses the state of the generator, so the trees are others, and as good."""
    estimator = CatBoostClassifier(iterations=20, learning_rate=0.2, **QUIET)
    plan = plan_of(estimator)
    losses = []
    for paused in (False, True):
        learner = Learner(clone(estimator), IRIS, plan, {})
        for step in range(1, 11):
            learner.advance(plan.units_at(step))
            if paused:
                trained = pickle.loads(pickle.dumps(learner.estimator))
                units, learner = learner.units, Learner(clone(estimator), IRIS, plan, {}, trained)
                learner.units = units
        assert learner.last.tree_count_ == 20
        probabilities = learner.last.predict_proba(IRIS[0])[np.arange(150), IRIS[1]]
        losses.append(-np.mean(np.log(probabilities)))
    assert losses[1] == pytest.approx(losses[0], rel=0.3)


@pytest.mark.parametrize(
    ("estimator", "searched", "expected"),
    [
        (CatBoostClassifier(learning_rate=0.1), [], StepPlan("iterations", "init_model", 1000, 100)),
        (CatBoostRegressor(num_trees=50), ["learning_rate"], StepPlan("num_trees", "init_model", 50, 5)),
        (CatBoostClassifier(), ["depth"], "catboost chooses learning_rate by the number of rounds"),
        (CatBoostClassifier(learning_rate=0.1, boosting_type="Ordered"), [], "with boosting_type='Ordered'"),
        (CatBoostClassifier(learning_rate=0.1, early_stopping_rounds=5), [], "with early_stopping_rounds=5"),
        (CatBoostClassifier(learning_rate=0.1), ["n_estimators"], "'n_estimators' is searched"),
    ],
)
def test_which_can_go_on(estimator, searched, expected):
    found = plan_of(estimator, searched)
    assert found == expected if isinstance(expected, StepPlan) else expected in found
