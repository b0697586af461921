"""Log cost learned from earlier tasks, and what a task's own observations make of it."""

from __future__ import annotations

import numpy as np
import pytest

from farthing.surrogates.cost import transfer
from farthing.surrogates.cost.choice import choose
from farthing.surrogates.cost.log_cost import CostModel
from farthing.surrogates.cost.transfer import Transferred, fit

SLOPES = np.array([4.0, -1.5, 0.0])
GROUPS, RATIOS = np.arange(3), np.ones(3)


def shape(X: np.ndarray) -> np.ndarray:
    return X @ SLOPES + 0.5 * np.sin(5.0 * X[:, 1])


def tasks(intercepts, n: int = 25, seed: int = 0, noise: float = 0.05, drift: float = 0.0):
    """Observations of several tasks of one shape; with `drift` each looks at another part of the space."""
    rng = np.random.default_rng(seed)
    X = rng.random((len(intercepts) * n, 3))
    task = np.repeat(np.arange(len(intercepts)), n)
    X[:, 0] = (1.0 - drift) * X[:, 0] + drift * task / max(len(intercepts) - 1, 1)
    return X, np.asarray(intercepts)[task] + shape(X) + noise * rng.standard_normal(len(X)), task


def learned(intercepts, m: float | None = None, **options) -> Transferred:
    """From tasks whose intercept is what they say of themselves, or who say nothing."""
    X, b, task = tasks(intercepts, **options)
    M = np.asarray(intercepts, dtype=float)[:, None] if m is not None else np.empty((len(intercepts), 0))
    return fit(X, b, task, GROUPS, RATIOS, M, np.array([] if m is None else [m]))


def rmse(model: CostModel, truth, seed: int = 99) -> float:
    P = np.random.default_rng(seed).random((300, 3))
    return float(np.sqrt(np.mean((model.predict(P)[0] - truth(P)) ** 2)))


@pytest.mark.parametrize("drift", [0.0, 0.7])
@pytest.mark.parametrize("sizes", [(30, 30, 30), (40, 5, 12)])
def test_intercepts_are_those_of_the_tasks_wherever_each_looked(drift, sizes):
    """Up to one common number, which is the shape's. A mean per task would mistake the drift for an intercept."""
    intercepts = np.array([-3.0, 0.5, 4.0])
    X, b, task = tasks(intercepts, n=40, drift=drift)
    kept = np.concatenate([np.flatnonzero(task == i)[:size] for i, size in enumerate(sizes)])
    found = transfer._intercepts(X[kept], b[kept], task[kept])
    np.testing.assert_allclose(found - found.mean(), intercepts - intercepts.mean(), atol=0.25)


def test_one_odd_timing_does_not_move_an_intercept():
    X, b, task = tasks([0.0, 1.0, 2.0])
    struck = b.copy()
    struck[30] += 8.0
    assert np.abs(transfer._intercepts(X, struck, task) - transfer._intercepts(X, b, task)).max() < 0.15


@pytest.mark.parametrize("new", [0.7, 2.5, 4.5])
def test_what_a_task_is_like_gives_its_intercept(new):
    intercepts = [0.0, 1.2, 2.1, 3.0, 4.2]
    assert rmse(learned(intercepts, new), lambda P: new + shape(P)) < 0.25


def test_a_task_that_says_nothing_is_expected_to_be_like_the_others():
    intercepts = [0.0, 1.0, 2.0, 3.0]
    model = learned(intercepts)
    assert rmse(model, lambda P: np.mean(intercepts) + shape(P)) < 0.25
    assert model.intercept_variance > 0.7 * np.var(intercepts)
    assert learned(intercepts, 1.5).intercept_variance < 0.5 * model.intercept_variance


def test_beyond_the_tasks_the_intercept_goes_on_but_not_for_ever():
    near, far, absurd = (learned([0.0, 1.0, 2.0, 3.0], m).intercept for m in (3.0, 5.0, 1000.0))
    assert 1.0 < far - near < 2.2
    assert absurd - near < 8.0


def test_variance_counts_the_intercept_and_the_misfit():
    """Nine in ten of what new tasks cost is within the interval."""
    held = []
    for seed in range(25):
        rng = np.random.default_rng(1000 + seed)
        intercepts = rng.normal(0.0, 1.0, 6)
        X, b, task = tasks(intercepts[:5], n=15, seed=seed, noise=0.3)
        P = rng.random((20, 3))
        mean, variance = fit(X, b, task, GROUPS, RATIOS, np.empty((5, 0)), np.empty(0)).predict(P)
        seen = intercepts[5] + shape(P) + 0.3 * rng.standard_normal(20)
        held.append(np.abs(seen - mean) < 1.645 * np.sqrt(variance))
    assert 0.78 <= np.mean(held) <= 0.99


def differences(model: CostModel, X: np.ndarray, h: float = 1e-5) -> tuple[np.ndarray, np.ndarray]:
    """Slopes of mean and variance by central differences, (m, f) each."""
    slopes = np.empty((2, *X.shape))
    for j in range(X.shape[1]):
        step = h * np.eye(X.shape[1])[j]
        slopes[:, :, j] = (np.array(model.predict(X + step)) - np.array(model.predict(X - step))) / (2.0 * h)
    return slopes[0], slopes[1]


