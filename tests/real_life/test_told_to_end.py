"""A trial that is past its limit is killed, whatever it answers: objectives and libraries swallow exceptions."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

import farthing as ft
from farthing.policies.sampling import Random
from farthing.trial import EndedBy

SPACE = ft.Space(x=ft.Real(0, 1))


def stubborn(config: dict[str, Any]) -> float:
    """Catches whatever tells it to end, and answers at once."""
    try:
        time.sleep(60.0)
    except BaseException:
        return 0.5
    return 1.0


class TestSwallowed:
    @pytest.mark.parametrize(
        ("budget", "limits", "by"),
        [("1 evaluations", {"trial_seconds": 0.5}, EndedBy.TRIAL_LIMIT), ("5s", {}, EndedBy.BUDGET)],
        ids=["trial_seconds", "budget"],
    )
    def test_what_a_function_returns_after_it_was_told_to_end_is_no_value(self, budget, limits, by):
        study = ft.Study(SPACE, budget=budget, policy="random")
        study.run(stubborn, isolate=True, progress=False, **limits)
        (trial,) = study.trials
        assert (trial.status, trial.value, trial.ended_by) == (ft.Status.KILLED, None, by)
        assert study.ledger.account("killed", "seconds") > 0.0
        assert "evaluation" not in study.ledger.accounts

    def test_nor_is_another_exception_its_failure(self):
        def wraps(config):
            try:
                time.sleep(60.0)
            except BaseException as error:
                raise RuntimeError("training failed") from error

        study = ft.Study(SPACE, budget="1 evaluations", policy="random")
        study.run(wraps, trial_seconds=0.5, progress=False)
        assert study.trials[0].status is ft.Status.KILLED
        assert "training failed" not in study.trials[0].error

    def test_nor_what_it_returns_if_it_has_its_own_handler_of_signals(self):
        """As PyTorch Lightning has."""

        def handles(config):
            import signal

            told = []
            signal.signal(signal.SIGTERM, lambda *_: told.append(True))
            while not told:
                time.sleep(0.01)
            return 0.5

        study = ft.Study(SPACE, budget="1 evaluations", policy="random")
        study.run(handles, trial_seconds=0.5, progress=False)
        assert (study.trials[0].status, study.trials[0].value) == (ft.Status.KILLED, None)

    def test_a_learner_keeps_what_it_reported_before(self):
        def learner(config):
            yield 0.9
            try:
                time.sleep(60.0)
            except BaseException:
                yield 0.1

        study = ft.Study(SPACE, budget="1 evaluations", policy="random")
        study.run(learner, trial_seconds=0.5, progress=False)
        (trial,) = study.trials
        assert (trial.status, trial.value, trial.curve.values) == (ft.Status.KILLED, 0.9, (0.9,))

    def test_xgboost_swallows_it_in_c(self, tmp_path, capfd):
        """What Python code raises while XGBoost reads its data ends the data, and not the training."""

        def objective(config):
            import xgboost as xgb

            class Batches(xgb.DataIter):
                batches = 1
                waits = True

                def reset(self) -> None:
                    self.batches = 1

                def next(self, input_data) -> bool:
                    if self.batches:
                        self.batches -= 1
                        input_data(data=np.ones((10, 2)), label=np.ones(10))
                        return True
                    if self.waits:
                        self.waits = False  # XGBoost reads its data several times
                        time.sleep(60.0)
                    return False

            return float(xgb.DMatrix(Batches(cache_prefix=str(tmp_path / "pages"))).num_row())

        study = ft.Study(SPACE, budget="1 evaluations", policy="random")
        study.run(objective, trial_seconds=5.0, progress=False)
        (trial,) = study.trials
        assert (trial.status, trial.value) == (ft.Status.KILLED, None)
        assert "Terminated" not in capfd.readouterr().err, "which would look like an error of the user's"


@dataclass(frozen=True)
class Slow(Random):
    """The second proposal and those after it take a while, during which nobody looks at limits."""

    name: ClassVar[str] = "slow"

    def propose(self, space, history, ledger, n, rng):
        if len(history.trials):
            time.sleep(1.5)
        return super().propose(space, history, ledger, n, rng)


class TestNobodyLooked:
    """While the run thinks, an evaluation ends by itself."""

    def run(self, seconds: float, limit: float) -> ft.Trial:
        def objective(config):
            time.sleep(seconds)
            return 1.0

        study = ft.Study(SPACE, budget="2 evaluations", policy=Slow())
        study.run(objective, workers=2, trial_seconds=limit, progress=False)
        return study.trials[0]

    def test_after_its_limit_it_is_killed_and_before_it_is_complete(self):
        """In both cases the run learns of it when the limit is over."""
        late, in_time = self.run(seconds=1.0, limit=0.4), self.run(seconds=0.01, limit=1.0)
        assert (late.status, late.value) == (ft.Status.KILLED, None)
        assert (in_time.status, in_time.value) == (ft.Status.COMPLETE, 1.0)
