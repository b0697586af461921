"""What every policy must do, on every kind of space, whatever the history holds."""

from __future__ import annotations

import json
import math
import random
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Callable
from dataclasses import FrozenInstanceError, fields, replace
from typing import Any

import numpy as np
import pytest

import farthing as ft
from farthing.budget import Ledger
from farthing.errors import SpaceExhausted
from farthing.history import History, Way
from farthing.numerics.threads import one_blas_thread
from farthing.policies import BY_NAME, EI, Policy, policy_as_json, policy_from_json
from farthing.trial import Outcome, Proposal, Status
from histories import asked, ended

SPACES = {
    "continuous": ft.Space(x=ft.Real(-5, 10), rate=ft.Real(1e-6, 1.0, log=True)),
    "mixed": ft.Space(
        rate=ft.Real(1e-5, 1e-1, log=True),
        layers=ft.Integer(1, 8),
        width=ft.Integer(8, 4096, log=True),
        batch=ft.Ordered([16, 32, 64, 128], log=True),
        activation=ft.Choice(["relu", "gelu", ("leaky", 0.1), None]),
    ),
    "conditional": ft.Space(
        eta=ft.Real(1e-4, 1.0, log=True),
        booster=ft.Choice(["gbtree", "dart", "gblinear"]),
        drop=ft.Choice([False, True], when={"booster": "dart"}),
        drop_rate=ft.Real(0.0, 0.5, when={"drop": True}),
        depth=ft.Integer(1, 12, when={"booster": {"gbtree", "dart"}}),
    ),
    "finite": ft.Space(
        a=ft.Integer(1, 4),
        b=ft.Choice(["u", "v", "w"]),
        c=ft.Ordered([1, 2, 4], when={"b": "w"}),
        forbid=[{"a": 2, "b": "u"}, {"a": {3, 4}, "c": 4}],
    ),
}
FINITE_SIZE = 4 * (1 + 1 + 3) - 1 - 2
POLICIES: dict[str, Policy] = {name: kind() for name, kind in BY_NAME.items()} | {"ei of one": EI(initial=1)}
SEED = 17

Outcomes = Callable[[int], Outcome | None]  # trial number -> how it ended, None while it runs


def complete(value: float, cost: float | None = 1.0) -> Outcome:
    return Outcome(Status.COMPLETE, value=value, cost=cost)


FAILED = Outcome(Status.FAILED, error="boom")
SCENARIOS: dict[str, tuple[int, Outcomes]] = {
    "nothing yet": (0, lambda i: None),
    "one point": (1, lambda i: complete(0.3)),
    "two points": (2, lambda i: complete(float(i))),
    "one point running": (1, lambda i: None),
    "all running": (9, lambda i: None),
    "all failed": (12, lambda i: FAILED),
    "some failed": (12, lambda i: FAILED if i % 3 == 1 else complete(math.sin(i))),
    "one success among failures": (12, lambda i: complete(1.0) if i == 7 else FAILED),
    "many running": (13, lambda i: complete(math.sin(i)) if i < 4 else None),
    "running, failed, complete": (13, lambda i: [complete(math.cos(i)), FAILED, None][i % 3]),
    "constant": (12, lambda i: complete(0.0)),
    "constant and large": (12, lambda i: complete(1e9)),
    "nearly constant": (12, lambda i: complete(1.0 + i * 2**-52)),
    "an outlier": (12, lambda i: complete(1e9 if i == 5 else math.sin(i))),
    "outliers on both sides": (12, lambda i: complete({3: -1e9, 8: 1e9}.get(i, math.sin(i)))),
    "the edge of floats": (12, lambda i: complete((-1) ** i * 1.7e308)),
    "tiny": (12, lambda i: complete(5e-324 * i)),
    "costs from 0 to 1e12": (12, lambda i: complete(math.sin(i), [0.0, 1e-12, None, 1e12][i % 4])),
    "costs equal": (12, lambda i: complete(math.sin(i), 2.0)),
}


def history_of(space: ft.Space, count: int, outcomes: Outcomes, seed: int = 3) -> History:
    """A history of distinct random configurations with these outcomes, for any policy."""
    rng, history, taken = np.random.default_rng(seed), History(SEED), set()
    while len(history.trials) < count:
        config = space.decode(rng.random(len(space)))
        if space.key(config) in taken or not space.allows(config):
            continue
        taken.add(space.key(config))
        history = asked(history, space, config)
    for number in range(count):
        outcome = outcomes(number)
        if outcome is not None:
            history = ended(history, space, number, outcome)
    return history


def propose(policy: Policy, space: ft.Space, history: History, n: int = 1, ask: int | None = None) -> list[Proposal]:
    """As a study asks, with the generator of that ask."""
    rng = np.random.default_rng([history.seed, history.asks if ask is None else ask])
    ledger = Ledger(ft.Budget(cost=1e3, evaluations=1000)).promised(0.0, len(history.running))
    with one_blas_thread():
        return policy.propose(space, history, ledger, n, rng)


