"""What libraries of gradient boosting evaluate after each round, and which number of it is reported."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from farthing.checks import one_of
from farthing.errors import InvalidArgument
from farthing.run_context import current_run
from farthing.trial import Decision

Evaluations = Mapping[str, Mapping[str, Sequence[Any]]]  # by data set and metric: the values of all rounds so far


def report_last(evaluations: Evaluations, metric: str | None, dataset: str | None, how: str) -> Decision:
    """Report a metric of a data set, the last set if none is named. `how` says what to do if nothing is evaluated."""
    return current_run().report(last_value(evaluations, metric, dataset, how))


def last_value(evaluations: Evaluations, metric: str | None, dataset: str | None, how: str) -> float:
    """The newest value of a metric. Where there are several, the libraries differ in which they prefer: so it must be
    named.

    >>> last_value({"train": {"auc": [0.6, 0.9]}, "valid": {"auc": [0.5, 0.7]}}, None, None, "")
    0.7
    >>> last_value({"valid": {"auc": [0.5], "logloss": [0.6]}}, None, None, "")
    Traceback (most recent call last):
    farthing.errors.InvalidArgument: FarthingCallback: metric: expected one of 'auc', 'logloss', got None
    """
    if not evaluations:
        raise InvalidArgument(f"FarthingCallback: nothing is evaluated after each round: {how}")
    names = list(evaluations)
    metrics = evaluations[names[-1] if dataset is None else _one_of("dataset", dataset, names)]
    last = metrics[next(iter(metrics)) if metric is None and len(metrics) == 1 else _one_of("metric", metric, metrics)]
    value: float = last[-1][0] if isinstance(last[-1], tuple) else last[-1]  # over folds: a mean and a deviation
    return value


def _one_of(name: str, given: str | None, accepted: Any) -> Any:
    return one_of(f"FarthingCallback: {name}", given, list(accepted))
