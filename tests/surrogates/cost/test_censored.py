"""Bounds on log costs, raised: against the likelihood they come from, and against leaving them as they are or out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import norm

from farthing.numerics.threads import one_blas_thread
from farthing.surrogates.cost import choice, lines
from farthing.surrogates.cost.censored import AS_LONG_AGAIN, imputed, warmed

SEEDS = 60


@pytest.fixture(autouse=True)
def _one_thread():
    with one_blas_thread():
        yield


@dataclass(frozen=True)
class Case:
    """Costs that are log-linear with noise, cut short at a limit."""

    Z: np.ndarray
    b: np.ndarray
    bound: np.ndarray
    truth: np.ndarray  # without noise

    @classmethod
    def of(cls, seed: int, n: int, d: int, share: float = 0.3, noise: float = 0.2, slope: float = 4.0) -> Case:
        rng = np.random.default_rng(seed)
        Z = rng.random((n, d))
        truth = slope * Z[:, 0] + slope / 3.0 * Z[:, 1]
        full = truth + noise * rng.standard_normal(n)
        limit = np.quantile(full, 1.0 - share)
        return cls(Z, np.minimum(full, limit), full > limit, truth)

    def squared_error(self, model: lines.LinearCost) -> float:
        """At the points that were cut short."""
        return float(np.mean((model.mean_at(self.Z[self.bound]) - self.truth[self.bound]) ** 2))


def errors(cases: list[Case]) -> np.ndarray:
    """(cases, 3): bounds raised, taken for costs, left out."""
    rows = []
    for case in cases:
        complete = ~case.bound
        models = (
            lines.fit(case.Z, imputed(case.Z, case.b, case.bound)),
            lines.fit(case.Z, case.b),
            lines.fit(case.Z[complete], case.b[complete]),
        )
        rows.append([case.squared_error(model) for model in models])
    return np.array(rows)


def surely_less(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether paired means differ by more than four standard errors."""
    difference = b - a
    return bool(difference.mean() > 4.0 * difference.std(ddof=1) / np.sqrt(len(difference)))


