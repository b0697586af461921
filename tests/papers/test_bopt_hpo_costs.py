"""BOPT-HPO (Yang, Deng and Zhu 2023): what the two levels of training cost, and the rival EQIE.

Section 6 names models of the running times t_e(x) and t_c(x) as an extension and leaves them open. Section 4.1
describes EQIE (He, Tuo and Wu 2017), which the experiments of section 5 compare with.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import farthing as ft
from farthing.history import Way
from farthing.policies import BOPT
from farthing.policies.bopt.level_costs import FEWEST_COMPLETE, LevelCosts
from farthing.policies.bopt.stopping import Share
from farthing.policies.bopt.two_levels import TrainingRun
from farthing.trial import Curve

SPACE = ft.Space(width=ft.Real(1.0, 16.0, log=True), drop=ft.Real(0.0, 1.0), rate=ft.Real(0.0, 1.0))
STEPS, FAST = 10, 2
FIFTH = Share(share=FAST / STEPS)


def value(config: dict[str, Any]) -> float:
    return (config["drop"] - 0.3) ** 2 + (config["rate"] - 0.6) ** 2 + 0.1 * np.log(config["width"])


def fast_cost(config: dict[str, Any]) -> float:
    """t_e(x)."""
    return FAST * config["width"]


def rest_cost(config: dict[str, Any]) -> float:
    """t_c(x) - t_e(x): from 1 to 7 times the cost of the fast period, by another parameter."""
    return fast_cost(config) * np.exp(2.0 * config["drop"])


def trained(study: ft.Study, proposal: ft.Proposal) -> None:
    """From where it is until the policy pauses it, or to the end."""
    for step in range(proposal.start_step, STEPS):
        config = proposal.config
        cost = fast_cost(config) / FAST if step < FAST else rest_cost(config) / (STEPS - FAST)
        if study.report(proposal, value(config) + 0.5 ** (step + 1), cost=cost) is not ft.Decision.CONTINUE:
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
        assert few.complete_cost_model is None
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
