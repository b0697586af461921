"""Which processes compete, when they are fitted again, and what is stored for the next choice."""

from __future__ import annotations

import json
from itertools import pairwise

import numpy as np

from farthing.surrogates.cost.refits import LONE_PROCESS_FROM, PROCESSES_FROM
from oracles.log_costs import chosen_for, played, wavy


def test_few_observations_leave_processes_out():
    X, b = wavy(PROCESSES_FROM)
    assert not any(name.startswith("gp") for name in chosen_for(X[:-1], b[:-1]).scores)
    assert {"gp", "gp-lv", "gp-selected"} <= set(chosen_for(X, b).scores)


def test_three_parameters_need_no_selection():
    X, b = wavy(20, d=3)
    assert "gp-selected" not in chosen_for(X, b).scores
    assert "linear-3" not in chosen_for(X, b).scores


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