def value_at(space: ft.Space, config: dict[str, Any]) -> float:
    """A value for any configuration of any space: a bowl over the unit cube."""
    return float(np.sum((space.encode(config) - 0.4) ** 2))


@pytest.fixture(params=list(SPACES))
def space(request) -> ft.Space:
    return SPACES[request.param]


@pytest.fixture(params=list(POLICIES))
def policy(request) -> Policy:
    return POLICIES[request.param]


class TestEveryHistory:
    @pytest.mark.parametrize("scenario", SCENARIOS)
    def test_it_proposes_fresh_allowed_configs_of_the_space(self, policy, space, scenario):
        history = history_of(space, *SCENARIOS[scenario])
        before = len(history.trials)
        proposals = propose(policy, space, history, 2)

        assert [proposal.trial for proposal in proposals] == [before, before + 1]
        keys = {space.key(proposal.config) for proposal in proposals}
        assert len(keys) == 2
        assert not keys & {trial.key for trial in history.trials}, "what was tried is not proposed again"
        for proposal in proposals:
            assert space.validate(proposal.config) == proposal.config
            assert space.allows(proposal.config)
            assert proposal.reason
            cost = proposal.predicted_cost
            assert cost is None or (math.isfinite(cost) and cost > 0.0)
            json.dumps(dict(proposal.fits), allow_nan=False)


class TestEveryWay:
    @pytest.mark.parametrize("way", list(Way))
    @pytest.mark.parametrize("scenario", ["nothing yet", "some failed", "many running", "costs from 0 to 1e12"])
    def test_it_proposes_fresh_allowed_configs_of_the_space(self, policy, space, scenario, way):
        history = replace(history_of(space, *SCENARIOS[scenario]), way=way)
        proposals = propose(policy, space, history, 2)

        keys = {space.key(proposal.config) for proposal in proposals}
        assert len(keys) == 2
        assert not keys & {trial.key for trial in history.trials}
        assert all(space.allows(proposal.config) and proposal.reason for proposal in proposals)
        assert propose(policy, space, history, 2) == proposals, "the same way proposes the same"


class TestPurity:
    def test_the_same_history_gives_the_same_answer_and_nothing_else_matters(self, policy, space):
        """Not the object, nor what it did before, nor the global random states; and none of them changes."""
        history = history_of(space, *SCENARIOS["running, failed, complete"])
        before = repr(history), [trial.unit.copy() for trial in history.trials], dict(history.fits)
        rebuilt = policy_from_json(json.loads(json.dumps(policy_as_json(policy))))
        answers = []
        for seed, one in ((1, policy), (2, policy), (3, rebuilt)):
            np.random.seed(seed)  # noqa: NPY002 - the very state that must not matter
            random.seed(seed)
            numpy_state, python_state = np.random.get_state(), random.getstate()  # noqa: NPY002
            answers.append(propose(one, space, history, 2))
            after = np.random.get_state()  # noqa: NPY002
            assert all(np.array_equal(a, b) for a, b in zip(numpy_state, after, strict=True))
            assert random.getstate() == python_state
            if seed == 1:
                propose(policy, space, history_of(space, 9, lambda i: complete(-float(i)), seed=99))
        assert answers[0] == answers[1] == answers[2]
        assert (repr(history), dict(history.fits)) == (before[0], before[2])
        for trial, unit in zip(history.trials, before[1], strict=True):
            assert np.array_equal(trial.unit, unit)

    def test_it_is_a_frozen_value_whose_fields_are_its_options(self, policy):
        with pytest.raises((FrozenInstanceError, AttributeError)):
            policy.name = "other"
        assert set(policy_as_json(policy)) == {"name", *(f.name for f in fields(policy))}
        assert policy_from_json(policy_as_json(policy)) == policy

    def test_the_seed_matters(self, policy):
        """Over a few trials, another seed leads elsewhere."""
        space = SPACES["continuous"]
        configs = []
        for seed in (1, 2):
            study = ft.Study(space, "5 evaluations", policy=policy, seed=seed)
            configs.append([study.ask().config for _ in range(3)])
        assert configs[0] != configs[1]


class TestWholeStudies:
    def test_it_never_repeats_and_numbers_are_consecutive(self, policy, space):
        study = ft.Study(space, "25 evaluations", policy=policy, seed=SEED)
        for number in range(FINITE_SIZE if space.size else 14):
            proposal = study.ask()
            assert proposal.trial == number
            if number % 5 == 3:
                study.tell(proposal, failed="boom")
            else:
                study.tell(proposal, value=value_at(space, proposal.config), cost=1.0 + number)
        keys = [space.key(trial.config) for trial in study.trials]
        assert len(set(keys)) == len(keys)
        if space.size:
            assert set(keys) == {space.key(config) for config in space.enumerate()}
            with pytest.raises(SpaceExhausted):
                study.ask()


