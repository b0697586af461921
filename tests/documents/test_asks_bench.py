"""The benchmark of asks: what is timed is the policy that is named, with the curves that the page speaks of."""

import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

ROOT = Path(__file__).parent.parent.parent
if str(ROOT) not in sys.path:  # `pytest` alone, in place of `python -m pytest`
    sys.path.append(str(ROOT))

from benchmarks.asks.steps import SHARES, STEPS, prepared_study, times_of, trained  # noqa: E402
from benchmarks.asks.text import auto_text, step_findings, step_table  # noqa: E402
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