def corrected(n: int) -> CostModel:
    X, b, _ = tasks([1.0], n=n, seed=7)
    return choose(X, b, GROUPS, np.array([16.0, 1.0, 1.0]), prior=learned([0.0, 1.0, 2.0])).model


@pytest.mark.parametrize(
    "make", [lambda: learned([0.0, 1.0, 2.0], 1.5), lambda: corrected(1), lambda: corrected(4), lambda: corrected(12)]
)
def test_gradients_are_those_of_finite_differences(make):
    model, X = make(), 0.02 + 0.96 * np.random.default_rng(3).random((20, 3))
    mean, variance, mean_slope, variance_slope = model.predict_with_gradient(X)
    np.testing.assert_allclose(np.array([mean, variance]), np.array(model.predict(X)), atol=1e-10)
    expected = differences(model, X)
    np.testing.assert_allclose(mean_slope, expected[0], atol=1e-5)
    np.testing.assert_allclose(variance_slope, expected[1], atol=1e-5)
    np.testing.assert_allclose(model.mean_at(X), mean, atol=1e-10)
    for ours, theirs in zip(model.mean_with_gradient(X), (mean, mean_slope), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-10)


class Raised(CostModel):
    """A prior that says the same, so much higher."""

    def __init__(self, prior: CostModel, by: float) -> None:
        self.prior, self.by = prior, by

    def predict(self, X):
        mean, variance = self.prior.predict(X)
        return mean + self.by, variance

    def predict_with_gradient(self, X):
        mean, *others = self.prior.predict_with_gradient(X)
        return mean + self.by, *others


@pytest.mark.parametrize("n", [1, 4, 12])
def test_in_another_unit_the_costs_are_the_same(n):
    """Seconds or hours: prior and costs move together, and so do the predictions; nothing else does."""
    prior = learned([0.0, 1.0, 2.0])
    X, b, _ = tasks([5.0], n=n, seed=3)
    seconds, hours = (choose(X, b + by, GROUPS, RATIOS, prior=Raised(prior, by)).model for by in (0.0, -np.log(3600)))
    P = np.random.default_rng(0).random((10, 3))
    np.testing.assert_allclose(seconds.predict(P)[0], hours.predict(P)[0] + np.log(3600), atol=1e-6)
    np.testing.assert_allclose(seconds.predict(P)[1], hours.predict(P)[1], rtol=1e-6)


def mean_errors(prior: CostModel | None, truth, sizes) -> np.ndarray:
    """RMSE by number of observations, over several sets of them."""
    errors = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X = rng.random((max(sizes), 3))
        b = truth(X) + 0.1 * rng.standard_normal(len(X))
        errors.append([rmse(choose(X[:n], b[:n], GROUPS, RATIOS, prior=prior).model, truth) for n in sizes])
    return np.mean(errors, axis=0)


def test_a_right_prior_helps_from_the_start():
    """The intercept of the new task was never seen, its shape was."""
    prior = learned([0.0, 1.0, 2.0, 3.0])

    def truth(P):
        return 2.6 + shape(P)

    sizes = [1, 2, 3, 5]
    ours, without = mean_errors(prior, truth, sizes), mean_errors(None, truth, sizes)
    assert rmse(prior, truth) < 1.3  # before anything is seen
    assert (ours < 0.5 * without).all()
    assert ours[1] < 0.25


@pytest.mark.parametrize(
    "truth",
    [
        lambda P: 9.0 + shape(P),  # an intercept far from all that was seen
        lambda P: -5.0 - P @ SLOPES,  # the opposite slopes
        lambda P: 3.0 * P[:, 2],  # what mattered does not, and the reverse
    ],
)
def test_a_wrong_prior_is_at_most_four_observations_behind_none(truth):
    prior = learned([0.0, 1.0, 2.0, 3.0])
    ours, without = mean_errors(prior, truth, [7, 10, 16]), mean_errors(None, truth, [3, 6, 12])
    assert (ours < 1.1 * without + 0.06).all()
    assert ours[0] < 0.3 * rmse(prior, truth)


HOSTILE = {
    "one task, one observation": ([2.0], 1),
    "one task": ([2.0], 10),
    "a task per observation": (list(np.linspace(0, 3, 12)), 1),
    "eight decades": ([-9.0, 9.0], 10),
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("described", [True, False])
def test_hostile_tasks_give_finite_predictions(name, described):
    intercepts, n = HOSTILE[name]
    model = learned(intercepts, 1.0 if described else None, n=n)
    P = np.random.default_rng(0).random((20, 3))
    assert all(np.isfinite(part).all() for part in model.predict_with_gradient(P))
    assert (model.predict(P)[1] > 0.0).all()


def test_what_is_the_same_for_all_tasks_says_nothing():
    X, b, task = tasks([0.0, 1.0, 2.0])
    same, none = (
        fit(X, b, task, GROUPS, RATIOS, M, m)
        for M, m in ((np.ones((3, 1)), np.ones(1)), (np.empty((3, 0)), np.empty(0)))
    )
    assert same.intercept == pytest.approx(none.intercept, abs=1e-6)
