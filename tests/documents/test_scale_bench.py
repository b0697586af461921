"""The benchmark of thousands of observations: exact models are exact, and the page says who was given up."""

import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parent.parent.parent
if str(ROOT) not in sys.path:  # `pytest` alone, in place of `python -m pytest`
    sys.path.append(str(ROOT))

from benchmarks.scale.functions import CHOOSING, HELD_OUT, searched  # noqa: E402
from benchmarks.scale.regret import exact  # noqa: E402
from benchmarks.scale.text import file_findings, given_up_text, regret_findings  # noqa: E402
from farthing.history import Way  # noqa: E402
from farthing.numerics.rows import MOST_KNOWN  # noqa: E402


def test_exact_models_know_all_observations_and_only_inside():
    with exact():
        assert len(Way.FULL.known(9_000)) == 9_000
    assert len(Way.FULL.known(9_000)) == MOST_KNOWN


@pytest.mark.parametrize("task", [*CHOOSING, *HELD_OUT], ids=lambda task: task.name)
def test_a_search_has_looked_around_the_best(task):
    """Its later half is better than its first, at points of the space."""
    U, y = searched(task, 200, seed=0)
    assert np.array_equal(task.space.snap(U), U)
    assert np.median(y[100:]) < np.median(y[:60])


def test_the_halves_share_no_task():
    assert not {task.name for task in CHOOSING} & {task.name for task in HELD_OUT}


def test_regret_is_a_geometric_mean_of_ratios():
    def one(some, exactly):
        return {"some": {"after": some, "seconds": 0.5}, "exact": {"after": exactly, "seconds": 2.0}}

    said = regret_findings({"a": [one(2.0, 1.0)], "b": [one(1.0, 8.0), one(3.0, 3.0)]})
    assert "is 0.63 times that" in said  # (2 / 8) ** (1 / 3)
    assert "lower in 1 of 3 studies, higher in 1" in said
    assert "4 times as fast" in said


def test_who_was_given_up_is_said():
    cells = {"gp": {"5": {"100": {"later": [0.1]}, "1000": {"given_up": "with 100 a suggestion took 9.0 s"}}}}
    assert "at 1,000 observations in 5 parameters (with 100 a suggestion took 9.0 s)" in given_up_text(cells)
    assert given_up_text({"tpe": {"5": {"100": {"later": [0.1]}}}}) == ""


def test_files_are_compared_between_the_smallest_and_the_largest():
    found = {"10": {"tell": 1.0, "open": 2.0}, "20": {"tell": 9.0, "open": 9.0}, "50": {"tell": 1.5, "open": 10.0}}
    assert "With 5 times as many trials a `tell` takes 1.5 times" in file_findings(found)
    assert "5.0 times as long" in file_findings(found)
