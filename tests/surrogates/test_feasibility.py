"""The model of success: exact, calibrated, quick to learn, and never final."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

import farthing as ft
from farthing.errors import InvalidArgument
from farthing.surrogates import feasibility, gp
from farthing.surrogates.feasibility import FAILURE, LEAST_CHANCE, LOG_NOISE, SHORTEST, SUCCESS, Loss


def ball(X: np.ndarray, centre: float = 0.4, radius: float = 0.3) -> np.ndarray:
    """Which points (n, f) succeed: those outside of a ball."""
    return np.linalg.norm(X - centre, axis=1) > radius


def chance(model: feasibility.Feasibility, X: np.ndarray) -> np.ndarray:
    return np.exp(model.log_success(X))


def at_shortest(X: np.ndarray, succeeded: np.ndarray) -> feasibility.Feasibility:
    """The model with the length-scales it starts from."""
    f = X.shape[1]
    return feasibility.from_hyperparameters(
        X, succeeded, gp.Hyperparameters((float(np.log(SHORTEST * np.sqrt(f))),) * f, LOG_NOISE)
    )


def test_it_is_the_dense_formula():
    """Against the textbook's inverse of the whole matrix, with a kernel written out here."""
    rng = np.random.default_rng(0)
    X, Z = rng.random((15, 3)), rng.random((40, 3))
    succeeded = ball(X)
    scale, eta = SHORTEST * np.sqrt(3), np.exp(LOG_NOISE)

    def kernel(A, B):
        r = np.sqrt(5.0) * np.linalg.norm(A[:, None] - B[None], axis=2) / scale
        return (1 + r + r**2 / 3) * np.exp(-r)

    inverse = np.linalg.inv(kernel(X, X) + eta * np.eye(15))
    k = kernel(Z, X)
    mean = SUCCESS + k @ inverse @ (np.where(succeeded, SUCCESS, FAILURE) - SUCCESS)
    variance = 1.0 - np.einsum("ij,jk,ik->i", k, inverse, k)
    expected = LEAST_CHANCE + (1 - LEAST_CHANCE) * norm.cdf(mean / np.sqrt(variance + eta))
    np.testing.assert_allclose(chance(at_shortest(X, succeeded), Z), expected, rtol=1e-8)


def test_the_gradient_of_log_success_is_that_of_finite_differences():
    rng = np.random.default_rng(1)
    X = rng.random((40, 4))
    model = feasibility.fit(X, ball(X, radius=0.45))
    Z, step = rng.random((30, 4)), 1e-6
    value, slope = model.log_success_with_gradient(Z)
    np.testing.assert_allclose(value, model.log_success(Z), rtol=1e-10, atol=1e-12)
    moved = [(model.log_success(Z + step * e) - model.log_success(Z - step * e)) / (2 * step) for e in np.eye(4)]
    np.testing.assert_allclose(slope, np.stack(moved, axis=1), rtol=1e-4, atol=1e-6)


def test_the_gradient_of_the_loss_is_that_of_finite_differences():
    """With a parameter that has several columns."""
    rng = np.random.default_rng(2)
    X, groups = rng.random((30, 4)), np.array([0, 1, 1, 2])
    loss = Loss(X, ball(X, radius=0.45), groups, 3)
    theta, step = loss.shortest + rng.random(3), 1e-6
    moved = [(loss(theta + step * e)[0] - loss(theta - step * e)[0]) / (2 * step) for e in np.eye(3)]
    np.testing.assert_allclose(loss(theta)[1], moved, rtol=1e-5)


def test_probabilities_are_calibrated_on_the_safe_side():
    """Of points said to succeed with some probability at least that share does; of those said to fail for sure, of
    which some are only near a failure, four in five do."""
    rng = np.random.default_rng(3)
    said, seen = [], []
    for _ in range(40):
        X, Z = rng.random((40, 2)), rng.random((500, 2))
        centre, radius = rng.random(), rng.uniform(0.2, 0.4)
        if ball(X, centre, radius).all():
            continue
        said.append(chance(feasibility.fit(X, ball(X, centre, radius)), Z))
        seen.append(ball(Z, centre, radius))
    p, succeeded = np.concatenate(said), np.concatenate(seen)
    for low, high in ((0.3, 0.5), (0.5, 0.7), (0.7, 0.9), (0.9, 1.01)):
        inside = (p >= low) & (p < high)
        assert inside.sum() > 50
        assert succeeded[inside].mean() > low
    assert succeeded[p < 0.01].mean() < 0.2
    assert np.mean((p > 0.5) == succeeded) > 0.9


