"""Iterative learners in one's own loop: ask, report, tell."""

from __future__ import annotations

import json
import math
import random
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest

import farthing as ft
from farthing.errors import BudgetSpent, InvalidArgument, StudyEnded, UnknownTrial
from learners import LINE, STEPS, Alternating, Halving, bodies, cost_of, curve_of, iterative, value_at
from stored_events import change

CONTINUE, PAUSE, STOP = ft.Decision.CONTINUE, ft.Decision.PAUSE, ft.Decision.STOP


def own_loop(study: ft.Study, *, sign: float = 1.0, saved: bool = True, most: int = 10**9) -> int:
    """Train what the study asks for, until it ends or `most` steps were taken; returns how many were. What an earlier
    process was given comes first."""
    taken, pending = 0, study.pending
    while taken < most:
        try:
            proposal = pending.pop(0) if pending else study.ask()
        except StudyEnded:
            break
        step, decision = proposal.start_step, CONTINUE
        while decision is CONTINUE and taken < most:
            step, taken = step + 1, taken + 1
            value = sign * value_at(proposal.config, step)
            decision = study.report(
                proposal, value, cost=cost_of(step), train_value=value - sign, saved=saved, epoch=step
            )
    return taken


class TestDecisions:
    def test_continue_then_stop_at_the_end_of_a_training(self):
        study = iterative(policy="sobol", max_steps=3)
        proposal = study.ask()
        assert (proposal.start_step, proposal.until_step) == (0, None)
        assert [study.report(proposal, value) for value in (3.0, 1.0, 2.0)] == [CONTINUE, CONTINUE, STOP]
        trial = study.trials[0]
        assert (trial.status, trial.value, trial.curve.values) == (ft.Status.COMPLETE, 1.0, (3.0, 1.0, 2.0))
        assert study.ledger.total("evaluations") == 1.0
        for late in (lambda: study.report(proposal, 0.5), lambda: study.tell(proposal, value=0.5)):
            with pytest.raises(UnknownTrial, match="trial 0 is complete"):
                late()

    def test_pause_and_the_proposal_that_resumes(self):
        study = iterative(policy=Alternating(width=1))
        proposal = study.ask()
        for step in range(1, STEPS):
            assert proposal.start_step == step - 1
            assert study.report(proposal, 1.0 / step, cost=cost_of(step)) is PAUSE
            trial = study._history.trials[0]
            assert (trial.status, trial.kept_step, trial.saved_step) == (ft.Status.PAUSED, step, 0)
            assert trial.error is None
            with pytest.raises(UnknownTrial, match="trial 0 is paused"):
                study.report(proposal, 0.0)
            proposal, before = study.ask(), proposal
            assert (proposal.trial, proposal.config) == (before.trial, before.config)
        assert study.report(proposal, 0.0, cost=cost_of(STEPS)) is STOP
        assert study.trials[0].cost == sum(map(cost_of, range(1, STEPS + 1))) == study.ledger.spent
        assert study.ledger.total("evaluations") == 1.0

    def test_stop_by_the_policy(self):
        class Impatient(Alternating):
            def decide(self, *args):
                return STOP

        study = iterative(policy=Impatient())
        assert study.report(study.ask(), 1.0) is STOP
        assert study.trials[0].status is ft.Status.STOPPED
        assert study.best.number == 0

    def test_until_step_is_in_the_proposal_and_is_honoured(self):
        study = iterative(policy=Halving())
        proposal = study.ask()
        assert proposal.until_step == 2
        decisions = [study.report(proposal, value) for value in (2.0, 1.0)]
        assert decisions[1] is PAUSE

    def test_the_end_of_the_budget_pauses(self):
        study = iterative(ft.Budget(cost=1), policy="sobol")
        proposal = study.ask()
        assert study.report(proposal, 1.0, cost=0.75) is CONTINUE
        assert study.report(proposal, 0.5, cost=0.25) is PAUSE
        with pytest.raises(BudgetSpent):
            study.ask()
        assert study.best.value == 0.5

    def test_two_decisions_compare_as_text_too(self):
        assert (CONTINUE, PAUSE, STOP) == ("continue", "pause", "stop")


