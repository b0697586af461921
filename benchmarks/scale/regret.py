"""What it costs that models know some of thousands of observations: studies that go on, with them and with exact ones.

Both begin with the same observations and continue under policy `ei` for some evaluations.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np

import farthing as ft
from benchmarks.scale.functions import Task, searched

EVERYTHING = 10**9
MODELS = ("some", "exact")


@contextmanager
def exact() -> Iterator[None]:
    """Models know all observations, however many."""
    with patch("farthing.policies.fits.EXACT", EVERYTHING), patch("farthing.history.ways.MOST_KNOWN", EVERYTHING):
        yield


def continued(task: Task, n: int, evaluations: int, seed: int) -> dict[str, float]:
    """The least value before and after, without noise, and processor seconds of a suggestion."""
    U, y = searched(task, n, seed)
    study = ft.Study(task.space, ft.Budget(evaluations=evaluations), policy="ei", seed=seed)
    for u, value in zip(U, y, strict=True):
        study.add(task.space.decode(u), value=float(value))
    rng, found, seconds = np.random.default_rng(seed + 1), [], []
    for _ in range(evaluations):
        began = time.process_time()
        proposal = study.ask()
        seconds.append(time.process_time() - began)
        found.append(task.value(task.space.encode(proposal.config)))
        study.tell(proposal, value=found[-1] + task.noise * rng.standard_normal())
    before = min(task.value(U[i]) for i in np.argsort(y)[:50])
    return {"before": before, "after": min(before, *found), "seconds": float(np.median(seconds))}


def regrets(tasks: Sequence[Task], n: int, evaluations: int, repetitions: int) -> dict[str, list[dict[str, Any]]]:
    """By task: each repetition with the models as they are and with exact ones."""
    results: dict[str, list[dict[str, Any]]] = {task.name: [] for task in tasks}
    for seed in range(repetitions):
        for task in tasks:
            one = {"some": continued(task, n, evaluations, seed)}
            with exact():
                one["exact"] = continued(task, n, evaluations, seed)
            results[task.name].append(one)
            shown = ", ".join(f"{model} {one[model]['after']:.4g}" for model in MODELS)
            print(f"{task.name}, repetition {seed}: from {one['some']['before']:.4g} to {shown}", flush=True)
    return results
