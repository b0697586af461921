"""Draws synthetic studies beside curves of real learners: `python -m training.curves.pictures`.

Needs Matplotlib and scikit-learn besides PyTorch. The studies are the first of one seed that have enough curves; real
curves are trained anew, in about a minute.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, make_friedman1
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.linear_model import SGDClassifier
from sklearn.metrics import log_loss, mean_squared_error
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.preprocessing import StandardScaler

from training.curves.prior import Draw, studies

PICTURE = Path(__file__).parents[2] / "docs/curve-network.svg"
SEED, STEPS = 3, 40
COLUMNS, ROWS, REAL_ROWS = 4, 3, 1  # of panels
SHOWN = 10  # curves of a panel
DRAWN = 40  # configurations of a synthetic study

Data = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
Curves = list[np.ndarray]


# -- real learners -----------------------------------------------------------------------------------------------------


def split(X: np.ndarray, y: np.ndarray) -> Data:
    """Features to train and to judge by, standardised, then labels."""
    A, B, a, b = train_test_split(X, y, train_size=0.6, random_state=0)
    scaler = StandardScaler().fit(A)
    return scaler.transform(A), scaler.transform(B), a, b


def image_network(rng: np.random.Generator) -> Iterator[float]:
    A, B, a, b = split(*load_digits(return_X_y=True))
    rate = float(10 ** rng.uniform(-4.5, -0.5))
    net = MLPClassifier(
        hidden_layer_sizes=int(2 ** rng.uniform(2, 6)), learning_rate_init=rate, batch_size=128, random_state=0
    )
    for _ in range(STEPS):
        net.partial_fit(A, a, classes=np.arange(10))
        yield 1.0 - net.score(B, b)


def linear_classifier(rng: np.random.Generator) -> Iterator[float]:
    A, B, a, b = split(*load_breast_cancer(return_X_y=True))
    rate, decay = float(10 ** rng.uniform(-5, -1)), float(10 ** rng.uniform(-6, -1))
    line = SGDClassifier(loss="log_loss", learning_rate="constant", eta0=rate, alpha=decay, random_state=0)
    for _ in range(STEPS):
        line.partial_fit(A, a, classes=[0, 1])
        yield float(log_loss(b, line.predict_proba(B)))


def boosted_trees(rng: np.random.Generator) -> Iterator[float]:
    A, B, a, b = split(*load_diabetes(return_X_y=True))
    trees = GradientBoostingRegressor(
        n_estimators=STEPS, learning_rate=float(10 ** rng.uniform(-2.5, 0)), max_depth=int(rng.integers(1, 6)),
        subsample=float(rng.uniform(0.4, 1.0)), random_state=0,
    ).fit(A, a)  # fmt: skip
    for predicted in trees.staged_predict(B):
        yield float(np.sqrt(mean_squared_error(b, predicted)))


def function_network(rng: np.random.Generator) -> Iterator[float]:
    A, B, a, b = split(*make_friedman1(500, noise=1.0, random_state=0))
    net = MLPRegressor(
        hidden_layer_sizes=int(2 ** rng.uniform(2, 6)), solver="sgd", batch_size=32, random_state=0,
        learning_rate_init=float(10 ** rng.uniform(-4, -1.7)), momentum=float(rng.uniform(0.0, 0.99)),
    )  # fmt: skip
    for _ in range(STEPS):
        net.partial_fit(A, a)
        yield float(np.sqrt(mean_squared_error(b, net.predict(B))))


LEARNERS: dict[str, Callable[[np.random.Generator], Iterator[float]]] = {
    "network, images of digits": image_network,
    "linear classifier, tumours": linear_classifier,
    "boosted trees, diabetes": boosted_trees,
    "network, a noisy function": function_network,
}


def real_curves(learner: Callable[[np.random.Generator], Iterator[float]]) -> Curves:
    rng = np.random.default_rng(0)
    return [np.array(list(learner(rng))) for _ in range(SHOWN)]


# -- the picture -------------------------------------------------------------------------------------------------------


def synthetic_curves(count: int) -> list[tuple[Curves, np.ndarray]]:
    """For each of some studies, curves that were begun and how much of each is known; as many as are shown."""
    of = studies(Draw(SEED, "cpu"), 4 * count, DRAWN, STEPS)
    found = []
    for y, length in zip(of.y.numpy(), of.length.int().numpy(), strict=True):
        begun = np.flatnonzero(length)[:SHOWN]
        if len(begun) == SHOWN:  # a younger study would leave its panel nearly empty
            found.append((list(y[begun]), length[begun]))
    return found[:count]


def draw_panel(axes: Any, curves: Curves, known: np.ndarray | None, title: str) -> None:
    """Curves, the better the darker; what a study does not know of them is thin and grey."""
    ranks = np.argsort(np.argsort([curve.min() for curve in curves]))
    step = np.arange(1, STEPS + 1)
    for i, curve in enumerate(curves):
        n = STEPS if known is None else int(known[i])
        colour = mpl.colormaps["viridis"](0.9 * ranks[i] / len(curves))
        axes.plot(step[n - 1 :], curve[n - 1 :], color="0.75", linewidth=0.6)
        axes.plot(step[:n], curve[:n], color=colour, linewidth=1.1, marker="." if n == 1 else None, markersize=4)
    together = np.concatenate(curves)
    low, high = together.min(), np.quantile(together, 0.98)
    axes.set_ylim(low - 0.05 * (high - low), high + 0.1 * (high - low))
    axes.set_title(title, fontsize=8)
    axes.tick_params(labelsize=6, length=2)
    axes.set_xticks([1, STEPS // 2, STEPS])


def picture() -> Figure:
    figure = Figure(figsize=(10.0, 7.2), layout="constrained")
    above, below = figure.subfigures(2, 1, height_ratios=[ROWS - REAL_ROWS, REAL_ROWS])
    above.suptitle("Synthetic studies: coloured what is known, grey how it goes on", fontsize=10)
    below.suptitle("Real learners, ten random configurations each", fontsize=10)
    panels = above.subplots(ROWS - REAL_ROWS, COLUMNS).ravel()
    for i, (axes, (curves, known)) in enumerate(zip(panels, synthetic_curves(len(panels)), strict=True)):
        draw_panel(axes, curves, known, f"study {i + 1}")
    for axes, (title, learner) in zip(below.subplots(1, COLUMNS), LEARNERS.items(), strict=True):
        draw_panel(axes, real_curves(learner), None, title)
    return figure


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--out", type=Path, default=PICTURE)
    given = options.parse_args()
    with mpl.rc_context({"svg.hashsalt": "curves", "svg.fonttype": "none", "path.simplify_threshold": 0.3}):
        picture().savefig(given.out, metadata={"Date": None})
    print(f"{given.out}: {given.out.stat().st_size / 1e3:.0f} kB")


if __name__ == "__main__":
    main()
