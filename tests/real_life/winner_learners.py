"""A classifier of scikit-learn that trains pass by pass, and keeps its state where a run says."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import train_test_split

import farthing as ft

PASSES = 12
SPACE = ft.Space(alpha=ft.Real(1e-6, 1e-1, log=True), eta0=ft.Real(1e-4, 10.0, log=True))


@cache
def digits() -> list[Any]:
    data, target = load_digits(return_X_y=True)
    return train_test_split(data[:700] / 16.0, target[:700], test_size=0.5, random_state=0)


def error_of(model: SGDClassifier) -> float:
    """On data that it was not trained on."""
    _, unseen, _, answers = digits()
    return float(np.mean(model.predict(unseen) != answers))


def saved_model(folder: Path) -> SGDClassifier:
    return pickle.loads((folder / "model.pkl").read_bytes())


def learner(config: dict[str, float]) -> Iterator[dict[str, float]]:
    """Goes on from its checkpoint, which every pass writes over. The rate is constant: late passes are often worse."""
    run = ft.current_run()
    seen, _, answers, _ = digits()
    if run.step:
        model = saved_model(run.checkpoint_dir)
    else:
        model = SGDClassifier(alpha=config["alpha"], eta0=config["eta0"], learning_rate="constant", random_state=0)
    for _ in range(run.step, PASSES):
        model.partial_fit(seen, answers, classes=range(10))
        (run.checkpoint_dir / "model.pkl").write_bytes(pickle.dumps(model))
        yield {"value": error_of(model), "cost": 1.0}
