"""Farthing in XGBoost: `xgboost.train(..., callbacks=[FarthingCallback()])`, or `XGBClassifier(callbacks=[...])`."""

from __future__ import annotations

from typing import Any

from xgboost.callback import TrainingCallback

from farthing.adapters.evaluations import report_last
from farthing.trial import Decision


class FarthingCallback(TrainingCallback):
    """Reports to the current run after each boosting round, and ends the training when the run says so.

    metric   the evaluation metric to report; needed if there are several
    dataset  the evaluation set; None: the last one. XGBClassifier and XGBRegressor call them validation_0, ...
    """

    def __init__(self, metric: str | None = None, dataset: str | None = None) -> None:
        super().__init__()
        self.metric, self.dataset = metric, dataset

    def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
        """True ends the training."""
        how = "give `evals` to xgboost.train, or `eval_set` to fit"
        return report_last(evals_log, self.metric, self.dataset, how) is Decision.STOP
