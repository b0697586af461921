"""A cost model of the user's own features, as one candidate among the others."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from farthing.surrogates.cost import flops
from farthing.surrogates.cost.choice import choose
from farthing.surrogates.cost.lines import KAPPA, NOISE_PRIOR, NOISE_STRENGTH, log_student, residual_scale
from farthing.surrogates.cost.log_cost import CostModel

PRICES = np.array([3.0, 0.5])
COUNTED = ("own", "gp-flops")  # the counts alone, and a process on them


def counted(n: int, seed: int, noise: float = 0.1) -> tuple[np.ndarray, np.ndarray]:
    """Two counts over two decades each, and costs of them."""
    rng = np.random.default_rng(seed)
    Phi = 10.0 ** rng.uniform(0.0, 2.0, (n, 2))
    return Phi, (Phi @ PRICES + 5.0) * np.exp(noise * rng.standard_normal(n))


@pytest.mark.parametrize("seed", range(4))
def test_densities_are_those_of_fits_without_the_observation(seed):
    """Each cost under the law of a model fitted to all the others; to first order, as the closed form is."""
    Phi, cost = counted(20, seed)
    expected = []
    for i in range(20):
        others = np.arange(20) != i
        model = flops.fit(Phi[others], cost[others])
        mean, variance = model.predict(Phi[[i]])
        freedom = NOISE_STRENGTH + 18.0
        square = variance / (freedom / (freedom - 2.0))  # of Student's law, from its variance
        expected.append(log_student(np.log(cost[i]) - mean, square, freedom)[0])
    ours = flops.fit(Phi, cost).log_densities()
    np.testing.assert_allclose(ours, expected, atol=0.25)
    assert ours.sum() == pytest.approx(np.sum(expected), abs=0.6)
    assert np.corrcoef(ours, expected)[0, 1] > 0.95


def test_the_scale_without_an_observation_never_falls_below_the_prior():
    Phi, cost = counted(10, 0, noise=0.0)
    densities = flops.fit(Phi, cost).log_densities()
    least = NOISE_STRENGTH * NOISE_PRIOR**2 / (NOISE_STRENGTH + 8.0)
    assert (densities <= log_student(np.zeros(10), np.full(10, least), NOISE_STRENGTH + 8.0) + 1e-9).all()
    assert residual_scale(0.0, 10) ** 2 * KAPPA < least


def test_the_right_features_have_larger_densities():
    Phi, cost = counted(15, 1)
    right = flops.fit(Phi, cost).log_densities().sum()
    shuffled = flops.fit(np.random.default_rng(0).permutation(Phi), cost).log_densities().sum()
    half = flops.fit(Phi[:, [1]], cost).log_densities().sum()
    assert right > half + 3.0
    assert right > shuffled + 10.0


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("columns", [0, 1, 5])
def test_few_observations_have_finite_densities(n, columns):
    rng = np.random.default_rng(n)
    densities = flops.fit(rng.random((n, columns)), rng.random(n)).log_densities()
    assert densities.shape == (n,)
    assert np.isfinite(densities).all()


class Own(CostModel):
    """Counts that are functions of x, as a candidate."""

    def __init__(self, count, X: np.ndarray, cost: np.ndarray) -> None:
        self.count, self.fitted = count, flops.fit(count(X), cost)

    def predict(self, X):
        return self.fitted.predict(self.count(X))

    def predict_with_gradient(self, X):
        return *self.predict(X), np.zeros(X.shape), np.zeros(X.shape)

    def log_densities(self):
        return self.fitted.log_densities()


def right(X: np.ndarray) -> np.ndarray:
    return np.column_stack([np.exp(6.0 * X[:, 0]) * X[:, 1], np.exp(3.0 * X[:, 2])])


def nonsense(X: np.ndarray) -> np.ndarray:
    return np.column_stack([1.0 + np.sin(500.0 * X[:, 1]), 1.0 - X[:, 0]])


def observed(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.random((n, 3))
    return X, (right(X) @ [2.0, 1.0] + 1.0) * np.exp(0.05 * rng.standard_normal(n))


def chosen(count, n: int, seed: int):
    X, cost = observed(n, seed)
    own = None if count is None else Own(count, X, cost)
    return choose(X, np.log(cost), np.arange(3), np.ones(3), own=own)


def error(count, n: int, seed: int) -> float:
    P = np.random.default_rng(77).random((200, 3))
    return float(
        np.sqrt(np.mean((chosen(count, n, seed).model.predict(P)[0] - np.log(right(P) @ [2.0, 1.0] + 1.0)) ** 2))
    )


@pytest.mark.parametrize("n", [6, 12, 30])
def test_the_right_features_win_and_are_named(n):
    choice = chosen(right, n, 0)
    assert choice.name in COUNTED
    assert sum(choice.weights.get(name, 0.0) for name in COUNTED) > 0.5
    assert "the given cost features" in choice.reason
    assert sum(choice.weights.values()) == pytest.approx(1.0)
    assert error(right, n, 0) < 0.5 * error(None, n, 0)


@pytest.mark.parametrize("n", [12, 30, 60])
def test_nonsense_weighs_little_and_does_little_harm(n):
    weights = [chosen(nonsense, n, seed).weights.get("own", 0.0) for seed in range(3)]
    assert max(weights) < 0.15
    ours, without = (np.mean([error(count, n, seed) for seed in range(3)]) for count in (nonsense, None))
    assert ours < 1.15 * without


def test_they_stay_when_only_one_process_competes():
    """From 50 observations on, between contests: the weights are made again without the other processes."""
    X, cost = observed(61, 2)
    first = choose(X[:60], np.log(cost[:60]), np.arange(3), np.ones(3), own=Own(right, X[:60], cost[:60]))
    second = choose(X, np.log(cost), np.arange(3), np.ones(3), first.state, own=Own(right, X, cost))
    assert second.name in COUNTED
    assert len([name for name in second.weights if name.startswith("gp")]) <= 1


@pytest.mark.parametrize("n", [6, 30])
def test_alone_in_the_average_they_are_the_model(n, monkeypatch):
    """The counts, or from 8 observations on the process on them: nothing is computed that has no weight."""
    monkeypatch.setattr("farthing.surrogates.cost.choice.LEAST_WEIGHT", 0.9)
    X, cost = observed(n, 0)
    own = Own(right, X, cost)
    choice = choose(X, np.log(cost), np.arange(3), np.ones(3), own=own)
    assert choice.model is own if choice.name == "own" else choice.model.own is own
    assert len(choice.weights) == 1


@pytest.mark.parametrize(("n", "seed"), [(12, 1), (6, 1)])
def test_the_average_with_them_is_the_mixture(n, seed):
    """Of the counts, of the process on them, and of the average of all others: by weight, mean and second moment."""
    X, cost = observed(n, seed)
    choice, own = chosen(right, n, seed), Own(right, X, cost)
    P = np.random.default_rng(5).random((20, 3))
    laws, weights = [own.predict(P)], [choice.weights["own"]]
    rest, on_counts = choice.model.models
    if "gp-flops" in choice.weights:
        alone = replace(on_counts, share=1.0)
        laws.append(alone.predict(P))
        weights.append(choice.weights["gp-flops"])
    laws.append(rest.predict(P))
    weights.append(1.0 - sum(weights))
    assert 0.05 < weights[0] < 0.95
    assert len(laws) == (3 if n >= 8 else 2)
    mean = sum(w * law[0] for w, law in zip(weights, laws, strict=True))
    second_moment = sum(w * (law[1] + law[0] ** 2) for w, law in zip(weights, laws, strict=True))
    np.testing.assert_allclose(choice.model.predict(P)[0], mean, rtol=1e-10)
    np.testing.assert_allclose(choice.model.predict(P)[1], second_moment - mean**2, rtol=1e-8)
