"""A study that is closed and opened again: what its file holds, and that resuming is replaying."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import farthing as ft
from farthing.errors import (
    BudgetSpent,
    InvalidArgument,
    InvalidSpace,
    StorageError,
    StudyMismatch,
    UnknownTrial,
)
from learners import bodies, cut_copy
from stored_events import change
from studies import BOOSTER, LINE, POLICIES, line_study, tell_truth


class TestContinuing:
    """An existing file is continued as the study it holds, or not at all."""

    def made(self, tmp_path: Path, **options: Any) -> Path:
        path = tmp_path / "study.db"
        with ft.Study(BOOSTER, "30 evaluations", **{"policy": "ei", "seed": 7, **options}, storage=path) as study:
            for _ in range(3):
                tell_truth(study, study.ask())
        return path

    def test_the_same_study_goes_on_with_its_trials_and_ledger(self, tmp_path):
        path = self.made(tmp_path)
        with (
            ft.Study.resume(path) as resumed,
            ft.Study(BOOSTER, "30 evaluations", policy="ei", seed=7, storage=path) as again,
        ):
            assert again.trials == resumed.trials
            assert len(again.trials) == 3
            assert again.ledger == resumed.ledger
            assert again.ledger.total("evaluations") == 3.0
            assert (resumed.seed, resumed.policy, resumed.maximize) == (7, ft.policies.EI(), False)
            assert resumed.space == BOOSTER
            assert resumed.storage == str(path)

    def test_opening_again_writes_nothing(self, tmp_path):
        path = self.made(tmp_path)
        before = path.read_bytes()
        ft.Study(BOOSTER, "30 evaluations", policy="ei", seed=7, storage=path).close()
        ft.Study.resume(path).close()
        assert path.read_bytes() == before

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"seed": 8}, "seed is 7 in the file and 8 here"),
            ({"policy": "sobol"}, "policy is .*'ei'.* in the file and .*'sobol'"),
            ({"policy": ft.policies.EI(initial=5)}, "policy is .*None.* in the file and .*5"),
            ({"maximize": True}, "maximize is False in the file and True here"),
            ({"space": LINE}, "another space: parameter 'x'"),
            ({"space": ft.Space({**BOOSTER.params, "depth": ft.Integer(1, 12)})}, "'depth': high is 12.* 16"),
        ],
    )
    def test_a_difference_is_named_and_the_file_kept(self, tmp_path, change, message):
        path = self.made(tmp_path)
        before = path.read_bytes()
        options = {"policy": "ei", "seed": 7, **change}
        with pytest.raises(StudyMismatch, match=message) as refused:
            ft.Study(options.pop("space", BOOSTER), "30 evaluations", **options, storage=path)
        assert str(path) in str(refused.value)
        assert isinstance(refused.value, StorageError)
        assert path.read_bytes() == before

    def test_without_a_seed_one_is_drawn_and_stored(self, tmp_path):
        path = self.made(tmp_path, seed=None)
        stored = bodies(path, "opened")[0]["seed"]
        with ft.Study.resume(path) as resumed, ft.Study(BOOSTER, "30 evaluations", policy="ei", storage=path) as again:
            assert resumed.seed == again.seed == stored
            following = resumed.ask().config
        with ft.Study(BOOSTER, "30 evaluations", policy="ei", seed=stored) as replayed:
            for _ in range(3):
                tell_truth(replayed, replayed.ask())
            assert replayed.ask().config == following
        assert line_study(seed=None).seed != line_study(seed=None).seed

    def test_a_spent_study_goes_on_with_a_raised_budget(self, tmp_path):
        path = tmp_path / "study.db"
        with line_study("2 evaluations", storage=path) as study:
            for _ in range(2):
                study.tell(study.ask(), value=1.0, cost=2.0)
        with ft.Study.resume(path) as study, pytest.raises(BudgetSpent):
            study.ask()
        with ft.Study.resume(path, budget="5 evaluations, 100s") as study:
            assert study.ledger.budget == ft.Budget(evaluations=5, seconds=100)
            assert study.ledger.left("evaluations") == 3.0, "the budget is the new total"
            assert study.ledger.spent == 4.0
            study.tell(study.ask(), value=1.0)
        with ft.Study.resume(path) as study:
            assert study.ledger.budget == ft.Budget(evaluations=5, seconds=100), "it is kept"
            assert len(study.trials) == 3

    def test_continuing_by_the_constructor_takes_the_new_budget(self, tmp_path):
        path = self.made(tmp_path)
        with ft.Study(BOOSTER, "$3, 50 trials", policy="ei", seed=7, storage=path) as study:
            assert study.ledger.budget == ft.Budget(usd=3, evaluations=50)
            assert study.ledger.total("evaluations") == 3.0

    def test_a_trial_that_was_asked_for_stays_pending_in_the_file_of_another_process(self, tmp_path):
        path = tmp_path / "study.db"
        study = ft.Study(BOOSTER, "20 evaluations", policy="ei", seed=0, storage=path)
        for _ in range(8):
            tell_truth(study, study.ask())
        running = study.ask()
        study.close()
        with ft.Study.resume(path) as again:
            assert again.trials[8].status is ft.Status.RUNNING
            assert (again.ledger.running, again.ledger.committed) == (1, running.predicted_cost)
            (back,) = again.pending
            assert (back.trial, back.config, back.predicted_cost) == (8, running.config, running.predicted_cost)
            assert again.ask().trial == 9
            tell_truth(again, back)
            with pytest.raises(UnknownTrial, match="trial 8 is"):
                again.tell(8, value=1.0)

    def test_several_interrupted_trials_come_back_first_in_order(self, tmp_path):
        path = tmp_path / "study.db"
        with line_study(storage=path) as study:
            asked = study.ask(4)
            study.tell(asked[1], value=1.0)
        as_if_run(path)
        with ft.Study.resume(path) as study:
            assert [trial.status.value for trial in study.trials] == ["interrupted", "complete", *["interrupted"] * 2]
            assert (study.ledger.running, study.ledger.committed) == (0, 0.0)
            back = [study.ask() for _ in range(4)]
            assert [proposal.trial for proposal in back] == [0, 2, 3, 4]
            assert [proposal.config for proposal in back[:3]] == [asked[i].config for i in (0, 2, 3)]

    def test_options_that_cannot_be_stored_must_be_passed_again(self, tmp_path):
        space = ft.Space(aggregate=ft.Choice([min, max]), forbid=lambda config: False)
        path = tmp_path / "study.db"
        with ft.Study(space, "2 trials", policy="sobol", seed=0, storage=path) as study:
            study.tell(study.ask(), value=1.0)
            first = study.trials
        with pytest.raises(InvalidSpace, match="space="):
            ft.Study.resume(path)
        with ft.Study.resume(path, space=space) as study:
            assert study.trials == first
            assert {study.ask().config["aggregate"], first[0].config["aggregate"]} == {min, max}
        with pytest.raises(StudyMismatch, match="aggregate"):
            ft.Study.resume(path, space=ft.Space(aggregate=ft.Choice([min, sum])))

    def test_a_custom_policy_must_be_passed_again(self, tmp_path):
        path = tmp_path / "study.db"
        with line_study(policy=Corners(scale=0.5), storage=path) as study:
            assert study.ask().config == {"x": -0.5}
        with pytest.raises(InvalidArgument, match="policy="):
            ft.Study.resume(path)
        with pytest.raises(StudyMismatch, match="corners"):
            ft.Study.resume(path, policy=Corners(scale=0.25))
        with ft.Study.resume(path, policy=Corners(scale=0.5)) as study:
            assert [study.pending[0].config["x"], study.ask().config["x"]] == [-0.5, 0.5]


@dataclass(frozen=True)
class Corners:
    """A policy that a user may have written."""

    name: ClassVar[str] = "corners"
    scale: float = 1.0

    def propose(self, space, history, ledger, n, rng):
        number = len(history.trials)
        return [ft.Proposal(number, {"x": (-1.0, 1.0)[number % 2] * self.scale})]


@dataclass(frozen=True)
class Drawn:
    """A policy that shows the generator it is given."""

    name: ClassVar[str] = "drawn"

    def propose(self, space, history, ledger, n, rng):
        first = len(history.trials)
        return [ft.Proposal(number, {"x": float(rng.random())}) for number in range(first, first + n)]


def test_the_randomness_of_an_ask_is_the_seed_and_the_number_of_the_ask(tmp_path):
    """In batches, after a failure, resumed, or interrupted: the k-th ask draws from default_rng([seed, k])."""
    path = tmp_path / "study.db"
    expected = [np.random.default_rng([3, ask]).random(2).tolist() for ask in range(5)]
    with line_study(policy=Drawn(), seed=3, storage=path) as study:
        assert [proposal.config["x"] for proposal in study.ask(2)] == expected[0]
        study.tell(0, failed="boom")
        study.tell(1, value=1.0)
        assert study.ask().config["x"] == expected[1][0]
    as_if_run(path)
    with ft.Study.resume(path, policy=Drawn()) as study:
        assert study.ask().config["x"] == expected[1][0], "the interrupted one again"
        assert [proposal.config["x"] for proposal in study.ask(2)] == expected[2]
    as_if_run(path)
    with ft.Study.resume(path, policy=Drawn()) as study:
        assert [proposal.trial for proposal in study.ask(3)] == [2, 3, 4], "three were interrupted"
        assert study.ask().config["x"] == expected[3][0]
        assert study.ask().config["x"] == expected[4][0]


Asked = list[tuple[Any, ...]]


def asked_events(path: Path) -> Asked:
    """What was asked, bit for bit as it is in the file; of a trial that ran twice, the first."""
    first: dict[int, tuple[Any, ...]] = {}
    for body in bodies(path, "asked"):
        part = tuple(json.dumps(body[name]) for name in ("config", "predicted_cost", "reason", "fits", "ask"))
        first.setdefault(body["trial"], (body["trial"], *part))
    return list(first.values())


def open_study(path: Path, policy: str, total: int) -> ft.Study:
    return ft.Study(BOOSTER, f"{total} evaluations", policy=policy, seed=11, storage=path)


def as_if_run(path: Path) -> None:
    """Let all trials of a file be those of a run, which interrupts them when its process ends."""
    change(path, """UPDATE events SET body = replace(body, '"by":"ask"', '"by":"run"') WHERE kind = 'asked'""")


def go_on(study: ft.Study, until: int) -> None:
    """One trial after the other, those that are pending first, until that number of them has ended."""
    for proposal in study.pending:
        tell_truth(study, proposal)
    while study.ledger.total("evaluations") < until:
        tell_truth(study, study.ask())


@pytest.fixture(scope="module", params=POLICIES)
def straight(request, tmp_path_factory) -> tuple[str, Path, Asked]:
    """15 trials without a break."""
    path = tmp_path_factory.mktemp(request.param) / "straight.db"
    with open_study(path, request.param, 15) as study:
        go_on(study, 15)
        statuses = {trial.status for trial in study.trials}
    assert statuses == {ft.Status.COMPLETE, ft.Status.FAILED}, "the example has both"
    return request.param, path, asked_events(path)


class TestResumingIsReplaying:
    """Interrupted and resumed, a study proposes exactly what it would have proposed uninterrupted.

    From each state the next proposal is the same; so are all that follow.
    """

    @pytest.mark.parametrize(
        ("k", "pending"), [(0, False), (0, True), (7, False), (10, True), (13, False), (13, True)],
        ids=lambda value: {False: "told", True: "asked but not told"}[value] if isinstance(value, bool) else None,
    )  # fmt: skip
    def test_after_k_trials(self, straight, tmp_path, k, pending):
        _, original, expected = straight
        path = tmp_path / "study.db"
        cut_copy(original, path, 2 + 2 * k + pending)
        with ft.Study.resume(path) as study:
            assert [trial.number for trial in study.trials] == list(range(k + pending))
            for back in study.pending:
                assert (back.trial, pending) == (k, True), "it keeps its number"
                tell_truth(study, back)
            assert study.ask().trial == k + pending
        assert asked_events(path) == expected[: k + pending + 1]

    @pytest.mark.parametrize("policy", ["sobol", "ei"])
    def test_at_every_trial(self, tmp_path, policy):
        """Interrupted twenty times, with and without a running trial in turn, to the very end."""
        with open_study(tmp_path / "straight.db", policy, 20) as study:
            go_on(study, 20)
        path = tmp_path / "study.db"
        open_study(path, policy, 20).close()
        for k in range(1, 21):
            with ft.Study.resume(path) as study:
                go_on(study, k)
                if k % 2 and k < 20:
                    study.ask()
        assert asked_events(path) == asked_events(tmp_path / "straight.db")
        with ft.Study.resume(tmp_path / "straight.db") as uninterrupted, ft.Study.resume(path) as study:
            assert study.trials == uninterrupted.trials
            assert study.ledger == uninterrupted.ledger


class TestEveryPrefix:
    """Every state a killed process can leave behind goes on to the same end: one event is one transaction."""

    TOTAL = 8

    @pytest.mark.parametrize("policy", ["random", "ei"])
    def test_a_file_cut_after_any_event_goes_on_as_if_nothing_had_happened(self, tmp_path, policy):
        whole = tmp_path / "whole.db"
        with open_study(whole, policy, self.TOTAL) as study:
            go_on(study, self.TOTAL)
        expected, path = asked_events(whole), tmp_path / "cut.db"
        for kept in range(2 * self.TOTAL + 2):
            cut_copy(whole, path, kept)
            with open_study(path, policy, self.TOTAL) as study:
                go_on(study, self.TOTAL)
            assert asked_events(path) == expected, f"cut after event {kept}"

    def test_resume_with_a_budget_repairs_a_file_that_ends_before_its_budget(self, tmp_path):
        whole, path = tmp_path / "whole.db", tmp_path / "cut.db"
        open_study(whole, "sobol", 5).close()
        cut_copy(whole, path, 1)
        with ft.Study.resume(path, budget="5 evaluations") as study:
            go_on(study, 5)
            assert len(study.trials) == 5


class TestBatchesResumed:
    """Side by side in rounds of three, closed between rounds, a study proposes what it would have."""

    @pytest.mark.parametrize("policy", POLICIES)
    def test_rounds(self, tmp_path, policy):
        def round_of_three(study: ft.Study) -> None:
            for proposal in reversed(study.ask(3)):
                tell_truth(study, proposal)

        with open_study(tmp_path / "straight.db", policy, 12) as study:
            while study.ended is None:
                round_of_three(study)
        with open_study(tmp_path / "broken.db", policy, 12) as study:
            round_of_three(study)
        while True:
            with ft.Study.resume(tmp_path / "broken.db") as study:
                if study.ended is not None:
                    break
                round_of_three(study)
        assert asked_events(tmp_path / "broken.db") == asked_events(tmp_path / "straight.db")


def test_a_failed_write_changes_nothing_in_memory(tmp_path):
    """The event is on disk before memory knows of it: without the disk, memory does not change."""
    study = line_study(storage=tmp_path / "study.db")
    proposal = study.ask()
    trials, ledger = study.trials, study.ledger
    study.close()
    for use in (study.ask, lambda: study.tell(proposal, value=1.0)):
        with pytest.raises(StorageError):
            use()
        assert study.trials == trials
        assert study.ledger == ledger
