"""The benchmark of asks: what is timed is who is named, with the results and curves that the page speaks of."""

import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

ROOT = Path(__file__).parent.parent.parent
if str(ROOT) not in sys.path:  # `pytest` alone, in place of `python -m pytest`
    sys.path.append(str(ROOT))

from benchmarks.asks.spaces import SPACES, is_active  # noqa: E402
from benchmarks.asks.steps import SHARES, STEPS, prepared_study, times_of, trained  # noqa: E402
from benchmarks.asks.text import (  # noqa: E402
    auto_text,
    batch_findings,
    cell_findings,
    cell_table,
    searched_text,
    step_findings,
    step_table,
)
from benchmarks.asks.turns import OfFarthing, Times, in_turn, known_results, space_of, studied  # noqa: E402
from farthing.trial import Decision, Proposal, Status  # noqa: E402


@dataclass(frozen=True)
class PausesAtOnce:
    """Resumes the first trial, and pauses it after a step."""

    name: ClassVar[str] = "pauses at once"

    def propose(self, space, history, ledger, n, rng):
        first = history.trials[0]
        return [Proposal(0, first.config, 1.0, "resumed", start_step=first.kept_step, until_step=STEPS)]

    def decide(self, space, history, ledger, trial, rng):
        return Decision.PAUSE


def test_a_prepared_study_has_its_curves_and_then_asks_the_policy():
    study = prepared_study(PausesAtOnce(), 8)
    assert [len(trial.curve) for trial in study.trials] == [round(share * STEPS) for share in SHARES]
    assert study.count(Status.PAUSED) == 7
    proposal = study.ask()
    assert proposal.reason == "resumed"
    assert len(trained(study, proposal, time.process_time)) == 1  # the policy has paused it
    assert len(study.trials[0].curve) == round(SHARES[0] * STEPS) + 1


def test_what_is_timed_leaves_out_the_first_ask():
    assert times_of("thaw", 8, 2)["asks"] == 2


def cell(ask: float, report: float, per_step: float, asks: int = 5) -> dict:
    return {"ask": ask, "report": report, "per_step": per_step, "asks": asks, "reports": 20, "reason": "thaw: new"}


def test_the_page_says_where_thaw_is_slower():
    fast, slow = cell(0.1, 0.001, 0.2), cell(0.2, 0.002, 0.1)
    found = {"20": {"thaw": fast, "bapi": slow, "auto": fast}, "1000": {"thaw": fast, "bapi": cell(2.0, 0.5, 0.9, 1)}}
    text = step_findings(found)
    assert "an ask takes 0.50 (with 20 curves) and 0.05 (with 1,000 curves) times as long as under `bapi`." in text
    assert text.count("It is slower") == 1
    assert "It is slower with 20 curves." in text.splitlines()[2]
    assert "with 1,000 curves the times of `bapi` are those of a single ask" in text
    assert "| 20 | `bapi` | 200 | 2.00 | 4 | 100.0 |" in step_table(found)
    assert auto_text({"20": found["20"]}) == "`thaw`"


def test_both_libraries_have_the_same_active_parameters():
    for name, parameters in SPACES.items():
        for config, _, _ in known_results(space_of(name), 20):
            active = [key for key, parameter in parameters.items() if is_active(parameter, config)]
            assert list(config) == active


def test_auto_asks_with_models_once_it_has_the_known_results():
    space = space_of("13 mixed")
    proposal = studied(space, "auto", known_results(space, 20)).ask()
    assert "largest expected improvement per cost" in proposal.reason


def test_who_is_slow_asks_less_often_and_nobody_counts_the_first_ask():
    class Steady:
        def __init__(self, seconds: list[float]) -> None:
            self.left = seconds

        def ask(self) -> float:
            return self.left.pop(0)

    quick, slow = Steady([9.0] + [1.0] * 20), Steady([9.0] + [5.0] * 20)
    found = in_turn({"quick": quick, "slow": slow}, 7)
    assert {name: times.seconds for name, times in found.items()} == {"quick": [1.0] * 7, "slow": [5.0] * 3}
    assert (len(quick.left), len(slow.left)) == (20 - 7, 20 - 3)


def test_an_expensive_ask_counts_in_the_mean():
    times = Times([1.0, 1.0, 4.0])
    assert (times.median, times.mean) == (1.0, 2.0)


def test_asks_that_search_for_hyperparameters_are_counted():
    """At 50 values two of three searches are left out from the 51st on: 2 % are more than one value."""
    space = space_of("7 continuous")
    asking = OfFarthing(space, "ei", known_results(space, 60))
    for _ in range(5):
        asking.ask()
    assert asking.share_searched == 0.5
    assert searched_text({"a": {"50": {"ei": 1.0}}, "b": {"50": {"ei": 0.5}}}) == "75 % (from 50 results on)"


def test_the_page_compares_auto_with_peers_and_cei_with_ei():
    one = {"auto": 0.01, "ei": 0.01, "cei": 0.02, "carbo": 0.01, "TPE": 0.005, "GPSampler": 0.2}
    cells = {"7 continuous": {"50": one, "100": {**one, "GPSampler": 0.4}}}
    assert "| 7 continuous | 100 | 10.0 | 10.0 | 20.0 | 10.0 | 5.0 | 400 |" in cell_table(cells)
    text = cell_findings(cells)
    assert "TPE takes 0.5 to 0.5 (7 continuous) times as long as `auto`" in text
    assert "GPSampler takes 20.0 to 40.0 (7 continuous)" in text
    assert "`cei` takes 2.0 to 2.0 times" in text
    assert "5.0 to 6.0 (7 continuous)" in batch_findings({"7 continuous": {"ei": [0.01, 0.05], "cei": [0.01, 0.06]}})
