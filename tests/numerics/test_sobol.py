"""Scrambled Sobol nets are SciPy's, to the last bit."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from scipy.stats.qmc import Sobol

from farthing.numerics import sobol


def of_scipy(log2_count: int, dimension: int, bits: int, seed: int) -> np.ndarray:
    points = Sobol(dimension, scramble=True, bits=bits, rng=np.random.default_rng(seed)).random_base2(log2_count)
    return (points * 2.0**bits).astype(np.uint32)


@pytest.mark.parametrize("seed", [0, 20_231_031])
@pytest.mark.parametrize("bits", [24, 30, 32])
@pytest.mark.parametrize("dimension", [1, 2, 3, 7, 33, 34, 1111])
def test_a_net_is_that_of_scipy(dimension, bits, seed):
    for log2_count in (0, 1, 5, 9):
        ours = sobol.scrambled_net(log2_count, dimension, bits, seed)
        np.testing.assert_array_equal(ours, of_scipy(log2_count, dimension, bits, seed))


def test_the_largest_dimension_is_that_of_scipy():
    table = sobol._table()
    assert table is not None, "SciPy's file of direction numbers has moved: every study begins slower"
    assert len(table[0]) == Sobol.MAXDIM


def test_without_the_table_scipy_is_asked(monkeypatch):
    with_table = sobol.scrambled_net(4, 40, 30, 1)
    monkeypatch.setattr(sobol, "_table", lambda: None)
    np.testing.assert_array_equal(sobol.scrambled_net(4, 40, 30, 1), with_table)


def test_a_study_does_not_import_scipy_stats():
    """It takes longer than all suggestions of a small study, and would be charged to its budget."""
    script = (
        "import sys, farthing as ft\n"
        "study = ft.Study(ft.Space(x=ft.Real(0, 1)), ft.Budget(cost=20), seed=0)\n"
        "for _ in range(9):\n"
        "    proposal = study.ask()\n"
        "    study.tell(proposal, value=proposal.config['x'], cost=1.0)\n"
        "print('scipy.stats' in sys.modules)\n"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert ended.stdout == "False\n", ended.stderr
