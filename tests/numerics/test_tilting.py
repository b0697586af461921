"""Draws by minimax tilting, against rejection sampling, exact moments in one dimension and Genz's probabilities."""

from __future__ import annotations

import numpy as np
import pytest

from farthing.errors import InvalidArgument
from farthing.numerics import tilting
from farthing.numerics.truncated import interval_moments
from oracles.boxes import box_moments, log_box_probability, tilted_log_probability

INF = np.inf


def random_case(rng: np.random.Generator, d: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    A = rng.normal(size=(d, d + 1))
    lower = np.where(rng.random(d) < 0.5, -INF, rng.normal(size=d) - 1.0)
    return rng.normal(size=d) * 0.5, A @ A.T / d, lower, np.where(np.isfinite(lower), lower + 2.0, 0.5)


@pytest.mark.parametrize("d", [2, 3, 4, 5])
def test_draws_have_the_moments_of_rejection_sampling(d: int) -> None:
    """First and second moments agree within five of their own standard errors."""
    rng = np.random.default_rng(d)
    mean, K, lower, upper = random_case(rng, d)
    free = rng.multivariate_normal(mean, K, size=400_000)
    kept = free[np.all((free >= lower) & (free <= upper), axis=1)]
    assert len(kept) > 500
    found = tilting.sample(mean, K, lower, upper, 5_000, rng)
    assert found.exact
    for power in (1, 2):
        a, b = kept**power, found.X**power
        error = np.sqrt(a.var(axis=0) / len(a) + b.var(axis=0) / len(b))
        assert np.all(np.abs(a.mean(axis=0) - b.mean(axis=0)) < 5.0 * error)
    assert np.abs(np.corrcoef(kept.T) - np.corrcoef(found.X.T)).max() < 5.0 / np.sqrt(min(len(kept), 5_000))


@pytest.mark.parametrize("limits", [(-INF, 0.0), (2.0, INF), (8.0, INF), (-0.3, 0.1), (-INF, -30.0)])
def test_one_dimension_has_the_exact_moments(limits: tuple[float, float]) -> None:
    exact = interval_moments(np.array([0.2]), np.array([1.5]), *limits)
    found = tilting.sample(
        np.array([0.2]), np.array([[1.5]]), *(np.array([v]) for v in limits), 20_000, np.random.default_rng(0)
    )
    sd = float(np.sqrt(exact.variance[0]))
    assert abs(found.X.mean() - exact.mean[0]) < 5.0 * sd / np.sqrt(20_000)
    assert abs(found.X.std() / sd - 1.0) < 0.05
    assert found.acceptance == 1.0  # nothing to tilt: the sequence is exact


@pytest.mark.parametrize("d", [2, 6, 20])
def test_probabilities_are_those_of_genz(d: int) -> None:
    mean, K, lower, upper = random_case(np.random.default_rng(d), d)
    genz = log_box_probability(mean, K, lower, upper)
    assert abs(tilted_log_probability(mean, K, lower, upper) - genz) < 0.03
    drawn = tilting.sample(mean, K, lower, upper, 2_000, np.random.default_rng(0)).log_probability
    assert abs(drawn - genz) < 0.1


def improbable(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Smooth slopes, up to 40, which given their mean are below 0 with probability under one in a million."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(2, 41))
    t = np.sort(rng.random(d))
    K = np.exp(-0.5 * ((t[:, None] - t) / rng.uniform(0.1, 1.0)) ** 2) + 1e-6 * np.eye(d)
    return 5.5 + rng.random() * 3.0 + np.abs(rng.normal(size=d)), K


def test_boxes_of_tiny_probability_give_draws_inside() -> None:
    """In 60 states with probability under 1e-6, all give draws and nearly all exact ones."""
    exact = []
    for seed in range(60):
        mean, K = improbable(seed)
        found = tilting.sample(mean, K, np.full(len(mean), -INF), np.zeros(len(mean)), 64, np.random.default_rng(seed))
        assert found.log_probability < np.log(1e-6)
        assert np.all(np.isfinite(found.X))
        assert found.X.shape == (64, len(mean))
        assert found.X.max() <= 0.0
        exact.append(found.exact)
    assert np.mean(exact) >= 0.95


def test_the_fallback_has_the_right_moments(monkeypatch: pytest.MonkeyPatch) -> None:
    """When every proposal is refused, resampling and Gibbs sweeps still give the mean, and say that they did."""
    rng = np.random.default_rng(3)
    mean, K, lower, upper = random_case(rng, 4)
    monkeypatch.setattr(tilting, "_saddle", lambda *box: (np.zeros(4), np.zeros(4), False))
    found = tilting.sample(mean, K, lower, upper, 4_000, rng)
    centre, covariance = box_moments(mean, K, lower, upper)
    assert not found.exact
    assert np.all(np.abs(found.X.mean(axis=0) - centre) < 6.0 * np.sqrt(np.diag(covariance) / 4_000))
    np.testing.assert_array_equal(found.X, np.clip(found.X, lower, upper))


def test_the_value_at_the_saddle_bounds_every_proposal() -> None:
    """What makes acceptance-rejection exact."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        ready = tilting.tilted(*random_case(rng, int(rng.integers(2, 15))))
        assert ready.found
        assert ready.propose(rng.uniform(1e-9, 1.0, (2_000, len(ready.mu))))[1].max() <= ready.psi + 1e-9


def test_the_gradient_of_the_saddle_agrees_with_finite_differences() -> None:
    mean, K, lower, upper = random_case(np.random.default_rng(1), 5)
    ready = tilting.tilted(mean, K, lower, upper)
    y = np.random.default_rng(2).normal(size=8) * 0.3
    gradient, jacobian = tilting._gradient(y, ready.T, ready.l, ready.u)

    def psi(y: np.ndarray) -> float:
        x, mu = np.append(y[:4], 0.0), np.append(y[4:], 0.0)
        shift = mu + ready.T @ x
        return float(np.sum(tilting._log_width(ready.l - shift, ready.u - shift) + mu * (0.5 * mu - x)))

    step = 1e-5 * np.eye(8)
    np.testing.assert_allclose(gradient, [(psi(y + e) - psi(y - e)) / 2e-5 for e in step], atol=1e-7)
    rows = [tilting._gradient(y + e, ready.T, ready.l, ready.u)[0] for e in (*step, *-step)]
    np.testing.assert_allclose(jacobian, (np.array(rows[:8]) - np.array(rows[8:])) / 2e-5, atol=1e-7)


def test_the_same_generator_gives_the_same_draws() -> None:
    case = random_case(np.random.default_rng(0), 6)
    a, b = (tilting.sample(*case, 50, np.random.default_rng(9)).X for _ in range(2))
    np.testing.assert_array_equal(a, b)


def test_no_coordinates_and_empty_intervals() -> None:
    nothing = np.empty(0)
    assert tilting.sample(nothing, np.empty((0, 0)), nothing, nothing, 3, np.random.default_rng(0)).X.shape == (3, 0)
    with pytest.raises(InvalidArgument, match="expected lower limits below upper ones"):
        tilting.sample(np.zeros(1), np.eye(1), np.ones(1), np.zeros(1), 3, np.random.default_rng(0))