class TestTell:
    def test_after_reports_the_best_of_them_is_the_value(self):
        study = iterative(policy="sobol")
        proposal = study.ask()
        for value in (3.0, 1.0, 2.0):
            study.report(proposal, value, cost=1.0)
        trial = study.tell(proposal, cost=0.5, note="tired")
        assert (trial.status, trial.value, trial.cost) == (ft.Status.COMPLETE, 1.0, 3.5)
        assert trial.attributes == {"note": "tired"}
        assert study.ledger.account("evaluation") == 3.5

    @pytest.mark.parametrize(("told", "value"), [(0.25, 0.25), (9.0, 1.0)])
    def test_a_value_told_after_reports_counts_if_it_is_better(self, told, value):
        """What was best and reached a target does not get worse."""
        study = iterative(policy="sobol", stop_at=1.0)
        proposal = study.ask()
        study.report(proposal, 1.0)
        assert study.trials[0].status is ft.Status.PAUSED, "the target is reached"
        study = iterative(policy="sobol")
        proposal = study.ask()
        study.report(proposal, 1.0)
        assert study.tell(proposal, value=told).value == value == study.best.value

    def test_a_failure_after_reports_keeps_the_curve(self):
        study = iterative(policy="sobol")
        proposal = study.ask()
        study.report(proposal, 1.0, cost=1.0)
        trial = study.tell(proposal, failed="out of memory", cost=2.0)
        assert (trial.status, trial.error, trial.cost) == (ft.Status.FAILED, "out of memory", 3.0)
        assert trial.curve.values == (1.0,)
        assert (study.ledger.account("evaluation"), study.ledger.account("failed")) == (1.0, 2.0)

    @pytest.mark.parametrize("told", [{}, {"value": 1.0, "failed": "boom"}, {"cost": 1.0}])
    def test_without_reports_a_value_is_needed(self, told):
        study = iterative(policy="sobol")
        proposal = study.ask()
        if "value" in told:
            study.report(proposal, 1.0)
        with pytest.raises(InvalidArgument, match=r"either value=\.\.\. or failed"):
            study.tell(proposal, **told)

    def test_without_max_steps_the_first_one_told_sets_it(self):
        study = iterative(policy=Alternating(), max_steps=None)
        first, second = study.ask(), study.ask()
        for step in range(1, 5):
            assert study.report(first, 1.0 / step) is CONTINUE, "nobody may pause while the length is not known"
        study.tell(first)
        assert study.report(second, 1.0) is PAUSE
        again = study.ask()
        while again.trial != 1:
            study.report(again, 1.0)
            again = study.ask()
        assert study.report(again, 0.5) is PAUSE


