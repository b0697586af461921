"""The caller's settings of scikit-learn hold in worker processes too."""

import numpy as np
import pytest
import sklearn
from scipy.stats import loguniform
from sklearn.datasets import load_iris
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.model_selection import GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import farthing as ft

X, y = load_iris(return_X_y=True)
WEIGHTS, GROUPS = np.where(y == 2, 5.0, 1.0), np.arange(len(y)) % 5


def search(estimator, distributions, budget, **options):
    return ft.FarthingSearchCV(
        estimator, distributions, budget=budget, policy="sobol", random_state=0, start=[], **{"cv": 2, **options}
    )


def scores(found):
    return [found.cv_results_[f"split{fold}_test_score"].tolist() for fold in range(found.n_splits_)]


def test_metadata_routing_gives_the_same_scores_under_a_budget_of_time():
    def fitted(budget):
        with sklearn.config_context(enable_metadata_routing=True):
            model = LogisticRegression(max_iter=500).set_fit_request(sample_weight=True)
            estimator = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), model)
            scorer = make_scorer(accuracy_score).set_score_request(sample_weight=True)
            found = search(
                estimator, {"logisticregression__C": loguniform(1e-3, 10)}, budget, scoring=scorer, cv=GroupKFold(2)
            )
            try:
                return found.fit(X, y, sample_weight=WEIGHTS, groups=GROUPS)
            except Exception as error:
                raise AssertionError(f"{budget}: {error}") from error

    assert scores(fitted("60s, 3 evaluations")) == scores(fitted("3 evaluations"))


class Framed:
    """Whether what transformers return is a frame."""

    def __call__(self, rows):
        assert hasattr(rows, "columns"), "an array, though the caller asked for frames"
        return rows


@pytest.mark.parametrize("iterative", [False, True], ids=["at once", "in steps"])
def test_transformers_return_what_the_caller_set(iterative):
    """`transform_output`, in worker processes, for fits at once and in steps; settings of this process stay."""
    boosting = GradientBoostingClassifier(n_estimators=3, max_depth=1, random_state=0)
    pipeline = make_pipeline(StandardScaler(), FunctionTransformer(Framed()), boosting)
    space = {"gradientboostingclassifier__learning_rate": loguniform(0.01, 1)}
    found = search(pipeline, space, "60s, 2 evaluations", iterative=iterative, refit=False)
    with sklearn.config_context(transform_output="pandas"):
        try:
            found.fit(X, y)
        except ValueError as error:
            raise AssertionError(error) from error
    assert np.all(np.isfinite(found.cv_results_["mean_test_score"]))
    assert sklearn.get_config()["transform_output"] == "default"
