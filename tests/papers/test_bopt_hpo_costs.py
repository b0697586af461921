"""BOPT-HPO (Yang, Deng and Zhu 2023): what the two levels of training cost, and the rival EQIE.

Section 6 names models of the running times t_e(x) and t_c(x) as an extension and leaves them open. Section 4.1
describes EQIE (He, Tuo and Wu 2017), which the experiments of section 5 compare with.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

import farthing as ft
from farthing.acquisitions.quantile import LogEQI
from farthing.budget import Ledger
from farthing.errors import InvalidArgument
from farthing.history import History, Way
from farthing.history.cost_knowledge import CostKnowledge
from farthing.policies import BOPT, EQIE
from farthing.policies.bopt.eqie import MostEfficient
from farthing.policies.bopt.level_costs import FEWEST_COMPLETE, LevelCosts
from farthing.policies.bopt.stopping import Share
from farthing.policies.bopt.two_levels import TrainingRun
from farthing.surrogates import two_fidelity
from farthing.surrogates.two_fidelity.model import TwoFidelity
from farthing.surrogates.two_fidelity.outlook import AfterComplete, AfterLow
from farthing.trial import Curve

SPACE = ft.Space(width=ft.Real(1.0, 16.0, log=True), drop=ft.Real(0.0, 1.0), rate=ft.Real(0.0, 1.0))
STEPS, FAST = 10, 2
CHEAP_REST = 0.02  # of what the rest of a training costs otherwise
FIFTH = Share(share=FAST / STEPS)


def value(config: dict[str, Any]) -> float:
    return (config["drop"] - 0.3) ** 2 + (config["rate"] - 0.6) ** 2 + 0.1 * np.log(config["width"])


def fast_cost(config: dict[str, Any]) -> float:
    """t_e(x)."""
    return FAST * config["width"]


def rest_cost(config: dict[str, Any]) -> float:
    """t_c(x) - t_e(x): from 1 to 7 times the cost of the fast period, by another parameter."""
    return fast_cost(config) * np.exp(2.0 * config["drop"])


def trained(study: ft.Study, proposal: ft.Proposal, hidden: bool = False) -> None:
    """From where it is until the policy pauses it, or to the end. If complete training is `hidden`, its fast period
    says little about it, and the rest costs next to nothing."""
    factor = CHEAP_REST if hidden else 1.0
    for step in range(proposal.start_step, STEPS):
        config = proposal.config
        cost = fast_cost(config) / FAST if step < FAST else factor * rest_cost(config) / (STEPS - FAST)
        gap = 4.0 + 4.0 * np.sin(20.0 * config["drop"] + 13.0 * config["rate"]) if hidden else 1.0
        if study.report(proposal, value(config) + gap * 0.5 ** (step + 1), cost=cost) is not ft.Decision.CONTINUE:
            return


def designed(policy: Any, seed: int = 0) -> tuple[ft.Study, list[ft.Proposal]]:
    """A study after its design: twice as many runs in their fast period as are complete."""
    study = ft.Study(SPACE, ft.Budget(cost=1e6), policy=policy, seed=seed, max_steps=STEPS)
    proposals = []
    for _ in range(3 * policy.initial):
        proposals.append(study.ask())
        trained(study, proposals[-1])
    return study, proposals


def level_costs(study: ft.Study, complete: Any = "model", way: Way = Way.FULL) -> LevelCosts:
    runs = [TrainingRun.of(trial, FAST, "best") for trial in study._history.trials]
    return LevelCosts([run for run in runs if run is not None], STEPS, 0.0, SPACE, way, complete)


class TestCostOfBothLevels:
    """Section 6: "a pair of new surrogate models for the running time of ET and CT runs, i.e. t_e(x) and t_c(x)"."""

    def test_what_completing_is_said_to_cost_follows_the_law(self):
        """By the model within a few percent from ten complete runs on; by the median ratio not at all."""
        errors: dict[str, list[float]] = {}
        for rule in ("ratio", "model"):
            _, proposals = designed(BOPT(initial=18, fast_ends=FIFTH, ends=None, complete_cost=rule))
            completed = [proposal for proposal in proposals if proposal.start_step][10:]
            assert len(completed) == 8
            errors[rule] = [abs(np.log(p.predicted_cost / rest_cost(p.config))) for p in completed]
        assert max(errors["model"]) < 0.1
        assert np.median(errors["ratio"]) > 0.2

    def test_what_a_new_run_is_said_to_cost_follows_the_law(self):
        """To the end of its fast period: by the model from ten runs on, and not by the median of all runs. Also what
        `eqie` begins, unless its costs are fixed."""
        levels = {"fast_ends": FIFTH, "ends": None}
        for policy, is_modelled in (
            (BOPT(initial=8, complete_cost="model", **levels), True),
            (EQIE(initial=8, **levels), True),
            (BOPT(initial=8, **levels), False),
            (EQIE.paper(initial=8, **levels), False),
        ):
            study, proposals = designed(policy)
            for _ in range(3):
                proposals.append(study.ask())
                trained(study, proposals[-1])
            new = [p for p in proposals if not p.start_step and p.until_step is None][10:]
            assert len(new) >= 6
            errors = [abs(np.log(p.predicted_cost / fast_cost(p.config))) for p in new]
            assert max(errors) < 0.1 if is_modelled else np.median(errors) > 0.2

    def test_models_of_both_levels_follow_the_law_where_nothing_was_trained(self):
        study, _ = designed(BOPT(initial=12, fast_ends=FIFTH, ends=None))
        costs, configs = level_costs(study), [p.config for p in ft.Study(SPACE, "9 evaluations", seed=4).ask(9)]
        X = SPACE.features(SPACE.encode_many(configs))
        t_e, t_c = costs.fast_cost_model, costs.complete_cost_model
        assert t_e is not None
        assert t_c is not None
        np.testing.assert_allclose(t_e.mean_at(X), np.log([fast_cost(c) for c in configs]), atol=0.05)
        np.testing.assert_allclose(t_c.mean_at(X), np.log([fast_cost(c) + rest_cost(c) for c in configs]), atol=0.1)
        price = [costs.price_of_new_and_complete(x) for x in X]
        np.testing.assert_allclose(price, np.exp(t_c.mean_at(X)))

    def test_the_law_of_complete_training_is_that_of_its_parts(self):
        """t_c = t_e (1 + r), against draws of log t_e and log r; and its slopes against differences."""
        study, _ = designed(BOPT(initial=8, fast_ends=FIFTH, ends=None))
        costs = level_costs(study)
        t_e, r, t_c = costs.fast_cost_model, costs.rest_ratio_model, costs.complete_cost_model
        assert t_e is not None
        assert r is not None
        assert t_c is not None
        X = np.random.default_rng(3).random((5, SPACE.features(np.zeros((1, 3))).shape[1]))
        (e, e_variance), (q, q_variance) = t_e.predict(X), r.predict(X)
        z = np.random.default_rng(4).standard_normal((2, 200_000, 1))
        draws = e + np.sqrt(e_variance) * z[0] + np.log1p(np.exp(q + np.sqrt(q_variance) * z[1]))
        mean, variance, mean_slope, variance_slope = t_c.predict_with_gradient(X)
        np.testing.assert_allclose(mean, draws.mean(axis=0), atol=1e-2)
        np.testing.assert_allclose(variance, draws.var(axis=0), rtol=0.02)
        np.testing.assert_allclose(t_c.predict(X), (mean, variance))
        np.testing.assert_allclose(t_c.mean_with_gradient(X)[1], mean_slope)
        step = 1e-6
        for j in range(X.shape[1]):
            moved = X + step * np.eye(X.shape[1])[j]
            after, after_variance = t_c.predict(moved)
            np.testing.assert_allclose((after - mean) / step, mean_slope[:, j], rtol=1e-3, atol=1e-4)
            np.testing.assert_allclose((after_variance - variance) / step, variance_slope[:, j], rtol=1e-2, atol=1e-4)

    def test_with_too_few_complete_runs_or_no_time_the_median_ratio_is_used(self):
        study, _ = designed(BOPT(initial=FEWEST_COMPLETE, fast_ends=FIFTH, ends=None))
        full = level_costs(study)
        complete = [run for run in full.runs if run.complete is not None][: FEWEST_COMPLETE - 1]
        paused = next(run for run in full.runs if run.complete is None)
        few = LevelCosts([*complete, paused], STEPS, 0.0, SPACE, Way.FULL, "model")
        ratio = np.median([rest_cost(run.trial.config) / fast_cost(run.trial.config) for run in complete])
        assert few.of_rest(paused) == pytest.approx(ratio * fast_cost(paused.trial.config))
        t_e, t_c = few.fast_cost_model, few.complete_cost_model
        assert t_e is not None
        assert t_c is not None
        x = np.full((1, 3), 0.4)
        np.testing.assert_allclose(t_c.mean_at(x), t_e.mean_at(x) + np.log1p(ratio))
        hurried, plain = level_costs(study, way=Way.NONE), level_costs(study, "ratio")
        assert hurried.of_rest(paused) == plain.of_rest(paused)
        assert full.of_rest(paused) != plain.of_rest(paused)

    def test_what_was_trained_since_the_fast_period_is_not_paid_twice(self):
        """A run that has trained beyond its fast period, and can go on from there, costs what is left."""
        study, _ = designed(BOPT(initial=FEWEST_COMPLETE, fast_ends=FIFTH, ends=None))
        costs = level_costs(study)
        paused = next(run for run in costs.runs if run.complete is None)
        config, curve = paused.trial.config, paused.trial.curve
        whole = costs.of_rest(paused)
        spent = 0.25 * rest_cost(config)
        longer = Curve((*curve.values, 0.4), (*curve.costs, spent), (*curve.train_values, None))
        further = replace(paused, trial=replace(paused.trial, curve=longer, kept_step=len(longer)))
        assert costs.of_rest(further) == pytest.approx(whole - spent)

    @pytest.mark.parametrize("model", ["gp", "line1", "gp-lv", "flops", "gp-flops"])
    def test_the_cost_model_can_be_chosen_by_name(self, model):
        """Also one that counts: what the fast period does is in proportion to what the user counts."""
        study, _ = designed(BOPT(initial=8, fast_ends=FIFTH, ends=None))
        knowledge = CostKnowledge.of(SPACE, None, lambda config: {"width": config["width"]}, None, None)
        costs = replace(level_costs(study), model=model, knowledge=knowledge)
        configs = [p.config for p in ft.Study(SPACE, "9 evaluations", seed=4).ask(9)]
        X, t_e, t_c = SPACE.features(SPACE.encode_many(configs)), costs.fast_cost_model, costs.complete_cost_model
        assert t_e is not None
        assert t_c is not None
        np.testing.assert_allclose(t_e.mean_at(X), np.log([fast_cost(c) for c in configs]), atol=0.2)
        np.testing.assert_allclose(t_c.mean_at(X), np.log([fast_cost(c) + rest_cost(c) for c in configs]), atol=0.3)

    def test_a_model_that_counts_needs_counts(self):
        with pytest.raises(InvalidArgument, match="bopt: cost_model: 'flops' needs cost_features"):
            ft.Study(SPACE, ft.Budget(cost=1.0), policy=BOPT(cost_model="flops"), max_steps=STEPS)


LISTED = ft.Space(
    width=ft.Ordered([1.0, 2.0, 4.0, 8.0], log=True), drop=ft.Ordered([0.0, 0.25, 0.5, 0.75, 1.0]),
    rate=ft.Ordered([0.0, 0.2, 0.4, 0.6, 0.8, 1.0]),
)  # fmt: skip


class TestEQIE:
    """Section 4.1: "He et al. (2017) proposed the EQIE criterion by adding a cost function to EQI to sequentially
    select the candidate location and the fidelity level at the same time". The paper prints no formula; with Q the
    quantile of complete training after one more run, EQI = E[max(q_min - Q, 0)] and EQIE = EQI / cost of the level."""

    @staticmethod
    def model() -> TwoFidelity:
        rng = np.random.default_rng(5)
        X_e = rng.random((9, 2))
        y_e = np.sin(5.0 * X_e[:, 0]) + X_e[:, 1]
        return two_fidelity.fit(X_e, y_e, X_e[:4], y_e[:4] - 0.3 - 0.4 * X_e[:4, 0], rho=None)

    @pytest.mark.parametrize("quantile", [0.5, 0.9])
    def test_eqi_is_the_expected_improvement_of_the_quantile_after_one_more_run(self, quantile):
        """By draws of what the run shows, and the surrogate with that run."""
        model, rng, q = self.model(), np.random.default_rng(6), norm.ppf(quantile)
        X, draws = rng.random((5, 2)), 20_000
        mean, variance = model.predict(model.low.X)
        least = float(np.min(mean + q * np.sqrt(variance)))
        low, low_variance = model.joint.predict(X).low, model.joint.predict(X).low_variance
        complete, complete_variance = model.predict(X)
        for i, x in enumerate(X):
            shown = low[i] + np.sqrt(low_variance[i]) * rng.standard_normal(draws)
            after = [with_low_run(model, x, y).predict(x[None, :]) for y in (0.0, 1.0)]
            left, slope = after[0][1][0], after[1][0][0] - after[0][0][0]  # what is left open does not depend on y
            Q = after[0][0][0] + slope * shown + q * np.sqrt(left)
            gain = np.maximum(least - Q, 0.0)
            close(np.exp(LogEQI(AfterLow(model), least, q)(X)[i]), gain)
            Q = complete[i] + np.sqrt(complete_variance[i]) * rng.standard_normal(draws)
            close(np.exp(LogEQI(AfterComplete(model), least, q)(X)[i]), np.maximum(least - Q, 0.0))

    @pytest.mark.parametrize("run", [AfterLow, AfterComplete])
    def test_its_gradient_is_that_of_differences(self, run):
        utility, step = LogEQI(run(self.model()), -0.5, 1.2), 1e-6
        X = np.random.default_rng(7).random((6, 2))
        value, slope = utility.with_gradient(X)
        np.testing.assert_allclose(value, utility(X))
        for j in range(2):
            moved = step * np.eye(2)[j]
            np.testing.assert_allclose((utility(X + moved) - utility(X - moved)) / (2 * step), slope[:, j], rtol=1e-3)

    @pytest.mark.parametrize(
        ("policy", "hidden", "expected"),
        [
            (EQIE.paper(), False, ("fast", "paused")),
            (EQIE(), False, ("fast", "paused")),
            (EQIE.paper(quantile=0.5), True, ("complete",)),
            (EQIE(fast_ends=FIFTH, ends=None), True, ("complete",)),
        ],
        ids=str,
    )
    def test_the_run_of_largest_eqie_is_proposed(self, policy, hidden, expected):
        """Over all configurations at both levels, and all paused runs: the formula transcribed. Where the fast
        period says little and the rest costs next to nothing, new ones are trained completely."""
        study = ft.Study(LISTED, ft.Budget(cost=1e6), policy=policy, seed=3, max_steps=STEPS)
        kinds = set()
        for ask in range(3 * policy.initial + 9):
            before, rng = study._history, np.random.default_rng([study.seed, study._history.asks])
            proposal = study.ask()
            if ask >= 3 * policy.initial:
                efficiency = transcribed_eqie(policy, before, study.ledger, rng)
                kind = "paused" if proposal.start_step else "complete" if proposal.until_step else "fast"
                best = max(efficiency.values())
                assert efficiency[kind, LISTED.key(proposal.config)] == pytest.approx(best, rel=1e-6)
                kinds.add(kind)
            trained(study, proposal, hidden)
        assert kinds.issuperset(expected)

    def test_a_new_run_that_was_chosen_completely_is_not_paused_on_the_way(self):
        policy = EQIE(fast_ends=FIFTH, ends=None)
        study = ft.Study(LISTED, ft.Budget(cost=1e6), policy=policy, seed=3, max_steps=STEPS)
        complete = []
        for _ in range(3 * policy.initial + 6):
            proposal = study.ask()
            trained(study, proposal, hidden=True)
            if proposal.until_step is not None:
                complete.append(proposal)
            is_fast = proposal.until_step is None and not proposal.start_step
            assert study.trials[proposal.trial].status is (ft.Status.PAUSED if is_fast else ft.Status.COMPLETE)
        assert complete
        for proposal in complete:
            assert (proposal.start_step, proposal.until_step) == (0, STEPS)
            cost = fast_cost(proposal.config) + CHEAP_REST * rest_cost(proposal.config)
            assert proposal.predicted_cost == pytest.approx(cost, rel=0.3)

    def test_what_cannot_be_paid_for_is_not_begun_as_a_complete_run(self):
        policy = EQIE(fast_ends=FIFTH, ends=None)
        study = ft.Study(LISTED, ft.Budget(cost=1e6), policy=policy, seed=3, max_steps=STEPS)
        history, proposal = study._history, study.ask()
        while proposal.until_step is None:
            trained(study, proposal, hidden=True)
            history, proposal = study._history, study.ask()
        for share, expected in ((0.9, None), (9.0, STEPS)):
            ledger = Ledger(ft.Budget(cost=share * proposal.predicted_cost))
            (found,) = policy.propose(LISTED, history, ledger, 1, np.random.default_rng([study.seed, history.asks]))
            assert found.until_step == expected

    def test_it_runs_learners_and_refuses_plain_functions(self, tmp_path):
        def train(config):
            for step in range(STEPS):
                yield {"value": value(config) + 0.5**step, "cost": fast_cost(config) / FAST}

        with ft.Study(
            SPACE, ft.Budget(cost=500.0), policy="eqie", seed=1, max_steps=STEPS, storage=tmp_path / "study.db"
        ) as study:
            study.run(train, progress=False)
        with ft.Study.resume(tmp_path / "study.db", budget=ft.Budget(cost=600.0)) as study:
            study.run(train, progress=False)
            assert study.policy == EQIE()
            assert study.best.value < 0.3
            assert study.best.status is ft.Status.COMPLETE
            assert {trial.status for trial in study.trials} >= {ft.Status.PAUSED}
        with pytest.raises(InvalidArgument, match="eqie"):
            ft.tune(lambda config: 1.0, SPACE, ft.Budget(cost=10.0), policy="eqie", max_steps=STEPS, progress=False)


def with_low_run(model: TwoFidelity, x: np.ndarray, y: float) -> TwoFidelity:
    """The surrogate with one more run of low fidelity."""
    low = model.low.condition(x[None, :], np.array([y]))
    return replace(model, joint=replace(model.joint, low=low))


def close(found: float, draws: np.ndarray) -> None:
    """Equal to the mean of draws, within five of its standard errors."""
    assert abs(found - draws.mean()) <= 5.0 * draws.std() / np.sqrt(len(draws)) + 1e-6


def transcribed_eqie(
    policy: EQIE, history: History, ledger: Ledger, rng: np.random.Generator
) -> dict[tuple[str, Any], float]:
    """EQIE of every possible run: ("fast" | "complete" | "paused", configuration)."""
    q = norm.ppf(policy.quantile)
    state = MostEfficient.of(policy.levels, LISTED, history, ledger, rng)
    model, costs, runs = state.levels.model, state.costs, state.levels.runs

    def eqi(mean, variance, left):
        s = np.sqrt(np.maximum(variance - left, 1e-24))
        z = (least - mean - q * np.sqrt(left)) / s
        return (least - mean - q * np.sqrt(left)) * norm.cdf(z) + s * norm.pdf(z)

    mean, variance = model.predict(state.levels.features(runs))
    least = np.min(mean + q * np.sqrt(variance))
    new = [config for config in LISTED.enumerate() if LISTED.key(config) not in history.taken]
    X = LISTED.features(LISTED.encode_many(new))
    mean, variance = model.predict(X)
    pair = model.joint.predict(X)
    left = variance - (model.hyperparameters.rho * pair.low_variance) ** 2 / pair.low_variance  # nested: no covariance
    assert np.all(pair.covariance == 0.0)
    fast_costs = [run.fast_cost for run in runs]
    ratio = np.median([run.complete_cost / run.fast_cost for run in runs if run.complete_cost is not None])
    if policy.costs == "fixed":
        t_e, t_c = np.full(len(X), np.median(fast_costs)), np.full(len(X), np.median(fast_costs) * (1.0 + ratio))
    else:
        t_e, t_c = np.exp(costs.fast_cost_model.mean_at(X)), np.exp(costs.complete_cost_model.mean_at(X))
    found = {}
    for i, config in enumerate(new):
        key = LISTED.key(config)
        found["fast", key] = eqi(mean[i], variance[i], left[i]) / t_e[i]
        found["complete", key] = eqi(mean[i], variance[i], 0.0) / t_c[i]
    for run in state.paused:
        (m,), (s2,) = model.predict(state.levels.features([run]))
        rest = np.median(fast_costs) * ratio if policy.costs == "fixed" else costs.of_rest(run)
        found["paused", run.trial.key] = eqi(m, s2, 0.0) / rest
    return found
