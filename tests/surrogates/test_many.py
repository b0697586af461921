"""Hyperparameters found from some of many observations: when a search starts from several places."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from farthing.surrogates import gp
from farthing.surrogates.fitting import COLD_GROWTH, is_cold
from farthing.surrogates.many import found_from_some

SEEN = 500
LAST = gp.Hyperparameters((0.1, 0.2), -3.0, cold_at=2_000)


@pytest.mark.parametrize(("n", "cold"), [(2_001, False), (int(COLD_GROWTH * 2_000) + 1, True)])
def test_a_search_is_cold_when_all_observations_have_grown_however_few_it_sees(n, cold):
    begun = []

    def search(warm):
        begun.append(warm)
        return replace(LAST, cold_at=SEEN)

    found = found_from_some(n, LAST, search)
    assert is_cold(SEEN, begun[0]) is cold
    assert begun[0].log_scales == LAST.log_scales  # the last fit is where it starts, or one of the places
    assert found.cold_at == (n if cold else LAST.cold_at)


def test_without_a_fit_before_it_is_a_cold_fit_of_all():
    assert found_from_some(3_000, None, lambda warm: replace(LAST, cold_at=SEEN)).cold_at == 3_000


def test_what_is_found_from_a_third_predicts_the_others():
    X = np.random.default_rng(0).random((600, 2))
    y = np.sin(7.0 * X[:, 0])
    some = np.arange(0, 600, 3)
    found = found_from_some(600, None, lambda warm: gp.fit(X[some], y[some], None, warm).hyperparameters)
    rest = np.setdiff1d(np.arange(600), some)
    model = gp.from_hyperparameters(X[some], y[some], found)
    assert np.abs(model.mean_at(X[rest]) - y[rest]).max() < 0.01
