"""XGBoost, LightGBM and CatBoost report to a study after each of their rounds, and stop where the study says so."""

from __future__ import annotations

import os
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any, ClassVar

import numpy as np
import pytest

import farthing as ft
from learners import Alternating

pytestmark = pytest.mark.usefixtures("logged")

ROUNDS = 6
SPACE = ft.Space(rate=ft.Real(0.05, 1.0, log=True))
NAMES = ["xgboost", "lightgbm", "catboost"]


def data() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.random((300, 4))
    y = (X[:, 0] + X[:, 1] * X[:, 2] + 0.3 * rng.normal(size=300) > 0.9).astype(int)
    return X[:200], y[:200], X[200:], y[200:]


def callback(library: str, **options: Any) -> Any:
    name = f"farthing.adapters.{library}"
    assert find_spec(name), f"there is no callback for {library}"
    return import_module(name).FarthingCallback(**options)


def train_xgboost(config, callbacks=(), metrics=("logloss",), evaluated=True):
    """The number of rounds, and what XGBoost says of them, by data and metric."""
    import xgboost

    X, y, U, v = data()
    train, valid = xgboost.DMatrix(X, y), xgboost.DMatrix(U, v)
    parameters = {"objective": "binary:logistic", "eta": config["rate"], "eval_metric": list(metrics), "nthread": 1}
    evals, found = [(train, "train"), (valid, "valid")] if evaluated else [], {}
    model = xgboost.train(
        parameters, train, ROUNDS, evals=evals, evals_result=found, verbose_eval=False, callbacks=list(callbacks)
    )  # fmt: skip
    return model.num_boosted_rounds(), found


def train_lightgbm(config, callbacks=(), metrics=("binary_logloss",), evaluated=True):
    import lightgbm

    X, y, U, v = data()
    train = lightgbm.Dataset(X, y, free_raw_data=False)
    valid = train.create_valid(U, v)
    parameters = {
        "objective": "binary", "learning_rate": config["rate"], "metric": list(metrics), "num_threads": 1,
        "verbose": -1, "min_data_in_leaf": 5,
    }  # fmt: skip
    found: dict[str, Any] = {}
    sets = {"valid_sets": [train, valid], "valid_names": ["train", "valid"]} if evaluated else {}
    model = lightgbm.train(
        parameters, train, ROUNDS, callbacks=[lightgbm.record_evaluation(found), *callbacks], **sets
    )  # fmt: skip
    return model.current_iteration(), found


def train_catboost(config, callbacks=(), metrics=("Logloss",), evaluated=True):
    import catboost

    X, y, U, v = data()
    model = catboost.CatBoostClassifier(
        iterations=ROUNDS, learning_rate=config["rate"], depth=3, loss_function=metrics[0],
        custom_metric=list(metrics[1:]), use_best_model=False, thread_count=1, verbose=False, allow_writing_files=False,
    )  # fmt: skip
    model.fit(X, y, eval_set=(U, v) if evaluated else None, callbacks=list(callbacks) or None)
    return model.tree_count_, model.evals_result_


TRAIN = {"xgboost": train_xgboost, "lightgbm": train_lightgbm, "catboost": train_catboost}
SECOND = {"xgboost": "error", "lightgbm": "binary_error", "catboost": "Accuracy"}
FIRST = {"xgboost": "logloss", "lightgbm": "binary_logloss", "catboost": "Logloss"}
TRAINING = {"xgboost": "train", "lightgbm": "train", "catboost": "learn"}
VALIDATION = {"xgboost": "valid", "lightgbm": "valid", "catboost": "validation"}


@dataclass(frozen=True)
class StopAfter:
    """Random trainings, each stopped after some rounds."""

    name: ClassVar[str] = "stop after"
    rounds: int = 3

    def propose(self, space, history, ledger, n, rng):
        return [ft.Proposal(len(history.trials), {"rate": float(rng.uniform(0.05, 1.0))})]

    def decide(self, space, history, ledger, trial, rng):
        return ft.Decision.STOP if trial.kept_step == self.rounds else ft.Decision.CONTINUE


@dataclass(frozen=True)
class InTurn(Alternating):
    """Two trainings, one round each in turn."""

    width: int = 2

    def propose(self, space, history, ledger, n, rng):
        (proposal,) = super().propose(space, history, ledger, n, rng)
        fresh = proposal.trial == len(history.trials)
        return [ft.Proposal(proposal.trial, {"rate": float(rng.uniform(0.05, 1.0))})] if fresh else [proposal]


def failed_with(library: str, **options: Any) -> str:
    def objective(config):
        TRAIN[library](config, [callback(library)], **options)

    callback(library)
    study = ft.Study(SPACE, "1 evaluation", policy="sobol", seed=0)
    study.run(objective, isolate=False, progress=False)
    return study.trials[0].error or ""


