"""The next ask is prepared while an evaluation runs: in real runs, with real processes."""

from __future__ import annotations

import os
import sys
import threading
import time
from dataclasses import dataclass
from typing import ClassVar

import pytest

import farthing as ft
from farthing.numerics.deadline import keep_to_deadline
from farthing.numerics.threads import one_blas_thread
from farthing.policies import Random
from farthing.policies.protocol import generator_of
from farthing.record.events import Asked
from farthing.runner.processors import processor_count
from farthing.runner.thinker import SWITCH_INTERVAL, Thinker

SPACE = ft.Space(a=ft.Real(0, 1), b=ft.Real(0, 1), kind=ft.Choice(["x", "y"]))
LATE = 20.0  # seconds by which a busy machine may be late

pytestmark = pytest.mark.skipif(processor_count() < 2, reason="there is no processor left to think with")


def objective(config):
    time.sleep(0.03)
    return (config["a"] - 0.3) ** 2 + (config["b"] - 0.6) ** 2 + 0.2 * (config["kind"] == "y")


def asks_of(study: ft.Study) -> list[Asked]:
    return [event for event in study._session.record.past() if isinstance(event, Asked)]


def is_thinking() -> bool:
    return any(thread.name == "farthing-thinker" for thread in threading.enumerate())


def nobody_thinks() -> bool:
    """Within the time that a busy machine needs."""
    deadline = time.monotonic() + LATE
    while is_thinking() and time.monotonic() < deadline:
        time.sleep(0.01)
    return not is_thinking()


@pytest.mark.parametrize("name", ["auto", "cei"])
def test_a_run_replays_exactly_what_was_prepared_in_the_background(name, tmp_path):
    path = tmp_path / "s.db"
    with ft.Study(SPACE, "60s, 30 evaluations", policy=name, seed=0, storage=path) as study:
        study.run(objective, progress=False)
        assert study.why_ended.startswith("the budget of 30 evaluations")
    with ft.Study.resume(path) as study:
        asks = asks_of(study)
        behind = [event for event in asks if event.prepared is not None]
        assert len(behind) >= 20, "nearly all asks were prepared"
        for event in asks:
            then = study._session.record.before(event.proposal.trial)
            with one_blas_thread():
                (again,) = study.policy.propose(SPACE, then.history, then.ledger, 1, generator_of(then.history))
            assert again.config == event.proposal.config
            assert again.predicted_cost == event.proposal.predicted_cost


def test_a_preparation_has_seen_what_ran_and_not_how_it_ended(tmp_path):
    with ft.Study(SPACE, "60s, 15 evaluations", policy="ei", seed=0) as study:
        study.run(objective, progress=False)
        behind = [event for event in asks_of(study) if event.prepared is not None]
        seen = study._session.record.before(behind[-1].proposal.trial).history
    assert seen.prepared is not None
    assert seen.prepared.history.running
    assert not seen.running
    assert len(seen.complete) > len(seen.prepared.history.complete)


def test_overlapped_seconds_are_charged_once():
    """All seconds of the run are in the ledger, and no more than passed."""
    began = time.perf_counter()
    study = ft.tune(objective, SPACE, "60s, 25 evaluations", policy="ei", seed=0, progress=False)
    passed = time.perf_counter() - began
    accounts = [study.ledger.account(name, "seconds") for name in ("evaluation", "optimiser", "start-up")]
    assert sum(accounts) == pytest.approx(study.ledger.total("seconds"))
    assert study.ledger.total("seconds") <= passed
    assert accounts[0] >= 25 * 0.03


@dataclass(frozen=True)
class Prepares(Random):
    """Draws at random, and cannot be prepared."""

    name: ClassVar[str] = "prepares"

    def prepare(self, space, history, ledger, rng):
        raise ArithmeticError("while it was prepared")

    def finish(self, prepared, space, history, ledger, rng):
        raise AssertionError("nothing was prepared")


@pytest.fixture
def one_processor():
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    yield
    os.sched_setaffinity(0, allowed)


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="processors cannot be taken away here")
def test_nothing_is_prepared_where_workers_fill_the_processors(one_processor):
    study = ft.tune(objective, SPACE, "60s, 8 evaluations", policy="ei", seed=0, progress=False)
    assert len(study.trials) == 8
    assert all(event.prepared is None for event in asks_of(study))


@pytest.mark.parametrize(
    ("budget", "options"), [("8 evaluations", {}), ("60s, 8 evaluations", {"isolate": False})], ids=["untimed", "here"]
)
def test_nothing_is_prepared_where_it_would_not_help(budget, options):
    study = ft.tune(objective, SPACE, budget, policy="ei", seed=0, progress=False, **options)
    assert all(event.prepared is None for event in asks_of(study))


