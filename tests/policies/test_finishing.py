"""The rule of finishing the best: when the end of a budget goes to the best trial, and when it does not."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import pytest

import farthing as ft
from farthing.policies.finishing import (
    FINISHING,
    MARGIN,
    MOST,
    SAFETY,
    decision_to_finish,
    proposal_to_finish,
    reserve_of,
    share_to_think,
)  # fmt: skip
from tests.learners import LINE, cut_copy

STEPS = 10


@dataclass(frozen=True)
class Pausing:
    """New configurations for ever, each for `stride` steps."""

    name: ClassVar[str] = "pausing"
    finishes_best: ClassVar[bool] = True
    stride: int = 2

    def propose(self, space, history, ledger, n, rng):
        first = len(history.trials)
        return [ft.Proposal(first + i, {"x": float(rng.random())}, until_step=self.stride) for i in range(n)]

    def decide(self, space, history, ledger, trial, rng):
        return ft.Decision.CONTINUE


class LeftAlone(Pausing):
    finishes_best: ClassVar[bool] = False


class ShortThenLong(Pausing):
    def propose(self, space, history, ledger, n, rng):
        until = 9 if len(history.trials) else 2
        return [ft.Proposal(len(history.trials), {"x": float(rng.random())}, until_step=until)]


class OneByOne(Pausing):
    def propose(self, space, history, ledger, n, rng):
        return [ft.Proposal(len(history.trials), {"x": float(rng.random())})]

    def decide(self, space, history, ledger, trial, rng):
        return ft.Decision.PAUSE if trial.kept_step % self.stride == 0 else ft.Decision.CONTINUE


def value(config: dict[str, float], step: int) -> float:
    return abs(config["x"] - 0.3) + 1.0 / step


def train(study: ft.Study, proposal: ft.Proposal, cost: float = 1.0, steps: int = STEPS) -> ft.Decision:
    """One stretch of training, at most `steps` long."""
    decision, step = ft.Decision.CONTINUE, proposal.start_step
    while decision is ft.Decision.CONTINUE and step < proposal.start_step + steps:
        step += 1
        decision = study.report(proposal, value(proposal.config, step), cost=cost, saved=True)
    return decision


def play(study: ft.Study, cost: float = 1.0) -> list[ft.Proposal]:
    """Until the study ends."""
    asked = []
    while study.ended is None:
        asked.append(study.ask())
        train(study, asked[-1], cost)
    return asked


def begun(budget: ft.Budget, policy: object = None, **options: object) -> ft.Study:
    return ft.Study(LINE, budget, policy=policy or Pausing(), max_steps=STEPS, seed=3, **options)


@pytest.mark.parametrize("limit", [30, 47, 61])
def test_the_best_is_complete_when_the_budget_is_spent(limit):
    study = begun(ft.Budget(cost=limit))
    asked = play(study)
    assert study.best.status is ft.Status.COMPLETE
    assert len(study.best.curve) == STEPS
    assert study.ledger.spent <= limit
    assert [p.reason for p in asked].count(FINISHING) >= 1


def test_without_the_rule_it_is_not():
    study = begun(ft.Budget(cost=47), LeftAlone())
    assert FINISHING not in [p.reason for p in play(study)]
    assert study.best.status is ft.Status.PAUSED


def test_it_comes_as_late_as_it_can():
    """Until then every proposal is the policy's own; what is left then is what finishing takes and less than the least
    run."""
    study, alone = begun(ft.Budget(cost=61)), begun(ft.Budget(cost=61), LeftAlone())
    ours, theirs = play(study), play(alone)
    first = [p.reason for p in ours].index(FINISHING)
    assert ours[:first] == theirs[:first]
    spent = 2.0 * first
    needed = SAFETY * (STEPS - 2)
    assert 61 - (spent - 2) - needed >= MARGIN * STEPS > 61 - spent - needed


def test_what_is_left_after_it_is_the_policys_again():
    study = begun(ft.Budget(cost=61))
    reasons = [p.reason for p in play(study)]
    assert reasons[-1] != FINISHING or study.ledger.remaining < MARGIN * STEPS


def test_a_run_makes_way_before_it_uses_up_what_the_best_needs():
    """The best needs 8 steps of 1, with safety 8.8. The other is to train 9 steps of 3: after 6 of them 10 are left."""
    study = begun(ft.Budget(cost=30), ShortThenLong())
    train(study, best := study.ask())
    other = study.ask()
    decisions = [study.report(other, 10.0, cost=3.0) for _ in range(6)]
    assert decisions == [ft.Decision.CONTINUE] * 5 + [ft.Decision.PAUSE]
    finishing = study.ask()
    assert (finishing.trial, finishing.reason) == (best.trial, FINISHING)
    assert train(study, finishing) is ft.Decision.STOP
    assert study.best.status is ft.Status.COMPLETE


def test_the_run_that_is_the_best_itself_goes_on_to_its_end():
    """Its policy would pause it after two steps, when there is no budget left for another run."""
    study = begun(ft.Budget(cost=40), OneByOne())
    first = study.ask()
    assert [study.report(first, 5.0, cost=8.0) for _ in range(2)][-1] is ft.Decision.PAUSE
    second = study.ask()
    assert second.trial != first.trial
    decisions = [study.report(second, 1.0, cost=2.0) for _ in range(10)]
    assert decisions == [ft.Decision.CONTINUE] * 9 + [ft.Decision.STOP]


def test_nothing_is_kept_for_a_best_that_costs_more_than_the_share():
    study = begun(ft.Budget(cost=STEPS))
    train(study, study.ask())
    assert (STEPS - 2) > MOST * STEPS
    assert reserve_of(study._history, study.ledger) is None
    assert FINISHING not in [p.reason for p in play(study)]


def test_nothing_is_kept_where_it_is_not_affordable_any_more():
    study = begun(ft.Budget(cost=40), LeftAlone())
    while study.ledger.remaining > 5:
        train(study, study.ask())
    assert reserve_of(study._history, study.ledger) is None


def test_steps_that_have_to_be_trained_again_are_part_of_what_it_needs():
    study = begun(ft.Budget(cost=100))
    train(study, study.ask())
    history, ledger = study._history, study.ledger
    alive = reserve_of(history, ledger)
    dropped = reserve_of(history.with_trial(replace(history.trials[0], kept_step=0)), ledger)
    assert (alive.cost, dropped.cost) == (pytest.approx(SAFETY * 8), pytest.approx(SAFETY * 10))


def test_what_evaluations_are_charged_beyond_their_costs_is_expected_again():
    """Under a budget of seconds a step of half a second may take a second, and asking takes time too."""
    study = begun(ft.Budget(seconds=100))
    train(study, study.ask(), cost=1.0)
    history, ledger = study._history, study.ledger
    waited = ledger.charged({"evaluation": {"seconds": 2.0}})
    slow = waited.charged({"optimiser": {"seconds": 3.0}})
    costs = [reserve_of(history, each).cost for each in (ledger, waited, slow)]
    assert costs == pytest.approx([SAFETY * 8, SAFETY * 16, SAFETY * 16 + 3.0])
    assert share_to_think(history, slow) == pytest.approx(1.0 - costs[2] / 93.0)


def test_the_last_evaluation_leaves_the_best_time_to_be_finished():
    study = begun(ft.Budget(cost=1000, evaluations=6))
    asked = play(study)
    assert study.best.status is ft.Status.COMPLETE
    assert len({p.trial for p in asked}) == 6


def test_beside_others_the_best_is_finished_once():
    study = begun(ft.Budget(cost=40))
    while not proposal_to_finish(study._history, study.ledger):
        train(study, study.ask())
    several = study.ask(3)
    assert [p.reason for p in several].count(FINISHING) == 1


def test_others_make_way_for_a_best_that_is_running_unless_time_is_what_is_spent():
    for budget, expected in ((ft.Budget(cost=40), ft.Decision.PAUSE), (ft.Budget(seconds=40), None)):
        study = begun(budget)
        while not proposal_to_finish(study._history, study.ledger):
            train(study, study.ask())
        _, other = study.ask(2)
        left = reserve_of(study._history, study.ledger).cost
        ledger = study.ledger.charged({"evaluation": {study.ledger.unit: study.ledger.remaining - left}})
        running = study._history.trials[other.trial]
        running = replace(running, curve=ft.Curve((9.0,), (1.0,), (None,)), cost=1.0, kept_step=1)
        assert decision_to_finish(study._history.with_trial(running), ledger, running) is expected


def test_papers_plan_the_end_themselves():
    assert not any(getattr(ft.policies.BY_NAME[name], "finishes_best", False) for name in ("bapi", "bopt", "eqie"))
    assert ft.policies.Auto.finishes_best


def test_what_it_proposes_follows_from_the_file_alone(tmp_path):
    file, copy = tmp_path / "study.db", tmp_path / "copy.db"
    with begun(ft.Budget(cost=40), storage=file) as study:
        cuts = []
        while study.ended is None:
            events = study._session.record.events
            asked = study.ask()
            cuts.append((events, asked))
            train(study, asked)
    assert FINISHING in [asked.reason for _, asked in cuts]
    for events, asked in cuts[-4:]:
        cut_copy(file, copy, events)
        with ft.Study.resume(copy, policy=Pausing()) as again:
            found = again.ask()
            assert (found.trial, found.config, found.reason) == (asked.trial, asked.config, asked.reason)
