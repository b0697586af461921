"""BOPT-HPO (Yang, Deng and Zhu 2023, SS-2023-0310) by section and equation: `BOPT.paper()` against independent oracles.

Not here: models of t_e(x) and t_c(x) and EQIE (test_bopt_hpo_costs.py). Not in the paper's text, and so not tested
against it: Appendices S1 and S2, which have the proof of Theorem 1 and the stopping rules of its experiments.

Symbols as in the paper: y_e, y_c the values of ET and CT runs, delta the bias y_c - rho y_e in [b1, b2], m and n the
numbers of runs. The oracles are dense algebra with the hyperparameters that a proposal stores, draws, and SciPy.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import multivariate_normal, norm, truncnorm

import farthing as ft
from farthing.acquisitions.confidence import ConfidenceBound, width
from farthing.policies import BOPT
from farthing.policies.bopt.next_run import NextRun
from farthing.policies.bopt.stopping import Share
from farthing.surrogates import two_fidelity
from farthing.surrogates.two_fidelity.bounded import Loss, Observations

INF = np.inf
EXACT = two_fidelity.Estimation(priors=False, noise=False)
NUGGET = 1e-8  # what a Cholesky factor needs; the paper has none
FINITE = ft.Space(
    a=ft.Ordered([0.0, 0.1, 0.25, 0.4, 0.6, 0.7, 0.85, 1.0]), b=ft.Integer(0, 6), c=ft.Ordered([0.0, 0.5, 1.0])
)
ERRORS = (-1.0, 0.0)  # section 3.2: the bounds for classification errors


# -- oracles -----------------------------------------------------------------------------------------------------------


def R(A: np.ndarray, B: np.ndarray, phi: np.ndarray) -> np.ndarray:
    """Section 2: the Gaussian correlation, prod_m exp(-phi_m (x_m - x'_m)^2)."""
    return np.exp(-np.einsum("ijm,m->ij", (A[:, None, :] - B[None, :, :]) ** 2, phi))


@dataclass(frozen=True)
class Kriging:
    """Eq. (2.1) with the closed forms under Eq. (3.4), or with mean and variance given."""

    X: np.ndarray
    y: np.ndarray
    phi: np.ndarray
    mean: float | None = None
    variance: float | None = None

    def __call__(self, P: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        K = R(self.X, self.X, self.phi) + NUGGET * np.eye(len(self.X))
        one = np.ones(len(self.X))
        mean = one @ np.linalg.solve(K, self.y) / (one @ np.linalg.solve(K, one)) if self.mean is None else self.mean
        residual = self.y - mean
        variance = residual @ np.linalg.solve(K, residual) / len(residual) if self.variance is None else self.variance
        r = R(P, self.X, self.phi)
        s2 = variance * (1.0 - np.einsum("ij,ji->i", r, np.linalg.solve(K, r.T)))
        return mean + r @ np.linalg.solve(K, residual), np.maximum(s2, 1e-14 * variance)


def phi_of(fit: dict[str, Any]) -> np.ndarray:
    """phi from stored log length-scales: exp(-d^2 / (2 l^2))."""
    return 0.5 * np.exp(-2.0 * np.array(fit["log_scales"]))


def cut_moments(mean: np.ndarray, variance: np.ndarray, lower: np.ndarray, upper: np.ndarray):
    """Eq. (3.8), as printed."""
    s = np.sqrt(variance)
    alpha, beta = (lower - mean) / s, (upper - mean) / s
    Z = norm.cdf(beta) - norm.cdf(alpha)
    shift = (norm.pdf(alpha) - norm.pdf(beta)) / Z
    ends = (np.where(np.isfinite(x), x, 0.0) * norm.pdf(x) for x in (alpha, beta))
    left, right = ends
    return mean + shift * s, variance * (1.0 + (left - right) / Z - shift**2)


def log_likelihood(X: np.ndarray, d: np.ndarray, phi, mean, variance, bounds=(-INF, INF)) -> float:
    """Of a process, or by Eq. (3.5) of one cut to bounds: with all constants, by SciPy."""
    C = variance * (R(X, X, phi) + NUGGET * np.eye(len(X)))
    value = float(multivariate_normal.logpdf(d, np.full(len(d), mean), C, allow_singular=True))
    if np.isfinite(bounds).any():
        limits = [np.full(len(d), bound) for bound in bounds]
        value -= np.log(
            multivariate_normal.cdf(
                limits[1], np.full(len(d), mean), C, lower_limit=limits[0], maxpts=20_000, abseps=1e-5, rng=0,
                allow_singular=True,
            )
        )  # fmt: skip
    return value


# -- studies -----------------------------------------------------------------------------------------------------------


def fast_error(config: dict[str, Any]) -> float:
    return 0.55 + 0.3 * np.sin(4.0 * config["a"] + 1.0) * np.cos(0.5 * config["b"]) + 0.05 * config["c"]


def complete_error(config: dict[str, Any]) -> float:
    return fast_error(config) - 0.05 - 0.1 * config["a"] * config["c"]


def paper(**options: Any) -> BOPT:
    return BOPT.paper(**{"bounds": ERRORS, "fast_ends": Share(share=0.5), "ends": None, **options})


@dataclass(frozen=True)
class Ask:
    """One ask of a study, with what was known before it."""

    proposal: ft.Proposal
    X_e: np.ndarray
    y_e: np.ndarray
    done: list[int]  # rows of X_e that are completed
    y_c: np.ndarray

    @property
    def is_complete(self) -> bool:
        return self.proposal.start_step > 0

    @property
    def paused(self) -> list[int]:
        return [i for i in range(len(self.y_e)) if i not in self.done]

    def complete_at(self, X: np.ndarray, y_e: np.ndarray, bounds: tuple[float, float]):
        """Eq. (3.8): mean and variance of y_c at X, where y_e is known or imputed, from what the proposal stores."""
        fit, d = self.proposal.fits["bopt"], self.y_c - self.y_e[self.done]
        unit = self.y_e.std()  # the values are modelled in units of their spread
        process = Kriging(self.X_e[self.done], d, phi_of(fit["bias"]), unit * fit["mean"], unit**2 * fit["variance"])
        mu_d, s2 = process(X)
        return cut_moments(y_e + mu_d, s2, y_e + bounds[0], y_e + bounds[1])


def features(configs: list[dict[str, Any]]) -> np.ndarray:
    return FINITE.features(FINITE.encode_many(configs))


def asks(policy: BOPT, seed: int = 0, cost: float = 16.0) -> Iterator[Ask]:
    """A study of two steps: the first, of cost 1/5, is the ET run."""
    configs: list[dict[str, Any]] = []
    done: list[int] = []
    with ft.Study(FINITE, ft.Budget(cost=cost), policy=policy, seed=seed, max_steps=2) as study:
        while study.ended is None:
            proposal = study.ask()
            y_e = np.array([fast_error(config) for config in configs])
            y_c = np.array([complete_error(configs[i]) for i in done])
            yield Ask(proposal, features(configs) if configs else np.empty((0, 3)), y_e, list(done), y_c)
            if proposal.start_step:
                study.report(proposal, complete_error(proposal.config), cost=0.8)
                done.append(proposal.trial)
            else:
                study.report(proposal, fast_error(proposal.config), cost=0.2)
                configs.append(proposal.config)


# -- section 2 and 3: the model ----------------------------------------------------------------------------------------


def designed(n: int = 6, m: int = 14, seed: int = 0) -> tuple[np.ndarray, ...]:
    """X_e, y_e, X_c, y_c with a bias in (-0.9, -0.1)."""
    X = np.random.default_rng(seed).random((m, 2))
    y_e = 2.0 + np.sin(5.0 * X[:, 0]) + X[:, 1] ** 2
    return X, y_e, X[:n], y_e[:n] - 0.5 + 0.4 * np.sin(3.0 * X[:n, 1])


class TestSection2:
    """The review: the Gaussian process, Eq. (2.1), and the bound with beta_t = 0.2 d log(2 t)."""

    def test_eq_2_1_is_the_posterior_of_the_et_runs(self):
        X, y, _, _ = designed()
        process = two_fidelity.fit_plain(X, y, np.arange(2), "gaussian", None, EXACT)
        P = np.random.default_rng(1).random((40, 2))
        mean, s2 = Kriging(X, y, phi_of(process.hyperparameters.as_json()))(P)
        np.testing.assert_allclose(process.predict(P)[0], mean, atol=1e-5)
        np.testing.assert_allclose(process.predict(P)[1], s2, atol=1e-6)

    @pytest.mark.parametrize(("d", "t"), [(2, 1), (2, 10), (6, 60), (10, 1000)])
    def test_the_bound_is_minus_the_mean_and_sqrt_of_beta_t_standard_deviations(self, d, t):
        """phi = -y(x) + sqrt(beta_t) s(x), with beta_t = 0.2 d log(2 t)."""
        X, y, _, _ = designed()
        process = two_fidelity.fit_plain(X, y, np.arange(2), "gaussian", None, EXACT)
        P = np.random.default_rng(1).random((40, 2))
        mean, s2 = process.predict(P)
        phi = ConfidenceBound(process, width(d, t))(P)
        np.testing.assert_allclose(phi, -mean + np.sqrt(0.2 * d * np.log(2 * t) * s2), rtol=1e-12)


class TestEq31AndEq32:
    """The autoregressive model with K = 2, DGP: y_c = rho y_e + delta, two independent processes."""

    @pytest.mark.parametrize("rho", [1.0, 0.6])
    def test_the_posterior_is_that_of_both_levels_as_one_normal(self, rho):
        X, y_e, X_c, y_c = designed()
        y_c = y_c - (1.0 - rho) * y_e[: len(y_c)]
        model = two_fidelity.fit(X, y_e, X_c, y_c, rho=rho, kernel="gaussian", estimation=EXACT)
        h, m, n = model.hyperparameters, len(X), len(X_c)
        phi_e, phi_d = phi_of(h.low.as_json()), phi_of(h.bias.as_json())
        P = np.random.default_rng(1).random((20, 2))
        all_X = np.concatenate([P, X])
        K_e, K_d = model.low.variance * R(all_X, all_X, phi_e), h.variance * R(all_X, all_X, phi_d)
        K_e[20:, 20:] += NUGGET * model.low.variance * np.eye(m)
        K_d[20:, 20:] += NUGGET * h.variance * np.eye(m)
        done = slice(20, 20 + n)  # the first ET runs are completed
        seen = np.block([
            [K_e[20:, 20:], rho * K_e[20:, done]],
            [rho * K_e[done, 20:], rho**2 * K_e[done, done] + K_d[done, done]],
        ])  # fmt: skip
        cross = np.hstack([rho * K_e[:20, 20:], rho**2 * K_e[:20, done] + K_d[:20, done]])
        mean_c = rho * model.low.mean + h.mean
        y = np.concatenate([y_e - model.low.mean, y_c - mean_c])
        expected = mean_c + cross @ np.linalg.solve(seen, y)
        np.testing.assert_allclose(model.predict(P)[0], expected, atol=2e-4)

    def test_plug_in_leaves_out_the_variance_of_an_imputed_et_run(self):
        """Under Proposition 1: y_e(x) "can be imputed by its mean". Ours carries its variance by default."""
        data, P = designed(), np.random.default_rng(1).random((20, 2))
        carried, plugged = (
            two_fidelity.fit(*data, kernel="gaussian", estimation=EXACT, carry=carry) for carry in (True, False)
        )
        np.testing.assert_array_equal(carried.predict(P)[0], plugged.predict(P)[0])
        np.testing.assert_allclose(plugged.predict(P)[1], plugged.bias.predict(P)[1])
        np.testing.assert_allclose(
            carried.predict(P)[1], plugged.bias.predict(P)[1] + plugged.low.predict(P)[1], rtol=1e-9
        )


class TestEq34:
    """The likelihood of the ET runs: mean and variance in closed form, the rest by search."""

    @pytest.mark.parametrize("seed", [0, 1, 2])
    def test_no_other_phi_mean_and_variance_are_likelier(self, seed):
        X, y, _, _ = designed(seed=seed)
        process = two_fidelity.fit_plain(X, y, np.arange(2), "gaussian", None, EXACT)
        phi = phi_of(process.hyperparameters.as_json())
        found = log_likelihood(X, y, phi, process.mean, process.variance)

        def minus(theta: np.ndarray) -> float:
            return -log_likelihood(X, y, np.exp(theta[:2]), theta[2], np.exp(theta[3]))

        others = [
            -minimize(minus, [*start, y.mean(), np.log(y.var())], method="Nelder-Mead", options={"maxfev": 600}).fun
            for start in ([0.0, 0.0], [2.0, 0.0], [0.0, 2.0])
        ]
        assert found > max(others) - 0.1

    def test_mean_and_variance_are_the_closed_forms(self):
        X, y, _, _ = designed()
        process = two_fidelity.fit_plain(X, y, np.arange(2), "gaussian", None, EXACT)
        K = R(X, X, phi_of(process.hyperparameters.as_json())) + NUGGET * np.eye(len(X))
        one = np.ones(len(X))
        mean = one @ np.linalg.solve(K, y) / (one @ np.linalg.solve(K, one))
        assert process.mean == pytest.approx(mean, rel=1e-6)
        assert process.variance == pytest.approx((y - mean) @ np.linalg.solve(K, y - mean) / len(y), rel=1e-4)


class TestEq35AndLemma1:
    """The likelihood of delta cut to [b1, b2]. The printed Z_c is the integral of the exponential alone, so that it
    holds the determinant too. Under Eq. (3.9) the text says that Z_c disappears without bounds: its determinant stays,
    or there would be no maximum."""

    @pytest.mark.parametrize("bounds", [(-1.0, 0.0), (-INF, 0.0), (-INF, INF)], ids=str)
    def test_the_loss_of_a_fit_is_minus_the_log_density(self, bounds):
        _, y_e, X_c, y_c = designed()
        d, n = y_c - y_e[:6], 6
        data = Observations(X_c, d, np.zeros(n), np.arange(2), 0.0, bounds, n, np.zeros((n, n)))
        loss = Loss(data, "gaussian", points=2**12, estimation=EXACT)
        for theta in ([0.0, 0.5, np.log(NUGGET), -0.4, -2.0], [-1.0, -0.5, np.log(NUGGET), -0.7, -0.5]):
            expected = log_likelihood(
                X_c, d, 0.5 * np.exp(-2.0 * np.array(theta[:2])), theta[3], np.exp(theta[4]), bounds
            )
            value = -loss(np.array(theta))[0] - 0.5 * n * np.log(2.0 * np.pi)
            assert value == pytest.approx(expected, abs=5e-3)

    def test_no_point_around_the_fit_of_both_parts_is_likelier(self):
        """Lemma 1: the two problems, solved apart, maximise the likelihood of both levels together."""
        X, y_e, X_c, y_c = designed()
        model = two_fidelity.fit(X, y_e, X_c, y_c, bounds=(-1.0, 0.0), kernel="gaussian", estimation=EXACT)
        h, d = model.hyperparameters, y_c - y_e[:6]

        def whole(move: np.ndarray) -> float:
            phi_e, phi_d = phi_of(h.low.as_json()), phi_of(h.bias.as_json())
            low = log_likelihood(X, y_e, phi_e * np.exp(move[:2]), model.low.mean + move[2] * y_e.std(),
                                 model.low.variance * np.exp(move[3]))  # fmt: skip
            bias = log_likelihood(X_c, d, phi_d * np.exp(move[4:6]), h.mean + move[6] * d.std(),
                                  h.variance * np.exp(move[7]), (-1.0, 0.0))  # fmt: skip
            return low + bias

        best = whole(np.zeros(8))
        moves = np.random.default_rng(0).normal(size=(60, 8)) * np.repeat([0.05, 0.2, 0.5], 20)[:, None]
        assert max(whole(move) for move in moves) < best + 0.04  # SciPy's box probability is a draw

    def test_a_free_rho_is_estimated_with_the_rest(self):
        """Section 3.2: rho can be specified or estimated."""
        X, y_e, X_c, y_c = designed(n=10, m=20)
        model = two_fidelity.fit(X, y_e, X_c, y_c + 1.5 * y_e[:10], bounds=(-1.0, 0.0), rho=None, kernel="gaussian",
                                 estimation=EXACT)  # fmt: skip
        assert model.hyperparameters.rho == pytest.approx(2.5, abs=0.15)


class TestProposition1:
    """Eq. (3.6): given the ET runs, CT runs say nothing more about y_e."""

    def test_the_fast_level_is_that_of_the_et_runs_alone(self):
        X, y_e, X_c, y_c = designed()
        P = np.random.default_rng(1).random((20, 2))
        model = two_fidelity.fit(X, y_e, X_c, y_c, bounds=(-1.0, 0.0), kernel="gaussian", estimation=EXACT)
        alone = two_fidelity.fit_plain(X, y_e, np.arange(2), "gaussian", None, EXACT)
        np.testing.assert_allclose(model.joint.predict(P).low, alone.predict(P)[0], rtol=1e-9)
        np.testing.assert_allclose(model.joint.predict(P).low_variance, alone.predict(P)[1], rtol=1e-9)


class TestTheorem1:
    """Eqs. (3.7) and (3.8): y_c(x) at an ET run is a normal cut to [rho y_e(x) + b1, rho y_e(x) + b2]."""

    @pytest.mark.parametrize("rho", [1.0, 0.7])
    def test_the_moments_are_those_of_draws_of_the_truncated_process(self, rho):
        """A process at x and at one CT run, drawn 4,000,000 times, kept if both are in the box and the one at the CT
        run is what was seen: no formula of the paper is used."""
        X = np.array([[0.2, 0.3], [0.5, 0.4], [0.9, 0.8]])
        y_e, bounds, d = np.array([1.0, 1.4, 2.0]), (-1.0, 0.0), -0.15
        h = two_fidelity.Hyperparameters(
            two_fidelity.model.gp.Hyperparameters((-0.5, -0.5), float(np.log(NUGGET))),
            two_fidelity.model.gp.Hyperparameters((-0.7, -0.2), float(np.log(NUGGET))),
            -0.3, 0.2, rho, bounds, "truncated", "gaussian", priors=False,
        )  # fmt: skip
        model = two_fidelity.from_hyperparameters(X, y_e, X[:1], rho * y_e[:1] + d, h)
        correlation = float(R(X[:1], X[1:2], 0.5 * np.exp([1.4, 0.4]))[0, 0])
        rng = np.random.default_rng(0)
        z, other = rng.standard_normal((2, 4_000_000))
        at_seen = -0.3 + np.sqrt(0.2) * z
        at_x = -0.3 + np.sqrt(0.2) * (correlation * z + np.sqrt(1.0 - correlation**2) * other)
        kept = (np.abs(at_seen - d) < 0.01) & (at_x >= -1.0) & (at_x <= 0.0)
        drawn = rho * y_e[1] + at_x[kept]
        assert len(drawn) > 20_000
        mean, variance = (part[0] for part in model.predict(X[1:2]))
        assert mean == pytest.approx(drawn.mean(), abs=4.0 * drawn.std() / np.sqrt(len(drawn)))
        assert variance == pytest.approx(drawn.var(), rel=4.0 * np.sqrt(2.0 / len(drawn)))

    @pytest.mark.parametrize("bounds", [(-1.0, 0.0), (-INF, 0.0), (-0.95, -0.05)], ids=str)
    def test_eq_3_8_as_printed(self, bounds):
        X, y_e, X_c, y_c = designed()
        model = two_fidelity.fit(X, y_e, X_c, y_c, bounds=bounds, kernel="gaussian", estimation=EXACT)
        h = model.hyperparameters
        process = Kriging(X_c, y_c - y_e[:6], phi_of(h.bias.as_json()), h.mean, h.variance)
        mu_d, s2 = process(X[6:])
        mean, variance = cut_moments(y_e[6:] + mu_d, s2, y_e[6:] + bounds[0], y_e[6:] + bounds[1])
        np.testing.assert_allclose(model.predict(X[6:])[0], mean, atol=1e-6)
        np.testing.assert_allclose(model.predict(X[6:])[1], variance, rtol=1e-3, atol=1e-9)

    def test_the_printed_moments_are_those_of_scipys_truncated_normal(self):
        mean, variance = cut_moments(np.array([0.3]), np.array([0.04]), np.array([0.2]), np.array([0.5]))
        law = truncnorm(-0.5, 1.0, loc=0.3, scale=0.2)
        assert (mean[0], variance[0]) == (pytest.approx(law.mean()), pytest.approx(law.var()))

    def test_eq_3_9_without_bounds_nothing_is_cut(self):
        X, y_e, X_c, y_c = designed()
        model = two_fidelity.fit(X, y_e, X_c, y_c, kernel="gaussian", estimation=EXACT)
        h = model.hyperparameters
        mu_d, s2 = Kriging(X_c, y_c - y_e[:6], phi_of(h.bias.as_json()), h.mean, h.variance)(X[6:])
        np.testing.assert_allclose(model.predict(X[6:])[0], y_e[6:] + mu_d, atol=1e-6)
        np.testing.assert_allclose(model.predict(X[6:])[1], s2, rtol=1e-3, atol=1e-9)


def test_figure_3_gp_tgp_is_closer_than_a_process_of_the_ct_runs():
    """Six ET and three CT runs, b1 = -10, b2 = -2, with everything as printed."""
    X_e, X_c = np.array([[0.0], [0.16], [0.6], [0.73], [0.86], [1.0]]), np.array([[0.0], [0.73], [1.0]])
    P = np.linspace(0.0, 1.0, 501)[:, None]

    def low(X: np.ndarray) -> np.ndarray:
        return (6.0 * X[:, 0] - 2.0) ** 2 * np.sin(12.0 * X[:, 0] - 4.0)

    def complete(X: np.ndarray) -> np.ndarray:
        return low(X) + 8.0 * X[:, 0] - 10.0

    model = two_fidelity.fit(X_e, low(X_e), X_c, complete(X_c), bounds=(-10.0, -2.0), kernel="gaussian", carry=False,
                             estimation=EXACT)  # fmt: skip
    alone = two_fidelity.fit_plain(X_c, complete(X_c), np.arange(1), "gaussian", None, EXACT)
    error, error_alone = (np.sqrt(((m.predict(P)[0] - complete(P)) ** 2).mean()) for m in (model, alone))
    assert error < 0.25 * error_alone
    bias = model.predict_bias(P)[0]
    assert ((bias >= -10.0) & (bias <= -2.0)).all()


# -- section 4: what is proposed ---------------------------------------------------------------------------------------


class TestEq41:
    """The next ET run is the argmax of phi_e = -y_e(x) + sqrt(beta_m) s_e(x) over the whole space. Erratum in effect:
    a deterministic run need not be repeated, so configurations that were begun are left out."""

    @pytest.mark.parametrize("surrogate", ["tgp", "dgp"])
    @pytest.mark.parametrize("seed", [0, 1])
    def test_brute_force_over_a_finite_space_finds_no_larger_phi_e(self, surrogate, seed):
        bounds = ERRORS if surrogate == "tgp" else None
        everywhere = features(list(FINITE.enumerate()))
        searched = 0
        for ask in asks(paper(surrogate=surrogate, bounds=bounds), seed):
            if ask.is_complete or len(ask.y_e) < 10:
                continue
            process = Kriging(ask.X_e, ask.y_e, phi_of(ask.proposal.fits["bopt"]["low"]))
            fresh = everywhere[~(everywhere[:, None, :] == ask.X_e[None, :, :]).all(axis=2).any(axis=1)]
            m, d = len(ask.y_e), len(FINITE)
            mean, s2 = process(fresh)
            best = (-mean + np.sqrt(0.2 * d * np.log(2.0 * m)) * np.sqrt(s2)).max()
            mean, s2 = process(features([ask.proposal.config]))
            chosen = float(-mean[0] + np.sqrt(0.2 * d * np.log(2.0 * m)) * np.sqrt(s2[0]))
            assert chosen == pytest.approx(best, abs=1e-4)
            searched += 1
        assert searched >= 10

    @pytest.mark.parametrize("seed", [0, 1])
    def test_the_default_looks_at_the_complete_level_instead(self, seed):
        """Ours: the argmax of phi_c over the whole space, with the fast value imputed; docs/bopt.md says why. It is not
        the paper's choice."""
        everywhere, others = features(list(FINITE.enumerate())), 0
        for ask in asks(paper(aim="complete"), seed):
            if ask.is_complete or len(ask.y_e) < 10:
                continue
            fit, m = ask.proposal.fits["bopt"], len(ask.y_e)
            fresh = everywhere[~(everywhere[:, None, :] == ask.X_e[None, :, :]).all(axis=2).any(axis=1)]
            y_e, s2_e = Kriging(ask.X_e, ask.y_e, phi_of(fit["low"]))(fresh)
            mean, variance = ask.complete_at(fresh, y_e, ERRORS)
            w = np.sqrt(0.2 * len(FINITE) * np.log(2.0 * m))
            phi_c = -mean + w * np.sqrt(variance)
            row = int(np.flatnonzero((fresh == features([ask.proposal.config])).all(axis=1))[0])
            assert phi_c[row] == pytest.approx(phi_c.max(), abs=1e-4)
            others += row != int(np.argmax(-y_e + w * np.sqrt(s2_e)))
        assert others >= 5


class TestEq42:
    """The next CT run is the argmax of phi_c among the ET runs that are not completed."""

    @pytest.mark.parametrize("surrogate", ["tgp", "dgp"])
    @pytest.mark.parametrize("seed", [0, 1])
    def test_brute_force_over_the_paused_runs_finds_no_larger_phi_c(self, surrogate, seed):
        bounds = ERRORS if surrogate == "tgp" else (-INF, INF)
        chosen = 0
        for ask in asks(paper(surrogate=surrogate, bounds=None if surrogate == "dgp" else ERRORS), seed):
            if not ask.is_complete or len(ask.done) < 5:
                continue
            mean, variance = ask.complete_at(ask.X_e[ask.paused], ask.y_e[ask.paused], bounds)
            phi_c = -mean + np.sqrt(0.2 * len(FINITE) * np.log(2.0 * len(ask.done))) * np.sqrt(variance)
            row = ask.paused.index(ask.proposal.trial)
            assert phi_c[row] == pytest.approx(phi_c.max(), abs=1e-4)
            chosen += 1
        assert chosen >= 4


class TestAlgorithm1:
    """n CT and m = s n ET runs of a nested design first; then s ET runs and one CT run in turn, to the end."""

    @pytest.mark.parametrize(("s", "n"), [(1, 4), (2, 5), (3, 3)])
    def test_the_order_of_runs_is_the_transcribed_one(self, s, n):
        found = [(ask.proposal.trial, ask.is_complete) for ask in asks(paper(s=s, initial=n), cost=12.0)]
        expected: list[bool] = [False] * (s * n) + [True] * n
        while len(expected) < len(found):
            expected += [False] * s + [True]
        assert [is_complete for _, is_complete in found] == expected[: len(found)]
        assert [trial for trial, _ in found[: s * n + n]] == [*range(s * n), *range(n)]

    def test_the_end_of_the_budget_changes_nothing(self):
        """Ours completes a run that fits while it does (`end="planned"`); the paper's loop does not look at the rest.
        A budget of 9 and one of 100 have the same asks until the first is spent."""
        policy = paper(initial=3, s=4)
        short = [ask.proposal for ask in asks(policy, cost=9.0)]
        long = [ask.proposal for ask in islice(asks(policy, cost=100.0), len(short))]
        assert [(p.trial, p.config) for p in short] == [(p.trial, p.config) for p in long]
        planned = [ask.proposal for ask in asks(paper(initial=3, s=4, end="planned"), cost=9.0)]
        assert [(p.trial, p.config) for p in planned] != [(p.trial, p.config) for p in long[: len(planned)]]

    def test_what_is_returned_is_the_best_of_the_completed_and_study_best_counts_all(self):
        """The last line: argmin over X_c of y_c, to be taken from `study.trials` as docs/bopt.md says. `study.best` is
        the trial with the least of all reported values, here one of the two ET runs after the design: it is paused, and
        every ET run is below every CT run."""
        space = ft.Space(x=ft.Real(0.0, 1.0))
        study = ft.Study(space, ft.Budget(cost=6.4), policy=paper(bounds=None), seed=0, max_steps=2)
        fast, complete = {}, {}
        while study.ended is None:
            proposal = study.ask()
            x = proposal.config["x"]
            value = (x - 0.8) ** 2 if proposal.start_step else (x - 0.3) ** 2 - 2.0
            (complete if proposal.start_step else fast)[proposal.trial] = value
            study.report(proposal, value, cost=0.8 if proposal.start_step else 0.2)
        completed = [trial for trial in study.trials if trial.status is ft.Status.COMPLETE]
        returned = min(completed, key=lambda trial: trial.curve.values[-1])
        assert returned.number == min(complete, key=complete.__getitem__)
        assert min(complete.values()) > max(fast.values())
        assert study.best.number == min(fast, key=fast.__getitem__)
        assert study.best.status is ft.Status.PAUSED

    @pytest.mark.parametrize(("s", "n"), [(2, 5), (3, 4), (5, 3)])
    def test_the_initial_design_is_a_nested_latin_hypercube(self, s, n):
        """Section 4.2: all m = s n points, and the n to be completed, have one point in each cell of each dimension."""
        space = ft.Space({name: ft.Real(0.0, 1.0) for name in "abcd"})
        study = ft.Study(space, ft.Budget(cost=1e6), policy=paper(s=s, initial=n), seed=3, max_steps=2)
        U = np.array([list(proposal.config.values()) for proposal in study.ask(s * n)])
        for points, count in ((U, s * n), (U[:n], n)):
            cells = np.sort((points * count).astype(int), axis=0)
            np.testing.assert_array_equal(cells, np.arange(count)[:, None].repeat(4, axis=1))


class TestSettings:
    """What the paper gives in words: `BOPT.paper()` has it."""

    def test_section_5_has_s_2_and_5_complete_runs_of_10(self):
        """Of ten dimensions it has 30 and 60, so `initial` is for the user to give there."""
        assert (BOPT.paper().s, BOPT.paper().initial, BOPT.paper().ratio) == (2, 5, None)
        assert sum(not ask.is_complete for ask in islice(asks(paper()), 15)) == 10

    @pytest.mark.parametrize("surrogate", ["tgp", "dgp"])
    def test_section_3_3_hyperparameters_are_of_maximum_likelihood_and_without_noise(self, surrogate):
        """After the design: Nelder-Mead, which the paper names, finds nothing likelier, neither for the ten ET runs nor
        for the five biases."""
        policy = paper(surrogate=surrogate, bounds=ERRORS if surrogate == "tgp" else None)
        ask = next(ask for ask in asks(policy) if len(ask.y_e) == 10 and not ask.is_complete)
        fit = ask.proposal.fits["bopt"]
        X, y, one = ask.X_e, ask.y_e, np.ones(len(ask.y_e))

        def minus_profile(log_phi: np.ndarray) -> float:
            """Eq. (3.4) with the closed forms of mean and variance."""
            K = R(X, X, np.exp(np.clip(log_phi, -12.0, 10.0))) + NUGGET * np.eye(len(X))
            mean = one @ np.linalg.solve(K, y) / (one @ np.linalg.solve(K, one))
            variance = (y - mean) @ np.linalg.solve(K, y - mean) / len(y)
            return 0.5 * (len(y) * np.log(variance) + np.linalg.slogdet(K)[1])

        found = minus_profile(np.log(phi_of(fit["low"])))
        others = [
            minimize(minus_profile, start, method="Nelder-Mead", options={"maxfev": 1000}).fun
            for start in (np.zeros(3), np.full(3, 2.0), np.array([2.0, 0.0, -2.0]))
        ]
        assert found < min(others) + 2e-3
        bounds, unit = ERRORS if surrogate == "tgp" else (-INF, INF), y.std()
        X_c, d = X[ask.done], ask.y_c - y[ask.done]

        def minus_bias(theta: np.ndarray) -> float:
            """Eq. (3.5)."""
            phi = np.exp(np.clip(theta[:3], -15.0, 10.0))
            return -log_likelihood(X_c, d, phi, unit * theta[3], unit**2 * np.exp(theta[4]), bounds)

        process = [fit["mean"], np.log(fit["variance"])]
        begin = np.array([*np.log(phi_of(fit["bias"])), *process])
        others = [
            minimize(minus_bias, start, method="Nelder-Mead", options={"maxfev": 150}).fun
            for start in (begin, np.array([2.0, 0.0, -2.0, *process]))
        ]
        assert minus_bias(begin) < min(others) + 2e-3
        for level in ("low", "bias"):
            assert fit[level]["log_noise"] == pytest.approx(np.log(NUGGET))

    def test_section_1_the_value_of_a_run_is_that_at_the_end_of_its_period(self):
        """y(x, psi) with the parameters psi at that time; ours is the best so far."""
        values = [0.5, 0.7, 0.2, 0.4]
        for policy, expected in ((paper(), (0.7, 0.4)), (paper(level="best"), (0.5, 0.2)), (BOPT(), (0.5, 0.2))):
            policy = replace(policy, fast_ends=Share(share=0.5), ends=None, s=1, ratio=1, initial=1)
            study = ft.Study(FINITE, ft.Budget(cost=4.0), policy=policy, seed=0, max_steps=4)
            while study.ended is None:
                proposal = study.ask()
                for value in values[proposal.start_step :]:
                    if study.report(proposal, value, cost=1.0) is not ft.Decision.CONTINUE:
                        break
            ledger, rng = ft.Ledger(ft.Budget(cost=1)), np.random.default_rng(0)
            (run,) = NextRun.of(policy, FINITE, study._history, ledger, rng).levels.runs
            assert (run.fast, run.complete) == expected

    def test_values_are_modelled_as_they_are(self):
        """No cut: a diverged run has its value."""

        def levels(policy: BOPT):
            study = ft.Study(FINITE, ft.Budget(cost=1e6), policy=policy, seed=0, max_steps=2)
            for _ in range(15):
                proposal = study.ask()
                study.report(proposal, 1e4 if proposal.trial == 2 else fast_error(proposal.config), cost=0.2)
            ledger = ft.Ledger(ft.Budget(cost=1))
            return NextRun.of(policy, FINITE, study._history, ledger, np.random.default_rng(0)).levels

        for policy, is_cut in ((paper(), False), (BOPT(fast_ends=Share(share=0.5), initial=5), True)):
            found = levels(policy)
            fast = np.array([run.fast for run in found.runs])
            gap = found.scaled([1e4])[0] - found.scaled([0.5])[0]
            ratio = gap / (found.scaled([0.7])[0] - found.scaled([0.5])[0])
            assert fast.max() == 1e4
            assert (ratio < 100.0) == is_cut

    def test_section_6_a_log_gaussian_bias_is_minus_the_exponential_of_a_process(self):
        X, y_e, X_c, y_c = designed()
        model = two_fidelity.fit(X, y_e, X_c, y_c, bounds=(-1.0, 0.0), bias="lognormal", kernel="gaussian",
                                 estimation=EXACT)  # fmt: skip
        P = np.random.default_rng(1).random((5, 2))
        mean, variance = model.bias.predict(P)
        draws = -np.exp(mean + np.sqrt(variance) * np.random.default_rng(2).standard_normal((200_000, 5)))
        error = draws.std(axis=0) / np.sqrt(len(draws))
        assert (np.abs(model.predict_bias(P)[0] - draws.mean(axis=0)) < 5.0 * error).all()
