"""Fits of two levels of training: what is found, what is refused, what is stored."""

from __future__ import annotations

import json

import numpy as np
import pytest

from farthing.errors import InvalidArgument
from farthing.surrogates import gp, two_fidelity
from farthing.surrogates.two_fidelity import Hyperparameters, TwoFidelity
from farthing.surrogates.two_fidelity.paired import FREE, log_normal_end
from oracles.two_levels import POINTS, UNSEEN, X_E, Y_E, predict_low, truth

INF = np.inf


def runs(m: int, n: int, d: int = 2, rho: float = 1.0, seed: int = 0) -> tuple[np.ndarray, ...]:
    X = np.random.default_rng(seed).random((m, d))
    y_e = 2.0 + np.sin(4.0 * X[:, 0]) + X[:, 1]
    return X, y_e, X[:n], truth(X[:n], rho)


def error(model: TwoFidelity, rho: float = 1.0) -> float:
    P = np.random.default_rng(9).random((300, 2))
    return float(np.abs(model.predict(P)[0] - truth(P, rho)).mean())


@pytest.mark.parametrize(
    "options",
    [{}, {"bounds": (-1.0, 0.0)}, {"bounds": "learned"}, {"bounds": (-1.0, 0.0), "bias": "lognormal"},
     {"bounds": (-1.0, 0.0), "kernel": "gaussian"}, {"rho": None}, {"bounds": (-1.0, 0.0), "rho": None}],
    ids=str,
)  # fmt: skip
def test_a_fit_predicts_the_complete_level_far_better_than_its_own_runs_alone(options):
    """A wavy level seen often, and a bias that changes slowly."""

    def low(X):
        return np.sin(9.0 * X[:, 0]) * np.cos(5.0 * X[:, 1])

    def complete(X):
        return low(X) - 0.5 + 0.3 * X[:, 1] ** 2 - 0.2 * X[:, 0]

    rng = np.random.default_rng(1)
    X, P = rng.random((60, 2)), rng.random((300, 2))
    model = two_fidelity.fit(X, low(X), X[:10], complete(X[:10]), **options)
    mean, variance = model.predict(P)
    alone = np.abs(gp.fit(X[:10], complete(X[:10])).predict(P)[0] - complete(P)).mean()
    assert np.abs(mean - complete(P)).mean() < 0.25 * alone
    assert (np.abs(mean - complete(P)) < 3.0 * np.sqrt(variance)).mean() > 0.9


def test_the_low_level_is_the_process_of_the_eighty_percent_runs():
    """Lemma 1: the levels are fitted apart."""
    X_e, y_e, X_c, y_c = runs(25, 8)
    model = two_fidelity.fit(X_e, y_e, X_c, y_c, bounds=(-1.0, 0.0))
    alone = gp.fit(X_e, y_e)
    assert model.hyperparameters.low == alone.hyperparameters
    np.testing.assert_allclose(predict_low(model, POINTS), alone.predict(POINTS), rtol=1e-9)


def test_infinite_bounds_fit_what_far_bounds_fit():
    """But for the weak prior that bounds bring for the mean."""
    X_e, y_e, X_c, y_c = runs(25, 12)
    free = two_fidelity.fit(X_e, y_e, X_c, y_c)
    far = two_fidelity.fit(X_e, y_e, X_c, y_c, bounds=(-1e4, 1e4))
    np.testing.assert_allclose(far.predict(POINTS)[0], free.predict(POINTS)[0], atol=0.05)


def test_a_factor_is_found_where_it_is_asked_for():
    X_e, y_e, X_c, y_c = runs(40, 15, rho=2.5)
    for bounds in (FREE, (-1.0, 0.0)):
        model = two_fidelity.fit(X_e, y_e, X_c, y_c, rho=None, bounds=bounds)
        assert model.hyperparameters.rho == pytest.approx(2.5, abs=0.15)
        assert error(model, rho=2.5) < 0.1
    assert two_fidelity.fit(X_e, y_e, X_c[:3], y_c[:3], rho=None).hyperparameters.rho == 1.0  # too few to tell


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_with_learned_bounds_a_free_factor_is_that_of_the_model_without_bounds(seed):
    """They hold the biases of that factor, with something to spare."""
    X_e, y_e, X_c, y_c = runs(30, 12, rho=2.5, seed=seed)
    learned = two_fidelity.fit(X_e, y_e, X_c, y_c, rho=None, bounds="learned").hyperparameters
    assert learned.rho == two_fidelity.fit(X_e, y_e, X_c, y_c, rho=None).hyperparameters.rho
    d = y_c - learned.rho * y_e[:12]
    assert learned.bounds[0] < d.min() < d.max() < learned.bounds[1]


