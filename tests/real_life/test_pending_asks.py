"""What `ask` gave stays pending when its process ends, until it is told or forgotten."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import farthing as ft
from farthing.errors import BudgetSpent, UnknownTrial

SPACE = ft.Space(x=ft.Real(0, 1))
OPTIONS = {"policy": "random", "seed": 0}

DISPATCHER = """
    import os, sys
    import farthing as ft

    study = ft.Study(ft.Space(x=ft.Real(0, 1)), "4 evaluations", policy="random", seed=0, storage=sys.argv[1])
    for proposal in study.ask(3):
        print(proposal.trial, proposal.config["x"], flush=True)
    study.report(2, 5.0, cost=1.0)
    os._exit(1)  # as if it was killed
    """


def died(tmp_path: Path) -> tuple[Path, dict[int, float]]:
    """The file of a dispatcher that died, and what it had handed out."""
    assert hasattr(ft.Study, "pending"), "trials of ask end with their process"
    path = tmp_path / "study.db"
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(DISPATCHER), str(path)], capture_output=True, text=True, timeout=60
    )
    return path, {int(n): float(x) for n, x in (line.split() for line in done.stdout.splitlines())}


def test_after_a_restart_they_can_be_told_reported_and_forgotten(tmp_path):
    path, given = died(tmp_path)
    with ft.Study.resume(path) as study:
        assert {proposal.trial: proposal.config["x"] for proposal in study.pending} == given
        assert [proposal.start_step for proposal in study.pending] == [0, 0, 1]
        assert study.ledger.running == 3
        new = study.ask()
        assert (new.trial, new.config["x"] in given.values()) == (3, False)
        with pytest.raises(BudgetSpent, match=r"given by ask, and not told yet: 0, 1, 2, 3 .*study\.forget"):
            study.ask()
        assert study.tell(0, value=1.0).status is ft.Status.COMPLETE
        study.report(2, 4.0)
        assert study.tell(2).curve.values == (5.0, 4.0)
        forgotten = study.forget(1)
        assert (forgotten.status, study.ledger.running) == (ft.Status.INTERRUPTED, 1)
        assert study.ask().trial == 4, "what is forgotten is no evaluation, and does not come back"
        with pytest.raises(UnknownTrial, match="trial 1 is interrupted"):
            study.tell(1, value=1.0)
    with ft.Study.resume(path) as study:
        assert [proposal.trial for proposal in study.pending] == [3, 4]


def test_a_run_leaves_them_alone_and_says_why_it_ended(tmp_path):
    path, given = died(tmp_path)
    with ft.Study.resume(path) as study:
        with pytest.warns(RuntimeWarning, match="the run has ended; given by ask, and not told yet: 0, 1, 2"):
            study.run(lambda config: config["x"], isolate=False, progress=False)
        assert [trial.status.value for trial in study.trials] == [*["running"] * 3, "complete"]
        assert study.trials[3].config["x"] not in given.values()


def test_trials_of_a_run_are_interrupted_and_run_again(tmp_path):
    assert hasattr(ft.Study, "pending"), "trials of ask end with their process"
    path = tmp_path / "study.db"
    script = """
        import os, sys
        import farthing as ft

        study = ft.Study(ft.Space(x=ft.Real(0, 1)), "3 evaluations", policy="random", seed=0, storage=sys.argv[1])
        asked = study.ask()
        study.run(lambda config: os._exit(1), isolate=False, progress=False)
        """
    subprocess.run([sys.executable, "-c", textwrap.dedent(script), str(path)], timeout=60)
    with ft.Study.resume(path) as study:
        assert [trial.status.value for trial in study.trials] == ["running", "interrupted"]
        assert study.ask().trial == 1, "it runs again"
        study._session.propose(1, dict)  # as a run would
        with pytest.raises(UnknownTrial, match="being run"):
            study.forget(2)


def test_how_a_study_of_before_reads_is_as_before(tmp_path):
    """Its file does not say who had a trial: a run, for all that is known."""
    from stored_events import change

    assert hasattr(ft.Study, "pending"), "trials of ask end with their process"
    path = tmp_path / "study.db"
    with ft.Study(SPACE, "4 evaluations", **OPTIONS, storage=path) as study:
        study.ask()
    change(path, """UPDATE events SET body = replace(body, ',"by":"ask"', '')""")
    with ft.Study.resume(path) as study:
        assert study.pending == []
        assert study.trials[0].status is ft.Status.INTERRUPTED
        assert study.ask().trial == 0
