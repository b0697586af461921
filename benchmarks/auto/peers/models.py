"""The five models of the CArBO paper (Lee et al. 2020, section 4) with its search spaces, on data of scikit-learn.

The value is the classification error in three folds. What is not searched is at scikit-learn's defaults, and random
states are fixed, so that a configuration has one value. The paper names two step sizes of Adam and of SGD, of which
scikit-learn has one each: the wider range is that of `alpha`, the penalty. A training that breaks off has error 1.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.random_projection import GaussianRandomProjection, SparseRandomProjection
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils._param_validation import InvalidParameterError

from benchmarks.common.described_spaces import Config, Described

FOLDS = 3
PROJECTIONS = {"gaussian": GaussianRandomProjection, "sparse": SparseRandomProjection}
DATA = {"digits": load_digits, "breast_cancer": load_breast_cancer}


def real(name: str, lower: float, upper: float, log: bool = True) -> dict[str, Any]:
    return {"name": name, "type": "uniform_float", "lower": lower, "upper": upper, "log": log}


def whole(name: str, lower: int, upper: int, log: bool = False) -> dict[str, Any]:
    return {"name": name, "type": "uniform_int", "lower": lower, "upper": upper, "log": log}


def choice(name: str, *choices: str) -> dict[str, Any]:
    return {"name": name, "type": "categorical", "choices": list(choices)}


# -- models ------------------------------------------------------------------------------------------------------------


def knn(config: Config, features: int) -> Any:
    count = max(1, round(config["reduction"] * features))
    return make_pipeline(
        StandardScaler(),
        PROJECTIONS[config["projection"]](n_components=count, random_state=0),
        KNeighborsClassifier(config["neighbors"], weights=config["weights"], metric=config["metric"]),
    )


def mlp(config: Config, features: int) -> Any:
    network = MLPClassifier(
        tuple(config[f"size_{layer}"] for layer in range(1, config["layers"] + 1)),
        activation=config["activation"], tol=config["tolerance"], alpha=config["alpha"],
        learning_rate_init=config["rate"], beta_1=config["beta_1"], beta_2=config["beta_2"], random_state=0,
    )  # fmt: skip
    return make_pipeline(StandardScaler(), network)


def svm(config: Config, features: int) -> Any:
    machine = SGDClassifier(
        max_iter=config["iterations"], penalty=config["penalty"], l1_ratio=config["l1_ratio"], alpha=config["alpha"],
        eta0=config["rate"], learning_rate=config["schedule"], random_state=0,
    )  # fmt: skip
    return make_pipeline(StandardScaler(), machine)


def tree(config: Config, features: int) -> Any:
    return DecisionTreeClassifier(
        max_depth=config["depth"], min_samples_split=config["split"], max_features=config["features"], random_state=0
    )


def forest(config: Config, features: int) -> Any:
    return RandomForestClassifier(
        config["trees"], max_depth=config["depth"], min_samples_split=config["split"], random_state=0
    )


@dataclass(frozen=True)
class Model:
    """A model, the data it is trained on and where it is searched."""

    make: Callable[[Config, int], Any]
    data: str
    space: tuple[Described, ...]


METRICS = ("minkowski", "cityblock", "cosine", "euclidean", "l1", "l2", "manhattan")
MODELS: Mapping[str, Model] = {
    "knn": Model(knn, "digits", (
        real("reduction", 1e-6, 1.0), choice("projection", *PROJECTIONS), whole("neighbors", 1, 256),
        choice("weights", "uniform", "distance"), choice("metric", *METRICS),
    )),
    "mlp": Model(mlp, "digits", (
        whole("layers", 1, 4), *(whole(f"size_{layer}", 10, 150, log=True) for layer in range(1, 5)),
        choice("activation", "logistic", "tanh", "relu"), real("tolerance", 1e-5, 1e-2), real("alpha", 1e-6, 1.0),
        real("rate", 1e-6, 1e-2), real("beta_1", 1e-3, 0.99), real("beta_2", 1e-3, 0.99),
    )),
    "svm": Model(svm, "digits", (
        whole("iterations", 1, 128), choice("penalty", "l1", "l2", "elasticnet"), real("l1_ratio", 0.0, 1.0, log=False),
        real("alpha", 1e-3, 1e3), real("rate", 1e-4, 1e-1),
        choice("schedule", "constant", "optimal", "invscaling", "adaptive"),
    )),
    "tree": Model(tree, "digits", (whole("depth", 1, 64), real("split", 0.1, 1.0), real("features", 1e-3, 0.5))),
    "forest": Model(forest, "breast_cancer", (whole("trees", 1, 256), whole("depth", 1, 64), real("split", 0.1, 1.0))),
}  # fmt: skip


# -- values ------------------------------------------------------------------------------------------------------------


@cache
def data_of(name: str) -> tuple[NDArray[Any], NDArray[Any]]:
    X, y = DATA[name](return_X_y=True)
    return X, y


def guess_error(name: str) -> float:
    """The error of a model that always answers with the most frequent class."""
    y = data_of(MODELS[name].data)[1]
    return float(1.0 - np.bincount(y).max() / len(y))


@dataclass(frozen=True)
class Objective:
    """The error of a configuration, with when its evaluation began and ended, by the clock that processes share."""

    model: str

    def __call__(self, config: Config) -> dict[str, float]:
        began = time.monotonic()
        return {"value": self._error(config), "began": began, "ended": time.monotonic()}

    def _error(self, config: Config) -> float:
        model = MODELS[self.model]
        X, y = data_of(model.data)
        folds = StratifiedKFold(FOLDS, shuffle=True, random_state=0)
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                scores = cross_val_score(model.make(config, X.shape[1]), X, y, cv=folds, error_score="raise")
            except InvalidParameterError:
                raise
            except ValueError:  # such as weights that are not finite
                return 1.0
        return float(1.0 - scores.mean())