class TestWorth:
    @pytest.mark.parametrize(("n", "d", "share"), [(8, 3, 0.3), (15, 3, 0.3), (30, 5, 0.3), (30, 5, 0.6)])
    def test_where_evaluations_were_cut_short_costs_are_known_better_than_by_bounds_or_without_them(self, n, d, share):
        found = errors([Case.of(seed, n, d, share) for seed in range(SEEDS)])
        with_bounds_raised, as_costs, left_out = found.T
        assert surely_less(with_bounds_raised, as_costs)
        assert surely_less(with_bounds_raised, left_out)
        assert np.sqrt(with_bounds_raised.mean()) < 0.6 * np.sqrt(min(as_costs.mean(), left_out.mean()))

    def test_where_cost_is_mostly_noise_they_do_little_harm(self):
        """Points cut short are then those of bad luck, whose bounds happen to be near their truth: no estimate is as
        near. The raised ones are no worse than none, and off by less than one evaluation is."""
        found = errors([Case.of(seed, 15, 3, 0.3, noise=0.3, slope=0.3) for seed in range(SEEDS)])
        with_bounds_raised, _, left_out = found.T
        assert not surely_less(left_out, with_bounds_raised)
        assert np.sqrt(with_bounds_raised.mean()) < 0.3

    def test_the_chosen_model_gains_as_the_line_does(self):
        """The average of all models, with processes among them, is what policies see."""
        found = []
        for seed in range(12):
            case = Case.of(seed, 14, 3)
            groups, ratios, complete = np.arange(3), np.ones(3), ~case.bound
            models = (
                choice.choose(case.Z, imputed(case.Z, case.b, case.bound), groups, ratios).model,
                choice.choose(case.Z, case.b, groups, ratios).model,
                choice.choose(case.Z[complete], case.b[complete], groups, ratios).model,
            )
            found.append([case.squared_error(model) for model in models])
        with_bounds_raised, as_costs, left_out = np.sqrt(np.mean(found, axis=0))
        assert with_bounds_raised < 0.7 * as_costs
        assert with_bounds_raised < 0.7 * left_out

    def test_no_prediction_is_below_a_bound_by_more_than_noise(self):
        """Three standard deviations of the noise, with 18 points of 60 cut short in each of many cases."""
        for seed in range(SEEDS // 2):
            case = Case.of(seed, 60, 3)
            model = lines.fit(case.Z, imputed(case.Z, case.b, case.bound))
            assert np.all(model.mean_at(case.Z[case.bound]) >= case.b[case.bound] - 3.0 * 0.2 - 0.1)


class TestLikelihood:
    def test_the_line_is_the_one_of_greatest_likelihood(self):
        """Of Tobin's model, maximised by another algorithm: intercept and slope up to what ridge and Huber move."""
        rng = np.random.default_rng(3)
        Z = rng.random((400, 1))
        full = 1.0 + 3.0 * Z[:, 0] + 0.4 * rng.standard_normal(400)
        b, bound = np.minimum(full, 2.8), full > 2.8

        def loss(theta: np.ndarray) -> float:
            z = (b - theta[0] - theta[1] * Z[:, 0]) / np.exp(theta[2])
            return -float(np.where(bound, norm.logsf(z), norm.logpdf(z) - theta[2]).sum())

        intercept, slope, _ = minimize(
            loss, np.zeros(3), method="Nelder-Mead", options={"maxiter": 4000, "xatol": 1e-6}
        ).x
        ends = np.array([[0.0], [1.0]])
        line = lines.fit(Z, imputed(Z, b, bound))
        np.testing.assert_allclose(line.mean_at(ends), [intercept, intercept + slope], atol=0.06)
        naive = lines.fit(Z, b)
        assert abs(naive.mean_at(ends)[1] - intercept - slope) > 0.2


class TestForm:
    def test_without_bounds_nothing_is_touched(self):
        case = Case.of(0, 12, 3)
        assert imputed(case.Z, case.b, np.zeros(12, dtype=bool)) is case.b

    @pytest.mark.parametrize("seed", range(8))
    def test_complete_costs_stay_and_bounds_only_rise(self, seed):
        rng = np.random.default_rng(seed)
        n, d = int(rng.integers(1, 30)), int(rng.integers(1, 6))
        Z, b = rng.random((n, d)), 3.0 * rng.standard_normal(n)
        bound = rng.random(n) < rng.random()
        before = b.copy()
        t = imputed(Z, b, bound)
        np.testing.assert_array_equal(b, before)
        np.testing.assert_array_equal(t[~bound], b[~bound])
        assert np.all(t[bound] >= b[bound])
        assert np.all(np.isfinite(t))
        assert np.all(t <= b.max() + 20.0)

    def test_a_bound_far_above_what_the_others_say_is_kept(self):
        Z = np.linspace(0.0, 1.0, 20)[:, None]
        b = np.zeros(20)
        b[7] = 9.0
        t = imputed(Z, b, b > 1.0)
        assert 9.0 <= t[7] < 9.5

    def test_a_bound_far_below_says_nothing(self):
        """An evaluation that was interrupted as it began: the others are believed as if it were not there."""
        case = Case.of(1, 20, 2, share=0.05, noise=0.05)
        b, bound = case.truth.copy(), np.zeros(20, dtype=bool)
        bound[4], b[4] = True, -8.0
        assert imputed(case.Z, b, bound)[4] == pytest.approx(case.truth[4], abs=0.15)

    def test_where_all_are_bounds_each_is_expected_to_last_as_long_again(self):
        Z, b = np.random.default_rng(0).random((6, 2)), np.log(np.full(6, 10.0))
        np.testing.assert_allclose(np.exp(imputed(Z, b, np.ones(6, dtype=bool))), 20.0)
        assert imputed(Z[:1], b[:1], np.ones(1, dtype=bool))[0] == pytest.approx(b[0] + AS_LONG_AGAIN)

    def test_where_all_are_bounds_a_prior_intercept_is_believed(self):
        """A prior that says 0, worth some observations: bounds below say nothing new, bounds above raise it."""
        Z, everything = np.random.default_rng(0).random((6, 2)), np.ones(6, dtype=bool)
        below = imputed(Z, np.full(6, -2.0), everything, intercept_strength=5.0)
        above = imputed(Z, np.full(6, 1.0), everything, intercept_strength=5.0)
        assert np.all(np.abs(below) < 0.01)
        assert np.all((above > 1.0) & (above < 1.2))

    def test_a_prior_intercept_and_one_complete_cost_hold_the_others(self):
        Z, b = np.random.default_rng(0).random((6, 2)), np.array([0.0, 1.0, 1.0, 1.0, 1.0, 1.0])
        t = imputed(Z, b, b > 0.5, intercept_strength=5.0)
        assert np.all((t[1:] >= 1.0) & (t[1:] < 3.0))

    def test_one_complete_cost_among_many_bounds_holds_the_intercept(self):
        Z = np.linspace(0.0, 1.0, 11)[:, None]
        b = np.full(11, 3.0)
        b[0] = 0.0
        t = imputed(Z, b, b > 1.0)
        assert np.all((t[1:] >= 3.0) & (t[1:] < 8.0))

    def test_a_choice_is_selected_with_all_its_options(self):
        """Dummies of one parameter: the dear option was always cut short, and its intercept is learned from them."""
        rng = np.random.default_rng(5)
        option = rng.integers(0, 3, 40)
        Z = np.column_stack([rng.random(40), *(option == k for k in range(3))]).astype(float)
        full = np.array([0.0, 1.0, 4.0])[option] + 0.1 * rng.standard_normal(40)
        t = imputed(Z, np.minimum(full, 2.0), full > 2.0, [0, 1, 1, 1])
        assert np.all(t[option == 2] >= 2.0)
        np.testing.assert_array_equal(t[option != 2], full[option != 2])


class TestWarmed:
    """The first evaluation pays for what is done once."""

    def test_it_costs_what_the_others_imply_however_much_it_took(self):
        case = Case.of(seed=0, n=20, d=3, noise=0.05)
        full = case.truth.copy()
        for extra in (2.0, 6.0):
            b = full + extra * (np.arange(20) == 0)
            found = warmed(case.Z, b, np.arange(20) == 0)
            assert found[0] == pytest.approx(full[0], abs=0.2)
            assert found[1:].tolist() == b[1:].tolist()

    def test_it_never_costs_more_than_it_took(self):
        for seed in range(20):
            case = Case.of(seed, n=8, d=2, noise=0.3)
            b = case.truth - 1.0 * (np.arange(8) == 0)
            assert warmed(case.Z, b, np.arange(8) == 0)[0] < b[0]

    def test_what_only_it_has_is_not_made_responsible(self):
        """A category that no other evaluation had yet: a line through all of them would believe it."""
        Z = np.zeros((6, 2))
        Z[:, 0] = np.linspace(0.0, 1.0, 6)
        Z[0, 1] = 1.0
        b = 2.0 * Z[:, 0] + 4.0 * Z[:, 1]
        assert warmed(Z, b, np.arange(6) == 0)[0] < 0.5

    def test_nothing_changes_where_there_is_too_little_to_compare_with(self):
        """Of 64 workers, 64 evaluations are the first: what they took is most of what is known for a while."""
        Z, b = np.linspace(0.0, 1.0, 5)[:, None], np.array([3.0, 4.0, 5.0, 6.0, 1.0])
        for cold in ([True] * 5, [False] * 5, [True] * 3 + [False] * 2):
            assert warmed(Z, b, np.array(cold)).tolist() == b.tolist()
        assert warmed(Z, b, np.array([True] * 2 + [False] * 3)).tolist() != b.tolist()