def test_a_free_factor_keeps_every_bias_in_its_bounds_or_the_bounds_are_refused():
    """The bounds are those of rho = 1 with nothing to spare; least squares would leave them."""
    X_e, y_e, X_c, y_c = runs(20, 8)
    d = y_c - y_e[:8]
    bounds = float(d.min()), float(d.max())
    rho = two_fidelity.fit(X_e, y_e, X_c, y_c, rho=None, bounds=bounds).hyperparameters.rho
    biases = y_c - rho * y_e[:8]
    assert (biases >= bounds[0] - 1e-6).all()
    assert (biases <= bounds[1] + 1e-6).all()
    with pytest.raises(InvalidArgument, match=r"bounds: expected .* for some rho, got \(0.1, 0.2\)"):
        two_fidelity.fit(X_e, y_e, X_c, np.where(np.arange(8) < 4, y_c, -y_c), rho=None, bounds=(0.1, 0.2))


def test_the_units_of_the_values_do_not_matter():
    X_e, y_e, X_c, y_c = runs(20, 8)
    model = two_fidelity.fit(X_e, y_e, X_c, y_c, bounds=(-1.0, 0.0))
    other = two_fidelity.fit(X_e, 1e6 * y_e, X_c, 1e6 * y_c, bounds=(-1e6, 0.0))
    np.testing.assert_allclose(1e-6 * other.predict(POINTS)[0], model.predict(POINTS)[0], rtol=1e-4)
    np.testing.assert_allclose(1e-12 * other.predict(POINTS)[1], model.predict(POINTS)[1], rtol=1e-2)


def test_columns_of_one_parameter_share_a_scale():
    X_e, y_e, X_c, y_c = runs(20, 8, d=4)
    model = two_fidelity.fit(X_e, y_e, X_c, y_c, [0, 1, 1, 1], bounds=(-1.0, 0.0))
    assert len(model.hyperparameters.low.log_scales) == len(model.hyperparameters.bias.log_scales) == 2
    assert np.isfinite(model.predict(X_e + 0.01)).all()


@pytest.mark.parametrize(
    "bounds", [(0.0, 1.0), (0.0, -1.0), (-1.0, -0.6), (-0.2, 0.0), (-0.5, -0.5), (1.0, -1.0), (np.nan, 0.0)]
)
def test_bounds_that_are_swapped_or_of_the_wrong_sign_or_too_narrow_are_refused(bounds):
    with pytest.raises(InvalidArgument, match="bounds"):
        two_fidelity.fit(*runs(12, 6), bounds=bounds)


def test_only_a_run_seen_at_both_fidelities_is_held_to_the_bounds():
    """What was imputed may be wrong: it is no reason to refuse anything."""
    X_e, y_e, X_c, y_c = runs(12, 6)
    lone = np.concatenate([X_c, UNSEEN])
    model = two_fidelity.fit(X_e, y_e, lone, np.append(y_c, [9.0, 9.0]), bounds=(-1.0, 0.0))
    assert np.isfinite(model.predict(POINTS)).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bounds": "known"}, "bounds: expected two numbers or"),
        ({"bias": "gamma"}, "bias: expected one of truncated, lognormal"),
        ({"kernel": "linear"}, "kernel: expected one of matern52, gaussian"),
        ({"bias": "lognormal"}, "bounds: expected a finite bound for a log-normal bias"),
        ({"bias": "lognormal", "bounds": (-1.0, 0.0), "rho": None}, "rho: expected a number with a log-normal bias"),
    ],
)
def test_options_that_make_no_sense_are_refused(options, message):
    with pytest.raises(InvalidArgument, match=message):
        two_fidelity.fit(*runs(12, 6), **options)