class TestErrors:
    @pytest.mark.parametrize("number", [1, 99, -1])
    def test_a_trial_that_was_never_asked_for(self, number):
        study = iterative(policy="sobol")
        study.ask()
        with pytest.raises(UnknownTrial, match="never asked for"):
            study.report(number, 1.0)

    def test_before_any_trial(self):
        with pytest.raises(UnknownTrial):
            iterative().report(0, 1.0)

    @pytest.mark.parametrize("what", ["0", None, 0.5, True])
    def test_something_that_is_not_a_trial(self, what):
        study = iterative(policy="sobol")
        study.ask()
        with pytest.raises(InvalidArgument, match="the number of a trial"):
            study.report(what, 1.0)

    @pytest.mark.parametrize("cost", [-1.0, math.nan, math.inf, "5", [1.0]])
    @pytest.mark.parametrize("value", [1.0, math.nan])
    def test_an_invalid_cost_is_refused_and_the_trial_keeps_running(self, cost, value):
        study = iterative(policy="sobol")
        proposal = study.ask()
        with pytest.raises(InvalidArgument, match="cost: expected"):
            study.report(proposal, value, cost=cost)
        assert study.trials[0].status is ft.Status.RUNNING
        assert len(study.trials[0].curve) == 0
        assert study.report(proposal, 1.0) is CONTINUE

    @pytest.mark.parametrize("value", [math.nan, math.inf, "low", None, [1.0, 2.0]])
    def test_a_value_that_is_not_finite_is_a_failure(self, value):
        study = iterative(policy="sobol")
        proposal = study.ask()
        study.report(proposal, 2.0, cost=1.0)
        assert study.report(proposal, value, cost=2.0, note="odd") is STOP
        trial = study.trials[0]
        assert trial.status is ft.Status.FAILED
        assert (trial.curve.values, trial.cost, dict(trial.attributes)) == ((2.0,), 3.0, {"note": "odd"})
        assert study.ledger.account("failed") == 2.0

    def test_numbers_of_any_kind_are_stored(self, tmp_path):
        path = tmp_path / "study.db"
        with iterative(policy="sobol", storage=path) as study:
            proposal = study.ask()
            for cost in (np.float32(0.5), np.int64(1), Decimal("0.25"), 2):
                study.report(
                    proposal, np.float64(1), cost=cost, train_value=np.float32(2), saved=np.bool_(True),
                    norm=np.arange(2),
                )  # fmt: skip
            assert study.trials[0].curve.costs == (0.5, 1.0, 0.25, 2.0)
            assert study._history.trials[0].saved_step == 4
            study.report(proposal, math.nan, cost=np.float32(0.5))
        with ft.Study.resume(path) as again:
            assert again.trials == study.trials
            assert again.trials[0].attributes == {"norm": [0, 1]}


class TestMaximize:
    def test_the_sign_turns_at_the_edge(self, tmp_path):
        low_path, high_path = tmp_path / "low.db", tmp_path / "high.db"
        with iterative(policy=Halving(), storage=low_path) as low:
            own_loop(low)
        with iterative(policy=Halving(), storage=high_path, maximize=True) as high:
            own_loop(high, sign=-1.0)
            for a, b in zip(low.trials, high.trials, strict=True):
                assert (a.config, a.status, a.cost) == (b.config, b.status, b.cost)
                assert b.value == -a.value == max(b.curve.values)
                assert b.curve.values == tuple(-value for value in a.curve.values)
                assert b.curve.train_values == tuple(value + 1 for value in b.curve.values)
                assert b.curve.costs == a.curve.costs
            assert high.best.number == low.best.number
        stored = [body["value"] for body in bodies(high_path, "reported")]
        assert stored == [-body["value"] for body in bodies(low_path, "reported")]
        assert max(stored) < 0
        with ft.Study.resume(high_path, policy=Halving()) as again:
            assert [trial.curve for trial in again.trials] == [trial.curve for trial in high.trials]


