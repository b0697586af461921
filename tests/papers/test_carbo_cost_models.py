"""The cost models of CArBO (Lee et al. 2020, sections 3 and 6) and of CEI (Guinet et al. 2020, section 3.2).

By number: CArBO section 3 (a warped GP on log cost), section 6 (counts of an MLP and of a CNN, the linear model, the
Huber loss, the GP whose mean is that model, Figure 9), CEI section 3.2 and Figure 2 (lines in 1, 2, 3 parameters,
GP-LV, the GP on 3 features). All models by name, on all policies: tests/policies/test_cost_model_names.py.

Open in the papers: Huber's threshold; what is done where the linear model is not positive; whether the GP on the linear
model is one on costs or on their logs; how the most significant parameters are found. The tests say what we do.
"""

from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
import pytest
from scipy.optimize import minimize

import farthing as ft
from farthing.policies import CEI, CArBO, EIAlpha, EICool, EIpu
from farthing.surrogates.cost import flops, lines
from farthing.surrogates.cost.choice import choose
from oracles.network_costs import MLP, SPACE, asked, at, before, counted, data, networks, played, process_mean


class TestSection3WarpedGP:
    """CArBO, section 3: log cost gamma(x) is modelled by a GP; the cost is predicted by c(x) = exp(gamma(x))."""

    def test_the_predicted_cost_is_exp_of_the_posterior_mean_of_log_cost(self):
        study, proposal, fit = asked("gp")
        expected = process_mean(
            *data(before(study, proposal)), at(proposal.config), fit["processes"]["gp"]["hyperparameters"], SPACE.groups
        )
        assert np.log(proposal.predicted_cost) == pytest.approx(expected, abs=1e-6)

    @pytest.mark.parametrize("policy", [CArBO, EIpu, EICool])
    def test_the_papers_form_has_this_model(self, policy):
        assert policy.paper().cost_model == "gp"
        study = played(policy.paper(), 8)
        assert study.ask().fits["cost"]["weights"] == {"gp": 1.0}


class TestSection6Counts:
    """CArBO, section 6: each feature counts the operations of one part of the program."""

    def test_phi_quad_counts_the_products_of_an_mlp(self):
        """n_1 n_2 + ... + n_{k-1} n_k: the multiplications of a forward pass, counted one by one."""
        layers = [5, 3, 4, 2]
        W = [np.ones((a, b)) for a, b in pairwise(layers)]
        assert ft.flops.phi_quad(layers) == sum(1 for matrix in W for _ in np.nditer(matrix))

    def test_phi_linear_counts_the_units_of_an_mlp(self):
        """n_1 + ... + n_k: one activation and one normalisation per unit."""
        assert ft.flops.phi_linear([5, 3, 4, 2]) == len([unit for n in [5, 3, 4, 2] for unit in range(n)])

    def test_phi_conv_counts_the_products_of_convolutions(self):
        """I^2 r^2 c m_1 + sum I^2 r^2 m_i m_{i+1}: at each pixel, r^2 products per pair of channels, counted."""
        image, r, colours, channels = 4, 3, 2, [3, 5]
        seen = 0
        for a, b in pairwise([colours, *channels]):
            seen += sum(1 for _ in np.ndindex(image, image, r, r, a, b))
        assert ft.flops.phi_conv(image, r, colours, channels) == seen

    def test_phi_pool_counts_the_pixels_that_pooling_leaves(self):
        """sum I^2 p_i m_i with the pooling ratios p_i."""
        left = sum(1 for _ in np.ndindex(8, 8, 3)) + sum(1 for _ in np.ndindex(4, 4, 5))
        assert ft.flops.phi_pool(8, [1.0, 0.25], [3, 5]) == left


def timings(n: int, seed: int, noise: float = 0.05) -> tuple[np.ndarray, np.ndarray]:
    """The MLP of section 6: k = 4 layers of 10 to 300 units; seconds are c_1 quad + c_2 linear + c_3."""
    rng = np.random.default_rng(seed)
    layers = rng.integers(10, 301, (n, 4)).tolist()
    Phi = np.array([[ft.flops.phi_quad(row), ft.flops.phi_linear(row)] for row in layers])
    return Phi, (Phi @ [2e-5, 1e-3] + 0.4) * np.exp(noise * rng.standard_normal(n))


