"""Waiting for a worker process is neither thinking nor evaluating: it has an account, and a place in the price."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import farthing as ft
from farthing.budget import Ledger
from farthing.history import History
from farthing.policies.bapi import BAPI
from farthing.policies.ei_alpha import EIAlpha, EIpu
from farthing.record.events import Asked, Ended, Reported
from farthing.record.state import State
from farthing.trial import Outcome, Proposal, Report, Status

SPACE = ft.Space(x=ft.Real(0, 1))


class SlowToLoad:
    """An objective whose libraries take a while to import."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        time.sleep(self.seconds)

    def __call__(self, config: dict[str, Any]) -> float:
        return config["x"]


class TestAccount:
    @pytest.mark.parametrize("budget", ["3 evaluations", ft.Budget(usd=100, evaluations=3, usd_per_hour=3600.0)])
    def test_the_first_worker_loads_the_objective_on_it(self, budget):
        study = ft.Study(SPACE, budget, policy="random", seed=0)
        began = time.perf_counter()
        study.run(SlowToLoad(1.5), isolate=True, progress=False)
        wall, ledger = time.perf_counter() - began, study.ledger
        assert ledger.account("start-up", "seconds") >= 1.5, "waiting for a worker was booked as something else"
        assert ledger.account("optimiser", "seconds") < wall - 1.5
        assert 0.8 * wall <= ledger.total("seconds") <= wall
        assert f"start-up    {'$' if ledger.unit == 'usd' else ''}" in str(ledger)
        if ledger.unit == "usd":
            assert ledger.account("start-up") == pytest.approx(ledger.account("start-up", "seconds"))

    def test_xgboost_is_imported_on_it(self):
        from xgboost import XGBRegressor  # here, since workers import this module

        X, y = np.random.default_rng(0).random((50, 3)), np.arange(50.0)

        def objective(config):
            return float(XGBRegressor(n_estimators=2, max_depth=2, n_jobs=1, eta=config["x"]).fit(X, y).score(X, y))

        study = ft.Study(SPACE, "3 evaluations", policy="random", seed=0)
        study.run(objective, isolate=True, progress=False)
        start_up, optimiser = (study.ledger.account(name, "seconds") for name in ("start-up", "optimiser"))
        assert start_up > optimiser

    def test_in_this_process_there_is_none(self):
        """The same objective waits in a worker, and not here; then proposals are those of before."""
        studies = [ft.Study(SPACE, "3 evaluations", policy="random", seed=0) for _ in range(2)]
        for study, isolate in zip(studies, (True, False), strict=True):
            study.run(SlowToLoad(0.0), isolate=isolate, progress=False)
        assert ["start-up" in study.ledger.accounts for study in studies] == [True, False]

    def test_a_run_that_is_killed_while_it_waits_is_charged(self, tmp_path):
        script = tmp_path / "script.py"
        script.write_text(
            "import time\n"
            "from pathlib import Path\n"
            "import farthing as ft\n"
            "class Slow:\n"
            "    def __setstate__(self, state):\n"
            f"        Path({str(tmp_path / 'loading')!r}).touch()\n"
            "        time.sleep(60)\n"
            "    def __getstate__(self):\n"
            "        return {'seconds': 60}\n"
            "    def __call__(self, config):\n"
            "        return 1.0\n"
            f"study = ft.Study(ft.Space(x=ft.Real(0, 1)), '10m', storage={str(tmp_path / 'study.db')!r})\n"
            "study.run(Slow(), progress=False)\n"
        )
        child = subprocess.Popen([sys.executable, str(script)], env={**os.environ}, stderr=subprocess.DEVNULL)
        try:
            _wait_for(tmp_path / "loading")
            time.sleep(2.0)
        finally:
            os.kill(child.pid, signal.SIGKILL)
            child.wait()
        with ft.Study.resume(tmp_path / "study.db") as study:
            assert study.ledger.account("start-up") > 0.5
            assert study.ledger.account("start-up") > study.ledger.account("optimiser")


def _wait_for(file: Path) -> None:
    for _ in range(600):
        if file.exists():
            return
        time.sleep(0.1)
    raise AssertionError(f"{file.name} did not come")


class TestPrice:
    """Histories whose new runs had to wait for a worker, as they are read from a file."""

    def begun(self, state: State, number: int, config: dict[str, Any], wait: float) -> State:
        charges = {"start-up": {"seconds": wait}} if wait else {}
        return Asked(number, Proposal(number, config), {}, charges).applied(state)

    def priced(self, wait: float) -> History:
        """Where evaluations at small x are a hundred times as expensive, and better."""
        state = State(SPACE, History(seed=0), Ledger(ft.Budget(seconds=1e9)))
        for number, x in enumerate(np.linspace(0.0, 1.0, 5)):
            state = self.begun(state, number, {"x": float(x)}, wait)
            outcome = Outcome(Status.COMPLETE, value=float(np.sin(7.0 * x)), cost=float(np.exp(5.0 * (1.0 - x))))
            state = Ended(number, outcome).applied(state)
        return state.history

    def proposed(self, policy: Any, wait: float) -> float:
        ledger = Ledger(ft.Budget(seconds=1e9))
        (proposal,) = policy.propose(SPACE, self.priced(wait), ledger, 1, np.random.default_rng(0))
        return proposal.config["x"]

    def test_where_starting_takes_far_longer_than_evaluating_cost_hardly_matters(self):
        by_improvement = self.proposed(EIAlpha(alpha=0.0), 0.0)
        assert abs(self.proposed(EIpu(), 0.0) - by_improvement) > 0.01, "here cost matters"
        assert self.proposed(EIpu(), 1e7) == pytest.approx(by_improvement, abs=1e-3)

    def trained(self, wait: float, saved: bool) -> History:
        """Twelve paused trainings of 3 of 9 steps of a second."""
        state = State(SPACE, History(seed=0, max_steps=9), Ledger(ft.Budget(seconds=1e9)))
        for number, x in enumerate(np.random.default_rng(1).random(12)):
            state = self.begun(state, number, {"x": float(x)}, wait)
            for step in range(1, 4):
                value = float((x - 0.3) ** 2 + np.exp(-step))
                state = Reported(number, Report(value, 1.0, saved=saved)).applied(state)
            state = Ended(number, Outcome(Status.PAUSED)).applied(state)
        return state.history

    def plan(self, wait: float, saved: bool, left: float) -> Proposal:
        ledger = Ledger(ft.Budget(seconds=left))
        (proposal,) = BAPI().propose(SPACE, self.trained(wait, saved), ledger, 1, np.random.default_rng(0))
        return proposal

    @pytest.mark.parametrize(("wait", "left"), [(5.0, 40.0), (50.0, 100.0)])
    def test_where_new_runs_have_to_start_a_learner_that_is_alive_goes_on(self, wait, left):
        assert self.plan(0.0, saved=False, left=left).trial == 12, "a new run is worth more, if it begins at once"
        proposal = self.plan(wait, saved=False, left=left)
        assert proposal.trial < 12, "a new run was planned as if it began at once"
        assert proposal.predicted_cost == pytest.approx(proposal.until_step - 3), "of its own steps alone"

    def test_one_that_gave_its_process_back_has_to_start_too(self):
        """What is left pays for the start and one step, not for two."""
        proposal = self.plan(5.0, saved=True, left=6.5)
        assert proposal.until_step - proposal.start_step == 1
