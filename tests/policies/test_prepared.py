"""Asks that are prepared while a trial runs, and finished when its outcome is known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm

import farthing as ft
from farthing.history import Seen, Way
from farthing.numerics.threads import one_blas_thread
from farthing.policies.prepared import Ahead, Listed
from farthing.policies.protocol import generator_of

SPACE = ft.Space(a=ft.Real(0, 1), b=ft.Real(0, 1), kind=ft.Choice(["x", "y"]))
MODELLED = ("ei", "cei", "carbo", "eipu", "ei_cool", "auto")


def value_of(config: ft.Config) -> float:
    return (config["a"] - 0.3) ** 2 + (config["b"] - 0.6) ** 2 + 0.2 * (config["kind"] == "y")


def tell(study: ft.Study, proposal: ft.Proposal) -> None:
    study.tell(proposal, value=value_of(proposal.config), cost=1.0 + proposal.config["a"])


def begun(name: str, trials: int = 12) -> ft.Study:
    """A study with that many trials told, of the configurations given by start, and nothing running."""
    start = [SPACE.decode(u) for u in np.random.default_rng(3).random((trials, 3))]
    study = ft.Study(SPACE, ft.Budget(cost=60), policy=name, seed=2, start=start)
    for _ in range(trials):
        tell(study, study.ask())
    return study


def prepared(study: ft.Study) -> Listed | Ahead:
    history = study._history
    with one_blas_thread():
        return study.policy.prepare(SPACE, history, study.ledger, generator_of(history, preparing=True))


def finished(study: ft.Study, thought: Listed | Ahead) -> ft.Proposal | None:
    history = study._history
    with one_blas_thread():
        return study.policy.finish(thought, SPACE, history, study.ledger, generator_of(history))


@pytest.mark.parametrize("way", [Way.FULL, Way.KEPT, Way.FEW])
@pytest.mark.parametrize("name", MODELLED)
def test_a_history_that_says_what_was_seen_gives_the_same_proposal(name, way):
    study = begun(name)
    running = study.ask()
    seen = Seen(replace(study._history, way=way), study.ledger)
    with one_blas_thread():
        thought = study.policy.prepare(SPACE, seen.history, seen.ledger, generator_of(seen.history, preparing=True))
    tell(study, running)
    found = finished(study, thought)
    history = replace(study._history, prepared=seen)
    with one_blas_thread():
        (again,) = study.policy.propose(SPACE, history, study.ledger, 1, generator_of(history))
    assert again == found
    assert found.trial == len(history.trials)


@pytest.mark.parametrize("name", ["ei", "eipu"])
def test_the_outcome_decides_which_of_the_list_is_best(name):
    """The proposal is the best of the list under the process of values, conditioned on the real outcome."""
    study = begun(name)
    running = study.ask()
    thought = prepared(study)
    study.tell(running, value=0.9, cost=1.0 + running.config["a"])
    found = finished(study, thought)
    value, models = thought.models.value, thought.models
    x = SPACE.features(SPACE.encode(running.config)[None, :])
    process = value.condition(x, models.scale(np.array([0.9])))
    mean, variance = process.predict(SPACE.features(thought.points))
    target, s = float(process.mean_at(process.X).min()), np.sqrt(variance)
    z = (target - mean) / s
    utility = np.log(s * (z * norm.cdf(z) + norm.pdf(z)))
    if name == "eipu":
        utility = utility - models.log_price.mean_at(SPACE.features(thought.points))
    order = np.argsort(-utility)
    taken = study._history.taken
    keys = list(thought.keys)
    best = next(i for i in order if keys[i] not in taken)
    assert SPACE.key(found.config) == keys[best]


def test_a_list_serves_several_asks_and_never_twice_the_same():
    """Trials that were begun from another list are conditioned on too."""
    study = begun("carbo")
    study.ask()
    thought = prepared(study)
    other = SPACE.decode(np.array([0.11, 0.87, 0.2]))
    study.add(other, value=value_of(other), cost=1.1)
    configs = []
    while (found := finished(study, thought)) is not None:
        configs.append(SPACE.key(found.config))
        assert configs[-1] in thought.keys
        if len(configs) == 8:
            break
        study.add(found.config, value=value_of(found.config), cost=1.0)
    assert len(set(configs)) == 8


def test_a_list_that_is_used_up_proposes_nothing():
    study = begun("ei")
    running = study.ask()
    thought = prepared(study)
    tell(study, running)
    for u in thought.points:
        config = SPACE.decode(u)
        if SPACE.key(config) not in study._history.taken:
            study.add(config, value=1.0, cost=1.0)
    assert finished(study, thought) is None


@pytest.mark.parametrize("name", ["ei", "carbo"])
def test_an_initial_design_is_prepared_as_it_would_be_asked(name):
    in_turn, ahead = (ft.Study(SPACE, ft.Budget(cost=900), policy=name, seed=4) for _ in range(2))
    first = [study.ask() for study in (in_turn, ahead)]
    thought = prepared(ahead)
    assert isinstance(thought, Ahead)
    for study, proposal in zip((in_turn, ahead), first, strict=True):
        tell(study, proposal)
    found = finished(ahead, thought)
    assert found.config == in_turn.ask().config


def test_several_running_trials_are_all_taken_into_account():
    study = begun("ei")
    first, second = study.ask(2)
    thought = prepared(study)
    tell(study, second)
    found = finished(study, thought)
    assert SPACE.key(found.config) not in {SPACE.key(first.config), SPACE.key(second.config)}
    assert thought.running == [first.trial, second.trial]


class TestSurprise:
    def thought(self) -> tuple[ft.Study, ft.Proposal, Listed]:
        study = begun("carbo")
        running = study.ask()
        return study, running, prepared(study)

    def test_none_as_long_as_it_runs_or_ends_as_predicted(self):
        study, running, thought = self.thought()
        assert not thought.surprised(study._history)
        place = thought.rows[-1:]
        expected = float(thought.models.scale.inverse(thought.models.value.mean_at(place))[0])
        study.tell(running, value=expected, cost=running.predicted_cost)
        assert not thought.surprised(study._history)

    def test_a_value_far_off(self):
        study, running, thought = self.thought()
        study.tell(running, value=1e3, cost=running.predicted_cost)
        assert thought.surprised(study._history)

    def test_a_cost_far_off(self):
        study, running, thought = self.thought()
        place = thought.rows[-1:]
        expected = float(thought.models.scale.inverse(thought.models.value.mean_at(place))[0])
        study.tell(running, value=expected, cost=5.0 * running.predicted_cost)
        assert thought.surprised(study._history)

    def test_a_failure(self):
        study, running, thought = self.thought()
        study.tell(running, failed="it broke")
        assert thought.surprised(study._history)
