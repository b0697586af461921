"""The heartbeat: at any moment the file knows what a run has spent, once, even if it is killed then."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest

import farthing as ft
from farthing.budget import ACCOUNTS, Charges
from farthing.policies import BY_NAME
from farthing.record.record import Record
from farthing.runner import heartbeat
from farthing.runner.clock import counted_from
from learners import Alternating, iterative

pytestmark = pytest.mark.usefixtures("logged")

LINE = ft.Space(x=ft.Real(0, 1))
SLACK = 0.05  # seconds between reading a clock here and there, on a busy machine


@dataclass(frozen=True)
class Beat:
    """What was said, when, and what the ledger held then."""

    moment: float
    charged: float  # seconds
    running: set[int]
    due: Charges
    trials: Mapping[int, Mapping[str, float]]

    @property
    def seconds(self) -> float:
        """Of wall-clock time in all, charged or not."""
        return self.charged + sum(amounts.get("seconds", 0.0) for amounts in self.due.values())


class Listener:
    """Takes the place of the file."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.beats: list[Beat] = []
        monkeypatch.setattr(Record, "beat", lambda record, *said, after: self._hear(record, *said, after))

    def _hear(self, record: Record, due: Charges, trials: Mapping[int, Mapping[str, float]], after: int) -> None:
        running = {trial.number for trial in record.history.running}
        beat = Beat(time.perf_counter(), record.ledger.total("seconds"), running, due, trials)
        if record.events == after:  # as a file has it: what comes after an event does not count
            self.beats.append(beat)


@pytest.fixture
def heard(monkeypatch: pytest.MonkeyPatch) -> Listener:
    return Listener(monkeypatch)


@dataclass(frozen=True)
class Slow:
    """Takes its time, and then proposes what another policy does."""

    name: ClassVar[str] = "slow"
    seconds: float

    def propose(self, space, history, ledger, n, rng):
        time.sleep(self.seconds)
        return BY_NAME["sobol"]().propose(space, history, ledger, n, rng)


def study(path: Any, budget: str | ft.Budget = "2 evaluations", **options: Any) -> ft.Study:
    return ft.Study(LINE, budget, **{"policy": "sobol", "seed": 0, "storage": path / "study.db", **options})


class TestWhatABeatSays:
    def test_it_comes_before_the_first_event_while_the_optimiser_thinks(self, heard, tmp_path):
        with study(tmp_path, "1 evaluation", policy=Slow(1.3)) as one:
            one.run(lambda config: 1.0, progress=False, isolate=False)
        assert 2 <= len(heard.beats) <= 3
        assert heard.beats[0].charged == 0.0
        assert heard.beats[1].due["optimiser"]["seconds"] == pytest.approx(1.0, abs=0.3)

    @pytest.mark.parametrize("workers", [1, 3])
    def test_with_what_is_charged_it_is_the_wall_clock_time_of_the_run(self, heard, tmp_path, monkeypatch, workers):
        """Nothing twice, nothing missing, while events are written as fast as they can be."""
        monkeypatch.setattr(heartbeat, "INTERVAL", 0.003)
        with study(tmp_path, "30 evaluations") as one:
            began = time.perf_counter()
            one.run(
                lambda config: time.sleep(0.02) or config["x"], workers=workers, isolate=workers > 1, progress=False
            )
        assert len(heard.beats) > 30
        behind = [beat.moment - began - beat.seconds for beat in heard.beats]
        assert min(behind) > -0.001, "seconds were counted twice"
        assert sorted(behind)[len(behind) // 2] < SLACK
        assert all(set(beat.due) <= set(ACCOUNTS) for beat in heard.beats)

    def test_of_each_evaluation_it_says_what_it_spent_in_all_units_but_seconds(self, heard, tmp_path):
        budget = ft.Budget(usd=9, usd_per_hour=3600, evaluations=2)
        with study(tmp_path, budget) as one:
            one.run(lambda config: time.sleep(1.3) or config["x"], workers=2, progress=False)
        last = [beat for beat in heard.beats if len(beat.trials) == 2][-1]
        assert set(last.trials) == {0, 1} == last.running
        for amounts in last.trials.values():
            assert set(amounts) == {"compute_seconds", "usd"}
            assert amounts["usd"] == pytest.approx(amounts["compute_seconds"])
            assert 0.3 < amounts["compute_seconds"] < 3.0
        assert last.due["interrupted"]["seconds"] < 0.7 * sum(t["compute_seconds"] for t in last.trials.values())

    def test_meters_are_read_too(self, heard, tmp_path):
        with study(tmp_path, ft.Budget(joules=100, evaluations=1)) as one:
            one.run(lambda config: time.sleep(0.8) or 1.0, meter=lambda seconds: 10 * seconds, progress=False)
        (amounts,) = heard.beats[-1].trials.values()
        assert amounts["joules"] == pytest.approx(10 * amounts["compute_seconds"], rel=0.1)

    def test_a_meter_that_fails_stops_no_beat(self, heard, tmp_path):
        def broken(seconds: float) -> float:
            if threading.current_thread() is not threading.main_thread():
                raise RuntimeError("not here")
            return seconds

        with study(tmp_path, ft.Budget(joules=100, evaluations=1)) as one:
            one.run(lambda config: time.sleep(1.3) or 1.0, meter=broken, progress=False)
        assert len(heard.beats) >= 2

    def test_a_training_spends_nothing_while_it_is_decided_about(self, heard, tmp_path, monkeypatch):
        """What its step spent is charged with the step, before the decision."""
        monkeypatch.setattr(heartbeat, "INTERVAL", 0.01)
        deciding = threading.Event()

        class Ponders(Alternating):
            def decide(self, *arguments: Any, **named: Any) -> Any:
                deciding.set()
                time.sleep(0.1)
                deciding.clear()
                return super().decide(*arguments, **named)

        said: list[dict] = []
        monkeypatch.setattr(Record, "beat", lambda _, due, trials, after: deciding.is_set() and said.append(trials))
        with iterative("2 evaluations", policy=Ponders(), storage=tmp_path / "study.db", max_steps=3) as one:
            one.run(lambda config: iter([1.0, 2.0, 3.0]), progress=False)
        assert len(said) > 5
        assert not any(said)


class TestWhenItBeats:
    def test_not_after_the_run(self, heard, tmp_path):
        with study(tmp_path) as one:
            one.run(lambda config: time.sleep(0.4) or 1.0, progress=False)
            count = len(heard.beats)
            time.sleep(0.8)
        assert count == len(heard.beats) > 0

    def test_not_for_a_study_in_memory(self, heard):
        ft.tune(lambda config: time.sleep(0.7) or 1.0, LINE, "1 evaluation", policy="sobol", progress=False)
        assert not heard.beats

    def test_at_once_if_what_came_before_the_run_took_long(self, heard, tmp_path):
        with counted_from(time.perf_counter() - 5.0), study(tmp_path, "1 evaluation") as one:
            one.run(lambda config: time.sleep(0.2) or 1.0, progress=False)
        assert heard.beats[0].seconds == pytest.approx(5.0, abs=0.4)
