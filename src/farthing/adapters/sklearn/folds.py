"""The objective of a search that fits each candidate at once: one configuration, fitted and scored on every fold.

A record is what scikit-learn's `_fit_and_score` returns for one fold: test_scores (a number, or a dict by metric),
train_scores if wanted, fit_time and score_time in seconds, and fit_error, the text of the error that `fit` raised, or
None. Records are stored as attributes of a trial, so that a search can be rebuilt from its file.
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

from farthing.adapters.sklearn.skipping import Rival, score_of
from farthing.trial import Config, Trial

Record = dict[str, Any]

FOLDS, DATA, RAISED = "folds", "data", "raised"  # attributes of a trial


@dataclass(frozen=True)
class ScoringSetup:
    """The estimator, the data, the folds and the scorer: the same for every configuration."""

    estimator: Any
    X: Any
    y: Any
    splits: Sequence[tuple[Any, Any]]  # rows to fit, rows to score
    scorer: Any
    metric: str | None = None  # the one to maximise, if there are several; None: the first
    fit_params: Mapping[str, Any] = field(default_factory=dict)
    score_params: Mapping[str, Any] = field(default_factory=dict)
    return_train_score: bool = False
    error_score: float | str = math.nan
    reports_cost: bool = False  # report the seconds of fitting and scoring, if the budget is one of cost
    data: int | None = None  # fingerprint, stored with every trial in a file

    def record(self, config: Config, train: Any, test: Any) -> Record:
        """Fit and score one fold, by scikit-learn."""
        return cast(Record, _fit_and_score(
            clone(self.estimator), self.X, self.y, scorer=self.scorer, train=train, test=test, verbose=0,
            parameters=config, fit_params=dict(self.fit_params), score_params=dict(self.score_params),
            return_train_score=self.return_train_score, return_times=True, error_score=self.error_score,
        ))  # fmt: skip

    def report(self, records: Sequence[Record], seconds: float, name: str = FOLDS) -> dict[str, Any]:
        """What the study is told of a configuration. If a fold failed, there is no value."""
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
    """The objective: the mean score over the folds.

    With a rival, it skips the remaining folds as soon as the configuration cannot become the best.
    """

    setup: ScoringSetup
    rival: Rival | None = None

    def __call__(self, config: Config) -> dict[str, Any]:
        setup = self.setup
        records: list[Record] = []
        seconds, rest = 0.0, []
        try:
            for train, test in setup.splits:
                records.append(setup.record(config, train, test))
                seconds += records[-1]["fit_time"] + records[-1]["score_time"]
                rest = self._predicted(records)
                if rest:
                    break
            return setup.report([*records, *rest], seconds)
        except Exception as error:  # of `fit` with error_score="raise", or of anything else
            return raised(error)

    def _predicted(self, records: Sequence[Record]) -> list[Record]:
        if self.rival is None or any(record["fit_error"] is not None for record in records):
            return []
        return self.rival.predicted(records, len(self.setup.splits), self.setup.metric)


def raised(error: Exception) -> dict[str, Any]:
    """The report of an error that ends the search; it carries the error itself."""
    try:
        packed = base64.b64encode(cloudpickle.dumps(error)).decode()
    except Exception:  # the error holds something that cannot be pickled
        packed = base64.b64encode(cloudpickle.dumps(RuntimeError(f"{type(error).__name__}: {error}"))).decode()
    return {"value": math.nan, RAISED: packed}


def reraise(trial: Trial) -> None:
    """Raise the error that a trial carries, if it does."""
    if RAISED in trial.attributes:
        raise cloudpickle.loads(base64.b64decode(trial.attributes[RAISED]))


def fingerprint(X: Any, y: Any, splits: Iterable[tuple[Any, Any]], more: str) -> int:
    """A number that differs if scores cannot be compared: for other folds, other targets or other shapes."""
    found = zlib.crc32(repr((getattr(X, "shape", None) or len(X), more)).encode())
    for rows in (part for split in splits for part in split):
        found = zlib.crc32(np.ascontiguousarray(rows).tobytes(), found)
    target = None if y is None else np.asarray(y)
    if target is not None and target.dtype.kind in "biufSU":
        found = zlib.crc32(np.ascontiguousarray(target).tobytes(), found)
    return found