def printed_loss(theta: np.ndarray, A: np.ndarray, c: np.ndarray, threshold: float) -> tuple[float, np.ndarray]:
    """Huber's penalty (Boyd and Vandenberghe 2004, section 6.1.2) of c - A theta, and its gradient."""
    r = c - A @ theta
    small = np.abs(r) <= threshold
    value = np.where(small, r**2, threshold * (2.0 * np.abs(r) - threshold)).sum()
    return float(value), -A.T @ np.where(small, 2.0 * r, 2.0 * threshold * np.sign(r))


class TestSection6LinearModel:
    """CArBO, section 6: c(x) = c_1 phi_quad + c_2 phi_linear + c_3, by robust regression with the Huber loss.

    Ours ("flops") has Huber's loss on log costs and prices of at least 0; as printed it is "flops-huber".
    """

    @pytest.mark.parametrize("priced", [flops.fit, flops.fit_runtime])
    def test_the_coefficients_of_an_mlp_are_found(self, priced):
        Phi, c = timings(60, 0, noise=0.0)
        np.testing.assert_allclose(priced(Phi, c).prices, [2e-5, 1e-3, 0.4], rtol=0.03)

    @pytest.mark.parametrize("odd", [0, 3])
    @pytest.mark.parametrize("seed", range(3))
    def test_the_printed_form_minimises_hubers_loss_of_runtime(self, seed, odd):
        """The loss is convex, so any minimiser finds the same. Threshold (open): 1.345 s, s = median |r| / 0.6745."""
        Phi, c = timings(40, seed)
        c[:odd] *= 20.0
        A = np.column_stack([Phi, np.ones(len(c))])
        prices = flops.fit_runtime(Phi, c).prices
        s = np.median(np.abs(c - A @ prices)) / 0.6744897501960817
        size = A.mean(axis=0)  # units in which a minimiser has no trouble
        direct = minimize(
            printed_loss, np.zeros(3), (A / size, c, 1.345 * s), "BFGS", jac=True, options={"gtol": 1e-10}
        )
        np.testing.assert_allclose(prices * size, direct.x, rtol=2e-3, atol=2e-4 * np.abs(direct.x).max())

    @pytest.mark.parametrize("priced", [flops.fit, flops.fit_runtime])
    def test_odd_timings_move_it_little(self, priced):
        """ "to deal with outliers in timing data": two of forty measured while the machine was busy."""
        Phi, c = timings(40, 1)
        busy = c.copy()
        busy[:2] *= 30.0
        change = priced(Phi, busy).predict(Phi)[0] - priced(Phi, c).predict(Phi)[0]
        squares = np.linalg.lstsq(np.column_stack([Phi, np.ones(40)]), busy, rcond=None)[0]
        assert np.abs(change).max() < 0.15
        assert np.abs(np.log(np.column_stack([Phi, np.ones(40)]) @ squares / c)).max() > 0.5

    def test_where_the_printed_form_is_not_positive_there_is_still_a_cost(self):
        """Open: at -1 second there is no log cost. The least that is predicted is a tenth of the smallest seen."""
        Phi = np.array([[1.0], [2.0], [4.0], [9.0]])
        model = flops.fit_runtime(Phi, 3.0 * Phi[:, 0] - 2.0)
        assert np.exp(model.predict(np.zeros((1, 1)))[0][0]) == pytest.approx(0.1)
        assert np.exp(flops.fit(Phi, 3.0 * Phi[:, 0] - 2.0).predict(np.zeros((1, 1)))[0][0]) > 0.0

    @pytest.mark.parametrize(("name", "priced"), [("flops", flops.fit), ("flops-huber", flops.fit_runtime)])
    def test_a_policy_predicts_by_it(self, name, priced):
        study, proposal, _ = asked(name)
        seen = before(study, proposal)
        prices = priced(counted(seen)[:, :2], np.array([trial.cost for trial in seen])).prices
        assert proposal.predicted_cost == pytest.approx(float(counted([proposal])[0] @ prices), rel=1e-9)


