"""Estimators of XGBoost and LightGBM train step by step in a search, and are the models that one fit makes."""

import subprocess
import sys
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from lightgbm import LGBMClassifier, LGBMRegressor
from scipy.stats import loguniform
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.model_selection import GroupKFold, cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from xgboost import XGBClassifier, XGBRegressor, XGBRFClassifier
from xgboost.callback import EvaluationMonitor

import farthing as ft
from farthing.adapters.sklearn.step_plan import StepPlan, step_plan
from farthing.adapters.sklearn.step_training import Learner
from farthing.errors import InvalidArgument
from farthing.policies import Sobol

IRIS, DIABETES, CANCER = (load(return_X_y=True) for load in (load_iris, load_diabetes, load_breast_cancer))
RATE = {"learning_rate": loguniform(0.01, 1)}
XGB = {"n_jobs": 1, "max_depth": 2}
LGBM = {"n_jobs": 1, "num_leaves": 4, "verbose": -1}


def search(estimator, distributions, **options):
    given = {"budget": ft.Budget(cost=60, evaluations=2), "policy": "sobol", "iterative": True, "cv": 2}
    return ft.FarthingSearchCV(estimator, distributions, **{**given, "random_state": 0, **options})


@dataclass(frozen=True)
class PausesAfterEveryStep:
    """Two trainings in turn."""

    name: ClassVar[str] = "pauses"

    def propose(self, space, history, ledger, n, rng):
        paused = history.of(ft.Status.PAUSED)
        if len(history.trials) < 2:
            return Sobol().propose(space, history, ledger, 1, rng)
        return [ft.Proposal(trial.number, trial.config) for trial in paused[:1]]

    def decide(self, space, history, ledger, trial, rng):
        return ft.Decision.PAUSE


def fitted(search, *data, **params):
    try:
        return search.fit(*data, **params)
    except InvalidArgument as error:
        raise AssertionError(f"it was not trained in steps: {error}") from error


def plan_of(estimator, searched=("learning_rate",), fit_params=(), rows=150):
    return step_plan(estimator, list(searched), IRIS[1], rows, dict.fromkeys(fit_params), None, asked_for=True)


class TestTheModelsOfOneFit:
    @pytest.mark.parametrize(
        ("estimator", "data", "prefix"),
        [
            (XGBClassifier(n_estimators=12, **XGB), IRIS, ""),
            (XGBRegressor(n_estimators=12, **XGB), DIABETES, ""),
            (LGBMClassifier(n_estimators=12, **LGBM), IRIS, ""),
            (LGBMRegressor(n_estimators=12, **LGBM), DIABETES, ""),
            (make_pipeline(StandardScaler(), XGBClassifier(n_estimators=12, **XGB)), IRIS, "xgbclassifier__"),
            (make_pipeline(StandardScaler(), LGBMClassifier(n_estimators=12, **LGBM)), IRIS, "lgbmclassifier__"),
        ],
        ids=["XGBClassifier", "XGBRegressor", "LGBMClassifier", "LGBMRegressor", "XGB in a pipeline", "LGBM in one"],
    )
    def test_scores_are_those_of_cross_validation_with_the_parameters_shown(self, estimator, data, prefix):
        found = fitted(search(estimator, {f"{prefix}learning_rate": loguniform(0.01, 1)}), *data)
        assert [len(trial.curve) for trial in found.trials_] == [6, 6] if "XGB" in repr(estimator) else [4, 4]
        for number, params in enumerate(found.cv_results_["params"]):
            scores = cross_val_score(clone(estimator).set_params(**params), *data, cv=2)
            shown = [found.cv_results_[f"split{fold}_test_score"][number] for fold in range(2)]
            np.testing.assert_allclose(shown, scores, rtol=1e-6)
        again = clone(estimator).set_params(**found.best_params_).fit(*data)
        np.testing.assert_array_equal(found.predict(data[0]), again.predict(data[0]))
        units = f"{prefix}n_estimators"
        assert found.best_estimator_.get_params()[units] == found.best_params_[units] <= 12

    @pytest.mark.parametrize(
        "estimator",
        [
            XGBClassifier(n_estimators=40, subsample=0.3, colsample_bytree=0.3, **XGB),
            LGBMClassifier(n_estimators=40, subsample=0.3, subsample_freq=1, colsample_bytree=0.3, **LGBM),
        ],
        ids=["XGBoost", "LightGBM"],
    )
    def test_random_rows_are_other_rows_in_every_step(self, estimator):
        """With the same seed in every step, trees after the first step would be those of the first, only smaller."""
        plan = plan_of(estimator, searched=())
        assert isinstance(plan, StepPlan), f"not trained in steps: {plan}"
        learner = Learner(clone(estimator), CANCER, plan, {})
        for step in range(1, plan.steps + 1):
            learner.advance(plan.units_at(step))
        trees = shapes_of(learner.last)
        assert len(trees) == 40
        assert len(set(trees)) > 30, "some steps made the same trees"

    @pytest.mark.parametrize("library", [XGBClassifier, LGBMClassifier])
    def test_a_training_that_pauses_after_every_step_is_the_same(self, library):
        """From checkpoints, which hold models as they are written to files."""
        estimator = library(n_estimators=5, **(XGB if library is XGBClassifier else LGBM))
        whole = fitted(search(estimator, RATE), *IRIS)
        budget = ft.Budget(cost=60, evaluations=50)
        paused = fitted(search(estimator, RATE, policy=PausesAfterEveryStep(), budget=budget), *IRIS)
        assert [trial.curve.values for trial in paused.trials_] == [trial.curve.values for trial in whole.trials_]
        assert paused.ledger_.account("retrained") == 0

    def test_the_default_is_one_fit(self):
        """Which has found better models under the same budget."""
        found = search(XGBClassifier(n_estimators=6, **XGB), RATE, policy="auto", iterative="auto").fit(*IRIS)
        assert "n_estimators" not in found.best_params_

    def test_the_default_policy_trains_in_steps_if_asked_to(self):
        found = search(XGBClassifier(n_estimators=6, **XGB), RATE, policy="auto", iterative=True).fit(*IRIS)
        assert "n_estimators" in found.best_params_, "it was not trained in steps"

    def test_weights_and_groups_reach_every_step(self):
        X, y = CANCER
        weights, groups = np.where(y == 1, 20.0, 1.0), np.arange(len(y)) % 7
        pipeline = Pipeline([("scale", StandardScaler()), ("model", XGBClassifier(n_estimators=10, **XGB))])
        found = search(pipeline, {"model__learning_rate": loguniform(0.01, 1)}, cv=GroupKFold(2), scoring="recall")
        fitted(found, X, y, groups=groups, model__sample_weight=weights)
        scores = cross_val_score(
            clone(pipeline).set_params(**found.best_params_), X, y, cv=GroupKFold(2), groups=groups, scoring="recall",
            params={"model__sample_weight": weights},
        )  # fmt: skip
        assert found.best_score_ == pytest.approx(np.mean(scores))


