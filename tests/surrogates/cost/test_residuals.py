"""Robust residuals: their scale, their weights and the law of a new one."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm, t

from farthing.surrogates.cost.lines import (
    HUBER,
    KAPPA,
    NOISE_PRIOR,
    NOISE_STRENGTH,
    huber,
    huber_weights,
    log_student,
    residual_scale,
)


def test_kappa_makes_the_scale_consistent():
    """E[min(e^2, k |e|)] of a standard normal e."""
    expected = quad(lambda e: min(e * e, HUBER * abs(e)) * norm.pdf(e), -12.0, 12.0, points=[-HUBER, HUBER])[0]
    assert pytest.approx(expected, rel=1e-8) == KAPPA
    rng = np.random.default_rng(0)
    owned = [np.array([j]) for j in range(3)]
    model = huber(rng.random((20000, 3)), 0.7 * rng.standard_normal(20000), (0, 1, 2), owned, np.ones(20000))
    assert model.scale == pytest.approx(0.7, rel=0.02)


def test_the_scale_starts_at_its_prior_and_forgets_it():
    n = 1000
    assert residual_scale(0.0, 1) == pytest.approx(NOISE_PRIOR)
    assert residual_scale(KAPPA * n * 4.0, n) == pytest.approx(2.0, rel=0.01)
    expected = np.sqrt((NOISE_STRENGTH * NOISE_PRIOR**2 + 1.0 / KAPPA) / (NOISE_STRENGTH + 4.0))
    assert residual_scale(1.0, 5) == pytest.approx(expected)


def test_huber_weights_bound_the_pull_of_a_residual():
    r = np.array([0.0, 0.1, -0.5, 3.0, -1e6])
    pull = huber_weights(r, 0.4) * r
    np.testing.assert_allclose(pull, np.clip(r, -HUBER * 0.4, HUBER * 0.4))


def test_log_student_is_scipys():
    r = np.linspace(-3.0, 3.0, 7)
    np.testing.assert_allclose(log_student(r, np.full(7, 0.25), 4.5), t(4.5, 0.0, 0.5).logpdf(r))