@pytest.mark.parametrize("shift", [0.0, 0.5, 2.0], ids=["negative", "of both signs", "positive"])
@pytest.mark.parametrize("bounds", ["learned", (-1.5, 1.9), (None, 1.9), (-1.5, None)], ids=str)
def test_a_log_normal_bias_of_any_sign_is_predicted_and_keeps_to_its_end(bounds, shift):
    """b2 - exp(GP), or b1 + exp(GP), where the bounds do not tell its sign."""
    if not isinstance(bounds, str):
        bounds = (-INF if bounds[0] is None else bounds[0], INF if bounds[1] is None else bounds[1])
    X_e, y_e, X_c, y_c = runs(30, 14)
    model = two_fidelity.fit(X_e, y_e, X_c, y_c + shift, bias="lognormal", bounds=bounds)
    P = np.random.default_rng(9).random((300, 2))
    assert np.abs(model.predict(P)[0] - truth(P) - shift).mean() < 0.1
    end, sign = log_normal_end(model.hyperparameters.bounds)
    assert (sign * (model.predict_bias(P)[0] - end) > 0.0).all()


@pytest.mark.parametrize("bias", [0.3, -0.3, 0.0])
def test_one_bias_tells_the_sign_of_a_log_normal_one(bias):
    model = two_fidelity.fit(X_E, Y_E, X_E[:1], Y_E[:1] + bias, bias="lognormal", bounds="learned")
    assert model.hyperparameters.bounds == ((0.0, INF) if bias > 0.0 else (-INF, 0.0))


class TestWideningBounds:
    """What a study has seen is no reason to end it."""

    def test_a_bias_outside_widens_its_end_alone(self):
        X_e, y_e, X_c, y_c = runs(20, 8)  # biases in (-0.9, -0.1)
        d = y_c - y_e[:8]
        model = two_fidelity.fit(X_e, y_e, X_c, y_c, bounds=(-2.0, -0.5), widen=True)
        assert model.hyperparameters.bounds == (-2.0, pytest.approx(d.max()))
        assert two_fidelity.fit(X_e, y_e, X_c, y_c, bounds=(-2.0, 0.0), widen=True).hyperparameters.bounds == (-2, 0)

    def test_a_free_factor_keeps_to_bounds_that_it_can_keep_to(self):
        X_e, y_e, X_c, y_c = runs(40, 15, rho=2.5)
        kept = two_fidelity.fit(X_e, y_e, X_c, y_c, rho=None, bounds=(-1.0, 0.0), widen=True).hyperparameters
        assert kept.bounds == (-1.0, 0.0)
        wider = two_fidelity.fit(X_e, y_e, X_c, -y_c, rho=None, bounds=(-0.01, 0.01), widen=True).hyperparameters
        d = -y_c - wider.rho * y_e[:15]
        assert wider.bounds != (-0.01, 0.01)
        assert wider.bounds[0] - 1e-6 <= d.min() <= d.max() <= wider.bounds[1] + 1e-6


class TestMaximumLikelihood:
    """`Estimation(priors=False)`: no prior moves the fit; `noise=False`: the values are met."""

    EXACT = two_fidelity.Estimation(priors=False, noise=False)

    @pytest.mark.parametrize("kernel", ["matern52", "gaussian"])
    @pytest.mark.parametrize("bounds", [FREE, (-1.0, 0.0)], ids=str)
    def test_without_noise_every_run_is_met(self, kernel, bounds):
        X_e, y_e, X_c, y_c = runs(20, 8)
        model = two_fidelity.fit(X_e, y_e, X_c, y_c, kernel=kernel, bounds=bounds, estimation=self.EXACT)
        np.testing.assert_allclose(model.low.predict(X_e)[0], y_e, atol=1e-3)
        np.testing.assert_allclose(model.predict(X_c)[0], y_c, atol=1e-3)

    def test_it_is_stored_and_builds_the_same_model(self):
        data = runs(20, 8)
        model = two_fidelity.fit(*data, bounds=(-1.0, 0.0), estimation=self.EXACT)
        again = Hyperparameters.from_json(json.loads(json.dumps(model.hyperparameters.as_json(), allow_nan=False)))
        assert again == model.hyperparameters
        assert not again.priors
        np.testing.assert_array_equal(
            two_fidelity.from_hyperparameters(*data, again).predict(POINTS), model.predict(POINTS)
        )


