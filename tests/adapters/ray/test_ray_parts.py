"""What workers on a cluster are made of, without a cluster: arguments, rates, and the worker of one node."""

from __future__ import annotations

import io
import math
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import farthing as ft
from farthing.adapters.ray import rates
from farthing.adapters.ray.messages import (
    Answered,
    Facts,
    Finish,
    Free,
    Gone,
    GoOn,
    Job,
    Kill,
    Quit,
    Ready,
    Refused,
    Start,
    Tell,
)  # fmt: skip
from farthing.adapters.ray.node_worker import NodeWorker
from farthing.adapters.ray.rates import ClusterMeters, HeldActors, rate_of
from farthing.cli.consent import Wanted
from farthing.cli.resuming import OBJECTIVE_FIELDS
from farthing.cli.run_note import RunNote
from farthing.cli.running import cluster_of
from farthing.errors import InvalidArgument
from farthing.runner.messages import AnswerKind
from farthing.runner.surroundings import Surroundings
from farthing.runner.worker_process import import_path, pickle_objective

LINE = ft.Space(x=ft.Real(0, 1))
LATE = 30.0
NODE = Facts("ab12cd34ef", "host", {"market": "spot"}, {"CPU": 8.0, "H100": 1.0, "node:1.2.3.4": 1.0}, "0.1.0", True)


class TestArguments:
    @pytest.mark.parametrize(
        ("given", "message"),
        [
            ({"n": 0}, "Ray: n: expected a whole number of at least 1, got 0"),
            ({"address": 5}, "Ray: address: expected .*, got 5"),
            ({"num_gpus": -1}, "Ray: num_gpus: expected a finite number of at least 0, got -1"),
            ({"usd_per_hour": "2"}, "Ray: usd_per_hour: expected a rate"),
            (
                {"usd_per_hour": {"H100": -1}},
                r"Ray: usd_per_hour\['H100'\]: expected a finite number of at least 0, got -1",
            ),
            ({"usd_per_hour": {}}, "Ray: usd_per_hour: expected a rate"),
            ({"resources": ["gpu"]}, "Ray: resources: expected a dict, or None"),
            ({"checkpoints": 3}, "Ray: checkpoints: expected a folder"),
        ],
    )
    def test_nonsense_is_refused_at_once(self, given, message):
        with pytest.raises(InvalidArgument, match=message):
            ft.Ray(**given)

    def test_a_cluster_is_refused_where_evaluations_are_to_run_here(self):
        with pytest.raises(InvalidArgument, match="isolate=False: on a cluster"):
            ft.tune(lambda config: 0.0, LINE, "2 evaluations", workers=ft.Ray(), isolate=False)

    def test_a_rate_is_given_once(self):
        with pytest.raises(InvalidArgument, match="the rate is given twice"):
            ft.tune(lambda config: 0.0, LINE, "$5 at $2/h", workers=ft.Ray(usd_per_hour=2.0))

    def test_a_meter_measures_what_the_budget_limits(self):
        with pytest.raises(InvalidArgument, match="limits, got one of compute_seconds"):
            ft.tune(lambda config: 0.0, LINE, "1m", workers=ft.Ray(), meter="cpu")


class TestCommandLine:
    def test_the_options_say_which_workers(self):
        note = RunNote(
            "train.py:f", ray="auto", workers=8, ray_gpus="0.5", ray_usd_per_hour="market=spot=1.2, *=4"
        )  # fmt: skip
        assert cluster_of(note) == ft.Ray("auto", 8, num_gpus=0.5, usd_per_hour={"market=spot": 1.2, "*": 4.0})
        assert RunNote.from_json(note.as_json(), "s.db") == note

    def test_options_of_a_cluster_need_one(self):
        with pytest.raises(InvalidArgument, match="--ray-gpus is only for --ray"):
            RunNote("train.py:f", ray_gpus="1")

    def test_a_strangers_cluster_is_shown_before_anything_is_sent_there(self):
        wanted = Wanted.by(RunNote("train.py:f", ray="ray://elsewhere:10001"), "/", objective=True, space=False)
        assert ("cluster", "ray://elsewhere:10001") in wanted.lines
        assert set(OBJECTIVE_FIELDS) >= {"ray"}  # an objective of the user's own is not sent there


