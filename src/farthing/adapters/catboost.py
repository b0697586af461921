"""Farthing in CatBoost: `model.fit(..., eval_set=..., callbacks=[FarthingCallback()])`, which CatBoost has on CPUs."""

from __future__ import annotations

from typing import Any

from farthing.adapters.evaluations import report_last
from farthing.trial import Decision

TRAINING = "learn"  # what CatBoost calls the training data, which it always evaluates


class FarthingCallback:
    """Reports to the current run after each boosting round, and ends the training when the run says so.

    metric   the evaluation metric to report; needed if there are several
    dataset  the evaluation set; None: the last one. CatBoost calls a single one validation
    """

    def __init__(self, metric: str | None = None, dataset: str | None = None) -> None:
        self.metric, self.dataset = metric, dataset

    def after_iteration(self, info: Any) -> bool:
        """False ends the training."""
        evaluations = {name: found for name, found in info.metrics.items() if name != TRAINING or name == self.dataset}
        how = "give `eval_set` to fit"
        return report_last(evaluations, self.metric, self.dataset, how) is not Decision.STOP
