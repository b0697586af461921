"""The choice among cost models: its weights, its accuracy, what it remembers."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.optimize import approx_fprime, minimize

from farthing.surrogates.cost import choice, log_cost
from farthing.surrogates.cost.choice import FADES_FROM, PRIOR_STRENGTH, choose, stacked
from farthing.surrogates.cost.lines import fit_sizes
from oracles.log_costs import chosen_for, played, straight, wavy


def test_gradients_of_a_choice_are_those_of_finite_differences():
    X, b = wavy(20)
    model = choose(X, b, np.arange(5), np.array([1.0, 30.0, 1.0, 0.1, 1.0])).model
    for x in np.random.default_rng(1).random((3, 5)):
        mean, variance, mean_slope, variance_slope = (part[0] for part in model.predict_with_gradient(x[None]))
        assert (mean, variance) == pytest.approx([part[0] for part in model.predict(x[None])])
        for slope, part in ((mean_slope, 0), (variance_slope, 1)):
            wanted = approx_fprime(x, lambda at, part=part: model.predict(at[None])[part][0], 1e-6)
            np.testing.assert_allclose(slope, wanted, atol=1e-4)


def test_weights_maximise_the_stacked_density_and_the_prior(monkeypatch):
    monkeypatch.setattr(choice, "STACKING_STEPS", 5000)
    rng = np.random.default_rng(0)
    D, prior = rng.normal(0.0, 1.5, (12, 3)), np.array([0.2, 0.5, 0.3])

    def loss(p: np.ndarray) -> float:
        w = np.exp(p) / np.exp(p).sum()
        return -float(np.log(np.exp(D) @ w).sum() + PRIOR_STRENGTH * prior @ np.log(w))

    best = np.exp(minimize(loss, np.zeros(3), options={"gtol": 1e-9}).x)
    np.testing.assert_allclose(stacked(D, prior), best / best.sum(), atol=1e-5)


def test_without_evidence_either_way_weights_are_the_prior():
    prior = np.array([0.2, 0.8])
    np.testing.assert_allclose(stacked(np.full((9, 2), -3.0), prior), prior)


def test_densities_a_thousand_nats_apart_do_not_overflow():
    w = stacked(np.array([[-1000.0, 0.0]] * 10), np.array([0.5, 0.5]))
    assert w[1] == pytest.approx((PRIOR_STRENGTH * 0.5 + 10) / (PRIOR_STRENGTH + 10))


def test_the_prior_fades():
    """From FADES_FROM observations on, its strength is less in proportion."""
    n = 2 * FADES_FROM
    w = stacked(np.array([[-1000.0, 0.0]] * n), np.array([0.5, 0.5]))
    assert w[0] == pytest.approx(PRIOR_STRENGTH / 2.0 * 0.5 / (PRIOR_STRENGTH / 2.0 + n))


def test_lines_win_on_lines_and_processes_on_waves():
    line, wave = chosen_for(*straight(40)), chosen_for(*wavy(60))
    assert line.name.startswith("linear")
    assert wave.name.startswith("gp")
    assert wave.scores[wave.name] > wave.scores["linear"] + 10.0
    assert wave.reason.startswith("log cost by a Gaussian process")
    assert line.significant[0] == 2
    assert wave.significant[0] == 1


def test_the_average_is_close_to_the_better_model_on_both():
    for data in (straight, wavy):
        X, b = data(60)
        P, truth = data(300, seed=9)
        model = chosen_for(X, b).model
        gap = [np.sqrt(np.mean((m.predict(P)[0] - truth) ** 2)) for m in (model, *alone(X, b))]
        assert gap[0] < 1.15 * min(gap[1:])


def alone(X: np.ndarray, b: np.ndarray) -> tuple[log_cost.CostModel, ...]:
    return fit_sizes(X, b)[1], log_cost.process(X, b)


def test_with_one_observation_weights_follow_the_evidence():
    """Leaving it out says the same of all lines; those in few parameters have more rivals of their size."""
    X, b = straight(1)
    lines = fit_sizes(X, b)
    parts = {size: np.exp(line.log_evidence) for size, line in lines.items()}
    parts = {size: part / sum(parts.values()) + choice.LEAST_SHARE for size, part in parts.items()}
    weights = chosen_for(X, b).weights
    assert weights["linear"] / weights["linear-2"] == pytest.approx(parts[5] / parts[2])
    assert weights["linear"] > weights["linear-1"] > weights["linear-2"]


def test_weights_sum_to_one_and_the_heaviest_comes_first():
    for made in played(*wavy(70), range(1, 71, 3)):
        weights = list(made.weights.values())
        assert sum(weights) == pytest.approx(1.0)
        assert weights == sorted(weights, reverse=True)
        assert made.name == next(iter(made.weights))
        assert min(weights) >= choice.LEAST_WEIGHT


def test_a_choice_follows_from_data_and_state_alone():
    """From a state that was written and read, the same answer to the last bit."""
    X, b = wavy(40)
    before = chosen_for(X[:30], b[:30])
    once, again = chosen_for(X, b, before.state), chosen_for(X, b, json.loads(json.dumps(before.state)))
    np.testing.assert_array_equal(once.model.predict(X)[0], again.model.predict(X)[0])
    assert once.state == again.state


HOSTILE = {
    "one point": (np.full((1, 2), 0.5), np.array([3.0])),
    "two points": (np.array([[0.1, 0.2], [0.9, 0.4]]), np.array([0.0, 5.0])),
    "constant costs": (np.random.default_rng(0).random((12, 4)), np.full(12, 2.0)),
    "duplicate rows": (np.repeat(np.random.default_rng(1).random((3, 4)), 4, axis=0), np.arange(12.0)),
    "all at one point": (np.full((12, 4), 0.5), np.arange(12.0)),
    "zero costs": (np.random.default_rng(2).random((12, 4)), log_cost.logs(np.repeat([0.0, 1e-8, 1.0], 4))),
    "eight decades": (np.random.default_rng(3).random((60, 4)), np.log(10.0) * np.linspace(-4, 4, 60)),
    "one parameter": (np.random.default_rng(4).random((12, 1)), np.arange(12.0)),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_data_gives_finite_predictions_and_positive_variances(name):
    X, b = HOSTILE[name]
    choice = chosen_for(X, b)
    P = np.random.default_rng(0).random((20, X.shape[1]))
    for part in choice.model.predict_with_gradient(P):
        assert np.isfinite(part).all()
    assert (choice.model.predict(P)[1] > 0.0).all()
    json.dumps(choice.state, allow_nan=False)


@pytest.mark.parametrize("n", [3, 10, 40])
def test_ninety_percent_intervals_hold_eighty_to_ninety_seven(n):
    """On costs that are lines in some parameters with noise."""
    held = []
    for seed in range(25):
        rng = np.random.default_rng(seed)
        w = np.where(rng.random(4) < 0.5, rng.normal(0.0, 2.0, 4), 0.0)
        X, P = rng.random((n, 4)), rng.random((60, 4))
        mean, variance = chosen_for(X, X @ w + 0.3 * rng.standard_normal(n)).model.predict(P)
        held.append(np.abs(P @ w + 0.3 * rng.standard_normal(60) - mean) < 1.645 * np.sqrt(variance))
    assert 0.80 <= np.mean(held) <= 0.97


def test_a_size_given_on_a_linear_scale_enters_as_its_log():
    """cost = value^2: a line in the log of the value, so few points reach all of its range."""
    x = np.random.default_rng(0).random((7, 1))
    b = 2.0 * np.log(1.0 + x[:, 0] * 99.0)
    P = np.linspace(0.01, 1.0, 50)[:, None]
    gap = np.abs(choose(x, b, [0], np.array([100.0])).model.predict(P)[0] - 2.0 * np.log(1.0 + P[:, 0] * 99.0))
    assert np.median(gap) < 0.3