class TestRates:
    def test_the_first_label_that_a_node_has_counts(self):
        assert rate_of(NODE, 2.0) == 2.0
        assert rate_of(NODE, {"H100": 3.0, "market=spot": 1.0}) == 3.0
        assert rate_of(NODE, {"market=reserved": 4.0, "market": 2.0}) == 2.0
        assert rate_of(NODE, {"A100": 2.0, "*": 0.5}) == 0.5

    def test_a_node_without_a_rate_is_named_with_what_it_has(self):
        with pytest.raises(InvalidArgument, match=r"node ab12cd34 .host., which has CPU, H100, market=spot; "):
            rate_of(NODE, {"A100": 2.0})


class TestHeldActors:
    @pytest.fixture
    def clock(self, monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
        now = [100.0]
        monkeypatch.setattr(rates.time, "perf_counter", lambda: now[0])
        return lambda seconds: now.__setitem__(0, now[0] + seconds)

    def test_all_that_an_actor_costs_is_a_trials_or_due_to_nobody(self, clock):
        held = HeldActors()
        held.hold(1, 3600.0)  # a dollar a second
        clock(2.0)
        gauges = ClusterMeters(actors=held).begin(1)
        clock(5.0)
        assert gauges.spent() == {"usd": 5.0}
        held.rest(1, seconds=4.0)  # one of the five was on the way
        clock(1.0)
        assert gauges.spent() == {"usd": 4.0}
        assert held.idle_usd() == held.take_idle_usd() == 2.0 + 1.0 + 1.0
        clock(3.0)
        assert held.take_idle_usd() == 3.0

    def test_what_a_lost_actor_has_cost_stays_known(self, clock):
        held = HeldActors()
        held.hold(1, 3600.0)
        gauges = ClusterMeters(actors=held).begin(1)
        clock(5.0)
        held.give_back(1)
        clock(5.0)
        assert gauges.spent() == {"usd": 5.0}
        assert held.idle_usd() == 0.0
        assert held.usd_per_second == 1.0


# -- the worker of one node --------------------------------------------------------------------------------------------


class Ran:
    """A worker in this process, and what it has said."""

    def __init__(self, objective: Callable[..., Any], **job: Any) -> None:
        pickled = io.BytesIO()
        pickle_objective(objective, LINE, pickled)
        self.said: list[Any] = []
        given = replace(Job(Surroundings.here({}), tuple(import_path()), 1.0), **job)
        self.worker = NodeWorker(given, pickled.getvalue(), None, self.said.append)
        self.thread = threading.Thread(target=self.worker.run)
        self.thread.start()

    def start(self, turn: int, x: float, folder: Path, step: int = 0) -> None:
        self.worker.order(Start(turn, turn + 10, {"x": x}, step, str(folder), 5.0, 0.0))

    def next(self, kind: type) -> Any:
        """The next that it says of that kind; what comes before is dropped."""
        end = time.monotonic() + LATE
        while time.monotonic() < end:
            while self.said:
                if isinstance(found := self.said.pop(0), kind):
                    return found
            time.sleep(0.01)
        raise AssertionError(f"no {kind.__name__}")

    def quit(self) -> None:
        self.worker.order(Quit())
        self.thread.join(LATE)
        assert not self.thread.is_alive()


@pytest.fixture
def ran() -> Iterator[Callable[..., Ran]]:
    made: list[Ran] = []

    def make(*args: Any, **job: Any) -> Ran:
        made.append(Ran(*args, **job))
        return made[-1]

    yield make
    for one in made:
        one.quit()


def sleeping(config):
    time.sleep(60.0 * config["x"])
    return config["x"]


def stepping(config):
    for step in range(ft.current_run().step + 1, 4):
        yield config["x"] + 1 / step


def test_a_node_worker_answers_turn_by_turn(ran, tmp_path):
    one = ran(sleeping)
    assert one.next(Ready).start_seconds > 0.0
    for turn in (1, 2):
        one.start(turn, 0.0, tmp_path)
        found = one.next(Answered)
        assert (found.turn, found.answer.kind, found.answer.outcome.value) == (turn, AnswerKind.RETURNED, 0.0)
        one.worker.order(Finish(turn, 0.0))
        assert one.next(Free).turn == turn


def test_a_killed_turn_gives_its_place_to_the_next(ran, tmp_path):
    one = ran(sleeping)
    one.start(1, 1.0, tmp_path)
    one.worker.order(Tell(1))
    one.worker.order(Kill(1))
    one.start(2, 0.0, tmp_path)
    assert one.next(Free).turn == 1
    assert one.next(Answered).turn == 2


def test_orders_for_a_turn_that_is_over_change_nothing(ran, tmp_path):
    one = ran(sleeping)
    one.start(1, 0.0, tmp_path)
    one.next(Answered)
    one.worker.order(Finish(1, 0.0))
    one.start(2, 0.02, tmp_path)
    for late in (Kill(1), GoOn(1, 0.0), Finish(1, 0.0)):
        one.worker.order(late)
    assert one.next(Answered).answer.outcome.value == 0.02


def test_a_training_waits_after_each_step_and_is_closed(ran, tmp_path):
    one = ran(stepping)
    one.start(1, 0.0, tmp_path)
    values = [one.next(Answered).answer.outcome.value]
    one.worker.order(GoOn(1, 3.0))
    values.append(one.next(Answered).answer.outcome.value)
    assert values == [1.0, 0.5]
    one.worker.order(Finish(1, 5.0))
    assert one.next(Free).turn == 1


def test_a_checkpoint_that_the_node_does_not_see_is_an_error_that_says_so(ran, tmp_path):
    one = ran(stepping)
    one.start(1, 0.0, tmp_path / "elsewhere", step=2)
    error = one.next(Answered).answer.outcome.error
    assert error.startswith(f"the checkpoint of step 2 is not in {tmp_path / 'elsewhere'} on ")
    assert "all nodes share" in error


def test_memory_is_watched_on_the_node(ran, tmp_path):
    def large(config):
        held = bytearray(b"x") * 400_000_000
        time.sleep(60)
        return len(held)

    one = ran(large, bytes=300e6)
    one.start(1, 0.0, tmp_path)
    assert one.next(Answered).answer.kind is AnswerKind.LARGE


def test_an_objective_that_cannot_be_loaded_is_refused(ran):
    class Broken:
        def __reduce__(self):
            return int, ("no number",)

    one = ran(Broken())
    assert "ValueError: invalid literal" in one.next(Refused).reason
    assert one.next(Gone).error


def test_the_folder_and_the_environment_are_those_of_the_node(ran, tmp_path, monkeypatch):
    import os

    monkeypatch.setenv("OF_THE_NODE", "yes")
    gone = replace(Surroundings.here({}), folder=str(tmp_path / "gone"), environment={"OF_THE_RUN": "yes"})

    def looking(config):
        return {"value": 0.0, "cwd": os.getcwd(), **{k: os.environ.get(k) for k in ("OF_THE_NODE", "OF_THE_RUN")}}

    one = ran(looking, surroundings=gone)
    one.start(1, 0.0, tmp_path)
    found = one.next(Answered).answer.outcome.attributes
    assert found == {"cwd": os.getcwd(), "OF_THE_NODE": "yes", "OF_THE_RUN": None}
    assert math.isinf(Job(gone, (), 1.0).bytes)
