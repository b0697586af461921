"""The seconds of a budget begin with the call of `tune`, `run` or `fit`: what precedes the first proposal counts."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np
import pytest

import farthing as ft

LINE = ft.Space(x=ft.Real(0, 1))


def slow_start() -> Iterator[dict[str, float]]:
    """Stands for a file that takes long to open."""
    time.sleep(3.0)
    yield {"x": 0.5}


def slow(config: dict[str, float]) -> float:
    time.sleep(1.0)
    return config["x"]


def test_tune_counts_what_its_study_takes_to_open(fake_time):
    study = ft.tune(slow, LINE, "8s", policy="sobol", start=slow_start(), isolate=False, progress=False)
    assert len(study.trials) == 5
    assert study.ledger.account("optimiser", "seconds") == pytest.approx(3.0, abs=0.01)


def test_opening_a_file_is_a_part_of_a_real_budget(tmp_path):
    """The same with a clock on the wall."""
    began = time.perf_counter()
    study = ft.tune(slow, LINE, "4s", policy="sobol", start=slow_start(), storage=tmp_path / "study.db", progress=False)
    assert time.perf_counter() - began < 6.0
    assert study.ledger.total("seconds") > 3.0
    study.close()


def test_fit_counts_what_splitting_takes():
    model_selection = pytest.importorskip("sklearn.model_selection")
    from sklearn.tree import DecisionTreeClassifier

    class SlowSplits(model_selection.KFold):
        def split(self, *arguments, **named):
            time.sleep(0.6)
            return super().split(*arguments, **named)

    search = ft.FarthingSearchCV(
        DecisionTreeClassifier(), {"max_depth": ft.Integer(1, 3)}, budget="2 evaluations", cv=SlowSplits(2),
        random_state=0, iterative=False, refit=False,
    )  # fmt: skip
    search.fit(np.arange(20.0).reshape(10, 2), np.arange(10) % 2)
    assert search.ledger_.account("optimiser", "seconds") > 0.6


def test_a_study_that_an_objective_runs_has_its_own_time(fake_time):
    """Only the run that was called counts from the call."""
    inner = ft.Study(LINE, "100s", policy="sobol", seed=0)

    def outer(config: dict[str, float]) -> float:
        time.sleep(5.0)
        inner.run(slow, isolate=False, progress=False, callbacks=[lambda study, trial: study.stop()])
        return 1.0

    study = ft.tune(outer, LINE, "2 evaluations", policy="sobol", start=slow_start(), progress=False)
    assert inner.ledger.total("seconds") == pytest.approx(2.0, abs=0.01)
    assert study.ledger.total("seconds") == pytest.approx(3.0 + 2 * 6.0, abs=0.01)
