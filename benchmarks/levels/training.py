"""Real training curves: three learners on two data sets, random configurations of each."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import StandardScaler

Array = NDArray[np.float64]
SEED = 0


@dataclass(frozen=True)
class Data:
    """One data set, standardised; classes are 0, 1, ..."""

    X: Array
    y: NDArray[np.int64]
    X_valid: Array
    y_valid: NDArray[np.int64]


@dataclass(frozen=True)
class Run:
    """One configuration trained to its end: validation values by their name, training loss and seconds, (k,) each."""

    values: dict[str, Array]
    train: Array
    seconds: Array


@dataclass(frozen=True)
class Cell:
    """All runs of a learner on a data set, judged by one value."""

    learner: str
    data: str
    value: str
    runs: Sequence[Run]

    @property
    def title(self) -> str:
        return f"{self.learner}, {self.data}, {self.value}"


def load(name: str) -> Data:
    X, y = {"digits": load_digits, "breast_cancer": load_breast_cancer}[name](return_X_y=True)
    X, X_valid, y, y_valid = train_test_split(X, y, test_size=0.4, random_state=0, stratify=y)
    scaler = StandardScaler().fit(X)
    return Data(scaler.transform(X), y, scaler.transform(X_valid), y_valid)


def log_uniform(rng: np.random.Generator, low: float, high: float) -> float:
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


def sgd(rng: np.random.Generator, steps: int, data: Data) -> Run:
    model = SGDClassifier(
        loss="log_loss",
        alpha=log_uniform(rng, 1e-6, 1e-1),
        learning_rate=str(rng.choice(["constant", "invscaling"])),
        eta0=log_uniform(rng, 1e-5, 1e-1),
        power_t=0.25,
        average=bool(rng.random() < 0.25),
        random_state=int(rng.integers(1 << 30)),
    )
    return pass_by_pass(model, steps, data, lambda: log_loss(data.y, model.predict_proba(data.X)))


def mlp(rng: np.random.Generator, steps: int, data: Data) -> Run:
    model = MLPClassifier(
        hidden_layer_sizes=(int(log_uniform(rng, 4, 100)),) * int(rng.integers(1, 3)),
        learning_rate_init=log_uniform(rng, 1e-4, 3e-2),
        batch_size=int(log_uniform(rng, 16, 256)),
        alpha=log_uniform(rng, 1e-6, 1e-1),
        solver=str(rng.choice(["adam", "sgd"])),
        random_state=int(rng.integers(1 << 30)),
    )
    return pass_by_pass(model, steps, data, lambda: float(model.loss_))


def boosting(rng: np.random.Generator, steps: int, data: Data) -> Run:
    model = GradientBoostingClassifier(
        n_estimators=steps,
        learning_rate=log_uniform(rng, 1e-2, 1.0),
        max_depth=int(rng.integers(1, 5)),
        subsample=float(rng.uniform(0.3, 1.0)),
        max_features=float(rng.uniform(0.05, 0.3)),
        min_samples_leaf=int(log_uniform(rng, 1, 50)),
        random_state=int(rng.integers(1 << 30)),
    )
    clock = [time.process_time()]
    model.fit(data.X, data.y, monitor=lambda *_: bool(clock.append(time.process_time())))
    P = model.staged_predict_proba(data.X_valid)
    return Run(judged(P, data), np.array(model.train_score_), np.diff(clock))


def pass_by_pass(model: Any, steps: int, data: Data, train_loss: Callable[[], float]) -> Run:
    """One pass over the data per step."""
    P, train, seconds = [], [], []
    for _ in range(steps):
        start = time.process_time()
        model.partial_fit(data.X, data.y, classes=np.unique(data.y))
        seconds.append(time.process_time() - start)
        P.append(model.predict_proba(data.X_valid))
        train.append(train_loss())
    return Run(judged(P, data), np.array(train), np.array(seconds))


def judged(probabilities: Iterable[Array], data: Data) -> dict[str, Array]:
    y = data.y_valid
    pairs = [(np.mean(P.argmax(axis=1) != y), log_loss(y, P)) for P in probabilities]
    error, loss = np.array(pairs).T
    return {"error": error, "log-loss": loss}


def log_loss(y: NDArray[np.int64], P: Array) -> float:
    return float(-np.log(np.maximum(P[np.arange(len(y)), y], 1e-15)).mean())


LEARNERS: dict[str, tuple[Callable[[np.random.Generator, int, Data], Run], int]] = {
    "sgd": (sgd, 100),
    "mlp": (mlp, 80),
    "boosting": (boosting, 100),
}
DATA = ("digits", "breast_cancer")


def train_all(configurations: int, names: Sequence[str] = DATA, long: int | None = None) -> list[Cell]:
    """Every learner on every data set, each judged by both values."""
    cells = []
    for i, (learner, (train, steps)) in enumerate(LEARNERS.items()):
        for name in names:
            data, start = load(name), time.perf_counter()
            rngs = [np.random.default_rng([SEED, i, DATA.index(name), c]) for c in range(configurations)]
            runs = [train(rng, long or steps, data) for rng in rngs]
            cells += [Cell(learner, name, value, runs) for value in runs[0].values]
            print(f"{learner} on {name}: {time.perf_counter() - start:.0f} s", flush=True)
    return cells
