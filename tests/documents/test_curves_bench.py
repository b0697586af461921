"""Searches in recorded training curves: which configuration is trained, what is charged, and what the runs then say."""

import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

ROOT = Path(__file__).parent.parent.parent
if str(ROOT) not in sys.path:  # `pytest` alone, in place of `python -m pytest`
    sys.path.append(str(ROOT))

from benchmarks.common.described_spaces import place  # noqa: E402
from benchmarks.common.documents import page  # noqa: E402
from benchmarks.curves import page as curve_page  # noqa: E402
from benchmarks.curves import record as recording  # noqa: E402
from benchmarks.curves import runs as curve_runs  # noqa: E402
from benchmarks.curves.findings import complete, findings, pooled  # noqa: E402
from benchmarks.curves.methods import own, peer  # noqa: E402
from benchmarks.curves.page import CHARGED, PLAIN, Page, data, document  # noqa: E402
from benchmarks.curves.peers.sources import RecordedCurves  # noqa: E402
from benchmarks.curves.peers.task import BudgetOver, Record, TrainingFailed  # noqa: E402
from benchmarks.curves.runs import Facts, Problem, Result, Run  # noqa: E402
from benchmarks.curves.sets import RecordedSet  # noqa: E402

SPACE = [
    {"name": "rate", "type": "uniform_float", "lower": 1e-4, "upper": 1.0, "log": True},
    {"name": "rule", "type": "categorical", "choices": ["sgd", "adam"]},
]
CONFIGS = [
    {"rate": 1e-4, "rule": "sgd"},
    {"rate": 1e-2, "rule": "sgd"},
    {"rate": 1.0, "rule": "sgd"},
    {"rate": 1e-2, "rule": "adam"},
]


def recorded(values: list[list[float]] | None = None) -> RecordedSet:
    """Four configurations, two steps of 1 second each; the values say which configuration was trained."""
    curves = np.array([[0.1, 0.1], [0.2, 0.2], [0.3, 0.3], [0.4, 0.4]] if values is None else values)
    places = np.array([place(SPACE, config) for config in CONFIGS])
    return RecordedSet("fake", "data", False, SPACE, CONFIGS, places, curves, np.ones_like(curves))


def record_of(one: RecordedSet, budget: float = 100.0) -> Record:
    return Record(RecordedCurves(one), budget)


def trained(record: Record, key: int, config: dict, steps: int = 1) -> float:
    """Train one configuration; which one it was, by its value."""
    return record.training(key, config).until(steps)


def test_a_new_training_is_that_of_the_nearest_configuration_that_was_not_begun():
    record = record_of(recorded())
    near_second = {"rate": 3e-2, "rule": "sgd"}
    assert [trained(record, key, near_second) for key in range(4)] == [0.2, 0.3, 0.1, 0.4]


def test_another_choice_is_farther_away_than_any_rate():
    record = record_of(recorded())
    assert [trained(record, key, {"rate": 1e-4, "rule": "adam"}) for key in range(2)] == [0.4, 0.1]


def test_when_all_were_begun_the_nearest_that_has_not_ended_is_trained_again_from_its_start_and_paid_again():
    record = record_of(recorded())
    for key, config in enumerate(CONFIGS):
        trained(record, key, config, steps=2 if key == 1 else 1)
    spent = record.spent
    assert trained(record, "again", {"rate": 3e-2, "rule": "sgd"}, steps=2) == 0.3  # the nearest, 0.2, has ended
    assert record.spent == spent + 2.0


def test_when_all_have_ended_the_nearest_is_trained_again():
    record = record_of(recorded())
    for key, config in enumerate(CONFIGS):
        trained(record, key, config, steps=2)
    assert trained(record, "again", CONFIGS[1]) == 0.2


def test_a_resumed_training_pays_its_new_steps_only():
    record = record_of(recorded())
    trained(record, 0, CONFIGS[0])
    trained(record, 0, CONFIGS[0], steps=2)
    assert record.spent == 2.0
    assert record.columns["trials"] == [0, 0]


