"""Bayesian Optimization Over Iterative Learners with Structured Responses: A Budget-aware Planning Approach (BAPI;
Belakaria, Doppa, Fusi and Sheth, AISTATS 2023): planning, by equation, algorithm and section.

`BAPI.paper()` against transcriptions of the algorithms over a small finite space (oracles/bapi_transcribed.py). They
take means, deviations and joint draws from the fitted models; these have a file of their own
(test_bapi_models.py: appendix A, the kernels, the cost process). The paper maximises; here values are minimised, so its
inequalities are turned round.

What the text leaves open, and what we do: the number of initial points (5) and of Monte Carlo samples (256); what
Algorithm 5 does at a look where the new stop has passed (the run ends); and whether the last run of a horizon may cost
more than is left (as Algorithm 4 is printed, it may: the budget then ends the run).
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

import farthing as ft
from farthing.budget import Ledger
from farthing.history import TrackedTrial
from farthing.policies import BAPI
from farthing.policies.bapi.curves import TrainingCurves
from farthing.policies.bapi.planner import log_improvement
from farthing.surrogates.cost.linear_in_steps import LinearInSteps
from oracles.bapi_transcribed import (
    CONTINUE,
    EVERY,
    PAUSE,
    SPACE,
    T_MAX,
    Config,
    P,
    Transcribed,
    config_of,
    cost_of,
    features,
    proposals_of,
    searched,
    value_at,
)  # fmt: skip

PAPER = BAPI.paper(eps=0.02, initial=3)  # eps is given, as in experiments 1 to 7 (0.01 there)


@pytest.fixture(scope="module")
def begun() -> ft.Study:
    """Early in a search, when much is still uncertain."""
    return searched(PAPER, asks=5)


@pytest.fixture(scope="module")
def known(begun) -> Transcribed:
    return Transcribed.of(PAPER, begun)


@pytest.fixture(scope="module")
def normal(begun) -> Transcribed:
    return Transcribed.of(BAPI.paper(monotone=False, eps=0.02), begun)


@pytest.mark.parametrize("policy", [BAPI.paper(), PAPER], ids=["eps automatic", "eps 0.02"])
class TestEquation1:
    """max f(z) over sequences with sum c(z) <= B_T."""

    def test_the_search_ends_with_the_budget_and_not_before(self, policy):
        """Algorithm 1, lines 2 and 5: there are queries while anything is left. The last step may exceed it."""
        study = searched(policy, cost=320.0)
        last = max(cost_of(trial.config) for trial in study.trials)
        assert 320.0 <= study.ledger.spent < 320.0 + last
        assert study.best.value == min(trial.value for trial in study.trials)

    def test_it_comes_closer_to_the_maximum_than_random_search(self, policy):
        """At most half of its regret, for the same budget."""
        least = min(value_at(config, T_MAX) for config in EVERY)
        own = [searched(policy, cost=320.0, seed=seed).best.value for seed in range(4)]
        blind = [searched("random", cost=320.0, seed=seed).best.value for seed in range(20)]
        assert np.mean(own) - least < 0.5 * (np.mean(blind) - least)


class TestEquations2And3:
    """One-step expected marginal gain is expected improvement."""

    def improvement(self, model: Transcribed, config: Config) -> float:
        """As the planner has it."""
        mixture = model.curves.paths.at(features([config]), np.array([float(T_MAX)]))
        return float(model.ends.std() * np.exp(log_improvement(mixture, np.full(1, model.curves.best))[0]))

    def test_against_the_closed_form_where_the_model_is_one_normal(self, normal):
        """Without the constraint f(x, t) is normal: EI has a closed form, and the draws of Eq. 3 agree with it."""
        for config in normal.fresh[::5]:
            mean, sd = normal.mu_sigma(config, T_MAX)
            z = (normal.y_best - mean) / sd
            closed = sd * (z * norm.cdf(z) + norm.pdf(z))
            standard_error = 3.0 * sd / math.sqrt(20_000)
            assert self.improvement(normal, config) == pytest.approx(closed, rel=1e-6)
            assert normal.ei(config, T_MAX) == pytest.approx(closed, rel=0.05, abs=standard_error)

    def test_against_draws_where_the_model_only_falls(self, known):
        for config in known.fresh[::5]:
            assert self.improvement(known, config) == pytest.approx(known.ei(config, T_MAX), rel=0.05, abs=1e-4)


class TestEquations4To7:
    """The r-step gain, and the batch gain below it that is maximised in its place (Jiang et al. 2020). Without the
    constraint everything is normal, and the integrals over y are one-dimensional."""

    def runs(self, model: Transcribed) -> list[Config]:
        """Some of the most improvement, the best first."""
        return sorted(model.fresh, key=lambda config: -model.q_ei([config]))[:12:2]

    def two_steps(self, model: Transcribed, first: Config, seconds: list[Config]) -> tuple[np.ndarray, np.ndarray]:
        """EI(x' | D + (x, y)) for every x' and 40 quantiles of y: normals conditioned by hand; weights of the y."""
        joint = model.draws([first, *seconds], [T_MAX] * (1 + len(seconds)), 200_000)
        mean, K = joint.mean(axis=0), np.cov(joint.T)
        y = mean[0] + math.sqrt(K[0, 0]) * norm.ppf((np.arange(40) + 0.5) / 40)
        conditional = mean[1:] + np.outer(y - mean[0], K[0, 1:] / K[0, 0])
        sd = np.sqrt(np.diag(K)[1:] - K[0, 1:] ** 2 / K[0, 0])
        z = (np.minimum(model.y_best, y)[:, None] - conditional) / sd
        return y, sd * (z * norm.cdf(z) + norm.pdf(z))

    def test_the_batch_gain_is_the_first_gain_and_the_expected_second(self, normal):
        """Eq. 5 and 6 for r = 2: U({x, x'}) = E_y[u(y | x)] + E_y[U(x' | D + (x, y))]."""
        first, *seconds = self.runs(normal)
        _, gains = self.two_steps(normal, first, seconds)
        for second, gain in zip(seconds, gains.mean(axis=0), strict=True):
            values = normal.draws([first, second], [T_MAX] * 2, 200_000)
            one, both = (np.maximum(normal.y_best - least, 0.0).mean() for least in (values[:, 0], values.min(axis=1)))
            assert both == pytest.approx(normal.q_ei([first, second]), rel=0.05)
            assert both - one == pytest.approx(gain, rel=0.1)

    def test_the_planner_maximises_these_gains(self, normal):
        """Its utility of a first run is E_y[u(y | x)], and that of a second one E_y[U(x' | D + (x, y))]: both terms of
        Eq. 6. By 256 draws of y, which leave up to 10 % open."""
        first, *seconds = self.runs(normal)
        _, gains = self.two_steps(normal, first, seconds)
        assert normal.planned_ei([first], []) == pytest.approx(normal.q_ei([first]), rel=0.05)
        assert normal.planned_ei(seconds, [first]) == pytest.approx(gains.mean(axis=0), rel=0.1)

    def test_it_is_a_lower_bound_of_the_gain_with_hindsight(self, normal):
        """Eq. 7, by the same integrals."""
        first, *seconds = self.runs(normal)
        _, gains = self.two_steps(normal, first, seconds)
        assert gains.mean(axis=0).max() < gains.max(axis=1).mean()


class TestEquation8AndAlgorithm3:
    """The conservative stop: the smallest t with mu(x, t) within eps of mu(x, t_max)."""

    @pytest.mark.parametrize("eps", [0.002, 0.02, 0.2])
    def test_bisection_finds_what_trying_every_t_finds(self, begun, eps):
        known = Transcribed.of(BAPI.paper(eps=eps), begun)
        found = known.curves.stops(features(EVERY))
        assert found.tolist() == [known.t_opt(config) for config in EVERY]

    @pytest.mark.parametrize("points", ["posterior", "last"])
    def test_the_automatic_eps_is_the_least_degradation_in_the_data(self, points):
        """Section 5: eps = min f(x, t) - f(x, t_max) over the evaluated data D, which holds the whole vector y of every
        run (Algorithm 2, line 8), whatever part of it is modelled. t_max is known of complete runs only; f is the best
        so far. A step as good as the end is no degradation (the minimum would always be 0)."""
        policy = BAPI.paper(points=points)
        study = searched(policy, asks=9)
        gaps = []
        for trial in study.trials:
            if len(trial.curve) == T_MAX:
                best = np.minimum.accumulate(trial.curve.values)
                gaps += [best[t] - best[-1] for t in range(T_MAX) if best[t] > best[-1]]
        assert len(gaps) >= 5 * (T_MAX - 1)
        assert Transcribed.of(policy, study).curves.eps == pytest.approx(min(gaps), rel=1e-6)

    def test_what_it_is_with_a_curve_that_rises_and_without_a_complete_one(self):
        """The data of two runs by hand. Without a complete curve there is no degradation, and eps is our default."""

        def eps(*curves: list[float]) -> float:
            policy = BAPI.paper(initial=2)
            study = ft.Study(SPACE, ft.Budget(cost=1e5), policy=policy, seed=0, max_steps=4)
            for values in curves:
                proposal = study.ask()
                for value in values:
                    study.report(proposal, value, cost=1.0)
            return Transcribed.of(policy, study).curves.eps

        assert eps([9.0, 5.0, 7.0, 4.0], [8.0, 6.5, 6.2]) == pytest.approx(1.0)
        assert eps([9.0, 5.0, 7.0, 5.0], [8.0, 6.5, 6.2, 6.2]) == pytest.approx(0.3)
        assert eps([9.0, 5.0, 4.5], [8.0, 6.5, 6.5]) == pytest.approx(0.05 * 1.0)

    def test_what_it_does_runs_are_trained_to_where_their_curve_ends(self):
        """Curves that still fall a little at their end give an eps of that little, and stops near t_max. With 1 % of
        accuracy, as in the paper's experiments 1 to 7, they come much sooner."""
        study = searched(BAPI.paper(), asks=9)
        automatic, given = (
            Transcribed.of(policy, study).curves.stops(features(EVERY))
            for policy in (BAPI.paper(), BAPI.paper(eps=0.01))
        )
        assert np.median(automatic) > 0.9 * T_MAX
        assert np.median(given) < 0.8 * np.median(automatic)


def chosen_by_hand(known: Transcribed, chosen: list[Config]) -> dict[str, float]:
    """Algorithm 4, line 3: q-EI at t_max of what was chosen and one more, for every x in X."""
    return {str(config): known.q_ei([*chosen, config]) for config in known.fresh if config not in chosen}


class TestAlgorithm4:
    """The horizon: sequential greedy q-EI at t_max, while the budget lasts."""

    @pytest.mark.parametrize("horizon", [4, 8])
    def test_every_run_is_the_argmax_given_those_before_it(self, begun, horizon):
        """Line 3. Up to what Monte Carlo leaves open: its q-EI is at most 3 % below the largest."""
        known = Transcribed.of(BAPI.paper(eps=0.02, horizon=horizon), begun)
        chosen: list[Config] = []
        for planned in known.planner.horizon():
            assert config_of(planned) not in chosen
            gains = chosen_by_hand(known, chosen)
            if planned.run.trials[0] is None:
                assert gains[str(config_of(planned))] >= 0.97 * max(gains.values())
            chosen.append(config_of(planned))
        assert len(chosen) == horizon

    def test_the_argmax_is_not_of_improvement_per_cost(self):
        """Line 3 again: cost plays no part in it. A step costs from 1 to 100, and the most gain per cost is elsewhere
        than the most gain. The first two runs of the horizon are those of the most gain."""
        policy = BAPI.paper(eps=0.02)
        study = searched(policy, asks=policy.initial, price=lambda config: 100.0 ** (config["x"] / 15))
        known = Transcribed.of(policy, study)
        prices = {str(config): known.mu_c(config, T_MAX) for config in known.fresh}
        assert max(prices.values()) > 30.0 * min(prices.values())
        chosen: list[Config] = []
        for planned in known.planner.horizon()[:2]:
            before = known.q_ei(chosen) if chosen else 0.0
            gains = {config: gain - before for config, gain in chosen_by_hand(known, chosen).items()}
            per_cost = max(gains, key=lambda config: gains[config] / prices[config])
            assert gains[per_cost] < 0.9 * max(gains.values())
            assert gains[str(config_of(planned))] >= 0.95 * max(gains.values())
            chosen.append(config_of(planned))

    def test_a_run_that_was_planned_makes_its_neighbours_less_worth(self, known):
        """What the joint draws are for: the three of largest EI, each by itself, are neighbours and gain less together
        than the first three of the horizon."""
        planned = [config_of(planned) for planned in known.planner.horizon()[:3]]
        alone = sorted(known.fresh, key=lambda config: -known.q_ei([config]))[:3]
        assert known.q_ei(alone) < 0.97 * known.q_ei(planned)

    @pytest.mark.parametrize("left", [5.0, 30.0, 60.0, 150.0])
    def test_it_grows_until_the_budget_is_used_up(self, begun, left):
        """Lines 2, 4 and 5: each has its stop, its predicted cost there is deducted, and the next follows while B_r is
        above 0. So only the last one may exceed the budget."""
        known = Transcribed.of(BAPI.paper(eps=0.02, horizon=50), begun, left)
        horizon, B_r = known.planner.horizon(), left
        for planned in horizon:
            assert B_r > 0.0
            config, begins = config_of(planned), int(planned.run.step[0])
            assert planned.stop == max(known.t_opt(config), P if not begins else begins + 1)
            assert planned.cost == pytest.approx(known.mu_c(config, planned.stop - begins))
            B_r -= planned.cost
        assert B_r <= 0.0

    def test_the_horizon_has_a_largest_length(self, begun):
        """Section 3.4, practical considerations; 4 in all experiments, and 8 in two (BAPI-4 and BAPI-8)."""
        assert BAPI.paper().horizon == 4
        for horizon in (1, 4, 8):
            known = Transcribed.of(BAPI.paper(eps=0.02, horizon=horizon), begun, 1e9)
            assert len(known.planner.horizon()) == horizon

    @pytest.mark.parametrize("kernel", ["decay", "rbf-plain"])
    def test_as_many_runs_can_be_planned_as_there_are_workers(self, begun, kernel):
        """Section 3.2: a user can evaluate several points of the horizon in parallel. Each adds to the joint draws."""
        paths = Transcribed.of(BAPI.paper(kernel=kernel), begun).curves.paths
        for x in features(EVERY):
            paths = paths.extend(x, T_MAX)
        values = paths.drawn()[:, paths.carried.order == 0]
        assert values.shape == (256, len(EVERY))
        assert np.all(np.isfinite(values))


class TestAlgorithm2:
    """BAPI."""

    def test_line_1_the_initial_points_are_trained_completely(self):
        """N_0 of them; the paper does not say how many."""
        study = searched(BAPI.paper(initial=3), asks=3)
        assert [trial.status for trial in study.trials] == [ft.Status.COMPLETE] * 3
        assert [len(trial.curve) for trial in study.trials] == [T_MAX] * 3

    @pytest.mark.parametrize("seed", range(4))
    def test_line_6_the_next_run_has_the_most_improvement_per_cost_at_its_stop(self, begun, seed):
        """argmax over the horizon of EI(x, t_opt) / mu_c(x, t_opt), of what is proposed."""
        known = Transcribed.of(PAPER, begun, seed=seed)
        ratios = {}
        for planned in known.planner.horizon():
            steps = planned.stop - int(planned.run.step[0])
            ratios[str(config_of(planned))] = known.ei(config_of(planned), planned.stop) / known.mu_c(
                config_of(planned), steps
            )
        ledger = Ledger(ft.Budget(cost=1e5))
        (proposal,) = PAPER.propose(SPACE, begun._history, ledger, 1, np.random.default_rng(seed))
        assert ratios[str(proposal.config)] >= 0.95 * max(ratios.values())
        if proposal.start_step == 0:
            assert proposal.until_step == max(known.t_opt(proposal.config), P)

    def test_a_restarted_run_costs_its_further_epochs_only(self):
        """Section 3.4, "cost of a restarted hyperparameter"."""
        study = searched(BAPI.paper(eps=0.05, initial=3), asks=8)
        known = Transcribed.of(BAPI.paper(eps=0.05, initial=3), study)
        paused = study._history.of(ft.Status.PAUSED)
        assert paused
        candidates = known.planner._candidates(np.empty((0, 2)))
        for i, trial in enumerate(paused):
            planned = known.planner._planned(candidates[[i]], 1e5)
            assert planned is not None
            assert planned.cost == pytest.approx(known.mu_c(trial.config, planned.stop - trial.kept_step))


def shaped(trial: int, config: Config, step: int) -> float:
    """Curves that surprise the model: every third stays where it began, every third falls late."""
    end = value_at(config, T_MAX)
    match trial % 3:
        case 0:
            return end + 0.4 + 0.001 / step
        case 1:
            return end + 0.5 * (1.0 - step / T_MAX)
    return end + 0.5 * math.exp(-2.0 * step)


class Lookout:
    """Algorithm 5, transcribed: what it does with a run at each step."""

    def __init__(self, policy: BAPI, study: ft.Study, proposal: ft.Proposal) -> None:
        self.policy, self.study, self.number, self.stop = policy, study, proposal.trial, proposal.until_step
        self.seen: Counter[str] = Counter()

    def says(self, t: int) -> ft.Decision:
        if t % P and t != self.stop:
            return CONTINUE
        history = self.study._history
        trial, rng = history.trials[self.number], np.random.default_rng([self.study.seed, history.asks, self.number, t])
        curves = TrainingCurves.of(self.policy, SPACE, history, rng)
        assert curves is not None
        known = Transcribed(self.policy, self.study, curves, None)  # type: ignore[arg-type]  # it plans nothing
        t_n = known.t_opt(trial.config)  # line 3
        (mu, sigma_n), (_, sigma) = known.mu_sigma(trial.config, max(t_n, t)), known.mu_sigma(trial.config, t)
        y_best = min(other.value for other in self.study.trials if other.number != self.number)
        if mu >= y_best and sigma_n <= self.policy.tau * sigma:  # lines 4 and 5
            self.seen["terminated early"] += 1
            return PAUSE
        self.seen["later" if t_n > (self.stop or 0) else "earlier" if t_n < (self.stop or 0) else "stays"] += 1
        self.stop = t_n  # line 7
        return PAUSE if t_n <= t else CONTINUE


class TestAlgorithm5:
    """Evaluation with early termination. Looks are at multiples of p and at the stop: t <- min(t_opt_n, t + p) as
    printed, but for a run that goes on beyond a stop: its next look is at a multiple of p, not p epochs later."""

    def followed(self, study: ft.Study, proposal: ft.Proposal, policy: BAPI) -> Counter[str]:
        lookout, step, decision = Lookout(policy, study, proposal), proposal.start_step, CONTINUE
        while decision is CONTINUE:
            step += 1
            decision = study.report(proposal, shaped(proposal.trial, proposal.config, step), cost=1.0)
            if proposal.predicted_cost is None or step == T_MAX:
                continue  # the design; complete
            assert decision is lookout.says(step), f"trial {proposal.trial}, step {step}"
            if decision is CONTINUE:
                assert study._history.trials[proposal.trial].until_step == lookout.stop
        if proposal.until_step is not None and step > proposal.until_step:
            lookout.seen["beyond its first stop"] += 1
        return lookout.seen

    def test_lines_3_to_7_decide_every_step(self):
        """Whole studies in step with the transcription, with complete initial trainings and with short ones; and
        everything that the algorithm can do was done."""
        seen = Counter[str]()
        for policy in (BAPI.paper(eps=0.02, initial=3), BAPI(eps=0.02, initial=3, values="plain", overrun=None)):
            study = ft.Study(SPACE, ft.Budget(cost=1e5), policy=policy, seed=0, max_steps=T_MAX)
            for proposal in islice(proposals_of(study), 14):
                seen += self.followed(study, proposal, policy)
        assert set(seen) == {"terminated early", "earlier", "later", "stays", "beyond its first stop"}, seen

    def test_line_1_the_first_look_is_after_p_epochs(self, begun):
        for seed in range(3):
            (proposal,) = PAPER.propose(
                SPACE, begun._history, Ledger(ft.Budget(cost=1e5)), 1, np.random.default_rng(seed)
            )  # fmt: skip
            assert proposal.start_step or proposal.until_step >= P
        assert (BAPI.paper().period, BAPI.paper().tau) == (0.2, 2.0)

    @pytest.mark.parametrize("seed", [4])
    def test_line_4_a_run_need_not_beat_itself(self, seed):
        """y_best is that of the other runs: the incumbent, predicted to beat them all and still before its stop, is
        never ended. Noisy curves, whose prediction is above the best that the run itself has seen."""
        policy, rng = BAPI(initial=3), np.random.default_rng(seed)
        space = ft.Space(x=ft.Integer(0, 23), y=ft.Integer(0, 2))
        study = ft.Study(space, ft.Budget(cost=1e6), policy=policy, seed=seed, max_steps=T_MAX)
        looks = 0
        for proposal in islice(proposals_of(study), 20):
            step, decision = proposal.start_step, CONTINUE
            while decision is CONTINUE:
                step += 1
                x, y = proposal.config["x"], proposal.config["y"]
                end = 0.1 + 0.5 * ((x - 15) / 23) ** 2 + 0.02 * y
                noisy = end + 0.6 * math.exp(-step / (2 + x / 6)) + 0.05 * rng.normal()
                decision = study.report(proposal, noisy, cost=1.0)
                trial = study._history.trials[proposal.trial]
                if (
                    proposal.trial >= 3
                    and step % P == 0
                    and step < T_MAX
                    and beats_the_others(policy, space, study, trial)
                ):
                    looks += 1
                    assert decision is CONTINUE, f"trial {trial.number}, step {step}"
        assert looks > 3

    def test_tau_a_run_ends_early_if_its_end_is_at_most_tau_times_as_uncertain(self):
        """Section 3.4, condition 2: sigma(x, t_opt_n) <= tau sigma(x, t). A run that does not win, at its first look:
        it is ended for tau just above the ratio of the two, and not for one just below."""
        study = searched(PAPER, asks=5)
        proposal = next(p for p in proposals_of(study) if p.start_step == 0)
        for step in range(1, P):
            study.report(proposal, 1.5 + 0.2 / step, cost=1e-3)
        history, trial = self.one_step_later(study, proposal)
        curves = TrainingCurves.of(PAPER, SPACE, history, np.random.default_rng(0))
        assert curves is not None
        known = Transcribed(PAPER, study, curves, None)  # type: ignore[arg-type]  # it plans nothing
        ratio = known.mu_sigma(trial.config, max(known.t_opt(trial.config), P))[1] / known.mu_sigma(trial.config, P)[1]
        assert ratio > 1.2
        for factor, ends in ((0.5, False), (0.99, False), (1.01, True), (4.0, True)):
            if factor * ratio > 1.0:
                policy, rng = BAPI.paper(eps=0.02, tau=factor * ratio), np.random.default_rng(0)
                assert (policy.decide(SPACE, history, study.ledger, trial, rng) is PAUSE) == ends, factor

    def one_step_later(self, study: ft.Study, proposal: ft.Proposal) -> tuple[Any, TrackedTrial]:
        """The history with one more step of a run, which nobody has decided about."""
        trial = study._history.trials[proposal.trial]
        further = replace(trial, curve=trial.curve.with_report(ft.trial.Report(1.55, 1e-3)), kept_step=P)
        return study._history.with_trial(further), further


def beats_the_others(policy: BAPI, space: ft.Space, study: ft.Study, trial: TrackedTrial) -> bool:
    """Whether a run is predicted to end below all others, at a stop that is still to come."""
    history = study._history
    rng = np.random.default_rng([study.seed, history.asks, trial.number, trial.kept_step])
    curves = TrainingCurves.of(policy, space, history, rng)
    assert curves is not None
    x = space.features(trial.unit[None, :])
    stop = float(curves.stops(x)[0])
    others = min(other.value for other in study.trials if other.number != trial.number)
    mean = curves.paths.at(x, np.array([stop])).moments()[0][0]
    return stop > trial.kept_step and bool(mean < curves.warp(np.array([others]))[0])


class TestVariants:
    """Section 5 and appendix B: the variants that the paper reports."""

    @pytest.mark.parametrize(
        "options",
        [{}, {"horizon": 8}, {"points": "last"}, {"monotone": False}, {"kernel": "rbf-plain"}, {"period": 0.1}],
        ids=["BAPI-4", "BAPI-8", "BAPI-4-L", "BAPI-4-NM", "reinforcement learning", "CNN-SVHN"],
    )
    def test_each_is_one_option_away_and_plans_with_its_own_model(self, begun, options):
        """To the end of its budget, with more than its design found. The first run that it plans has the most expected
        improvement by its own model, of all that are new or paused."""
        policy = BAPI.paper(initial=3, **options)
        study = searched(policy, cost=300.0, seed=1)
        assert study.ledger.spent >= 300.0
        assert study.best.value < min(trial.value for trial in study.trials[:3])
        known = Transcribed.of(policy, begun)
        paused = [trial.config for trial in begun._history.of(ft.Status.PAUSED)]
        gains = {str(config): known.q_ei([config]) for config in [*known.fresh, *paused]}
        assert gains[str(config_of(known.planner.horizon()[0]))] >= 0.97 * max(gains.values())

    def test_what_is_ours_is_off_in_its_form(self, begun):
        """What the tests above do not see: values are not warped, runs that cost more than predicted go on, and the
        cost is the process. Of our default each is otherwise."""

        def seen(policy: BAPI) -> tuple[bool, bool, bool]:
            known = Transcribed.of(policy, begun)
            steps = np.diff(known.curves.warp.inverse(np.array([-1.0, 0.0, 1.0])))
            costs = known.planner.costs.model
            return bool(steps[0] == pytest.approx(steps[1])), self.goes_on(policy), isinstance(costs, LinearInSteps)

        assert seen(BAPI.paper()) == (True, True, True)
        assert seen(BAPI()) == (False, False, False)

    def goes_on(self, policy: BAPI) -> bool:
        """Whether a run goes on that has cost a hundred times what was predicted, at a step without a look."""
        study = searched(policy, asks=policy.initial)
        proposal = study.ask()
        assert proposal.predicted_cost is not None
        price = 100.0 * proposal.predicted_cost
        return study.report(proposal, value_at(proposal.config, proposal.start_step + 1), cost=price) is CONTINUE