def test_fidelities_without_runs_or_of_other_shapes_are_refused():
    X_e, y_e, X_c, y_c = runs(12, 6)
    for bad in ((X_e[:0], y_e[:0], X_c, y_c), (X_e, y_e, X_c[:0], y_c[:0])):
        with pytest.raises(InvalidArgument, match="expected at least one run of each"):
            two_fidelity.fit(*bad)
    for bad in ((X_e, y_e[:-1], X_c, y_c), (X_e, y_e, X_c[:, :1], y_c)):
        with pytest.raises(InvalidArgument, match="expected shapes"):
            two_fidelity.fit(*bad)


@pytest.mark.parametrize("options", [{}, {"bounds": (-1.0, 0.0)}, {"bounds": (-1.0, 0.0), "kernel": "gaussian"}])
def test_what_a_fit_found_is_stored_and_builds_the_same_model(options):
    data = runs(20, 8)
    model = two_fidelity.fit(*data, **options)
    stored = json.loads(json.dumps(model.hyperparameters.as_json(), allow_nan=False))
    again = Hyperparameters.from_json(stored)
    assert again == model.hyperparameters
    np.testing.assert_array_equal(
        two_fidelity.from_hyperparameters(*data, again).predict(POINTS), model.predict(POINTS)
    )


@pytest.mark.parametrize("kernel", ["matern52", "gaussian"])
def test_a_warm_fit_is_near_the_cold_one_and_the_same_every_time(kernel):
    X_e, y_e, X_c, y_c = runs(30, 12)
    options = {"bounds": (-1.0, 0.0), "kernel": kernel}
    before = two_fidelity.fit(X_e[:-1], y_e[:-1], X_c[:-1], y_c[:-1], **options).hyperparameters
    warm = two_fidelity.fit(X_e, y_e, X_c, y_c, warm=before, **options)
    cold = two_fidelity.fit(X_e, y_e, X_c, y_c, **options)
    assert (warm.hyperparameters.low.cold_at, warm.hyperparameters.bias.cold_at) == (29, 11)
    assert error(warm) < 1.3 * error(cold) + 0.005
    again = two_fidelity.fit(X_e, y_e, X_c, y_c, warm=before, **options)
    assert again.hyperparameters == warm.hyperparameters


@pytest.mark.parametrize(
    "options", [{"bias": "lognormal"}, {"kernel": "gaussian"}, {"groups": [0, 0]}], ids=["bias", "kernel", "groups"]
)
def test_what_another_model_found_is_no_start(options):
    data = runs(20, 8)
    other = two_fidelity.fit(*data, bounds=(-1.0, 0.0)).hyperparameters
    cold = two_fidelity.fit(*data, bounds=(-1.0, 0.0), **options)
    warm = two_fidelity.fit(*data, bounds=(-1.0, 0.0), warm=other, **options)
    assert warm.hyperparameters == cold.hyperparameters