def test_a_step_that_fails_is_charged_and_has_no_value():
    record = record_of(recorded([[0.5, np.nan], [0.2, 0.2], [0.3, 0.3], [0.4, 0.4]]))
    training = record.training(0, CONFIGS[0])
    assert training.advance() == (0.5, 1.0)
    for charged in (2.0, 3.0):  # if it is tried again, it fails and costs again
        with pytest.raises(TrainingFailed) as failed:
            training.advance()
        assert failed.value.cost == 1.0
        assert record.spent == charged
    assert training.step == 1
    assert record.columns["values"] == [0.5, None, None]


def test_a_failed_training_has_ended():
    record = record_of(recorded([[np.nan, np.nan], [0.2, 0.2], [0.3, 0.3], [0.4, 0.4]]))
    for key, config in enumerate(CONFIGS):
        training = record.training(key, config)
        if key == 0:
            with pytest.raises(TrainingFailed):
                training.advance()
        else:
            training.advance()
    assert trained(record, "again", CONFIGS[0]) == 0.2


def test_a_step_that_would_end_past_the_budget_is_cut():
    record = record_of(recorded(), budget=1.5)
    training = record.training(0, CONFIGS[0])
    training.advance()
    with pytest.raises(BudgetOver):
        training.advance()
    assert record.columns["values"] == [0.1]
    assert not record.is_open


# -- what runs say -----------------------------------------------------------------------------------------------------

AUTO, PEER = own("auto", "subject"), peer("random", "random search", "blackbox", "optuna_peer")


def answer(values: list[float | None], own_seconds: float = 0.0) -> dict:
    """Steps that cost 1 each, before each of which the method thought for some seconds."""
    n = len(values)
    seconds = [own_seconds * (i + 1) for i in range(n)]
    return {
        "trials": list(range(n)), "values": values, "costs": [1.0] * n, "own": seconds, "plans": [], "versions": {},
    }  # fmt: skip


@pytest.fixture
def _known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(curve_runs, "_recorded_facts", lambda name: Facts(cost=1.0, median=1.0, lowest=0.0))


def run_of(name: str, method=AUTO, seed: int = 0) -> Run:
    return Run(Problem(name), method, 4.0, seed, 4.0)


def test_failures_and_values_above_the_median_leave_a_regret_of_1():
    result = Result.of(answer([None, 2.0, None, 0.25]), 4.0)
    assert result.best_at(np.array([0.0, 1.0, 2.0, 3.0, 4.0]), 1.0).tolist() == [1.0, 1.0, 1.0, 1.0, 0.25]


def test_own_seconds_delay_a_value_when_they_are_charged():
    result = Result.of(answer([0.9, 0.5, 0.1, 0.0], own_seconds=1.0), 4.0)
    assert result.best_at(np.array([4.0]), 1.0) == 0.0
    assert result.charged.best_at(np.array([4.0]), 1.0) == 0.5  # two steps and two seconds of thinking
    assert result.charged.trainings(4.0) == 2


@pytest.mark.usefixtures("_known")
def test_kinds_count_alike_however_many_problems_they_have():
    ends = {"a/1": 0.0, "b/1": 0.6, "b/2": 0.9, "b/3": 0.3}
    runs = [run_of(name) for name in ends]
    found, _ = findings({run: Result.of(answer([ends[run.problem.name]]), 4.0) for run in runs}, runs)
    assert found[4.0].mean(found[4.0].regrets[AUTO])[-1] == pytest.approx(0.3)  # of 0 and 0.6
    assert found[4.0].only("b").mean(found[4.0].only("b").regrets[AUTO])[-1] == pytest.approx(0.6)


@pytest.mark.usefixtures("_known")
def test_means_over_budgets_keep_the_pairs_and_the_ratio():
    runs = [Run(Problem("a/1"), method, multiple, 0, 4.0) for multiple in (2.0, 4.0) for method in (AUTO, PEER)]
    ends = {AUTO: 0.2, PEER: 0.4}
    found, _ = findings({run: Result.of(answer([ends[run.method]]), 4.0) for run in runs}, runs)
    pool = pooled(found)
    assert pool.ratio(AUTO, PEER).value == pytest.approx(0.5)
    assert pool.ranks[AUTO].tolist() == [[1.25, 1.0, 1.0]]  # 25 % of the lower budget do not pay for a step
    assert pool.pairs == found[2.0].pairs


