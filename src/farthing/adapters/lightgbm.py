"""Farthing in LightGBM: `lightgbm.train(..., callbacks=[FarthingCallback()])`, or the same argument of `fit`."""

from __future__ import annotations

from typing import Any

from lightgbm.callback import EarlyStopException

from farthing.adapters.evaluations import report_last
from farthing.trial import Decision


class FarthingCallback:
    """Reports to the current run after each boosting round, and ends the training when the run says so.

    metric   the evaluation metric to report; needed if there are several
    dataset  the evaluation set; None: the last one. Without names they are called valid_0, valid_1, ...
    """

    order = 25  # after LightGBM's callbacks that log and record (10, 20), before early stopping (30)
    before_iteration = False

    def __init__(self, metric: str | None = None, dataset: str | None = None) -> None:
        self.metric, self.dataset = metric, dataset

    def __call__(self, env: Any) -> None:
        evaluations: dict[str, dict[str, list[float]]] = {}
        for dataset, metric, value, *_ in env.evaluation_result_list or ():
            evaluations.setdefault(dataset, {})[metric] = [value]
        how = "give `valid_sets` to lightgbm.train, or `eval_set` to fit"
        if report_last(evaluations, self.metric, self.dataset, how) is Decision.STOP:
            raise EarlyStopException(env.iteration, env.evaluation_result_list)
