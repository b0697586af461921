"""Requests to a run, of somebody who looks at its study: each does what it says, once, and is in the file."""

from __future__ import annotations

import json
import logging
import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, ClassVar

import pytest

import farthing as ft
from called import wait_until
from farthing.errors import StorageError
from farthing.history.persistent import KeySet
from farthing.record.mailbox import Request, folder_of, post, waiting
from farthing.record.reader import StudyFile, read_study
from farthing.record.requests import MOST_QUEUED, MOST_SHOWN
from farthing.record.study_events import Budgeted, Requested
from farthing.runner import control
from farthing.runner.clock import Clock
from farthing.runner.control import Control
from learners import bodies, cut_copy, steps_from
from stored_events import change
from studies import BOOSTER, error_of, line_study

pytestmark = pytest.mark.usefixtures("logged", "at_once")

PAUSE, RESUME, STOP = (Request(action) for action in ("pause", "resume", "stop"))
LONG = 10_000  # steps, of which none is reached: a test that fails still ends
WAYS = [{"isolate": False}, {"isolate": True}, {"workers": 2}]


def budget(text: str) -> Request:
    return Request("budget", budget=text)


def enqueue(**config: Any) -> Request:
    return Request("enqueue", config=config)


def answers(path: Path) -> list[tuple[str, str | None]]:
    """What was asked for, and why it was refused."""
    return [(answer.action, answer.refused) for answer in read_study(path).requests]