class TestSection6GPOnTheLinearModel:
    """CArBO, section 6: "GP whose mean is our low-variance model". Open: of costs or of log costs; ours is of logs."""

    def test_a_policy_predicts_the_linear_model_times_what_the_process_adds(self):
        study, proposal, fit = asked("gp-flops")
        seen, stored = before(study, proposal), fit["processes"]["gp-flops"]["hyperparameters"]
        (Z, b), Phi = data(seen), counted(seen)
        prices = flops.fit(Phi[:, :2], np.exp(b)).prices
        added = process_mean(Z, b - np.log(Phi @ prices), at(proposal.config), stored, SPACE.groups)
        linear = float(np.log(counted([proposal])[0] @ prices))
        assert np.log(proposal.predicted_cost) == pytest.approx(linear + added, abs=1e-6)

    def test_figure_9_it_is_the_most_accurate_and_the_warped_gp_the_least(self):
        """RMSE of log cost at random configurations, from few evaluations; as the data grow, the gap shrinks."""
        errors = {n: _figure_9(n) for n in (6, 12, 30)}
        for n in (6, 12):
            gp, linear, on_linear = errors[n]
            assert on_linear <= 1.02 * linear, n
            assert linear < gp, n
            assert on_linear < 0.7 * gp, n
        assert errors[30][2] < 0.7 * errors[30][1]  # the process learns what the counts leave out
        gaps = [errors[n][0] - errors[n][2] for n in (6, 12, 30)]
        assert gaps[0] > gaps[1] > gaps[2] > 0.0

    def test_it_extrapolates_where_a_gp_does_not(self):
        """From layers of at most 155 units to those of more: "Gaussian processes extrapolate poorly"."""
        errors = []
        for seed in range(6):
            X, b, own = networks(400, seed, left_out=0.0)
            small, large = np.flatnonzero((X < 0.5).all(axis=1))[:15], (X > 0.5).all(axis=1)
            models = [
                choose(X[small], b[small], MLP.groups, MLP.ratios, own=own(small), model=name).model
                for name in ("gp", "gp-flops")
            ]
            errors.append([np.abs(model.predict(X[large])[0] - b[large]).mean() for model in models])
        gp, on_linear = np.array(errors).T
        assert (on_linear < gp).all()
        assert on_linear.mean() < 0.2 * gp.mean()


def _figure_9(n: int) -> tuple[float, float, float]:
    """RMSE of the warped GP, of the linear model and of the GP on it, over eight training sets of n."""
    squares = []
    for seed in range(8):
        X, b, own = networks(n + 200, seed)
        seen, rest = np.arange(n), np.arange(n, n + 200)
        models = [
            choose(X[seen], b[seen], MLP.groups, MLP.ratios, own=own(seen), model=name).model
            for name in ("gp", "flops", "gp-flops")
        ]
        squares.append([np.mean((model.predict(X[rest])[0] - b[rest]) ** 2) for model in models])
    gp, linear, on_linear = np.sqrt(np.mean(squares, axis=0)).tolist()
    return gp, linear, on_linear