class TestSideBySide:
    @pytest.mark.parametrize("before", [0, 3, 9])
    def test_ask_n_gives_n_distinct_ones(self, policy, space, before):
        """Workers that ask for work get it, in the initial design too: fewer come only when the space runs out."""
        history = history_of(space, before, lambda i: complete(math.sin(i)))
        proposals = propose(policy, space, history, 5)
        assert [proposal.trial for proposal in proposals] == list(range(before, before + 5))
        keys = [space.key(proposal.config) for proposal in proposals]
        assert len({*keys, *(trial.key for trial in history.trials)}) == before + 5

    def test_at_the_end_of_a_finite_space_there_is_what_is_left(self, policy):
        space = SPACES["finite"]
        history = history_of(space, FINITE_SIZE - 2, lambda i: complete(math.sin(i)))
        proposals = propose(policy, space, history, 5)
        assert len(proposals) == 2
        taken = {trial.key for trial in history.trials} | {space.key(proposal.config) for proposal in proposals}
        assert taken == {space.key(config) for config in space.enumerate()}
        full = history_of(space, FINITE_SIZE, lambda i: complete(math.sin(i)) if i % 2 else None)
        assert propose(policy, space, full, 5) == []

    @pytest.mark.parametrize("at_once", [True, False], ids=["ask(4)", "four asks"])
    def test_what_runs_side_by_side_is_spread_out(self, policy, at_once):
        """A policy that overlooks what is running proposes its favourite point again, a hair's breadth away."""
        space = SPACES["continuous"]
        for seed in (1, 2, 5):
            study = ft.Study(space, "100 evaluations", policy=policy, seed=seed)
            for proposal in study.ask(8):
                study.tell(proposal, value=value_at(space, proposal.config))
            running = study.ask(4) if at_once else [study.ask() for _ in range(4)]
            U = space.encode_many(proposal.config for proposal in running)
            distances = np.linalg.norm(U[:, None] - U[None, :], axis=2)[np.triu_indices(4, 1)]
            assert distances.min() > 2e-4


def test_sobol_walks_along_one_sequence_however_it_is_asked():
    """Of 16 consecutive points of a Sobol sequence each sixteenth of the line holds one, in one ask or in many."""
    space = ft.Space(x=ft.Real(0, 1))
    one_by_one = ft.Study(space, "100 evaluations", policy="sobol", seed=SEED)
    xs = [one_by_one.ask().config["x"] for _ in range(32)]
    for start in (0, 16):
        assert sorted(int(16 * x) for x in xs[start : start + 16]) == list(range(16))
    assert sorted(int(32 * x) for x in xs) == list(range(32))
    in_batches = ft.Study(space, "100 evaluations", policy="sobol", seed=SEED)
    assert [proposal.config["x"] for n in (5, 1, 20, 6) for proposal in in_batches.ask(n)] == xs


REPLAY = """
    import json, sys
    import farthing as ft

    for path in sys.argv[1:]:
        with ft.Study.resume(path) as study:
            steps = []
            for step in range(2):
                proposal = study.ask()
                steps.append([proposal.trial, study.space.store_config(proposal.config), proposal.predicted_cost])
                study.tell(proposal, value=0.25, cost=2.0)
            steps += [[p.trial, study.space.store_config(p.config), p.predicted_cost] for p in study.ask(2)]
            print(json.dumps(steps))
    """


@pytest.mark.parametrize("kind", SPACES)
def test_replayed_in_another_process_every_policy_asks_for_the_same(kind, tmp_path):
    """All policies in one child, to share its start: what the file holds is all there is."""
    space, paths, expected = SPACES[kind], [], []
    for name, policy in POLICIES.items():
        path = tmp_path / f"{name}.db"
        with ft.Study(space, "100 evaluations", policy=policy, seed=SEED, storage=path) as stored:
            for number in range(8):
                proposal = stored.ask()
                if number == 4:
                    stored.tell(proposal, failed="boom", cost=0.5)
                else:
                    stored.tell(proposal, value=value_at(space, proposal.config), cost=1.0 + number)
        shutil.copy(path, tmp_path / "here.db")
        with ft.Study.resume(tmp_path / "here.db") as study:
            steps = []
            for _ in range(2):
                proposal = study.ask()
                steps.append([proposal.trial, space.store_config(proposal.config), proposal.predicted_cost])
                study.tell(proposal, value=0.25, cost=2.0)
            steps += [[p.trial, space.store_config(p.config), p.predicted_cost] for p in study.ask(2)]
        paths.append(path)
        expected.append(steps)
    child = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(REPLAY), *map(str, paths)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert child.returncode == 0, child.stderr
    replayed = [json.loads(line) for line in child.stdout.splitlines()]
    for path, here, there in zip(paths, expected, replayed, strict=True):
        assert there == here, path.name
