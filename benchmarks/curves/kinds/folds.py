"""Five folds trained side by side, as FarthingSearchCV trains an estimator: the value is the mean over the folds.

Histogram boosting on two sets (each step is a `fit` with `warm_start` and more iterations), neural networks on the two
others (each step is some epochs of `partial_fit`), all behind a transformer that is fitted once per fold. The space is
one for both, so its names say what they do and not what scikit-learn calls them:

    size    leaves of a tree                  units of a layer
    depth   of a tree, doubled                hidden layers
    rows    fewest in a leaf                  in a batch
    l2      penalty of leaf values            penalty of weights
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, load_digits, make_classification
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import StratifiedKFold
from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import FunctionTransformer, QuantileTransformer, StandardScaler

Array = NDArray[Any]

SPACE: list[dict[str, Any]] = [
    {"name": "learning_rate", "type": "uniform_float", "lower": 1e-4, "upper": 3.0, "log": True},
    {"name": "size", "type": "uniform_int", "lower": 4, "upper": 128, "log": True},
    {"name": "depth", "type": "uniform_int", "lower": 1, "upper": 3, "log": False},
    {"name": "rows", "type": "uniform_int", "lower": 16, "upper": 200, "log": True},
    {"name": "l2", "type": "uniform_float", "lower": 1e-7, "upper": 10.0, "log": True},
    {"name": "scaling", "type": "categorical", "choices": ["none", "standard", "quantile"]},
]
STEPS = 27
FOLDS = 5
TASKS = ("cancer_mislabelled", "clusters", "digits_noisy", "glyphs")
SCALINGS: dict[str, Callable[[], Any]] = {
    "none": FunctionTransformer,
    "standard": StandardScaler,
    "quantile": lambda: QuantileTransformer(n_quantiles=100),
}


@dataclass(frozen=True)
class Task:
    """Data, the rows of each fold, and what is trained on them."""

    X: Array
    y: Array
    splits: tuple[tuple[Array, Array], ...]  # rows to train on, and to validate
    boosted: bool
    units: int  # of a step: iterations or epochs


@dataclass(frozen=True)
class Fold:
    """One model and its rows."""

    model: Any
    X: Array
    y: Array
    X_valid: Array
    y_valid: Array

    def advance(self, units: int) -> None:
        if isinstance(self.model, MLPClassifier):
            for _ in range(units):
                self.model.partial_fit(self.X, self.y, classes=np.unique(self.y))
        else:
            self.model.max_iter += units
            self.model.fit(self.X, self.y)

    @property
    def loss(self) -> float:
        """Log loss of two classes, error rate of more. NaN stays NaN; a probability of 0 counts as 1e-15."""
        P = self.model.predict_proba(self.X_valid)
        if P.shape[1] > 2:
            return float(np.mean(P.argmax(axis=1) != self.y_valid)) if np.isfinite(P).all() else np.nan
        return float(-np.log(np.maximum(P[np.arange(len(P)), self.y_valid], 1e-15)).mean())


def train(task: str, config: dict[str, Any], seed: int) -> Iterator[float]:
    """The mean validation loss over the folds after each step."""
    data = load(task)
    folds = [new_fold(data, rows, valid, config, seed + i) for i, (rows, valid) in enumerate(data.splits)]
    for _ in range(STEPS):
        yield step(folds, data.units)


def step(folds: list[Fold], units: int) -> float:
    """Every fold some units further; overflow shows in the value, not in warnings."""
    with np.errstate(all="ignore"):
        for fold in folds:
            fold.advance(units)
        return float(np.mean([fold.loss for fold in folds]))


def new_fold(data: Task, rows: Array, valid: Array, config: dict[str, Any], seed: int) -> Fold:
    scaling = SCALINGS[config["scaling"]]()
    X = scaling.fit_transform(data.X[rows])
    model = (boosted_trees if data.boosted else network)(config, seed)
    return Fold(model, X, data.y[rows], scaling.transform(data.X[valid]), data.y[valid])


def boosted_trees(config: dict[str, Any], seed: int) -> HistGradientBoostingClassifier:
    return HistGradientBoostingClassifier(
        learning_rate=config["learning_rate"], max_leaf_nodes=config["size"], max_depth=2 * config["depth"],
        min_samples_leaf=config["rows"], l2_regularization=config["l2"], max_iter=0, warm_start=True,
        early_stopping=False, max_features=0.5, random_state=seed,
    )  # fmt: skip


def network(config: dict[str, Any], seed: int) -> MLPClassifier:
    return MLPClassifier(
        hidden_layer_sizes=(config["size"],) * config["depth"], learning_rate_init=config["learning_rate"],
        batch_size=config["rows"], alpha=config["l2"], solver="sgd",
        # A number would shuffle the rows of every epoch in the same way.
        random_state=np.random.RandomState(seed),
    )  # fmt: skip


# -- data --------------------------------------------------------------------------------------------------------------


@cache
def load(task: str) -> Task:
    """Made once per process, always the same."""
    make = {
        "cancer_mislabelled": cancer_mislabelled,
        "clusters": clusters,
        "digits_noisy": digits_noisy,
        "glyphs": glyphs,
    }[task]
    return make(np.random.default_rng(TASKS.index(task)))


def cancer_mislabelled(rng: np.random.Generator) -> Task:
    """569 tumours, of which 6 % have the wrong label."""
    X, y = load_breast_cancer(return_X_y=True)
    return in_folds(X, np.where(rng.random(len(y)) < 0.06, 1 - y, y), boosted=True, units=5)


def clusters(rng: np.random.Generator) -> Task:
    """Four clusters of each of two classes in 20 columns of very different scales; one row in five is positive."""
    X, y = make_classification(
        900, 20, n_informative=6, n_redundant=6, n_clusters_per_class=4, weights=[0.8], flip_y=0.05, class_sep=1.5,
        random_state=int(rng.integers(1 << 30)),
    )  # fmt: skip
    return in_folds(X * rng.lognormal(0.0, 2.0, 20), y, boosted=True, units=5)


def digits_noisy(rng: np.random.Generator) -> Task:
    """A third of the digits, with noise on every pixel."""
    X, y = load_digits(return_X_y=True)
    rows = rng.permutation(len(y))[:600]
    return in_folds(X[rows] + rng.normal(0.0, 4.0, (600, 64)), y[rows], boosted=False, units=2)


def glyphs(rng: np.random.Generator) -> Task:
    """Eight invented letters of 8 x 8 pixels, moved by up to a pixel, of varying ink, with noise."""
    letters = (rng.random((8, 8, 8)) < 0.35) * 10.0
    y = rng.integers(8, size=600)
    moves = rng.integers(-1, 2, (600, 2))
    images = np.array([np.roll(letters[k], move, (0, 1)).ravel() for k, move in zip(y, moves, strict=True)])
    X = images * rng.uniform(0.5, 1.2, (600, 1)) + rng.normal(0.0, 3.0, (600, 64))
    return in_folds(X, y, boosted=False, units=2)


def in_folds(X: Array, y: Array, boosted: bool, units: int) -> Task:
    splits = StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(X, y)
    return Task(X, y, tuple(splits), boosted, units)
