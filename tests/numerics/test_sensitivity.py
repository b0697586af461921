"""Sobol's indices against functions whose indices are known."""

from __future__ import annotations

import numpy as np

from farthing.designs.filling import sobol
from farthing.numerics.sensitivity import indices


def samples(n, p, seed=0):
    return np.split(sobol(n, 2 * p, np.random.default_rng(seed)), 2, axis=1)


def ishigami(U):
    x = np.pi * (2.0 * U - 1.0)
    return np.sin(x[:, 0]) + 7.0 * np.sin(x[:, 1]) ** 2 + 0.1 * x[:, 2] ** 4 * np.sin(x[:, 0])


def test_the_indices_of_ishigami_s_function_are_found():
    """Ishigami and Homma (1990), with a = 7 and b = 0.1: the third input acts only together with the first."""
    found = indices(ishigami, *samples(2**12, 3))
    np.testing.assert_allclose(found.main, [0.3139, 0.4424, 0.0], atol=0.02)
    np.testing.assert_allclose(found.total, [0.5576, 0.4424, 0.2437], atol=0.02)
    assert abs(found.interactions - 0.2437) < 0.03


def test_the_shares_of_a_sum_are_the_variances_of_its_terms_and_nothing_interacts():
    weights = np.array([4.0, 2.0, 1.0, 0.0])
    found = indices(lambda U: 1e6 + U @ weights, *samples(2**10, 4))  # a large mean must not drown the differences
    np.testing.assert_allclose(found.main, weights**2 / np.sum(weights**2), atol=0.01)
    np.testing.assert_allclose(found.total, found.main, atol=0.01)
    assert found.total[3] == 0.0
    assert found.interactions < 0.01


def test_a_function_that_does_not_vary_has_no_important_input():
    found = indices(lambda U: np.full(len(U), 3.7), *samples(64, 2))
    assert found.main.tolist() == found.total.tolist() == [0.0, 0.0]
    assert found.interactions == 0.0