@pytest.mark.usefixtures("_known")
def test_seeds_that_a_method_has_not_done_are_left_out_and_a_method_without_any_is_not_waited_for():
    absent = own("thaw")
    runs = [run_of("a/1", method, seed) for seed in range(3) for method in (AUTO, PEER, absent)]
    done = {run: Result.of(answer([0.5]), 4.0) for run in runs if run.method == AUTO or run.seed < 2}
    done = {run: result for run, result in done.items() if run.method != absent}
    kept = complete(done, runs)
    assert {run.seed for run in kept} == {0, 1}
    found, missing = findings(done, kept)
    assert missing == [absent]
    assert len(found[4.0].pairs) == 2


FACTS = {"farthing": "1", "cpu": "a CPU", "cores": 2, "system": "Linux", "python": "3.12"}


@pytest.mark.usefixtures("_known")
def test_a_page_says_where_a_peer_is_better_and_what_charging_the_own_time_does(monkeypatch: pytest.MonkeyPatch):
    """Two kinds: `auto` has a quarter of the peer's regret on one and three times as much on the other, at the end."""
    monkeypatch.setattr(curve_page, "set_named", lambda name: recorded())
    problems = [Problem("sgd/x"), Problem("cnn/y")]
    runs = [
        Run(problem, method, multiple, seed, 8.0)
        for seed in (0, 1)
        for problem in problems
        for method in (AUTO, PEER)
        for multiple in (4.0, 8.0)
    ]
    ends = {("sgd", AUTO): 0.1, ("sgd", PEER): 0.4, ("cnn", AUTO): 0.3, ("cnn", PEER): 0.1}
    results = {
        run: Result.of(answer([0.9, ends[run.problem.kind, run.method]], 9.0 if run.method == AUTO else 0.0), 8.0)
        for run in runs
    }
    texts = {}
    for name, seen in ((PLAIN, results), (CHARGED, {run: result.charged for run, result in results.items()})):
        found, missing = findings(seen, runs, ("own",))
        made = Page(name, found, [0, 1], missing, FACTS)
        texts[name] = " ".join(page(document(made), data(made)).split())
    plain, charged = texts[PLAIN], texts[CHARGED]
    assert "2 kinds of learners" in plain
    assert "less regret than `auto` on cnn (0.300, compared with 0.100 of random search)" in plain
    assert "0.80 times at 100 % (random search" in plain  # 0.2 compared with 0.25
    assert "| cnn/y | 4 trainings | 0.300 | random search | 0.100 |" in plain
    assert "sgd/x | 4 trainings" not in plain.partition("## Where a peer was better")[2].partition("## Budget")[0]
    assert "sgd (1.000, compared with 0.400 of random search)" in charged  # 9 seconds before the first step


def test_a_data_set_joins_those_of_the_file_and_one_that_is_recorded_again_replaces_itself(tmp_path, monkeypatch):
    """Whoever has the file can go on, without what was kept while it was made."""
    monkeypatch.setattr(recording, "RECORDED", tmp_path)
    kind = SimpleNamespace(SPACE=SPACE, STEPS=2, TASKS=("first", "second"))

    def trainings(value: float) -> list[dict]:
        return [{"config": one, "values": [1.0, value], "seconds": [0.5, 0.5], "error": None} for one in CONFIGS]

    recording.save("kind", kind, {"first": trainings(0.1)})
    recording.save("kind", kind, {"second": trainings(0.2)})
    path = recording.save("kind", kind, {"first": trainings(0.3)})
    with np.load(path, allow_pickle=False) as stored:
        ends = {name: stored[f"{name}.values"][:, -1].tolist() for name in kind.TASKS}
    assert ends == {"first": pytest.approx([0.3] * 4), "second": pytest.approx([0.2] * 4)}
    kind.SPACE = SPACE[:1]
    with pytest.raises(SystemExit, match="another space"):
        recording.save("kind", kind, {"second": trainings(0.4)})