def test_what_was_never_tried_is_expected_to_succeed():
    model = at_shortest(np.array([[0.0, 0.0]]), np.array([False]))
    assert chance(model, np.array([[1.0, 1.0]]))[0] > 0.8


def test_each_failure_lowers_the_chance_where_it_happened_and_a_surprising_one_on_the_whole():
    """With the length-scales as they are: among successes, at random places, one after another."""
    rng = np.random.default_rng(4)
    X, everywhere = rng.random((10, 2)), rng.random((400, 2))
    succeeded, surprises = np.ones(10, dtype=bool), 0
    for _ in range(8):
        before = at_shortest(X, succeeded)
        here = rng.random((1, 2))
        X, succeeded = np.concatenate([X, here]), np.append(succeeded, False)
        after = at_shortest(X, succeeded)
        assert after.log_success(here)[0] < min(before.log_success(here)[0] + 1e-9, np.log(1e-3))
        if chance(before, here)[0] > 0.5:
            assert chance(after, everywhere).mean() < chance(before, everywhere).mean()
            surprises += 1
    assert surprises >= 4


def test_a_region_surrounded_by_later_successes_recovers():
    failed = np.array([[0.5, 0.5]])
    near = np.array([[0.53, 0.5]])
    alone = chance(at_shortest(failed, np.array([False])), near)[0]
    angles = np.linspace(0.0, 2 * np.pi, 9)[:-1]
    ring = 0.5 + 0.04 * np.column_stack([np.cos(angles), np.sin(angles)])
    model = at_shortest(np.concatenate([failed, ring]), np.arange(9) > 0)
    assert alone < 0.05
    assert chance(model, near)[0] > 0.5


def test_nothing_is_forbidden_for_ever():
    """However often it failed, the log probability stays above that of one in a million, with a finite slope."""
    X = np.full((200, 2), 0.5) + 1e-3 * np.random.default_rng(5).standard_normal((200, 2))
    model = feasibility.fit(X, np.zeros(200, dtype=bool))
    value, slope = model.log_success_with_gradient(X[:5])
    assert np.all(value >= np.log(LEAST_CHANCE) - 1e-9)
    assert np.all(np.isfinite(slope))


def test_parameters_without_influence_come_to_count_less():
    """Of six only the first decides: over ten draws its length-scale stays the shortest, and all others grow."""
    rng = np.random.default_rng(6)
    draws = [rng.random((60, 6)) for _ in range(10)]
    scales = np.array([feasibility.fit(X, X[:, 0] < 0.6).hyperparameters.log_scales for X in draws])
    longer = np.mean(scales, axis=0) - np.log(SHORTEST * np.sqrt(6))
    assert longer[0] < 0.01
    assert np.all(longer[1:] > 0.05)


def test_an_option_that_fails_is_known_within_a_few_failures():
    """A Choice among three other parameters: after four failures of one option it is avoided, the others are not."""
    space = ft.Space(x=ft.Real(0, 1), y=ft.Real(0, 1), z=ft.Real(0, 1), kind=ft.Choice(["a", "b", "c"]))
    rng = np.random.default_rng(7)
    configs = space.decode_many(rng.random((14, 4)))
    failed = np.array([config["kind"] == "b" for config in configs])
    assert 3 <= failed.sum() <= 6
    model = feasibility.fit(space.features(space.encode_many(configs)), ~failed, space.groups)
    fresh = space.decode_many(rng.random((400, 4)))
    p = chance(model, space.features(space.encode_many(fresh)))
    bad = np.array([config["kind"] == "b" for config in fresh])
    assert np.median(p[bad]) < 0.3
    assert np.median(p[~bad]) > 0.8


def test_a_warm_start_comes_to_the_same_scales():
    X = np.random.default_rng(8).random((50, 3))
    succeeded = ball(X, radius=0.4)
    first = feasibility.fit(X, succeeded)
    again = feasibility.fit(X, succeeded, warm=first.hyperparameters)
    np.testing.assert_allclose(again.hyperparameters.log_scales, first.hyperparameters.log_scales, atol=0.1)


@pytest.mark.parametrize("n", [0, 3])
def test_sizes_that_do_not_fit_are_refused(n):
    with pytest.raises(InvalidArgument, match="of one length above 0"):
        feasibility.fit(np.zeros((n, 2)), np.ones(n // 2, dtype=bool))