class TestReplay:
    @pytest.mark.parametrize("policy", [Alternating(), Halving(), "sobol"], ids=["alternating", "halving", "sobol"])
    def test_a_file_gives_the_same_state(self, tmp_path, policy):
        path = tmp_path / "study.db"
        with iterative(ft.Budget(cost=14, evaluations=50), policy=policy, storage=path) as study:
            own_loop(study)
        with ft.Study.resume(path, policy=None if policy == "sobol" else policy) as again:
            assert again.trials == study.trials
            assert again.ledger == study.ledger
            assert again.best == study.best
            assert again.to_frame().equals(study.to_frame())
            statuses = {trial.status.value for trial in again.trials}
        assert "paused" in statuses
        assert "stopped" in statuses or not isinstance(policy, Halving)

    @pytest.mark.parametrize("saved", [True, False])
    def test_interrupted_again_and_again_it_trains_what_the_uninterrupted_one_does(self, tmp_path, saved):
        straight = iterative(policy=Halving())
        steps = own_loop(straight)
        path, some, taken = tmp_path / "study.db", random.Random(1), 0
        iterative(policy=Halving(), storage=path).close()
        for _ in range(200):
            with ft.Study.resume(path, policy=Halving()) as study:
                if study.ended:
                    break
                taken += own_loop(study, saved=saved, most=some.randint(1, 9))
        else:
            pytest.fail("it gets nowhere")
        assert study.ledger.account("evaluation") + study.ledger.account("retrained") == study.ledger.spent
        for trial in study.trials:
            assert trial.curve.values == curve_of(trial.config, len(trial.curve))
        if saved:
            assert taken == steps
            assert [trial.curve for trial in study.trials] == [trial.curve for trial in straight.trials]
            assert study.ledger.spent == straight.ledger.spent
        else:
            assert study.ledger.account("retrained") > 0

    def test_in_another_process_a_paused_one_starts_from_what_was_saved(self, tmp_path):
        path = tmp_path / "study.db"
        with iterative(policy=Alternating(width=1, stride=3), storage=path) as study:
            proposal = study.ask()
            for step in (1, 2, 3):
                study.report(proposal, 1.0 / step, cost=1.0, saved=step == 2)
            trial = study._history.trials[0]
            assert (trial.kept_step, trial.saved_step) == (3, 2)
        with ft.Study.resume(path, policy=Alternating(width=1, stride=3)) as study:
            trial = study._history.trials[0]
            assert (trial.kept_step, trial.saved_step) == (2, 2)
            proposal = study.ask()
            assert (proposal.trial, proposal.start_step) == (0, 2)
            assert study.report(proposal, 7.0, cost=1.0) is CONTINUE, "known already: not decided again"
            assert study.ledger.account("retrained") == 1.0
            assert study.trials[0].curve.values == (1.0, 0.5, 1 / 3), "what was reported stays"
            study.report(proposal, 0.25, cost=1.0)
            assert study.trials[0].curve.values == (1.0, 0.5, 1 / 3, 0.25)
            assert study.ledger.account("evaluation") == 4.0

    def test_a_paused_trial_does_not_use_up_an_evaluation_again(self):
        study = iterative("3 evaluations", policy=Alternating(width=2))
        for _ in range(2):
            study.report(study.ask(), 1.0)
        resumed, new = study.ask(), study.ask()
        assert (resumed.trial, new.trial) == (0, 2)
        with pytest.raises(BudgetSpent, match="running"):
            study.ask()
        study.report(resumed, 0.5)
        study.report(new, 0.5)
        assert study.ledger.total("evaluations") == 3.0

    def test_to_frame_has_a_row_for_each(self):
        study = iterative(policy=Alternating(width=2))
        for _ in range(3):
            study.report(study.ask(), 1.0, cost=1.0, epoch=1)
        frame = study.to_frame()
        assert list(frame["status"]) == ["paused", "paused"]
        assert list(frame["cost"]) == [2.0, 1.0]
        assert list(frame["attributes.epoch"]) == [1, 1]


class TestOlderFiles:
    def older(self, path: Path) -> None:
        """As written before there were iterative learners."""
        with iterative("20 evaluations", policy="sobol", max_steps=None, storage=path) as study:
            for _ in range(3):
                study.tell(study.ask(), value=1.0, cost=2.0)
            study.ask()
        older = []
        for number, stored in enumerate(bodies(path), start=1):
            newer = {"opened": ["max_steps"], "asked": ["start_step", "until_step", "by"]}
            for name in newer.get(stored.pop("kind"), []):
                del stored[name]
            older.append((json.dumps(stored), number))
        change(path, "UPDATE events SET body = ? WHERE number = ?", *older)

    def test_they_are_read_and_go_on(self, tmp_path):
        path = tmp_path / "study.db"
        self.older(path)
        with ft.Study.resume(path) as study:
            assert [trial.value for trial in study.trials] == [1.0, 1.0, 1.0, None]
            assert study.trials[3].status is ft.Status.INTERRUPTED
            proposal = study.ask()
            assert (proposal.trial, proposal.start_step, proposal.until_step) == (3, 0, None)
            assert study.report(proposal, 0.5) is CONTINUE
            study.tell(proposal)
            assert study.best.number == 3
        with ft.Study(LINE, "20 evaluations", policy="sobol", seed=0, storage=path) as study:
            assert study.best.number == 3
