"""Policy `bopt`: two levels of training, paused and completed in turn."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

import farthing as ft
from farthing.acquisitions.confidence import width
from farthing.errors import InvalidArgument
from farthing.policies import BOPT, policy_as_json, policy_from_json
from farthing.policies.bopt.stopping import Share
from farthing.surrogates import two_fidelity

SPACE = ft.Space(rate=ft.Real(1e-3, 1.0, log=True), units=ft.Integer(1, 32, log=True), drop=ft.Real(0.0, 0.5))
STEPS = 20
FIFTH = Share(share=0.2)


def final(config: dict[str, Any]) -> float:
    return abs(np.log10(config["rate"]) + 1.5) * 0.3 + 0.5 / config["units"] + config["drop"] * 0.2


def train(config: dict[str, Any]):
    for step in range(1, STEPS + 1):
        yield {"value": final(config) + 0.5 * np.exp(-step / 2.0) + 0.1 / step, "cost": 1.0}


def studied(policy: BOPT | str, cost: float = 300.0, seed: int = 0, **options: Any) -> ft.Study:
    options = {"max_steps": STEPS, **options}
    return ft.tune(train, SPACE, ft.Budget(cost=cost), policy=policy, seed=seed, progress=False, **options)


def asked(policy: BOPT, cost: float, seed: int = 0) -> tuple[ft.Study, list[tuple[int, int]]]:
    """A study by hand, and (trial, start step) of every ask."""
    study, order = ft.Study(SPACE, ft.Budget(cost=cost), policy=policy, seed=seed, max_steps=STEPS), []
    while study.ended is None:
        proposal = study.ask()
        order.append((proposal.trial, proposal.start_step))
        steps = list(train(proposal.config))[proposal.start_step :]
        for step in steps:
            if study.report(proposal, step["value"], cost=step["cost"]) is not ft.Decision.CONTINUE:
                break
    return study, order


def test_the_design_is_nested_and_its_inner_points_are_completed_first():
    _, order = asked(BOPT(initial=3, fast_ends=FIFTH), cost=6 * 4 + 3 * 16)
    assert order == [(0, 0), (1, 0), (2, 0), (3, 0), (4, 0), (5, 0), (0, 4), (1, 4), (2, 4)]


def test_inner_and_outer_points_are_latin_hypercubes():
    space = ft.Space(a=ft.Real(0, 1), b=ft.Real(0, 1))
    study = ft.Study(space, ft.Budget(cost=1e6), policy=BOPT(initial=5), seed=3, max_steps=STEPS)
    U = np.array([list(proposal.config.values()) for proposal in study.ask(10)])
    for points, count in ((U, 10), (U[:5], 5)):
        cells = np.sort((points * count).astype(int), axis=0)
        np.testing.assert_array_equal(cells, np.arange(count)[:, None].repeat(2, axis=1))


@pytest.mark.parametrize("s", [1, 2, 3])
def test_after_s_new_configurations_one_is_completed(s):
    _, order = asked(BOPT(initial=2, s=s, fast_ends=FIFTH), cost=260)
    turns = ["new" if start == 0 else "complete" for _, start in order[6:]]
    expected = (["new"] * s + ["complete"]) * len(turns)
    assert turns[: len(turns) - 3] == expected[: len(turns) - 3]  # the end of a budget has rules of its own


@pytest.mark.parametrize(("share", "s"), [(0.2, 2), (0.5, 1), (0.1, 5), (0.9, 1)])
def test_s_is_half_the_measured_ratio_of_costs_and_below_it(share, s):
    _, order = asked(BOPT(initial=2, fast_ends=Share(share=share)), cost=200)
    turns = [start == 0 for _, start in order[6:]]
    assert turns[: s + 1] == [True] * s + [False]


def test_a_run_is_paused_where_the_fast_period_ends_and_completed_at_max_steps():
    study = studied(BOPT(fast_ends=FIFTH, ends=None))
    assert {len(trial.curve) for trial in study.trials if trial.status is ft.Status.COMPLETE} == {STEPS}
    paused = [trial for trial in study.trials if trial.status is ft.Status.PAUSED]
    assert paused
    assert sum(len(trial.curve) != 4 for trial in paused) <= 1  # the one that the end of the budget paused


def test_a_converged_training_is_stopped_before_its_end():
    def flat(config):
        for step in range(200):
            yield {"value": final(config) + (1.0 if step < 5 else 0.0), "cost": 1.0}

    study = ft.tune(flat, SPACE, ft.Budget(cost=1500), policy="bopt", seed=0, max_steps=200, progress=False)
    stopped = [trial for trial in study.trials if trial.status is ft.Status.STOPPED]
    assert stopped
    assert max(len(trial.curve) for trial in stopped) < 150


def test_without_max_steps_the_first_training_goes_to_its_end():
    study = studied(BOPT(fast_ends=FIFTH), max_steps=None)
    assert study.trials[0].status is ft.Status.COMPLETE
    assert len(study.trials[0].curve) == STEPS
    assert study.count(ft.Status.PAUSED) > 0


@pytest.mark.parametrize("dimension", ["even", "dimension"])
@pytest.mark.parametrize("surrogate", ["tgp", "dgp"])
def test_what_is_completed_has_the_lowest_bound_of_the_paused(surrogate, dimension):
    policy = BOPT(surrogate=surrogate, initial=3, s=1, fast_ends=FIFTH, ends=None, width=dimension)
    study, _ = asked(policy, cost=6 * 4 + 3 * 16 + 4)
    trials = study.trials
    chosen = study.ask() if study.ended is None else ft_next(study)
    paused = [trial for trial in trials if trial.status is ft.Status.PAUSED]
    fast = np.array([min(trial.curve.values[:4]) for trial in trials])
    low, middle, high = np.percentile(fast, [25, 50, 75])
    cut = high + 3.0 * (high - low)
    spread = np.minimum(fast, cut).std()
    complete = [trial for trial in trials if trial.status is ft.Status.COMPLETE]
    X = SPACE.features(SPACE.encode_many([trial.config for trial in trials]))
    model = two_fidelity.fit(
        X, (np.minimum(fast, cut) - middle) / spread, X[[t.number for t in complete]],
        (np.array([t.value for t in complete]) - middle) / spread, SPACE.groups,
        bounds=(-cut / spread, 0.0) if surrogate == "tgp" else (-np.inf, np.inf),
    )  # fmt: skip
    mean, variance = model.predict(X[[trial.number for trial in paused]])
    bound = mean - width(1 if dimension == "even" else 3, len(complete)) * np.sqrt(variance)
    ranks = {trial.number: int(rank) for trial, rank in zip(paused, np.argsort(np.argsort(bound)), strict=True)}
    assert chosen.start_step == 4
    assert ranks[chosen.trial] == 0


def ft_next(study: ft.Study) -> ft.Proposal:
    """What a study whose budget is spent would ask for with a larger one."""
    policy, history = study.policy, study._history
    ledger = ft.Ledger(ft.Budget(cost=1e6), study.ledger.accounts)
    return policy.propose(study.space, history, ledger, 1, np.random.default_rng(0))[0]


def test_the_last_of_a_budget_completes_a_training_that_fits():
    """After a new one (4) no complete one (16 more) would fit in what is left: the paused one comes first."""
    _, order = asked(BOPT(initial=2, s=5, fast_ends=FIFTH), cost=4 * 4 + 2 * 16 + 18)
    assert order[-1][1] == 4 or order[-2][1] == 4


def test_it_finds_better_than_complete_trainings_alone():
    """On a curve that says early what it will come to; the same budget, five seeds."""
    own = [studied(BOPT(fast_ends=FIFTH), 200.0, seed).best.value for seed in range(5)]
    blind = [studied("ei", 200.0, seed).best.value for seed in range(5)]
    assert np.mean(own) < 0.7 * np.mean(blind)


@pytest.mark.parametrize(
    "options", [{"joint": True}, {"per_cost": True}, {"bias": "lognormal"}, {"level": "last"}, BOPT.PAPER]
)
def test_options_run_to_the_end_of_the_budget(options):
    study = studied(BOPT(**options), cost=200.0)
    assert study.ledger.fraction >= 1.0
    assert study.count(ft.Status.COMPLETE, ft.Status.STOPPED) >= 4


def test_choosing_the_level_jointly_completes_trainings_all_along():
    """A new configuration has to pay for both levels before it gains anything, else none would ever be completed."""
    study = studied(BOPT(joint=True, fast_ends=FIFTH, ends=None), cost=400.0)
    completed = [t.number for t in study.trials if t.status is ft.Status.COMPLETE]
    assert len(completed) >= 10
    assert len(study.trials) > len(completed) + 2


def test_failures_are_survived():
    def fragile(config):
        yield from ({**step} for step in list(train(config))[:3])
        if config["drop"] > 0.25:
            raise RuntimeError("diverged")
        yield from list(train(config))[3:]

    study = ft.tune(
        fragile, SPACE, ft.Budget(cost=200), policy=BOPT(fast_ends=FIFTH), seed=0, max_steps=STEPS, progress=False
    )
    assert study.count(ft.Status.FAILED) > 0
    assert study.count(ft.Status.COMPLETE, ft.Status.STOPPED) > 2


def test_a_plain_function_is_refused_and_told_what_to_do():
    with pytest.raises(InvalidArgument, match=r"'bopt'.*must yield.*policy='auto'"):
        ft.tune(final, SPACE, ft.Budget(cost=10), policy="bopt", seed=0, max_steps=STEPS, progress=False)


def test_several_at_once_are_different():
    study, _ = asked(BOPT(initial=2, fast_ends=FIFTH), cost=120)
    policy, ledger = study.policy, ft.Ledger(ft.Budget(cost=1e6), study.ledger.accounts)
    proposals = policy.propose(study.space, study._history, ledger, 6, np.random.default_rng(0))
    assert len(proposals) == 6
    assert len({proposal.trial for proposal in proposals}) == 6
    assert len({study.space.key(proposal.config) for proposal in proposals}) == 6


def test_a_file_holds_it_with_its_rules(tmp_path):
    policy = BOPT(s=2, fast_ends=FIFTH, ends=None)
    assert policy_from_json(policy_as_json(policy)) == policy
    path = tmp_path / "study.db"
    studied(policy, cost=100.0, storage=path).close()
    with ft.Study.resume(path) as study:
        assert study.policy == policy


@pytest.mark.parametrize(
    "options",
    [{"s": 0}, {"initial": 0}, {"surrogate": "gp"}, {"fast_ends": "never"}, {"bias": "none"}, {"level": "mean"}],
)
def test_options_outside_what_is_accepted_are_refused(options):
    with pytest.raises(InvalidArgument):
        BOPT(**options)


def test_an_ask_with_sixty_and_thirty_runs_in_six_dimensions_is_quick():
    """The bar is 150 ms on an idle machine; processor time, since the tests share theirs."""
    space = ft.Space(**{f"x{i}": ft.Real(0, 1) for i in range(6)})
    study = ft.Study(space, ft.Budget(cost=1e9), policy=BOPT(initial=30, s=2, fast_ends=FIFTH), seed=0, max_steps=5)
    while study.count(ft.Status.COMPLETE) < 30:
        proposal = study.ask()
        value = sum((v - 0.4) ** 2 for v in proposal.config.values())
        step, decision = proposal.start_step, ft.Decision.CONTINUE
        while decision is ft.Decision.CONTINUE:
            step += 1
            decision = study.report(proposal, value + 1.0 / step, cost=1.0)
    seconds = []
    for _ in range(3):
        began = time.process_time()
        proposal = study.ask()
        seconds.append(time.process_time() - began)
        study.report(proposal, 1.0, cost=1.0)
    assert min(seconds) < 0.3