def slow(config: dict[str, Any]) -> float:
    time.sleep(0.02)
    return float(config["x"])


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run looks whenever it can, and so right after the callback that posts something."""
    monkeypatch.setattr(control, "INTERVAL", 0.0)
    monkeypatch.setattr(Control, "patience", 0.02)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "s.db"


def posting(path: Path, after: dict[int, list[Request]]) -> Callable[[ft.Study, ft.Trial], None]:
    """A callback that posts requests after some trials."""

    def posts(study: ft.Study, trial: ft.Trial) -> None:
        for request in after.get(trial.number, []):
            post(path, request)

    return posts


@contextmanager
def beside(act: Callable[[], None]) -> Iterator[None]:
    """Somebody acts in another thread while the run goes on in this one; what goes wrong there is raised."""
    wrong: list[BaseException] = []

    def acted() -> None:
        try:
            act()
        except BaseException as error:
            wrong.append(error)

    thread = threading.Thread(target=acted)
    thread.start()
    try:
        yield
    finally:
        thread.join()
    if wrong:
        raise wrong[0]


def until(path: Path, condition: Callable[[StudyFile], object]) -> None:
    """Look at the file until something is true of it; before it is begun nothing is."""

    def holds() -> bool:
        with suppress(StorageError):
            return bool(condition(read_study(path)))
        return False

    assert wait_until(holds, 60.0)


def steps(file: StudyFile) -> int:
    return sum(len(trial.curve) for trial in file.trials)


def rests(file: StudyFile) -> bool:
    """Whether it is paused, and nothing comes any more: steps that were under way have ended."""
    before = steps(file)
    time.sleep(0.15)
    file.refresh()
    return file.is_paused and steps(file) == before


class TestPause:
    @pytest.mark.parametrize("options", WAYS, ids=str)
    def test_nothing_begins_until_it_is_resumed_and_no_budget_is_spent(self, path, options):
        seen: dict[str, Any] = {}

        def act() -> None:
            until(path, lambda file: len(file.trials) >= 3)
            post(path, PAUSE)
            until(path, lambda file: file.is_paused and not file.count(ft.Status.RUNNING))
            before = read_study(path)
            time.sleep(1.2)
            after = read_study(path)
            seen["trials"] = len(before.trials), len(after.trials)
            seen["spent"] = after.ledger.total("seconds") - before.ledger.total("seconds")
            post(path, RESUME)

        began = time.perf_counter()
        with beside(act), line_study("30s, 12 evaluations", storage=path) as study:
            study.run(slow, progress=False, **options)
            wall, ledger = time.perf_counter() - began, study.ledger
        assert seen["trials"][0] == seen["trials"][1] < 12
        assert seen["spent"] < 0.3, "what was due when it was paused, by the heartbeat"
        assert ledger.total("evaluations") == 12
        assert ledger.total("seconds") < wall - 1.1, (
            "the pause of 1.2 s is not charged, but for what a look at the mailbox takes"
        )
        assert answers(path) == [("pause", None), ("resume", None)]
        assert not read_study(path).is_paused

    def test_the_clock_stands_still(self, fake_time):
        study = line_study("100s")
        clock = Clock(study._session, fake_time.now)
        fake_time.sleep(1.0)
        clock.rest()
        left, due = clock.seconds_left(), clock.due
        fake_time.sleep(50.0)
        assert clock.seconds_left() == pytest.approx(left, abs=1e-4)
        assert clock.due["optimiser"]["seconds"] == pytest.approx(due["optimiser"]["seconds"], abs=1e-4)
        clock.work()
        fake_time.sleep(2.0)
        assert clock.overhead()["optimiser"]["seconds"] == pytest.approx(3.0, abs=1e-4)
        assert clock.now.rested == pytest.approx(50.0, abs=1e-4)

    @pytest.mark.parametrize("isolate", [False, True])
    def test_a_learner_is_held_after_its_step_and_goes_on_where_it_was(self, path, isolate):
        seen: list[int] = []

        def slowly(config: dict[str, Any]) -> Iterator[Any]:
            for report in steps_from(config, 0, 30):
                time.sleep(0.02)
                yield report

        def act() -> None:
            until(path, lambda file: steps(file) >= 3)
            post(path, PAUSE)
            until(path, rests)
            seen.append(steps(read_study(path)))
            time.sleep(0.3)
            seen.append(steps(read_study(path)))
            post(path, RESUME)

        with beside(act), ft.Study({"x": (0.0, 1.0)}, "1 evaluation", policy="random", storage=path) as study:
            study.run(slowly, progress=False, isolate=isolate)
            (trial,) = study.trials
        assert seen[0] == seen[1] < 30
        assert (trial.status, len(trial.curve)) == (ft.Status.COMPLETE, 30)
        assert study.ledger.account("retrained", "seconds") == 0.0

    @pytest.mark.parametrize("isolate", [False, True])
    def test_ctrl_c_ends_a_paused_run_and_what_is_held_is_interrupted(self, path, isolate):
        def endless(config: dict[str, Any]) -> Iterator[float]:
            for _ in range(LONG):
                time.sleep(0.01)
                yield 1.0

        def act() -> None:
            until(path, lambda file: steps(file) >= 3)
            post(path, PAUSE)
            until(path, rests)
            os.kill(os.getpid(), signal.SIGINT)

        with line_study("1 evaluation", storage=path) as study, beside(act), pytest.raises(KeyboardInterrupt):
            study.run(endless, progress=False, isolate=isolate)
        (trial,) = read_study(path).trials
        assert trial.status is ft.Status.INTERRUPTED
        with ft.Study.resume(path) as study:
            assert study.run(lambda config: iter([1.0]), progress=False).trials[0].status is ft.Status.COMPLETE

    def test_a_held_learner_whose_process_is_gone_has_failed(self, path):
        def tells(config: dict[str, Any]) -> Iterator[Any]:
            for _ in range(LONG):
                time.sleep(0.01)
                yield {"value": 1.0, "pid": os.getpid()}

        def act() -> None:
            until(path, lambda file: steps(file) >= 3)
            post(path, PAUSE)
            until(path, rests)
            os.kill(read_study(path).trials[0].attributes["pid"], signal.SIGKILL)
            until(path, lambda file: file.count(ft.Status.FAILED))
            post(path, RESUME)

        with beside(act), line_study("1 evaluation", storage=path) as study:
            study.run(tells, progress=False, isolate=True, max_failures=None)
        assert "SIGKILL" in str(study.trials[0].error)

    def test_a_stop_lets_what_is_held_come_to_its_end(self, path):
        def slowly(config: dict[str, Any]) -> Iterator[Any]:
            for report in steps_from(config, 0, 20):
                time.sleep(0.02)
                yield report

        def act() -> None:
            until(path, lambda file: steps(file) >= 3)
            post(path, PAUSE)
            until(path, rests)
            post(path, STOP)

        with beside(act), line_study("9 evaluations", storage=path) as study:
            study.run(slowly, progress=False, isolate=True)
            assert [(trial.status, len(trial.curve)) for trial in study.trials] == [(ft.Status.COMPLETE, 20)]
            assert study.why_ended == "stopped by request after 1 trial"
        assert not read_study(path).is_paused

    def test_a_run_that_was_killed_while_it_was_paused_goes_on_when_it_is_resumed(self, path):
        program = """
            import sys, time, farthing as ft
            from farthing.record.mailbox import Request, post
            path = sys.argv[1]
            study = ft.Study({"x": (0.0, 1.0)}, "6 evaluations", policy="sobol", storage=path)
            study.run(lambda config: time.sleep(0.2) or 1.0, progress=False,
                      callbacks=[lambda study, trial: trial.number == 2 and post(path, Request("pause"))])
        """
        with subprocess.Popen([sys.executable, "-c", textwrap.dedent(program), str(path)]) as child:
            until(path, lambda file: file.is_paused)
            child.kill()
        assert not read_study(path).is_paused, "nobody runs it"
        with ft.Study.resume(path) as study:
            assert len(study.run(lambda config: 1.0, progress=False).trials) == 6
        assert answers(path) == [("pause", None)]
        assert not read_study(path).is_paused

    def test_the_live_line_says_so_and_its_bar_stands_still(self, path):
        from farthing.runner.progress import Live

        with line_study("100s", storage=path) as study:
            study._session.answer(Requested("01795054475319594260-24ff19f9943f13ca", "pause"))
            live = Live(study._session, sys.stderr)
            live._entry -= 50.0
            assert " 50% of 1m40s" in live._line().plain, "else the clock goes on"
            live.rested()
            assert "paused" in live._line().plain
            assert "  0% of 1m40s" in live._line().plain
            study._session.answer(Requested("", "resume"))
            assert "paused" not in live._line().plain


class TestStop:
    @pytest.mark.parametrize("options", WAYS, ids=str)
    def test_what_runs_comes_to_its_end_and_nothing_begins(self, path, options):
        with line_study("9 evaluations", storage=path) as study, warnings.catch_warnings():
            warnings.simplefilter("error")
            study.run(slow, progress=False, callbacks=[posting(path, {3: [STOP]})], **options)
            assert 4 <= len(study.trials) <= 6
            assert {trial.status for trial in study.trials} == {ft.Status.COMPLETE}
            assert study.why_ended == f"stopped by request after {len(study.trials)} trials"
            assert study.ended is None
            assert len(study.run(slow, progress=False, **options).trials) == 9, "the next run goes on"


class TestBudget:
    def test_it_is_the_total_at_once_and_in_the_file(self, path):
        with line_study("4 evaluations", storage=path) as study:
            study.run(slow, progress=False, callbacks=[posting(path, {3: [budget("6 evaluations")]})])
            assert len(study.trials) == 6, "asked for after the last evaluation, and yet in time"
        with ft.Study.resume(path) as study:
            assert study.ledger.budget == ft.Budget(evaluations=6)
        assert answers(path) == [("budget", None)]

    def test_an_evaluation_that_would_have_been_killed_goes_on(self, path):
        def act() -> None:
            until(path, lambda file: file.trials)
            post(path, budget("60s, 1 evaluation"))

        with beside(act), line_study("2s, 1 evaluation", storage=path) as study:
            study.run(lambda config: time.sleep(3.0) or 1.0, progress=False)
            assert [trial.status for trial in study.trials] == [ft.Status.COMPLETE]

    @pytest.mark.parametrize(
        ("before", "asked", "reason"),
        [
            ("9 evaluations", "3 evaluations", "3 evaluations is less than what is spent already, 5 evaluations"),
            ("9 evaluations", "$5", "expected a limit in seconds, in which this study counts"),
            (ft.Budget(cost=90, evaluations=9), "200 cost, 100 joules", "this run does not count joules"),
        ],
    )
    def test_what_makes_no_sense_is_refused_and_the_run_goes_on(self, path, before, asked, reason):
        with line_study(before, storage=path) as study:
            study.run(
                lambda config: {"value": 1.0, "cost": 0.5}, progress=False, isolate=False,
                callbacks=[posting(path, {4: [budget(asked)]})],
            )  # fmt: skip
            assert len(study.trials) == 9
        ((action, refused),) = answers(path)
        assert action == "budget"
        assert reason in str(refused)
        assert bodies(path, "budgeted") == bodies(path, "budgeted")[:1]

    def test_the_price_of_time_stays(self, path):
        with line_study("$5 at $2/h, 3 evaluations", storage=path) as study:
            study.run(slow, progress=False, isolate=False, callbacks=[posting(path, {1: [budget("$7, 3 trials")]})])
            assert study.ledger.budget == ft.Budget(usd=7, usd_per_hour=2, evaluations=3)

    def test_more_of_it_gives_runaways_more_time(self, path):
        """Their limit is a share of what was left when they began."""
        config = {"x": 0.9}

        def objective(config: dict[str, Any]) -> float:
            time.sleep(0.05 if config["x"] < 0.85 else 1.6)
            return 1.0

        def act() -> None:
            until(path, lambda file: len(file.trials) == 6)
            post(path, budget("60s, 6 evaluations"))

        with line_study("4s, 6 evaluations", policy=Known(), storage=path) as study, beside(act):
            study.run(objective, progress=False)
            last = study.trials[-1]
        assert last.config == config
        assert last.status is ft.Status.COMPLETE


class Known:
    """Knows what evaluations cost, but for one."""

    name = "known"

    def propose(self, space, history, ledger, n, rng):
        number = len(history.trials)
        return [ft.Proposal(number, {"x": 0.9 if number == 5 else number / 10}, predicted_cost=0.05)]


class TestEnqueue:
    @pytest.mark.parametrize("options", WAYS, ids=str)
    def test_it_is_evaluated_next_with_that_reason(self, path, options):
        asked, begun = [enqueue(x=0.25), enqueue(x=0.75)], list[int]()

        def count(study: ft.Study, trial: ft.Trial) -> None:
            begun.extend([len(study.trials)] * (trial.number == 2))

        with line_study("9 evaluations", storage=path) as study:
            study.run(slow, progress=False, callbacks=[posting(path, {2: asked}), count], **options)
            found = [trial.number for trial in study.trials if trial.reason == "asked for by request"]
            assert found == [begun[0], begun[0] + 1]
            assert [study.trial(number).config["x"] for number in found] == [0.25, 0.75]
            assert len(study.trials) == 9
        assert answers(path) == [("enqueue", None)] * 2

    def test_before_what_start_gives_and_what_a_thread_has_prepared(self, path):
        options: dict[str, Any] = {"policy": "ei", "start": [{"x": -0.5}, {"x": 0.5}]}
        with line_study("60s, 12 evaluations", storage=path, **options) as study:
            study.run(slow, progress=False, callbacks=[posting(path, {0: [enqueue(x=0.1)], 8: [enqueue(x=0.2)]})])
            reasons = [trial.reason for trial in study.trials]
        assert reasons[:3] == ["given by start", "asked for by request", "given by start"]
        assert reasons[9] == "asked for by request"

    def test_what_is_known_impossible_or_forbidden_is_refused_with_the_reason(self, path):
        space = ft.Space(x=ft.Real(0, 1), kind=ft.Choice(["a", "b"]), forbid=forbids)
        known = {"x": 0.5, "kind": "a"}
        asked = [
            enqueue(**known), enqueue(x=2.0, kind="a"), enqueue(x=0.1), enqueue(x=0.1, kind="a", z=1),
            enqueue(x=0.1, kind="c"), enqueue(x=0.9, kind="b"), enqueue(x=0.7, kind="b"),
            enqueue(x=0.2, kind="a"), enqueue(x=0.2, kind="a"),
        ]  # fmt: skip
        with ft.Study(space, "4 evaluations", policy="random", seed=0, start=[known], storage=path) as study:
            study.run(lambda config: 1.0, progress=False, callbacks=[posting(path, {0: asked})])
            assert study.trials[1].config == {"x": 0.2, "kind": "a"}
        reasons = [str(refused) for _, refused in answers(path)]
        for reason, expected in zip(
            reasons,
            [
                "trial 0 has this configuration", "'x': expected a number from 0.0 to 1.0, got 2.0", "kind", "z", "'c'",
                "is forbidden by the space's own forbid", "ZeroDivisionError", "None", "it waits to be evaluated",
            ],
            strict=True,
        ):  # fmt: skip
            assert expected in reason, (expected, reason)

    def test_a_study_that_was_not_worth_more_and_a_space_that_was_exhausted_go_on(self, path):
        space = ft.Space(n=ft.Integer(1, 3), m=ft.Integer(1, 2))
        with ft.Study(space, "20 evaluations", policy="random", seed=0, storage=path) as study:
            study.run(lambda config: 1.0, progress=False)
            assert study.why_ended == "all 6 allowed configurations were proposed"
            post(path, enqueue(n=1, m=1))
            with pytest.warns(RuntimeWarning, match="nothing was evaluated"):
                study.run(lambda config: 1.0, progress=False)
        assert "has this configuration" in str(answers(path)[0][1])

    def test_it_is_a_new_configuration_for_a_loop_of_ones_own_too(self, path):
        """What a run has taken in waits in the file, and `ask` gives it."""
        with line_study("9 evaluations", storage=path) as study:
            callbacks = [posting(path, {2: [enqueue(x=0.25), STOP]})]
            study.run(slow, progress=False, isolate=False, callbacks=callbacks)
            assert len(study.trials) == 3
            assert study.ask().config == {"x": 0.25}


def forbids(config: dict[str, Any]) -> bool:
    if config["x"] == 0.7:
        raise ZeroDivisionError("a function of the user's own")
    return config["x"] == 0.9


class TestWithoutARun:
    def made(self, path: Path) -> None:
        with line_study("4 evaluations", storage=path) as study:
            study.tell(study.ask(), value=1.0)

    def test_budget_and_configurations_wait_and_what_was_meant_for_a_run_is_dropped(self, path, caplog):
        self.made(path)
        for request in (PAUSE, budget("6 evaluations"), enqueue(x=0.5), STOP):
            post(path, request)
        with ft.Study.resume(path) as study:
            assert study.ledger.budget == ft.Budget(evaluations=4), "opening answers nothing"
            with caplog.at_level(logging.INFO, logger="farthing"):
                study.run(slow, progress=False)
            assert len(study.trials) == 6
            assert study.trials[1].reason == "asked for by request"
        late = "it was posted before this run was begun"
        assert answers(path) == [("pause", late), ("budget", None), ("enqueue", None), ("stop", late)]
        assert waiting(path) == []
        assert f"request to pause the run: not done: {late}" in caplog.text
        assert "by request: the budget is 6 evaluations; it was 4 evaluations" in caplog.text

    def test_a_study_whose_budget_is_spent_goes_on_with_the_one_that_waits(self, path):
        with line_study("2 evaluations", storage=path) as study:
            study.run(slow, progress=False)
        post(path, budget("5 evaluations"))
        with ft.Study.resume(path) as study:
            assert len(study.run(slow, progress=False).trials) == 5

    def test_a_budget_that_was_given_later_wins(self, path):
        self.made(path)
        post(path, budget("2 evaluations"))
        with ft.Study.resume(path, budget="5 evaluations") as study:
            assert len(study.run(slow, progress=False).trials) == 5
        assert "before the budget was set to 5 evaluations" in str(answers(path)[0][1])

    def test_requests_to_an_earlier_study_of_the_same_name_are_not_this_ones(self, path):
        self.made(path)
        post(path, enqueue(x=0.5))
        path.unlink()
        with line_study("3 evaluations", storage=path) as study:
            study.run(slow, progress=False)
            assert all(trial.reason != "asked for by request" for trial in study.trials)
        assert answers(path) == [("enqueue", "it was posted before this study was begun")]

    def test_finishing_a_trial_hears_them_too(self, path):
        budget_ = ft.Budget(cost=10)
        with ft.Study({"x": (0.0, 1.0)}, budget_, policy="bapi", max_steps=10, seed=0, storage=path) as study:
            study.run(lambda config: ({"value": 1 / step, "cost": 1} for step in range(1, 11)), progress=False)
            post(path, budget("40 cost"))
            post(path, enqueue(x=0.5))
            done = study.finish(lambda config: ({"value": 1 / s, "cost": 1} for s in range(1, 11)), 0, progress=False)
            assert (done.number, done.status) == (0, ft.Status.COMPLETE)
            assert study.ledger.budget == ft.Budget(cost=40)
            assert study.ask().config == {"x": 0.5}


class TestOnce:
    """A request is done once, whatever happens between its event and the end of its file."""

    PROGRAM = """
        import os, sys
        import farthing as ft
        from farthing.runner import control
        control.take = lambda path, request_id: os._exit(9)
        study = ft.Study.resume(sys.argv[1])
        study.run(lambda config: config["x"], progress=False)
    """

    @pytest.mark.parametrize("request_", [budget("7 evaluations"), enqueue(x=0.5)], ids=lambda r: r.action)
    def test_killed_between_recording_and_removing(self, path, request_, tmp_path):
        with line_study("5 evaluations", storage=path) as study:
            study.tell(study.ask(), value=1.0)
        post(path, request_)
        ended = subprocess.run([sys.executable, "-c", textwrap.dedent(self.PROGRAM), str(path)], timeout=60)
        assert ended.returncode == 9
        assert len(waiting(path)) == 1
        assert [body["kind"] for body in bodies(path, "requested")] == ["requested"]
        with ft.Study.resume(path) as study:
            study.run(lambda config: config["x"], progress=False)
            assert len(study.trials) == (7 if request_.action == "budget" else 5)
            assert [trial.config["x"] for trial in study.trials].count(0.5) == (request_.action == "enqueue")
        assert waiting(path) == []
        assert len(bodies(path, "requested")) == 1

    def test_one_that_cannot_be_removed_is_done_once_and_said(self, path, monkeypatch, caplog):
        def refuses(path: str, request_id: str) -> None:
            raise PermissionError(13, "no")

        monkeypatch.setattr(control, "take", refuses)
        with line_study("9 evaluations", storage=path) as study:
            study.run(slow, progress=False, callbacks=[posting(path, {2: [budget("12 evaluations")]})])
            assert len(study.trials) == 12
        assert answers(path) == [("budget", None)]
        assert "cannot be removed (no)" in caplog.text


class TestReplay:
    """Killed after any event and resumed, a study with requests asks for what it would have."""

    TOTAL = ft.Budget(cost=4)
    AFTER: ClassVar[dict[int, list[Request]]] = {
        3: [enqueue(eta=0.01, depth=3, booster="gbtree")],
        6: [budget("5.5 cost"), enqueue(eta=0.02, depth=4, booster="dart", drop=0.25)],
    }

    def go_on(self, path: Path, policy: str) -> None:
        after = {number: list(requests) for number, requests in self.AFTER.items()}
        known = {(b["action"], b.get("budget") or str(b.get("config"))) for b in bodies(path, "requested")}
        with (
            ft.Study(BOOSTER, self.TOTAL, policy=policy, seed=3, storage=path)
            if not path.exists()
            else (ft.Study.resume(path, budget=None)) as study
        ):
            told = {trial.number for trial in study.trials if trial.status is ft.Status.COMPLETE}
            for number in sorted(told & after.keys()):  # posted before it was killed: what has no event waits still
                for request in after.pop(number):
                    stored = str(BOOSTER.store_config(BOOSTER.validate(request.config))) if request.config else None
                    if (request.action, request.budget or stored) not in known:
                        post(path, request)
            study.run(cheap, progress=False, isolate=False, callbacks=[posting(path, after)])

    @pytest.mark.parametrize(("policy", "stride"), [("sobol", 1), ("cei", 3)])
    def test_cut_at_any_request(self, tmp_path, policy, stride):
        whole = tmp_path / "whole.db"
        with closing(ft.Study(BOOSTER, self.TOTAL, policy=policy, seed=3, storage=whole)):
            pass
        self.go_on(whole, policy)
        expected = asked_in(whole)
        assert sum(reason == '"asked for by request"' for *_, reason in expected) == 2
        assert ft.Study.open(whole).ledger.budget == ft.Budget(cost=5.5)
        kinds = [body["kind"] for body in bodies(whole)]
        cuts = [k for k in range(2, len(kinds)) if kinds[k] == "requested" or kinds[k - 1] == "requested"]
        for kept in cuts[::stride]:
            path = tmp_path / f"cut{kept}.db"
            cut_copy(whole, path, kept)
            self.go_on(path, policy)
            assert asked_in(path) == expected, f"cut after event {kept}"
            assert ft.Study.open(path).ledger.total("cost") == ft.Study.open(whole).ledger.total("cost")


def cheap(config: dict[str, Any]) -> dict[str, float]:
    return {"value": error_of(config), "cost": 0.5}


def asked_in(path: Path) -> list[tuple[Any, ...]]:
    """What was asked for first of each trial, bit for bit."""
    first: dict[int, tuple[Any, ...]] = {}
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute(
            "SELECT json_extract(body, '$.trial'), body -> 'config', body -> 'predicted_cost', body -> 'fits', "
            "body -> 'ask', body -> 'reason' FROM events WHERE kind = 'asked' ORDER BY number"
        ).fetchall()
    for row in rows:
        first.setdefault(row[0], row)
    return list(first.values())


class TestLooking:
    def test_without_a_mailbox_only_its_time_is_looked_at(self, path, monkeypatch):
        monkeypatch.setattr(control, "INTERVAL", 60.0)
        listed: list[str] = []
        monkeypatch.setattr(control, "waiting", lambda path: listed.append(path) or [])
        with line_study(storage=path) as study:
            looks = Control(study._session, 0.0)
            assert not any(looks.look(at_once=True) for _ in range(5))
            assert listed == []
            folder_of(path).mkdir(mode=0o700)
            os.utime(folder_of(path), (1e9, 1e9))
            assert not any(looks.look(at_once=True) for _ in range(5))
            assert len(listed) == 1, "nothing has changed since"
            post(path, PAUSE)
            looks.look()
            assert len(listed) == 1, "it was just now"
            looks.look(at_once=True)
            looks.look(at_once=True)
            assert len(listed) == 3, "two changes may have the same time"

    def test_a_study_in_memory_and_one_whose_time_is_simulated_have_none(self, path, monkeypatch):
        monkeypatch.undo()
        assert Control(line_study()._session, 0.0).patience == float("inf")
        with line_study(storage=path) as study:
            assert Control(study._session, 0.0).patience == control.INTERVAL == 0.5
            assert Control(study._session, 0.0, simulated=True).patience == float("inf")

    def test_a_hostile_mailbox_does_not_stop_a_run(self, path, tmp_path):
        with line_study("5 evaluations", storage=path) as study:
            post(path, PAUSE)
            (file,) = folder_of(path).iterdir()
            (folder_of(path) / f"{'0' * 20}-{'0' * 16}.json").symlink_to(tmp_path)
            file.with_name(f"{'9' * 20}-{'f' * 16}.json").write_text("{" * 100_000)
            study.run(slow, progress=False)
            assert len(study.trials) == 5
        assert len(list(folder_of(path).iterdir())) == 2

    def test_a_request_from_the_future_is_a_request(self, path):
        with line_study("5 evaluations", storage=path) as study:
            post(path, budget("7 evaluations"))
            (file,) = folder_of(path).iterdir()
            file.rename(file.with_name(f"{'9' * 20}-{'f' * 16}.json"))
            study.run(slow, progress=False)
            assert len(study.trials) == 7


ID = "01795054475319594260-24ff19f9943f13ca"


class TestTheEvent:
    def test_it_is_stored_as_it_was_and_read_again(self, path):
        space = ft.Space(x=ft.Real(0, 1), kind=ft.Choice(["a", ("b", 1)]))
        with ft.Study(space, "3 evaluations", policy="random", seed=0, storage=path) as study:
            requests = [enqueue(x=0.5, kind="a"), budget("4 evaluations"), enqueue(x=7, kind="a"), RESUME]
            study.run(lambda config: 1.0, progress=False, callbacks=[posting(path, {0: requests})])
            state = study._session.record.state.requests
        found = [{key: body[key] for key in body if key not in ("id", "kind")} for body in bodies(path, "requested")]
        assert found == [
            {"action": "enqueue", "config": {"x": 0.5, "kind": 0}},
            {"action": "budget", "budget": "4 evaluations"},
            {"action": "enqueue", "refused": "parameter 'x': expected a number from 0.0 to 1.0, got 7"},
            {"action": "resume", "refused": "the study is not paused"},
        ]
        with ft.Study.resume(path) as study:
            again = study._session.record.state.requests
        assert (again.recent, again.queue, again.is_paused) == (state.recent, state.queue, state.is_paused)
        assert all(answer.id in again.ids for answer in state.recent)
        assert read_study(path).requests[0].as_json()["config"] == {"x": 0.5, "kind": "a"}
        assert bodies(path)[[b["kind"] for b in bodies(path)].index("requested") + 1]["kind"] == "budgeted"

    @pytest.mark.parametrize(
        "body",
        [
            {"id": "x"}, {"id": 5}, {"action": "dance"}, {"action": ["pause"]}, {"budget": 5}, {"refused": []},
            {"config": {"x": 0.5}}, {"action": "enqueue"}, {"action": "enqueue", "config": {"x": 5}},
            {"action": "enqueue", "config": {"x": 0.5}, "refused": "no"}, {"action": "enqueue", "config": {"y": 1}},
        ],
        ids=str,
    )  # fmt: skip
    def test_what_cannot_have_happened_is_refused_by_its_number(self, path, body):
        line_study(storage=path).close()
        text = json.dumps({"id": ID, "action": "pause", **body})
        change(path, "INSERT INTO events VALUES (3, 0.0, 'requested', ?, 0)", (text,))
        with pytest.raises(ft.errors.StorageError, match="event 3 cannot be read"):
            ft.Study.resume(path)

    def test_readers_see_the_last_ones_and_thousands_are_no_burden(self, path):
        with line_study(storage=path) as study:
            record, space = study._session.record, study.space
            ids = [f"{number:020d}-{number:016x}" for number in range(3 * MOST_QUEUED)]
            for one in ids[:MOST_QUEUED]:
                record.write(Requested(one, "enqueue", config={"x": int(one[:20]) / 1000}))
            with pytest.raises(ValueError, match="configurations wait"):
                Requested(ids[-1], "enqueue", config={"x": 0.99}).check(record.state)
            for one in ids[MOST_QUEUED:]:
                record.write(Requested(one, "pause", refused="no"))
            state = record.state.requests
            assert [answer.id for answer in state.recent] == ids[-MOST_SHOWN:]
            assert all(one in state.ids for one in ids)
            taken = KeySet.of(space.key({"x": number / 1000}) for number in range(90))
            left = [config["x"] for config in state.next_configs(99, taken)]
            assert left == [number / 1000 for number in range(90, 100)]
            assert len(state.still_queued(taken)) == 10

    def test_a_budget_and_its_request_are_one_transaction(self, path, monkeypatch):
        with line_study("4 evaluations", storage=path) as study:
            session = study._session
            before = session.record.events
            session.answer(Budgeted(ft.Budget(evaluations=5)), Requested(ID, "budget", "5 evaluations"))
            assert session.record.events == before + 2
        with closing(sqlite3.connect(path)) as connection:
            times = connection.execute("SELECT time FROM events ORDER BY number DESC LIMIT 2").fetchall()
        assert times[0] == times[1]


def test_the_ledger_of_a_run_with_every_request_is_exact(path):
    """What was asked for changes nothing in what evaluations cost."""
    requests = {
        1: [PAUSE, RESUME], 2: [enqueue(x=0.5), budget("12 cost")], 4: [PAUSE, enqueue(x=0.25), RESUME], 9: [STOP]
    }  # fmt: skip
    with line_study(ft.Budget(cost=5), storage=path) as study:
        study.run(
            lambda config: {"value": 1.0, "cost": 0.5}, progress=False, isolate=False,
            callbacks=[posting(path, requests)],
        )  # fmt: skip
        ledger = study.ledger
    assert len(study.trials) == 10
    assert ledger.total("cost") == 5.0
    assert ledger.total("evaluations") == 10
    assert (ledger.running, ledger.committed) == (0, 0.0)
    assert read_study(path).ledger == ledger
    assert all(refused is None for _, refused in answers(path))


def test_a_search_of_scikit_learn_hears_them_too(path):
    from sklearn.datasets import make_classification
    from sklearn.tree import DecisionTreeClassifier

    X, y = make_classification(60, random_state=0)
    search = ft.FarthingSearchCV(
        DecisionTreeClassifier(random_state=0), {"max_depth": ft.Integer(1, 400)}, budget="300 evaluations",
        policy="random", cv=2, random_state=0, storage=str(path),
    )  # fmt: skip

    def act() -> None:
        until(path, lambda file: len(file.trials) >= 2)
        post(path, enqueue(max_depth=7))
        until(path, lambda file: len(file.requests) == 1 and file.count(ft.Status.COMPLETE) >= 4)
        post(path, STOP)

    with beside(act):
        search.fit(X, y)
    depths = [params["max_depth"] for params in search.cv_results_["params"]]
    assert 7 in depths
    assert len(depths) < 300
    assert answers(path) == [("enqueue", None), ("stop", None)]
