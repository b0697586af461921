"""What the caller has set reaches the workers: libraries, warnings, logging, the interpreter."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import warnings
from typing import Any

import numpy as np
import pytest
import sklearn
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_validate

import farthing as ft
from learners import LINE

pytestmark = [
    pytest.mark.skipif(os.name != "posix", reason="worker processes need POSIX"),
    pytest.mark.usefixtures("logged"),
]


def run(objective: Any, budget: str = "60s, 3 evaluations", **options: Any) -> ft.Study:
    return ft.Study(LINE, budget, policy="random", seed=0).run(objective, progress=False, **options)


def values(study: ft.Study) -> list[Any]:
    return [trial.value if trial.error is None else trial.error.splitlines()[-1] for trial in study.trials]


def test_scikit_learns_metadata_routing_works_under_a_budget_of_time():
    X, y = make_classification(60, 4, random_state=0)
    weights = np.ones(60)

    def objective(config: dict[str, Any]) -> float:
        model = LogisticRegression().set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        scores = cross_validate(model, X, y, params={"sample_weight": weights}, cv=2)["test_score"]
        enabled = sklearn.get_config()["enable_metadata_routing"]
        sklearn.set_config(enable_metadata_routing=False)  # the next evaluation has what the caller has
        return float(enabled) if len(scores) == 2 else -1.0

    with sklearn.config_context(enable_metadata_routing=True):
        study = run(objective)
    assert values(study) == [1.0] * 3
    assert len(study.trials) == 3


def test_filters_of_warnings_are_the_callers_before_every_evaluation():
    def objective(config: dict[str, Any]) -> float:
        with warnings.catch_warnings(record=True) as said:
            warnings.warn("not shown", ConvergenceWarning, stacklevel=1)
            warnings.warn("nor this", UserWarning, stacklevel=1)
        try:
            warnings.warn("an error", RuntimeWarning, stacklevel=1)
            found = 0
        except RuntimeWarning:
            found = 1
        warnings.resetwarnings()
        warnings.simplefilter("always")
        return float(found + 10 * len(said))

    with warnings.catch_warnings():
        warnings.resetwarnings()
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", "nor .his")
        warnings.simplefilter("error", RuntimeWarning)
        study = run(objective)
    assert values(study) == [1.0] * 3


def test_a_filter_for_a_library_does_not_import_it():
    """A category is known by its name, until the objective itself imports it."""

    def objective(config: dict[str, Any]) -> float:
        had = "sklearn" in sys.modules
        from sklearn.exceptions import ConvergenceWarning

        try:
            warnings.warn("an error", ConvergenceWarning, stacklevel=1)
        except UserWarning:
            return 10.0 + had
        return float(had)

    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        (value,) = values(run(objective, "60s, 1 evaluation"))
    assert value == 10.0


def test_levels_of_loggers_errors_of_numpy_and_the_recursion_limit_are_the_callers():
    def objective(config: dict[str, Any]) -> float:
        import numpy

        levels = [logging.getLogger(name).level for name in (None, "my.library")]
        raised = 0
        try:
            numpy.array([1.0]) / 0.0
        except FloatingPointError:
            raised = 1
        numpy.seterr(all="ignore")
        logging.getLogger("my.library").setLevel(1)
        return float(levels == [logging.ERROR, 17]) + 10 * raised + 100 * (sys.getrecursionlimit() == 2345)

    root, mine, limit = logging.getLogger(), logging.getLogger("my.library"), sys.getrecursionlimit()
    before = root.level
    try:
        root.setLevel(logging.ERROR)
        mine.setLevel(17)
        sys.setrecursionlimit(2345)
        with np.errstate(divide="raise"):
            study = run(objective)
    finally:
        root.setLevel(before)
        mine.setLevel(logging.NOTSET)
        sys.setrecursionlimit(limit)
    assert values(study) == [111.0] * 3


SCRIPT = """
import logging, sys, warnings
import farthing as ft

logging.basicConfig(level=logging.INFO, format="as the script says: %(message)s")

def objective(config):
    logging.getLogger("mine").info("heard %d", ft.current_run().trial)
    logging.getLogger("mine").debug("not heard")
    return float(sys.flags.optimize) + 10 * sys.flags.utf8_mode

study = ft.tune(objective, ft.Space(x=ft.Real(0, 1)), "60s, 2 evaluations", policy="random", progress=False)
print([trial.value for trial in study.trials])
"""


def test_a_script_hears_what_its_workers_log_and_they_have_its_interpreter_options():
    command = [sys.executable, "-O", "-X", "utf8", "-c", SCRIPT]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    heard = [line for line in done.stderr.splitlines() if "heard" in line]
    assert heard == ["as the script says: heard 0", "as the script says: heard 1"], done.stderr
    assert done.stdout == "[11.0, 11.0]\n"
