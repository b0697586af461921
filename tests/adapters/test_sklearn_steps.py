"""Estimators that are trained step by step: which, with what scores, through pauses, and fitted to all rows."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from scipy.stats import loguniform
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.ensemble import (
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression, Perceptron, SGDClassifier, SGDRegressor
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn_estimators import Restless

import farthing as ft
from farthing.adapters.sklearn.step_plan import StepPlan, step_plan
from farthing.errors import InvalidArgument

X, y = load_iris(return_X_y=True)
ALPHA = {"alpha": loguniform(1e-5, 1)}
RATE = {"learning_rate": loguniform(0.01, 1)}


def search(estimator, distributions, **options):
    given = {"budget": ft.Budget(evaluations=2), "policy": "sobol", "iterative": True, "random_state": 0, "cv": 3}
    return ft.FarthingSearchCV(estimator, distributions, **{**given, **options})


def epochs(estimator, X, y, count, seed=0):
    """What partial_fit learners are: so many epochs, each shuffled in its own way."""
    model = clone(estimator).set_params(random_state=np.random.RandomState(seed))
    for epoch in range(count):
        model.partial_fit(X, y, **({"classes": np.unique(y)} if epoch == 0 else {}))
    return model


def until_tolerance(network, X, y, most):
    """Epochs until the loss has not fallen by `tol` for more than `n_iter_no_change` of them."""
    for count in range(1, most + 1):
        model = epochs(network, X, y, count)
        losses = [np.inf, *model.loss_curve_]
        falls = [losses[k] <= min(losses[:k]) - network.tol for k in range(1, len(losses))]
        if not any(falls[-network.n_iter_no_change - 1 :]):
            break
    return model


class TestWhich:
    @pytest.mark.parametrize(
        ("estimator", "expected"),
        [
            (GradientBoostingClassifier(), StepPlan("n_estimators", "warm_start", 100, 5)),
            (GradientBoostingRegressor(n_estimators=7), StepPlan("n_estimators", "warm_start", 7, 1)),
            (RandomForestClassifier(), StepPlan("n_estimators", "warm_start", 100, 10)),
            (ExtraTreesRegressor(n_estimators=25), StepPlan("n_estimators", "warm_start", 25, 3)),
            (HistGradientBoostingClassifier(), StepPlan("max_iter", "warm_start", 100, 10)),
            (MLPClassifier(), StepPlan("max_iter", "partial_fit", 200, 10)),
            (SGDClassifier(tol=None), StepPlan("max_iter", "partial_fit", 1000, 50)),
            (Perceptron(tol=None, max_iter=5), StepPlan("max_iter", "partial_fit", 5, 1)),
            (
                make_pipeline(StandardScaler(), MLPClassifier()),
                StepPlan("mlpclassifier__max_iter", "partial_fit", 200, 10),
            ),
        ],
        ids=lambda item: type(item).__name__,
    )
    def test_auto_takes(self, estimator, expected):
        assert step_plan(estimator, ["alpha"], y, 150, {}, None, asked_for=False) == expected

    @pytest.mark.parametrize(
        ("estimator", "searched", "rows", "reason"),
        [
            (LogisticRegression(), [], 150, "neither warm_start with n_estimators nor partial_fit"),
            (GaussianNB(), [], 150, "neither"),
            (GradientBoostingClassifier(), ["n_estimators"], 150, "'n_estimators' is searched"),
            (GradientBoostingClassifier(n_iter_no_change=5), [], 150, "stops early by itself"),
            (HistGradientBoostingClassifier(), [], 20_000, "stops early by itself"),
            (HistGradientBoostingClassifier(early_stopping=True), [], 150, "stops early by itself"),
            (MLPClassifier(early_stopping=True), [], 150, "stops early by itself"),
            (MLPClassifier(solver="lbfgs"), [], 150, "neither"),
            (MLPClassifier(), ["solver"], 150, "'solver' is searched"),
            (SGDClassifier(), [], 150, "stops at tol"),
            (SGDClassifier(tol=None, class_weight="balanced"), [], 150, "balanced"),
            (make_pipeline(StandardScaler(), SGDClassifier(tol=None)), ["sgdclassifier"], 150, "itself, is searched"),
            (make_pipeline(StandardScaler(), MLPClassifier()), ["mlpclassifier__max_iter"], 150, "is searched"),
            (Pipeline([("scale", StandardScaler()), ("end", "passthrough")]), [], 150, "neither"),
        ],
    )  # fmt: skip
    def test_auto_leaves(self, estimator, searched, rows, reason):
        assert reason in step_plan(estimator, searched, y, rows, {}, None, asked_for=False)

    def test_a_name_that_only_looks_alike_does_not_matter(self):
        pipeline = Pipeline([("max_iter", StandardScaler()), ("net", MLPClassifier())])
        assert isinstance(step_plan(pipeline, ["max_iter__with_mean"], y, 150, {}, None, False), StepPlan)

    def test_files_know_a_plan_by_a_text_that_never_changes(self):
        plan = StepPlan("n_estimators", "warm_start", 100, 5)
        assert plan.stored == "Pace(parameter='n_estimators', by='warm_start', total=100, units=5)"

    def test_asked_for_it_takes_what_stops_at_tol(self):
        assert step_plan(SGDClassifier(), ["alpha"], y, 150, {}, 40, True) == StepPlan("max_iter", "partial_fit", 40, 2)

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            (
                {"iterative": True},
                "estimator: cannot be trained in steps, as iterative=True demands: LogisticRegression",
            ),
            (
                {"iterative": "auto", "policy": "bapi"},
                "estimator: cannot be trained in steps, as policy='bapi' demands",
            ),
            (
                {"iterative": "auto", "policy": "thaw"},
                "estimator: cannot be trained in steps, as policy='thaw' demands",
            ),
            (
                {"iterative": False, "policy": "bapi"},
                "policy: expected one that does not train in steps, for iterative=False, got 'bapi'",
            ),
            ({"iterative": True, "skip_folds": True}, "skip_folds: expected False for training in steps"),
        ],
    )
    def test_what_cannot_be_is_told(self, options, message):
        with pytest.raises(InvalidArgument, match=message):
            search(LogisticRegression(), {"C": loguniform(0.1, 1)}, **options).fit(X, y)

    @pytest.mark.parametrize(
        ("options", "steps"),
        [
            ({"policy": "sobol"}, False),
            ({"policy": "thaw", "budget": ft.Budget(cost=0.2)}, True),
            ({"policy": "auto", "budget": "3 evaluations"}, False),
            ({"policy": "auto", "budget": ft.Budget(cost=0.2)}, True),
            ({"policy": "auto", "budget": ft.Budget(cost=0.2), "skip_folds": True}, False),
            ({"policy": "auto", "budget": ft.Budget(cost=0.2), "iterative": False}, False),
        ],
    )
    def test_auto_steps_where_the_policy_uses_it(self, options, steps):
        found = search(
            GradientBoostingClassifier(n_estimators=10, random_state=0), RATE, **{"iterative": "auto", **options}
        )
        found.fit(X, y)
        assert ("n_estimators" in found.best_params_) is steps
        assert any(len(trial.curve) for trial in found.trials_) is steps


class TestScores:
    @pytest.mark.parametrize(
        ("estimator", "distributions"),
        [
            (GradientBoostingClassifier(n_estimators=12, subsample=0.7, random_state=0), RATE),
            (HistGradientBoostingClassifier(max_iter=4, max_features=0.5, random_state=0), RATE),
            (RandomForestClassifier(n_estimators=12, random_state=0), {"max_depth": ft.Integer(1, 5)}),
            (RandomForestClassifier(12, class_weight="balanced", random_state=0), {"max_depth": ft.Integer(1, 5)}),
            (ExtraTreesRegressor(n_estimators=12, random_state=0), {"max_depth": ft.Integer(1, 5)}),
            (
                make_pipeline(StandardScaler(), GradientBoostingClassifier(n_estimators=12, random_state=0)),
                {"gradientboostingclassifier__learning_rate": loguniform(0.01, 1)},
            ),
        ],
        ids=["boosting", "histogram", "forest", "balanced", "regressor", "pipeline"],
    )
    def test_they_are_those_of_cross_validation_with_the_best_parameters(self, estimator, distributions):
        data = load_diabetes(return_X_y=True) if isinstance(estimator, ExtraTreesRegressor) else (X, y)
        found = search(estimator, distributions, budget="1 evaluations").fit(*data)
        (units,) = {name for name in found.best_params_ if name.endswith(("n_estimators", "max_iter"))}
        for number, params in enumerate(found.cv_results_["params"]):
            scores = cross_val_score(clone(estimator).set_params(**params), *data, cv=3)
            shown = [found.cv_results_[f"split{fold}_test_score"][number] for fold in range(3)]
            np.testing.assert_array_equal(shown, scores)
            assert found.trials_[number].value == found.cv_results_["mean_test_score"][number]
            assert found.trials_[number].value == max(found.trials_[number].curve.values)
        again = clone(estimator).set_params(**found.best_params_).fit(*data)
        np.testing.assert_array_equal(found.predict(data[0]), again.predict(data[0]))
        assert 1 <= found.best_params_[units] <= 12

    @pytest.mark.parametrize("sparse", [False, True])
    def test_learners_by_partial_fit_are_epochs(self, sparse):
        rows = csr_matrix(X) if sparse else X
        estimator = SGDClassifier(tol=None, max_iter=10, random_state=0)
        found = search(estimator, ALPHA, return_train_score=True).fit(rows, y)
        for number, params in enumerate(found.cv_results_["params"]):
            trial, model = found.trials_[number], clone(estimator).set_params(**params)
            for fold, (train, test) in enumerate(StratifiedKFold(3).split(X, y)):
                fitted = epochs(model, rows[train], y[train], params["max_iter"])
                assert found.cv_results_[f"split{fold}_test_score"][number] == fitted.score(rows[test], y[test])
                assert found.cv_results_[f"split{fold}_train_score"][number] == fitted.score(rows[train], y[train])
            assert params["max_iter"] == 1 + np.argmax(trial.curve.values)
        best = epochs(clone(estimator).set_params(**found.best_params_), rows, y, found.best_params_["max_iter"])
        np.testing.assert_array_equal(found.best_estimator_.coef_, best.coef_)
        assert found.best_estimator_.get_params() == {**estimator.get_params(), **found.best_params_}

    def test_a_network_in_a_pipeline_stops_where_it_would_by_itself(self):
        """Its tolerance is kept, in every fold and for the last fit; rows are scaled by the rows that are fitted."""
        network = MLPClassifier((8,), max_iter=200, tol=1e-2, learning_rate_init=0.03, random_state=0)
        network.set_params(n_iter_no_change=3)
        pipeline = Pipeline([("scale", StandardScaler()), ("net", network)])
        found = search(pipeline, {"net__alpha": loguniform(1e-5, 1)}).fit(X, y)
        assert all(2 <= len(trial.curve) < 20 for trial in found.trials_)
        params = found.best_params_
        net = clone(network).set_params(alpha=params["net__alpha"])
        for fold, (train, test) in enumerate(StratifiedKFold(3).split(X, y)):
            scaler = StandardScaler().fit(X[train])
            fitted = until_tolerance(net, scaler.transform(X[train]), y[train], params["net__max_iter"])
            score = fitted.score(scaler.transform(X[test]), y[test])
            assert found.cv_results_[f"split{fold}_test_score"][found.best_index_] == score
        whole = until_tolerance(net, StandardScaler().fit_transform(X), y, params["net__max_iter"])
        assert found.best_estimator_["net"].loss_curve_ == whole.loss_curve_
        assert found.score(X, y) > 0.9

    def test_regression_several_metrics_and_a_scorer_of_ones_own(self):
        def shape(estimator, rows, target):
            return {"r2": estimator.score(rows, target), "columns": rows.shape[1], "steps": len(estimator.steps)}

        data = load_diabetes(return_X_y=True)
        pipeline = make_pipeline(
            StandardScaler(), FunctionTransformer(_doubled), SGDRegressor(tol=None, max_iter=8, random_state=0)
        )
        space = {"sgdregressor__alpha": loguniform(1e-5, 1)}
        own = search(pipeline, space, scoring=shape, refit="r2").fit(*data)
        theirs = search(pipeline, space, scoring=["r2", "neg_mean_squared_error"], refit="r2").fit(*data)
        assert own.best_score_ == pytest.approx(theirs.best_score_, rel=1e-12)
        assert set(own.cv_results_["split0_test_columns"]) == {10}
        assert set(own.cv_results_["split0_test_steps"]) == {3}

    def test_weights_reach_estimators_that_are_fitted(self):
        weights = np.where(y == 2, 50.0, 1.0)
        estimator = GradientBoostingClassifier(n_estimators=6, random_state=0)
        found = search(estimator, RATE).fit(X, y, sample_weight=weights)
        plain = search(estimator, RATE, iterative=False, start=[{"learning_rate": found.best_params_["learning_rate"]}])
        plain.set_params(
            budget="1 evaluations",
            estimator=clone(estimator).set_params(n_estimators=found.best_params_["n_estimators"]),
        )
        assert plain.fit(X, y, sample_weight=weights).best_score_ == found.best_score_
        with pytest.raises(InvalidArgument, match="'sample_weight' given to fit"):
            search(MLPClassifier(max_iter=5), ALPHA).fit(X, y, sample_weight=weights)

    def test_a_failure_on_the_way_is_a_failed_candidate(self):
        space = {"learning_rate": ft.Choice([0.1, -1.0])}
        estimator = GradientBoostingClassifier(n_estimators=4, random_state=0)
        start = [{"learning_rate": 0.1}, {"learning_rate": -1.0}]
        with pytest.warns() as said:
            found = search(estimator, space, start=start).fit(X, y)
        assert any("3 fits failed out of a total of 6" in str(w.message) for w in said)
        assert found.best_params_["learning_rate"] == 0.1
        with pytest.raises(ValueError, match="'learning_rate' parameter"):
            search(estimator, space, start=start, error_score="raise").fit(X, y)
        with pytest.raises(ValueError, match="Invalid parameter 'rate'"):
            search(estimator, {"rate": [1, 2]}).fit(X, y)


class TestPauses:
    @pytest.mark.parametrize(
        ("estimator", "distributions"),
        [
            (GradientBoostingClassifier(n_estimators=5, subsample=0.7, random_state=0), RATE),
            (
                make_pipeline(StandardScaler(), MLPClassifier((3,), max_iter=5, random_state=0)),
                {"mlpclassifier__alpha": loguniform(1e-5, 1)},
            ),
        ],
        ids=["warm_start", "partial_fit"],
    )  # fmt: skip
    @pytest.mark.parametrize("budget", [ft.Budget(cost=60, evaluations=50), "60s"])
    def test_a_training_that_pauses_after_every_step_is_the_same(self, estimator, distributions, budget):
        whole = search(estimator, distributions).fit(X, y)
        paused = search(estimator, distributions, policy=Restless(), budget=budget).fit(X, y)
        assert [trial.curve.values for trial in paused.trials_] == [trial.curve.values for trial in whole.trials_]
        assert paused.ledger_.account("retrained") == 0
        for name, column in whole.cv_results_.items():
            if "time" not in name and name not in ("cost", "predicted_cost", "budget_share"):
                np.testing.assert_array_equal(paused.cv_results_[name], column, err_msg=name)

    def test_what_cannot_be_written_down_is_trained_again(self, monkeypatch):
        monkeypatch.setattr("farthing.adapters.sklearn.step_training.cloudpickle.dumps", _refuses)
        estimator = GradientBoostingClassifier(n_estimators=4, random_state=0)
        paused = search(estimator, RATE, policy=Restless(), budget=ft.Budget(cost=60, evaluations=50)).fit(X, y)
        monkeypatch.undo()
        whole = search(estimator, RATE).fit(X, y)
        assert [trial.curve.values for trial in paused.trials_] == [trial.curve.values for trial in whole.trials_]

    def test_planning_trains_what_promises_most_for_longest(self):
        data = load_breast_cancer(return_X_y=True)
        found = search(
            GradientBoostingClassifier(n_estimators=40, max_depth=1, random_state=0), RATE, policy="auto",
            iterative="auto", budget=ft.Budget(cost=1.5), cv=2,
        ).fit(*data)  # fmt: skip
        lengths = [len(trial.curve) for trial in found.trials_]
        assert min(lengths) < max(lengths)
        assert found.best_score_ > 0.92
        assert found.ledger_.spent >= 1.5


def _doubled(rows):
    return 2 * rows


def _refuses(thing):
    raise TypeError("cannot pickle")