HOSTILE = {
    "one run at each level": (X_E[:1], Y_E[:1], X_E[:1], Y_E[:1] - 0.5),
    "one run each, apart": (X_E[:1], Y_E[:1], X_E[1:2], Y_E[:1] - 0.5),
    "no bias at all": (X_E, Y_E, X_E, Y_E),
    "the bias on its bounds": (X_E, Y_E, X_E[:4], Y_E[:4] - np.array([1.0, 0.0, 1.0, 0.0])),
    "constant values": (X_E, np.zeros(9), X_E[:3], np.full(3, -0.5)),
    "one configuration again and again": (np.repeat(X_E[:1], 5, 0), Y_E[:5], np.repeat(X_E[:1], 5, 0), Y_E[:5] - 0.1),
    "points a rounding apart": (X_E, Y_E, np.nextafter(X_E[:4], 1.0), Y_E[:4] - 0.5),
    "large values": (X_E, 1e8 * Y_E, X_E[:4], 1e8 * Y_E[:4] - 0.5),
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize(
    "options",
    [{}, {"bounds": (-1.0, 0.0)}, {"bounds": "learned"}, {"bounds": (-1.0, 0.0), "bias": "lognormal"}, {"rho": None},
     {"bounds": (-1.0, 0.0), "kernel": "gaussian"}, {"bounds": "learned", "bias": "lognormal"},
     {"bounds": (-1.0, 0.0), "kernel": "gaussian", "estimation": two_fidelity.Estimation(priors=False, noise=False)},
     {"bounds": (-0.5, -0.1), "widen": True}, {"bounds": (-0.5, -0.1), "widen": True, "rho": None}],
    ids=str,
)  # fmt: skip
def test_hostile_data_still_give_a_model(name, options):
    model = two_fidelity.fit(*HOSTILE[name], **options)
    mean, variance, mean_slope, variance_slope = model.predict_with_gradient(np.concatenate([POINTS, X_E]))
    assert np.isfinite(mean).all()
    assert np.isfinite(mean_slope).all()
    assert np.isfinite(variance_slope).all()
    assert (variance > 0.0).all()


def test_one_complete_run_does_not_make_the_bias_certain():
    """Its spread is then taken for a share of that of the low level."""
    X_e, y_e, X_c, y_c = runs(20, 1)
    for bounds in (FREE, (-1.0, 0.0)):
        model = two_fidelity.fit(X_e, y_e, X_c, y_c, bounds=bounds)
        assert np.sqrt(model.hyperparameters.variance) > 0.05 * y_e.std()


class TestTheToyOfThePaper:
    """Figure 3: y_e = (6x - 2)^2 sin(12x - 4), y_c = y_e + 8x - 10, bounds (-10, -2)."""

    X_e = np.array([0.0, 0.16, 0.6, 0.73, 0.86, 1.0])[:, None]
    X_c = np.array([0.0, 0.73, 1.0])[:, None]
    P = np.linspace(0.0, 1.0, 1001)[:, None]

    @staticmethod
    def low(X: np.ndarray) -> np.ndarray:
        return (6.0 * X[:, 0] - 2.0) ** 2 * np.sin(12.0 * X[:, 0] - 4.0)

    def complete(self, X: np.ndarray) -> np.ndarray:
        return self.low(X) + 8.0 * X[:, 0] - 10.0

    def model(self, kernel: str, bounds: tuple[float, float]) -> TwoFidelity:
        low, complete = self.low(self.X_e), self.complete(self.X_c)
        return two_fidelity.fit(self.X_e, low, self.X_c, complete, bounds=bounds, kernel=kernel)

    def errors(self, mean: np.ndarray, true: np.ndarray) -> np.ndarray:
        """Root of the mean square, and mean absolute."""
        return np.array([np.sqrt(((mean - true) ** 2).mean()), np.abs(mean - true).mean()])

    @pytest.mark.parametrize("kernel", ["matern52", "gaussian"])
    def test_gp_tgp_is_twice_as_good_as_a_process_on_the_complete_runs(self, kernel):
        alone = two_fidelity.fit_plain(self.X_c, self.complete(self.X_c), np.arange(1), kernel, None)
        found = self.errors(self.model(kernel, (-10.0, -2.0)).predict(self.P)[0], self.complete(self.P))
        assert (found < 0.5 * self.errors(alone.predict(self.P)[0], self.complete(self.P))).all()

    def test_under_the_papers_kernel_gp_tgp_is_as_good_as_dgp(self):
        truncated, free = (
            self.errors(self.model("gaussian", bounds).predict(self.P)[0], self.complete(self.P))
            for bounds in ((-10.0, -2.0), FREE)
        )
        assert (truncated <= 1.05 * free).all()

    @pytest.mark.parametrize("kernel", ["matern52", "gaussian"])
    def test_the_bounds_halve_the_error_of_the_bias(self, kernel):
        """What the bounds are about, apart from the error of the low level that both share."""
        bias = 8.0 * self.P[:, 0] - 10.0
        truncated, free = (
            self.errors(self.model(kernel, bounds).predict_bias(self.P)[0], bias) for bounds in ((-10.0, -2.0), FREE)
        )
        assert (truncated < 0.5 * free).all()