@pytest.mark.parametrize("library", NAMES)
class TestCallback:
    def test_paused_and_resumed_in_workers_its_curve_is_the_librarys(self, library):
        """Round by round, two trainings take turns; each is one call, and pauses inside the library's loop."""
        callback(library)
        budget = ft.Budget(cost=1e6)  # of which seconds say nothing: so no training is dropped and trained again
        study = ft.Study(SPACE, budget, policy=InTurn(), seed=0, max_steps=ROUNDS)
        pauses = []

        def look(study, trial):
            pauses.append(trial.number) if trial.status == "paused" else study.stop()

        def objective(config):
            TRAIN[library](config, [callback(library)])

        study.run(objective, isolate=True, meter=lambda seconds: seconds, progress=False, callbacks=[look])
        assert study.trials[0].status is ft.Status.COMPLETE, study.trials[0].error
        assert pauses.count(0) == ROUNDS - 1
        for trial in study.trials:
            own = TRAIN[library](trial.config)[1][VALIDATION[library]][FIRST[library]]
            assert len(trial.curve) >= ROUNDS - 1
            assert trial.curve.values == pytest.approx(own[: len(trial.curve)], rel=1e-6)
        assert "retrained" not in study.ledger.accounts

    def test_it_ends_the_training_where_the_policy_stops_it(self, library):
        trained = []

        def objective(config):
            trained.append(TRAIN[library](config, [callback(library)])[0])

        study = ft.Study(SPACE, "2 evaluations", policy=StopAfter(3), seed=0, max_steps=ROUNDS)
        study.run(objective, isolate=False, progress=False)
        assert trained == [3, 3], study.trials[0].error
        assert [(trial.status, len(trial.curve)) for trial in study.trials] == [(ft.Status.STOPPED, 3)] * 2

    def test_of_several_metrics_one_is_named(self, library):
        both = FIRST[library], SECOND[library]
        error = failed_with(library, metrics=both)
        assert "FarthingCallback: metric: expected one of" in error
        assert all(f"'{metric}'" in error for metric in both)

    def test_the_metric_and_the_data_can_be_named(self, library):
        own = []

        def objective(config):
            reports = callback(library, metric=SECOND[library], dataset=TRAINING[library])
            own.append(TRAIN[library](config, [reports], metrics=(FIRST[library], SECOND[library]))[1])

        study = ft.Study(SPACE, "1 evaluation", policy="sobol", seed=0).run(objective, isolate=False, progress=False)
        assert len(own) == 1, study.trials[0].error
        assert study.trials[0].curve.values == pytest.approx(own[0][TRAINING[library]][SECOND[library]])

    def test_without_something_to_evaluate_it_says_what_to_do(self, library):
        error = failed_with(library, evaluated=False)
        assert "FarthingCallback: nothing is evaluated after each round: give" in error, error


def test_xgboost_folds_are_reported_by_their_mean():
    import xgboost

    found = []

    def objective(config):
        X, y, *_ = data()
        parameters = {"objective": "binary:logistic", "eta": config["rate"], "nthread": 1}
        folds = xgboost.cv(parameters, xgboost.DMatrix(X, y), ROUNDS, nfold=3, callbacks=[callback("xgboost")])
        found.append(folds["test-logloss-mean"])

    callback("xgboost")
    study = ft.Study(SPACE, "1 evaluation", policy="sobol", seed=0).run(objective, isolate=False, progress=False)
    assert len(found) == 1, study.trials[0].error
    assert study.trials[0].curve.values == pytest.approx(list(found[0]))


@pytest.mark.filterwarnings("ignore:The argument 'eval_set' is deprecated")
@pytest.mark.parametrize("name", ["XGBClassifier", "LGBMClassifier"])
def test_in_the_interface_of_scikit_learn(name):
    """In a worker process, where XGBoost keeps its callbacks as a parameter of the estimator."""

    def objective(config):
        X, y, U, v = data()
        if name == "XGBClassifier":
            import xgboost

            callbacks = [callback("xgboost")]
            model = xgboost.XGBClassifier(
                n_estimators=ROUNDS, learning_rate=config["rate"], n_jobs=1, callbacks=callbacks
            )  # fmt: skip
            model.fit(X, y, eval_set=[(U, v)], verbose=False)
        else:
            import lightgbm

            model = lightgbm.LGBMClassifier(
                n_estimators=ROUNDS, learning_rate=config["rate"], n_jobs=1, verbose=-1, min_child_samples=5
            )  # fmt: skip
            model.fit(X, y, eval_set=[(U, v)], callbacks=[callback("lightgbm")])
        return model.score(U, v), os.getpid()

    callback("lightgbm")
    study = ft.Study(SPACE, "2 evaluations", policy="sobol", seed=0)
    study.run(objective, isolate=True, progress=False)
    assert [(trial.status, len(trial.curve)) for trial in study.trials] == [(ft.Status.COMPLETE, ROUNDS)] * 2
