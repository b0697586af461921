"""Skipping folds: a configuration that cannot become the best any more is not fitted on the remaining folds.

Symbols: K folds, m of them scored; d_j the difference of the scores on fold j, candidate minus incumbent, and d their
mean; s the standard deviation of such a difference from fold to fold. The mean difference over all K folds is then

    d +- s sqrt(1/m - 1/K)

and folds are skipped if even d + Z s sqrt(1/m - 1/K) is below 0. s is the larger of two estimates. The first is sqrt(2)
times the standard deviation of the scores of all completely scored configurations about the means of configurations
and of folds. The second is the standard deviation of the d_j. Bad configurations vary more than good ones, so the first
is too large rather than too small.

The scores of skipped folds are predicted as those of the incumbent plus d: a mean over folds then does not depend on
whether the easy ones came first.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Z = 3.0  # standard deviations: of candidates that would have won, about one in ten thousand is dropped
LEAST_SCORED = 2  # folds: one difference has no standard deviation
LEAST_KNOWN = 5  # configurations scored on all folds, before their spread is trusted

SKIPPED = "skipped"  # marks the record of a skipped fold


def score_of(scores: Any, metric: str | None) -> float:
    """The score to maximise: of several, the one of the metric; None: the first."""
    if not isinstance(scores, Mapping):
        return float(scores)
    name = metric or next(iter(scores))
    if name not in scores:
        raise ValueError(f"refit: the scores have no metric {name!r}, only {', '.join(map(repr, scores))}")
    return float(scores[name])


@dataclass(frozen=True)
class Rival:
    """The configuration to beat, in a file: the run writes it after every trial, workers read it before every fold."""

    path: str

    def publish(self, best: Sequence[Mapping[str, Any]], known: NDArray[np.float64]) -> None:
        """Write the records of the best configuration, and the spread of the scores (n, K) of all complete ones."""
        if len(known) < LEAST_KNOWN:
            return
        content = {"best": [record["test_scores"] for record in best], "spread": spread(known)}
        with open(f"{self.path}.new", "w", encoding="utf-8") as file:
            json.dump(content, file)
        os.replace(f"{self.path}.new", self.path)

    def predicted(self, records: Sequence[Mapping[str, Any]], K: int, metric: str | None) -> list[dict[str, Any]]:
        """Predicted records of the remaining folds if they can be skipped, otherwise none."""
        if not LEAST_SCORED <= len(records) < K:
            return []
        try:
            with open(self.path, encoding="utf-8") as file:
                content = json.load(file)
        except FileNotFoundError:
            return []
        best = content["best"]
        differences = np.array([
            score_of(record["test_scores"], metric) - score_of(rival, metric)
            for record, rival in zip(records, best, strict=False)
        ])  # fmt: skip
        if not cannot_win(differences, K, content["spread"]):
            return []
        return [_predicted_record(records, best, fold) for fold in range(len(records), K)]


def cannot_win(differences: NDArray[np.float64], K: int, spread: float) -> bool:
    """Whether a candidate with these differences (m,) from the incumbent will stay below it.

    >>> bool(cannot_win(np.array([-0.10, -0.11]), 5, spread=0.01)), bool(cannot_win(np.array([-0.01, 0.0]), 5, 0.01))
    (True, False)
    """
    m = len(differences)
    s = max(math.sqrt(2.0) * spread, float(np.std(differences, ddof=1)))
    return bool(differences.mean() + Z * s * math.sqrt(1.0 / m - 1.0 / K) < 0.0)


def spread(scores: NDArray[np.float64]) -> float:
    """The standard deviation of scores (n, K) about the means of configurations and of folds.

    >>> spread(np.array([[0.9, 0.8], [0.7, 0.6]]))
    0.0
    """
    n, K = scores.shape
    rest = scores - scores.mean(axis=1, keepdims=True) - scores.mean(axis=0) + scores.mean()
    return float(np.round(np.sqrt((rest**2).sum() / max((n - 1) * (K - 1), 1)), 12))


def _predicted_record(records: Sequence[Mapping[str, Any]], best: Sequence[Any], fold: int) -> dict[str, Any]:
    """The record of a skipped fold, as if it were like the others; its times are their means."""
    seen = len(records)
    predicted = {**records[0], SKIPPED: True}
    for name in ("fit_time", "score_time"):
        predicted[name] = float(np.mean([record[name] for record in records]))
    if "train_scores" in predicted:
        predicted["train_scores"] = _combined(_mean, [record["train_scores"] for record in records])
    lead = _combined(_mean_difference, [record["test_scores"] for record in records], best[:seen])
    predicted["test_scores"] = _combined(_sum, [best[fold]], [lead])
    return predicted


def _combined(function: Any, *columns: Sequence[Any]) -> Any:
    """A function of numbers, applied per metric if there are several."""
    first = columns[0][0]
    if not isinstance(first, Mapping):
        return function(*columns)
    return {name: function(*([scores[name] for scores in column] for column in columns)) for name in first}


def _mean(scores: Sequence[float]) -> float:
    return float(np.mean(scores))


def _mean_difference(scores: Sequence[float], rivals: Sequence[float]) -> float:
    return float(np.mean(np.subtract(scores, rivals)))


def _sum(scores: Sequence[float], leads: Sequence[float]) -> float:
    return float(scores[0] + leads[0])
