"""How long a run lets the optimiser think: a share of what is left of a budget that time uses up."""

from __future__ import annotations

import math
import time

import pytest

import farthing as ft
from farthing.history import Way
from farthing.record.events import Asked
from farthing.runner.clock import NOBODY, THINKING_SHARE, Ages, Clock

LINE = ft.Space(x=ft.Real(0, 1))


@pytest.mark.parametrize(
    ("budget", "ages", "left"),
    [
        ("8s", [], 8.0),
        ("8s", [1.0, 2.0], 8.0),
        (ft.Budget(usd=2.0, usd_per_hour=3600.0), [], 2.0),
        (ft.Budget(usd=2.0, usd_per_hour=3600.0), [0.5], 0.75),  # both the thinking and the evaluation are paid for
        (ft.Budget(seconds=1.0, usd=2.0, usd_per_hour=3600.0), [], 1.0),
        (ft.Budget(compute_seconds=4.0), [], math.inf),  # nobody computes
        (ft.Budget(compute_seconds=4.0), [1.0], 3.0),
        (ft.Budget(cost=4.0), [], math.inf),
        ("4 evaluations", [], math.inf),
        (ft.Budget(usd=2.0), [], math.inf),  # no rate: the objective says what it costs
        (ft.Budget(usd=2.0, usd_per_hour=3600.0, seconds=1e-9), [], 0.0),
    ],
)
def test_it_has_a_share_of_what_is_left(budget, ages, left):
    study = ft.Study(LINE, budget, policy="random", seed=0)
    clock = Clock(study._session, time.perf_counter())
    assert clock.seconds_to_think(Ages(len(ages), sum(ages))) == pytest.approx(THINKING_SHARE * left, abs=0.2)


def test_seconds_that_something_else_measures_are_not_the_clocks():
    study = ft.Study(LINE, "8s", policy="random", seed=0)
    assert Clock(study._session, time.perf_counter(), metered={"seconds"}).seconds_to_think(NOBODY) == math.inf


def test_a_run_tells_every_ask_and_the_file_says_so(tmp_path):
    with ft.Study(LINE, "30s, 6 evaluations", policy="ei", seed=0, storage=tmp_path / "s.db") as study:
        study.run(lambda config: config["x"], isolate=False, progress=False)
        events = [event for event in study._session.record.past() if isinstance(event, Asked)]
    assert len(events) == 6
    assert {event.way for event in events} == {Way.FULL}
    assert all(0.0 < (event.seconds or 0.0) <= THINKING_SHARE * 30.0 for event in events)