def shapes_of(model):
    """What each tree asks."""
    if isinstance(model, XGBClassifier):
        return [str([line.partition(" ")[0] for line in tree.split("\n")]) for tree in model.get_booster().get_dump()]
    table = model.booster_.trees_to_dataframe()
    return [str(tree[["split_feature", "threshold"]].values.tolist()) for _, tree in table.groupby("tree_index")]


class TestWhich:
    @pytest.mark.parametrize(
        ("estimator", "expected"),
        [
            (XGBClassifier(), StepPlan("n_estimators", "xgb_model", 100, 10)),
            (XGBRegressor(n_estimators=25, booster="gbtree"), StepPlan("n_estimators", "xgb_model", 25, 3)),
            (LGBMRegressor(), StepPlan("n_estimators", "init_model", 100, 20)),
            (LGBMClassifier(num_iterations=50), "several names"),
            (XGBClassifier(booster="dart"), "with booster='dart'"),
            (XGBClassifier(early_stopping_rounds=5), "with early_stopping_rounds=5"),
            (XGBClassifier(callbacks=[EvaluationMonitor()]), "with callbacks="),
            (LGBMClassifier(boosting_type="dart"), "with boosting_type='dart'"),
            (LGBMClassifier(data_sample_strategy="goss"), "with data_sample_strategy='goss'"),
            (XGBRFClassifier(), "neither"),
        ],
        ids=lambda item: item if isinstance(item, str) else type(item).__name__,
    )
    def test_those_that_can_go_on(self, estimator, expected):
        found = plan_of(estimator)
        assert found == expected if isinstance(expected, StepPlan) else expected in found

    def test_not_where_something_that_decides_is_searched_or_given_to_fit(self):
        assert "'n_estimators' is searched" in plan_of(XGBClassifier(), ["n_estimators"])
        assert "'booster' is searched" in plan_of(XGBClassifier(), ["booster"])
        assert "'eval_set' given to fit" in plan_of(XGBClassifier(), fit_params=["eval_set"])
        assert "'init_score' given to fit" in plan_of(LGBMClassifier(), fit_params=["init_score", "sample_weight"])

    def test_what_stops_early_by_itself_is_fitted_at_once(self):
        X, y = CANCER
        found = search(
            XGBClassifier(n_estimators=30, early_stopping_rounds=2, **XGB), RATE, policy="auto", iterative="auto"
        ).fit(X, y, eval_set=[(X[:80], y[:80])], verbose=False)  # fmt: skip
        assert "n_estimators" not in found.best_params_
        assert found.best_estimator_.best_iteration < 30


def test_none_of_these_libraries_is_imported():
    script = (
        "import sys, farthing as ft\n"
        "from sklearn.ensemble import GradientBoostingClassifier\n"
        "from farthing.adapters.sklearn.step_plan import step_plan\n"
        "step_plan(GradientBoostingClassifier(), [], None, 100, {}, None, asked_for=False)\n"
        "print([name for name in ('xgboost', 'lightgbm', 'catboost') if name in sys.modules])\n"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=120)
    assert ended.stdout == "[]\n"