class TestCEISection32Lines:
    """CEI, section 3.2 and Figure 2: linear models of log run-time in the 1, 2, 3 most significant log-scaled features.

    Ours have a prior, Huber's loss, and bend beyond the costs seen; on many exact costs that leaves least squares.
    """

    @pytest.mark.parametrize("q", [1, 2, 3])
    def test_the_line_is_that_of_least_squares_in_the_best_parameters(self, q):
        """Best: of all sets of q parameters the one with the least squares, by trying each. Open in the paper."""
        rng = np.random.default_rng(q)
        X = rng.random((200, 5))
        b = 2.0 + X @ [0.3, 4.0, 0.0, -2.0, 1.0] + 0.01 * rng.standard_normal(200)
        model = choose(X, b, np.arange(5), np.ones(5), model=f"line{q}").model
        best = min(combinations(range(5), q), key=lambda some: _least_squares(X, b, some)[1])
        P = rng.random((50, 5))
        theta = _least_squares(X, b, best)[0]
        expected = theta[0] + P[:, best] @ theta[1:]
        inside = (expected > b.min()) & (expected < b.max())
        np.testing.assert_allclose(model.predict(P)[0][inside], expected[inside], atol=0.04)

    def test_a_line_is_hubers_with_a_ridge(self):
        """Few odd costs: the minimum of sum rho(r; 1.345 s) + 0.05 |w|^2 / 2, found directly, at the model's s."""
        rng = np.random.default_rng(5)
        Z = rng.random((25, 2))
        b = 1.0 + Z @ [3.0, 1.0] + 0.2 * rng.standard_normal(25)
        b[:3] += 3.0
        model = lines.fit_sizes(Z, b)[2]

        def loss(theta: np.ndarray) -> float:
            r, k = b - theta[0] - Z @ theta[1:], 1.345 * model.scale
            rho = np.where(np.abs(r) <= k, r**2 / 2.0, k * (np.abs(r) - k / 2.0))
            return float(rho.sum() + 0.05 * theta[1:] @ theta[1:] / 2.0)

        direct = minimize(loss, np.zeros(3), method="BFGS", options={"gtol": 1e-8}).x
        expected = direct[0] + Z @ direct[1:]
        inside = (expected > b.min()) & (expected < b.max())  # beyond the costs seen ours bends
        assert inside.sum() > 20
        np.testing.assert_allclose(model.predict(Z)[0][inside], expected[inside], atol=1e-4)

    @pytest.mark.parametrize("name", ["line1", "line2", "line3"])
    def test_a_policy_predicts_by_it(self, name):
        study, proposal, fit = asked(name)
        Z, b = data(before(study, proposal))
        model = lines.fit_sizes(Z, b, SPACE.groups)[int(name[-1])]
        assert np.log(proposal.predicted_cost) == pytest.approx(float(model.predict(at(proposal.config))[0][0]))
        assert fit["weights"] == {f"linear-{name[-1]}": 1.0}

    def test_the_papers_form_has_the_line_in_three(self):
        """ "simple linear models, which we will use in the remainder"; "the LV model with 3 features" (Figure 9)."""
        assert CEI.paper().cost_model == EIAlpha.paper().cost_model == "line3"


def _least_squares(X: np.ndarray, b: np.ndarray, some: tuple[int, ...]) -> tuple[np.ndarray, float]:
    A = np.column_stack([np.ones(len(b)), X[:, some]])
    theta = np.linalg.lstsq(A, b, rcond=None)[0]
    return theta, float(((b - A @ theta) ** 2).sum())


class TestCEIFigure2Processes:
    """CEI, section 3.2 and Figure 2: a GP trained on the residuals of a low-variance model, and one on 3 features."""

    def test_gp_lv_is_the_line_and_a_process_on_its_residuals(self):
        study, proposal, fit = asked("gp-lv")
        Z, b = data(before(study, proposal))
        line, z = lines.fit_sizes(Z, b, SPACE.groups)[len(SPACE)], at(proposal.config)
        stored = fit["processes"]["gp-lv"]["hyperparameters"]
        expected = line.mean_at(z)[0] + process_mean(Z, b - line.mean_at(Z), z, stored, SPACE.groups)
        assert np.log(proposal.predicted_cost) == pytest.approx(expected, abs=1e-6)

    def test_the_limited_process_sees_the_three_most_significant_parameters(self):
        study, proposal, fit = asked("gp3")
        Z, b = data(before(study, proposal))
        selected = lines.fit_sizes(Z, b, SPACE.groups)[len(SPACE)].selected[:3]
        stored = fit["processes"]["gp-selected"]
        assert sorted(stored["selected"]) == sorted(selected)
        columns = np.flatnonzero(np.isin(SPACE.groups, selected))
        groups = np.unique(SPACE.groups[columns], return_inverse=True)[1]
        expected = process_mean(Z[:, columns], b, at(proposal.config)[:, columns], stored["hyperparameters"], groups)
        assert np.log(proposal.predicted_cost) == pytest.approx(expected, abs=1e-6)