def test_an_error_in_the_background_is_the_runs():
    study = ft.Study(SPACE, "60s", policy=Prepares(), seed=0)
    with pytest.raises(ArithmeticError, match="while it was prepared"):
        study.run(objective, progress=False)
    assert nobody_thinks()


@dataclass(frozen=True)
class ThinksOn(Prepares):
    """Prepares for a minute, in small pieces."""

    name: ClassVar[str] = "thinks on"

    def prepare(self, space, history, ledger, rng):
        deadline = time.monotonic() + 60.0
        while time.monotonic() < deadline:
            keep_to_deadline()
            time.sleep(0.001)


def test_a_run_that_ends_does_not_wait_for_a_thought():
    study = ft.Study(SPACE, "60s, 1 evaluations", policy=ThinksOn(), seed=0)
    began = time.monotonic()
    study.run(objective, progress=False)
    assert time.monotonic() - began < LATE
    assert nobody_thinks()


def test_a_run_that_breaks_off_leaves_nobody_thinking():
    def broken(study: ft.Study, trial: ft.Trial) -> None:
        assert is_thinking()
        assert sys.getswitchinterval() == pytest.approx(SWITCH_INTERVAL)
        raise LookupError("a callback")

    before = sys.getswitchinterval()
    study = ft.Study(SPACE, "60s", policy="ei", seed=0)
    with pytest.raises(LookupError):
        study.run(objective, progress=False, callbacks=[broken])
    assert nobody_thinks()
    assert sys.getswitchinterval() == before


class TestSurprises:
    def thinker(self) -> tuple[ft.Study, Thinker, ft.Proposal]:
        """One that has prepared an ask while a trial runs."""
        study = ft.Study(SPACE, "60s", policy="ei", seed=0)
        for _ in range(8):
            proposal = study.ask()
            study.tell(proposal, value=proposal.config["a"], seconds=1e-3)
        running = study.ask()
        thinker = Thinker(study._session)
        thinker._prepare(study._session.snapshot())
        return study, thinker, running

    @pytest.mark.parametrize(("seconds", "again"), [(1e6, True), (1e-6, False)])
    def test_are_thought_about_again_where_that_is_quick_compared_with_evaluations(self, seconds, again):
        study, thinker, running = self.thinker()
        study.tell(running, value=1e3, seconds=seconds / 1e9)
        thinker.hear(seconds)
        assert (list(thinker.prepared(0.0)) == []) is again

    def test_an_outcome_as_predicted_is_none(self):
        study, thinker, running = self.thinker()
        thought = thinker._prepared.thought
        value = float(thought.models.scale.inverse(thought.models.value.mean_at(thought.rows[-1:]))[0])
        study.tell(running, value=value, seconds=1e-3)
        thinker.hear(1e6)
        assert list(thinker.prepared(0.0)) == [thinker._prepared]


def test_several_workers_are_served_from_what_was_prepared():
    if processor_count() < 3:
        pytest.skip("two workers fill the processors")
    study = ft.tune(objective, SPACE, "60s, 20 evaluations", policy="ei", seed=0, workers=2, progress=False)
    assert sum(event.prepared is not None for event in asks_of(study)) >= 10
    assert len({SPACE.key(trial.config) for trial in study.trials}) == 20


def test_a_spare_worker_is_ready_when_one_is_killed():
    """Only the first two evaluations may wait for a process: then there is a spare."""

    def hangs(config):
        time.sleep(60.0)

    study = ft.Study(SPACE, "120s, 4 evaluations", policy="random", seed=0)
    study.run(hangs, trial_seconds=0.5, max_failures=None, progress=False)
    assert {trial.status for trial in study.trials} == {ft.Status.KILLED}
    started = [event.charges.get("start-up", {}).get("seconds", 0.0) for event in asks_of(study)]
    assert started[0] > 0.0
    assert started[2:] == [0.0, 0.0]


class TestProcessors:
    def test_a_quota_limits_them(self, tmp_path):
        quota = tmp_path / "cpu.max"
        quota.write_text("150000 100000\n")
        assert processor_count(((str(quota),),)) == min(len(os.sched_getaffinity(0)), 2)
        quota.write_text("50000 100000\n")
        assert processor_count(((str(quota),),)) == 1

    def test_without_one_all_that_the_process_may_use_count(self, tmp_path):
        quota = tmp_path / "cpu.max"
        quota.write_text("max 100000\n")
        assert processor_count(((str(quota),), (str(tmp_path / "none"),))) == len(os.sched_getaffinity(0))
