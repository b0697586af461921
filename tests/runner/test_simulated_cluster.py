"""A hundred workers, simulated, through the real run: whatever is lost on the way, nothing is lost or doubled in the
ledger."""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import farthing as ft

ROOT = Path(__file__).parent.parent.parent
if str(ROOT) not in sys.path:  # `pytest` alone, in place of `python -m pytest`
    sys.path.append(str(ROOT))

from benchmarks.cluster.simulated import faults, nodes_for, run_on, studied  # noqa: E402
from benchmarks.cluster.simulation import SimulatedCluster  # noqa: E402
from benchmarks.cluster.workload import Workload  # noqa: E402
from farthing.runner.clock import Clock  # noqa: E402
from farthing.runner.paused import PausedLearners  # noqa: E402
from farthing.trial import Status  # noqa: E402

WORKERS = 100
STAYS = 1_800.0  # seconds that a node stays: three evaluations


def simulated(
    policy: str = "random",
    trials: int = 400,
    steps: int = 0,
    seed: int = 0,
    storage: Path | None = None,
    workers: int = WORKERS,
    stays: float = STAYS,
) -> tuple[ft.Study, SimulatedCluster]:
    workload = Workload(seed, steps)
    cluster = SimulatedCluster(workload, nodes_for(workers, stays), seed)
    study = studied(policy, trials, workload, seed, storage)
    run_on(cluster, study, workers)
    return study, cluster


@pytest.fixture(scope="module")
def black_boxes() -> tuple[ft.Study, SimulatedCluster]:
    return simulated()


def test_it_is_as_busy_and_as_rough_as_it_should_be(black_boxes):
    """Else the tests below would say little."""
    _, cluster = black_boxes
    books = cluster.books
    assert books.most == WORKERS
    assert books.nodes["left"] > 5
    assert books.count("lost") > 50
    assert books.count("failed") > 5
    assert books.count("late") > 20
    assert books.count("killed") > 10


def test_ledger_and_trials_are_what_the_cluster_has_in_its_books(black_boxes):
    assert faults(*black_boxes) == []


def test_the_budget_is_spent_and_hard(black_boxes):
    """What runs at the end goes on for less than the third of a second that the slowest needs to end."""
    study, _ = black_boxes
    budget, spent = study.ledger.budget.compute_seconds, study.ledger.total("compute_seconds")
    assert budget is not None
    assert 0.0 <= spent - budget < WORKERS * 0.3


def test_what_was_lost_is_no_failure_and_runs_again(black_boxes):
    study, cluster = black_boxes
    again = [trial for trial in study.trials if cluster.books.begun[trial.number] > 1]
    assert len(again) > 30
    assert sum(trial.status is Status.COMPLETE for trial in again) > 0.5 * len(again)
    assert study.ledger.account("interrupted") > 0.0


def test_the_books_would_show_a_charge_that_is_missing_or_doubled(black_boxes):
    study, cluster = black_boxes
    assert faults(study, cluster) == []
    session, right = study._session, study._session.record.state
    try:
        session.record.state = replace(right, budgeted=right.ledger.charged({"evaluation": {"compute_seconds": 1e-2}}))
        assert any("seconds in the ledger" in fault for fault in faults(study, cluster))
    finally:
        session.record.state = right


@pytest.mark.parametrize(("policy", "trials", "steps"), [("carbo", 30, 0), ("thaw", 3, 10)])
def test_it_is_exact_with_models_of_cost_and_with_learners_that_are_paused_and_retrained(policy, trials, steps):
    study, cluster = simulated(policy, trials, steps, workers=10, stays=300.0)
    assert faults(study, cluster) == []
    assert cluster.books.count("lost") > 0
    if steps:
        assert study.ledger.account("retrained") > 0.0


def test_the_same_seed_gives_the_same_study(black_boxes):
    study, cluster = black_boxes
    again, other = simulated()
    assert again.trials == study.trials
    assert again.ledger == study.ledger
    assert other.now == cluster.now
    assert simulated(seed=1)[0].trials != study.trials


def test_the_file_says_the_same(tmp_path):
    study, cluster = simulated(trials=200, storage=tmp_path / "s.db")
    with study:
        assert faults(study, cluster) == []
    kept = ft.Study.open(tmp_path / "s.db")
    assert kept.trials == study.trials
    assert kept.ledger == study.ledger


def test_a_paused_learner_that_is_lost_just_after_it_was_closed_is_not_lost_again():
    """Its node leaves at the moment in which another learner is paused, for which it was closed: the run hears of both
    at once."""
    study, cluster = simulated("random", trials=1, workers=1)
    session = study._session
    paused = PausedLearners(session, cluster, Clock(session, 0.0, timer=cluster.timer), 32, math.inf)
    before = session.record.events
    paused.lose(0)
    assert session.record.events == before


def test_a_run_waits_while_all_nodes_are_away_and_time_goes_by():
    """One node of one place, which stays for less than an evaluation and comes back."""
    workload = Workload(3)
    cluster = SimulatedCluster(workload, replace(nodes_for(1, 900.0), count=1, places=1), 3)
    study = studied("random", 5, workload, 3)
    run_on(cluster, study, 1)
    assert faults(study, cluster) == []
    assert cluster.books.nodes["left"] > 1
    assert study.ledger.account("start-up", "seconds") > 60.0
