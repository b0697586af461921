"""The page of simulated clusters says what was measured."""

import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
if str(ROOT) not in sys.path:  # `pytest` alone, in place of `python -m pytest`
    sys.path.append(str(ROOT))

import numpy as np  # noqa: E402
import pytest  # noqa: E402

from benchmarks.cluster.runs import Stopwatch  # noqa: E402
from benchmarks.cluster.text import busy_from, exactness, pending_findings, pending_table, run_table  # noqa: E402
from benchmarks.cluster.workload import FAILING, LOST, SPACE, Workload  # noqa: E402

RUN = {
    "policy": "ei", "workers": 100, "steps": 0, "trials": 50, "asks": 50, "seconds": 6.0, "ask": 0.2,
    "parts": {"simulation": 1.0, "proposals": 2.0, "decisions": 0.5, "file": 0.5}, "lost": 3, "late": 2, "killed": 1,
    "nodes": {"joined": 9, "left": 2}, "faults": [],
}  # fmt: skip


def test_what_the_simulation_takes_is_nobodys():
    """5 of 6 seconds are Farthing's: 10 proposals a second, half of the time the policy's. An evaluation has to take
    a hundred times 0.2 seconds for a proposal, as they are late in the run, and 0.06 for the rest."""
    assert "| `ei` | 100 | 50 | 10 | 50% | 10% | 40% | 260.0 | 26 s |" in run_table([RUN])
    assert busy_from(RUN) == pytest.approx(26.0)


def test_it_is_said_if_a_run_was_not_exact():
    assert "in every run the ledger agrees" in exactness([RUN, RUN])
    assert "100 trials were evaluated, 6 times an evaluation lost" in exactness([RUN, RUN])
    said = exactness([RUN, {**RUN, "faults": ["trials: 3, and 4 in the books"]}])
    assert "**Not exact**: trials: 3, and 4 in the books" in said
    assert "agrees" not in said


def test_ratios_are_to_none_running():
    found = {"ei": {"0": 0.02, "64": 0.03, "1000": 0.1}, "thaw": {"0": 0.1, "64": 0.2, "1000": 0.3}}
    assert "| `ei` | 20 | 30 | 100 | 5.0 |" in pending_table(found)
    assert "takes 2.0 times with 64 and 5.0 times with 1,000 running" in pending_findings(found)


def test_a_stopwatch_counts_each_second_once():
    """Of calls inside each other the inner one has its time, and the outer one the rest."""
    watch = Stopwatch()
    inner = watch.of("inner", lambda: sum(range(300_000)))
    outer = watch.of("outer", lambda: [inner() for _ in range(5)])
    outer()
    assert watch.seconds["inner"] > 10.0 * watch.seconds["outer"]
    assert watch.each["outer"][0] >= sum(watch.each["inner"])


def test_evaluations_differ_as_the_page_says():
    rng = np.random.default_rng(0)
    configs = [SPACE.decode(u) for u in rng.random((4_000, len(SPACE)))]
    workload = Workload()
    ahead = [workload.ahead(i, 0, 0, config) for i, config in enumerate(configs)]
    assert np.mean([one.is_lost for one in ahead]) == pytest.approx(LOST, abs=0.01)
    assert np.mean([one.value is None and not one.is_lost for one in ahead]) == pytest.approx(FAILING, abs=0.01)
    seconds = np.array([one.seconds for one in ahead])
    assert seconds.mean() == pytest.approx(workload.mean_seconds, rel=0.15)
    assert seconds.max() > 10.0 * seconds.mean()  # a heavy tail
