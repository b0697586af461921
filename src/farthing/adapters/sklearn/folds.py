"""The objective of a search in scikit-learn: one configuration, fitted and scored on every fold.

A record is what scikit-learn's `_fit_and_score` says of one fold: test_scores (a number, or a dict by metric),
train_scores if wanted, fit_time, score_time in seconds, and fit_error, the text of what `fit` raised or None. Records
travel as attributes of a trial, so that a search can be rebuilt from its file.
"""

from __future__ import annotations

import base64
import math
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import cloudpickle
import numpy as np
from sklearn.base import clone
from sklearn.model_selection._validation import _fit_and_score

from farthing.adapters.sklearn.skipping import Bar, score_of
from farthing.trial import Config, Trial

Record = dict[str, Any]

FOLDS, DATA, RAISED = "folds", "data", "raised"  # attributes of a trial


@dataclass(frozen=True)
class Problem:
    """What every configuration is fitted to and scored on."""

    estimator: Any
    X: Any
    y: Any
    splits: Sequence[tuple[Any, Any]]  # rows to fit, rows to score
    scorer: Any
    metric: str | None = None  # of several, the one that is maximised; None: the first
    fit_params: Mapping[str, Any] = field(default_factory=dict)
    score_params: Mapping[str, Any] = field(default_factory=dict)
    return_train_score: bool = False
    error_score: float | str = math.nan
    reports_cost: bool = False  # the seconds of fitting and scoring, where the budget is in units of the objective's
    data: int | None = None  # fingerprint, kept with every trial of a file

    def record(self, config: Config, train: Any, test: Any) -> Record:
        """One fold, by scikit-learn."""
        return cast(Record, _fit_and_score(
            clone(self.estimator), self.X, self.y, scorer=self.scorer, train=train, test=test, verbose=0,
            parameters=config, fit_params=dict(self.fit_params), score_params=dict(self.score_params),
            return_train_score=self.return_train_score, return_times=True, error_score=self.error_score,
        ))  # fmt: skip

    def report(self, records: Sequence[Record], seconds: float, name: str = FOLDS) -> dict[str, Any]:
        """What a study is told of a configuration; one of which a fold failed has no value."""
        failed = any(record["fit_error"] is not None for record in records)
        value = (
            math.nan if failed else float(np.mean([score_of(record["test_scores"], self.metric) for record in records]))
        )
        return {
            "value": value,
            name: list(records),
            **({} if self.data is None else {DATA: self.data}),
            **({"cost": seconds} if self.reports_cost else {}),
        }


@dataclass(frozen=True)
class CrossValidation:
    """A configuration's mean score over the folds; with a bar, over those it takes to see that it cannot win."""

    problem: Problem
    bar: Bar | None = None

    def __call__(self, config: Config) -> dict[str, Any]:
        problem = self.problem
        records: list[Record] = []
        seconds, rest = 0.0, []
        try:
            for train, test in problem.splits:
                records.append(problem.record(config, train, test))
                seconds += records[-1]["fit_time"] + records[-1]["score_time"]
                rest = self._foretold(records)
                if rest:
                    break
            return problem.report([*records, *rest], seconds)
        except Exception as error:  # `fit` may raise where error_score="raise"; nothing else may at all
            return raised(error)

    def _foretold(self, records: Sequence[Record]) -> list[Record]:
        if self.bar is None or any(record["fit_error"] is not None for record in records):
            return []
        return self.bar.foretold(records, len(self.problem.splits), self.problem.metric)


def raised(error: Exception) -> dict[str, Any]:
    """A failure that ends the search: the error itself travels with it."""
    try:
        packed = base64.b64encode(cloudpickle.dumps(error)).decode()
    except Exception:  # whatever it holds
        packed = base64.b64encode(cloudpickle.dumps(RuntimeError(f"{type(error).__name__}: {error}"))).decode()
    return {"value": math.nan, RAISED: packed}


def reraise(trial: Trial) -> None:
    """Raise the error that a trial of this run brought with it, if it did."""
    if RAISED in trial.attributes:
        raise cloudpickle.loads(base64.b64decode(trial.attributes[RAISED]))


def fingerprint(X: Any, y: Any, splits: Iterable[tuple[Any, Any]], more: str) -> int:
    """A number that differs where scores cannot be compared: other folds, other targets, other shapes."""
    found = zlib.crc32(repr((getattr(X, "shape", None) or len(X), more)).encode())
    for rows in (part for split in splits for part in split):
        found = zlib.crc32(np.ascontiguousarray(rows).tobytes(), found)
    target = None if y is None else np.asarray(y)
    if target is not None and target.dtype.kind in "biufSU":
        found = zlib.crc32(np.ascontiguousarray(target).tobytes(), found)
    return found
