"""The average of cost models: its weights, its mixture, what it remembers."""

from __future__ import annotations

import json
from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import approx_fprime, minimize

from farthing.surrogates.cost import choice as cost_choice
from farthing.surrogates.cost import log_cost
from farthing.surrogates.cost.choice import (
    FADES_FROM,
    LONE_PROCESS_FROM,
    PRIOR_STRENGTH,
    PROCESSES_FROM,
    Average,
    choose,
    stacked,
)


class Normal(log_cost.CostModel):
    """A model that says the same mean + slope . x and variance everywhere."""

    def __init__(self, mean: float, slope: float, variance: float) -> None:
        self.mean, self.slope, self.variance = mean, slope, variance

    def predict(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self.mean + self.slope * X[:, 0], self.variance + 0.1 * X[:, 1]

    def predict_with_gradient(self, X: np.ndarray) -> tuple[np.ndarray, ...]:
        zero = np.zeros(len(X))
        mean_slope = np.column_stack([zero + self.slope, zero])
        return *self.predict(X), mean_slope, np.column_stack([zero, zero + 0.1])


def wavy(n: int, seed: int = 0, d: int = 5) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.random((n, d))
    return X, np.sin(9.0 * X[:, 0]) + 2.0 * X[:, 1] + 0.02 * rng.standard_normal(n)


def straight(n: int, seed: int = 0, d: int = 5) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.random((n, d))
    return X, 4.0 * X[:, 2] + 0.3 * rng.standard_normal(n)


def chosen_for(X: np.ndarray, b: np.ndarray, stored: dict | None = None) -> cost_choice.Chosen:
    return choose(X, b, np.arange(X.shape[1]), np.ones(X.shape[1]), stored)


def played(X: np.ndarray, b: np.ndarray, sizes: range) -> list[cost_choice.Chosen]:
    """Choices one after the other, each from the state of the last as it comes out of a file."""
    choices: list[cost_choice.Chosen] = []
    for n in sizes:
        stored = json.loads(json.dumps(choices[-1].state)) if choices else None
        choices.append(chosen_for(X[:n], b[:n], stored))
    return choices


def test_mean_and_variance_are_those_of_the_mixture():
    average = Average((Normal(0.0, 1.0, 0.5), Normal(3.0, -1.0, 0.1)), np.array([0.7, 0.3]))
    x = np.array([[0.4, 0.2]])
    rng = np.random.default_rng(0)
    first = rng.random(400_000) < 0.7
    means, variances = zip(*(model.predict(x) for model in average.models), strict=True)
    draws = np.where(
        first,
        rng.normal(means[0][0], np.sqrt(variances[0][0]), len(first)),
        rng.normal(means[1][0], np.sqrt(variances[1][0]), len(first)),
    )
    mean, variance = average.predict(x)
    assert mean[0] == pytest.approx(draws.mean(), abs=0.01)
    assert variance[0] == pytest.approx(draws.var(), rel=0.01)


def test_gradients_of_the_mixture_are_those_of_finite_differences():
    average = Average((Normal(0.0, 1.0, 0.5), Normal(3.0, -1.0, 0.1), Normal(1.0, 2.0, 0.3)), np.array([0.5, 0.3, 0.2]))
    x = np.array([0.4, 0.2])
    _, _, mean_slope, variance_slope = average.predict_with_gradient(x[None])
    for slope, part in ((mean_slope, 0), (variance_slope, 1)):
        wanted = approx_fprime(x, lambda at, part=part: average.predict(at[None])[part][0], 1e-7)
        np.testing.assert_allclose(slope[0], wanted, atol=1e-5)


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
    monkeypatch.setattr(cost_choice, "STACKING_STEPS", 5000)
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
    return cost_choice.linear_cost.fit_sizes(X, b)[1], log_cost.process(X, b)


def test_with_one_observation_weights_follow_the_evidence():
    """Leaving it out says the same of all lines; those in few parameters have more rivals of their size."""
    X, b = straight(1)
    lines = cost_choice.linear_cost.fit_sizes(X, b)
    parts = {size: np.exp(line.log_evidence) for size, line in lines.items()}
    parts = {size: part / sum(parts.values()) + cost_choice.LEAST_PART for size, part in parts.items()}
    weights = chosen_for(X, b).weights
    assert weights["linear"] / weights["linear-2"] == pytest.approx(parts[5] / parts[2])
    assert weights["linear"] > weights["linear-1"] > weights["linear-2"]


def test_few_observations_leave_processes_out():
    X, b = wavy(PROCESSES_FROM)
    assert not any(name.startswith("gp") for name in chosen_for(X[:-1], b[:-1]).scores)
    assert {"gp", "gp-lv", "gp-selected"} <= set(chosen_for(X, b).scores)


def test_three_parameters_need_no_selection():
    X, b = wavy(20, d=3)
    assert "gp-selected" not in chosen_for(X, b).scores
    assert "linear-3" not in chosen_for(X, b).scores


def test_weights_sum_to_one_and_the_heaviest_comes_first():
    for choice in played(*wavy(70), range(1, 71, 3)):
        weights = list(choice.weights.values())
        assert sum(weights) == pytest.approx(1.0)
        assert weights == sorted(weights, reverse=True)
        assert choice.name == next(iter(choice.weights))
        assert min(weights) >= cost_choice.LEAST_WEIGHT


def test_many_observations_leave_one_process():
    for choice in played(*wavy(70), range(40, 71)):
        processes = [name for name in choice.weights if name.startswith("gp")]
        assert len(processes) <= (1 if choice.state["n"] >= LONE_PROCESS_FROM else 3)


def test_losers_are_refitted_and_scored_when_the_data_has_grown_by_a_tenth():
    choices = played(*wavy(90), range(60, 91))
    contests = sorted({choice.state["contest_at"] for choice in choices})
    assert contests[0] == 60
    assert all(after >= 1.1 * before for before, after in pairwise(contests))
    assert len(contests) >= 4
    for before, after in pairwise(choices):
        if after.state["contest_at"] == before.state["contest_at"]:
            losers = {"gp", "gp-lv", "gp-selected"} - {after.state["leader"]}
            assert all(after.scores[name] == before.scores[name] for name in losers)
            assert all(after.state["processes"][name] == before.state["processes"][name] for name in losers)


def test_the_leader_is_refitted_more_often():
    choices = played(*wavy(75), range(60, 76))
    leader = choices[0].state["leader"]
    fitted = {choice.state["processes"][leader]["at"] for choice in choices if choice.state["leader"] == leader}
    assert len(fitted) >= 4


def test_a_choice_follows_from_data_and_state_alone():
    """From a state that was written and read, the same answer to the last bit."""
    X, b = wavy(40)
    before = chosen_for(X[:30], b[:30])
    once, again = chosen_for(X, b, before.state), chosen_for(X, b, json.loads(json.dumps(before.state)))
    np.testing.assert_array_equal(once.model.predict(X)[0], again.model.predict(X)[0])
    assert once.state == again.state


def test_stored_hyperparameters_are_used_between_fits():
    X, b = wavy(63)
    before = chosen_for(X[:62], b[:62])
    after = chosen_for(X, b, before.state)
    leader = before.state["leader"]
    assert after.state["processes"][leader] == before.state["processes"][leader]
    other = json.loads(json.dumps(before.state))
    other["processes"][leader]["hyperparameters"]["log_noise"] = 0.0
    assert np.abs(chosen_for(X, b, other).model.predict(X)[0] - after.model.predict(X)[0]).max() > 0.01


def test_no_stored_state_and_a_stored_one_agree_on_accuracy():
    X, b = wavy(80)
    P, truth = wavy(300, seed=5)
    warm, cold = played(X, b, range(8, 81, 4))[-1], chosen_for(X, b)
    errors = [np.sqrt(np.mean((choice.model.predict(P)[0] - truth) ** 2)) for choice in (warm, cold)]
    assert errors[0] < 1.3 * errors[1] + 0.02


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
