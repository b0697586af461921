"""Our own loop that trains an estimator of scikit-learn step by step, on all folds at once.

After a step the mean score over the folds is yielded, and the run decides whether to go on, pause or stop. A paused
configuration writes its models down and leaves its process to the next: one that waited for it would have to import
scikit-learn first. The best parameters are fitted to all rows by the same loop where `fit` would not give the same
model.
"""

from __future__ import annotations

import pickle
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import cloudpickle
import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.metrics._scorer import _BaseScorer, _MultimetricScorer, _PassthroughScorer
from sklearn.model_selection._validation import _score
from sklearn.utils.metaestimators import _safe_split
from sklearn.utils.validation import _check_method_params

from farthing.adapters.sklearn.folds import Problem, Record, raised
from farthing.adapters.sklearn.stepping import Pace, last_step
from farthing.run_context import Run, current_run
from farthing.trial import Config

State = tuple[Any, int, float, float]  # estimator, units, seconds of fitting, of scoring

CHECKPOINT = "step-{}.pickle"
STEP = "step {}"  # attribute of a trial: the records after that step


class Learner:
    """A model that is trained some units at a time on some rows. Transformers before it are fitted once."""

    def __init__(self, estimator: Any, rows: tuple[Any, Any], pace: Pace, fit_params: Mapping[str, Any]) -> None:
        self.estimator, self.units, self._pace, self._params = estimator, 0, pace, fit_params
        _, self.last = last_step(estimator)
        self._name = pace.parameter.rpartition("__")[2]
        self._X, self._y = rows
        self._begin()

    def _begin(self) -> None:
        if self.has_transformers:
            before = self.estimator[:-1]
            self._X = before.fit_transform(self._X, self._y)
            self.estimator.steps[:-1] = before.steps  # with `memory` they are copies
        seed = self.last.get_params(deep=False).get("random_state")
        if self._pace.by == "partial_fit" and isinstance(seed, int | np.integer):
            # A number would shuffle the rows of every epoch alike.
            self.last.set_params(random_state=np.random.RandomState(seed))

    @property
    def has_transformers(self) -> bool:
        return self.last is not self.estimator and len(self.estimator.steps) > 1

    def transform(self, X: Any) -> Any:
        """Rows as the model sees them."""
        return self.estimator[:-1].transform(X) if self.has_transformers else X

    def advance(self, units: int) -> None:
        """Train until there are so many units, or the estimator says that it is done."""
        target = () if self._y is None else (self._y,)
        if self._pace.by == "warm_start":
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", message=".*not recommended for warm_start")  # the rows are the same
                self.last.set_params(warm_start=True, **{self._name: units}).fit(self._X, *target, **self._params)
            self.units = units
        while self.units < units and not self.ended:
            first = self.units == 0 and is_classifier(self.last)
            self.last.partial_fit(self._X, *target, **({"classes": np.unique(self._y)} if first else {}))
            self.units += 1

    @property
    def ended(self) -> bool:
        """Whether a multi-layer perceptron has not improved its loss for as long as it may."""
        patience = getattr(self.last, "n_iter_no_change", None)
        return patience is not None and getattr(self.last, "_no_improvement_count", 0) > patience


class Resumed(Learner):
    """One whose model was trained before."""

    def _begin(self) -> None:
        self._X = self.transform(self._X)


class Fold:
    """One fold of a configuration: a learner on its rows, and what it took so far."""

    def __init__(
        self, problem: Problem, estimator: Any, pace: Pace, split: tuple[Any, Any], kind: type[Learner] = Learner
    ) -> None:
        began, (train, test) = time.perf_counter(), split
        rows = {"train": _safe_split(estimator, problem.X, problem.y, train)}
        rows["test"] = _safe_split(estimator, problem.X, problem.y, test, train)
        fit_params = _check_method_params(problem.X, params=problem.fit_params, indices=train)
        self._problem, self._rows = problem, rows
        self._params = {
            name: _check_method_params(problem.X, params=problem.score_params, indices=indices)
            for name, indices in (("train", train), ("test", test))
        }
        self.learner = kind(estimator, rows["train"], pace, fit_params)
        self._scored = estimator
        if self.learner.has_transformers and asks_for_predictions(problem.scorer):
            self._scored = self.learner.last
            self._rows = {name: (self.learner.transform(X), y) for name, (X, y) in rows.items() if self._wants(name)}
        self._fitting, self._scoring = time.perf_counter() - began, 0.0

    @property
    def seconds(self) -> float:
        return self._fitting + self._scoring

    @property
    def state(self) -> State:
        """All that cannot be had again from the data."""
        return self.learner.estimator, self.learner.units, self._fitting, self._scoring

    @classmethod
    def from_state(
        cls, problem: Problem, state: tuple[Any, int, float, float], pace: Pace, split: tuple[Any, Any]
    ) -> Fold:
        """A fold as it was; what it takes to be again is not counted as its own."""
        estimator, units, fitting, scoring = state
        fold = cls(problem, estimator, pace, split, kind=Resumed)
        fold.learner.units, fold._fitting, fold._scoring = units, fitting, scoring
        return fold

    def _wants(self, name: str) -> bool:
        return name == "test" or self._problem.return_train_score

    def advance(self, units: int) -> Record:
        """Train to so many units and score."""
        began = time.perf_counter()
        self.learner.advance(units)
        fitted = time.perf_counter()
        scores = {"test_scores": self._score("test")}
        scored = time.perf_counter()
        if self._wants("train"):
            scores["train_scores"] = self._score("train")
        self._fitting, self._scoring = self._fitting + fitted - began, self._scoring + scored - fitted
        return {"fit_error": None, **scores, "fit_time": self._fitting, "score_time": self._scoring}

    def _score(self, name: str) -> Any:
        X, y = self._rows[name]
        return _score(self._scored, X, y, self._problem.scorer, self._params[name], self._problem.error_score)


def configured(estimator: Any, config: Mapping[str, Any]) -> Any:
    """A copy of an estimator with these parameters, which may be estimators themselves."""
    return clone(estimator).set_params(**clone(config, safe=False))


def asks_for_predictions(scorer: Any) -> bool:
    """Whether a scorer is one of scikit-learn's, which ask for predictions and nothing else: to such a one the last
    step of a pipeline, on rows transformed once, is as good as the pipeline."""
    if isinstance(scorer, _MultimetricScorer):
        return all(map(asks_for_predictions, scorer._scorers.values()))
    return isinstance(scorer, _BaseScorer | _PassthroughScorer)


@dataclass(frozen=True)
class Stepwise:
    """An iterative learner: all folds of a configuration, one step after the other."""

    problem: Problem
    pace: Pace

    def __call__(self, config: Config) -> Iterator[dict[str, Any]]:
        try:
            configured(self.problem.estimator, config)
        except Exception as error:  # a parameter that does not exist ends the search, as in scikit-learn
            yield raised(error)
        try:
            yield from self._steps(config)
        except Exception as error:
            if self.problem.error_score != "raise":
                raise
            yield raised(error)

    def _steps(self, config: Config) -> Iterator[dict[str, Any]]:
        run = current_run()
        folds = self._kept(run) or [
            Fold(self.problem, configured(self.problem.estimator, config), self.pace, split)
            for split in self.problem.splits
        ]
        spent = sum(fold.seconds for fold in folds) if run.step else 0.0
        for step in range(run.step + 1, self.pace.steps + 1):
            records = [fold.advance(self.pace.units_at(step)) for fold in folds]
            total = sum(fold.seconds for fold in folds)
            try:
                yield self.problem.report(records, total - spent, STEP.format(step))
            except GeneratorExit:  # paused
                if step < self.pace.steps:
                    self._keep(run, step, folds)
                raise
            spent = total
            if all(fold.learner.ended for fold in folds):
                return

    def _keep(self, run: Run, step: int, folds: Sequence[Fold]) -> None:
        """Write a checkpoint, in place of an earlier one."""
        path = run.checkpoint_dir / CHECKPOINT.format(step)
        with suppress(Exception):  # what cannot be pickled is trained again
            path.with_suffix(".new").write_bytes(cloudpickle.dumps([fold.state for fold in folds]))
            path.with_suffix(".new").replace(path)
        for other in path.parent.iterdir():
            if other != path:
                other.unlink()

    def _kept(self, run: Run) -> list[Fold]:
        """The folds as they were after the step to go on from, if they were kept."""
        path = run.checkpoint_dir / CHECKPOINT.format(run.step)
        if run.step == 0 or not path.exists():
            return []
        states = pickle.loads(path.read_bytes())
        return [
            Fold.from_state(self.problem, state, self.pace, split)
            for state, split in zip(states, self.problem.splits, strict=True)
        ]


def trained(estimator: Any, config: Mapping[str, Any], X: Any, y: Any, pace: Pace) -> Any:
    """An estimator with a configuration, trained by our own loop to the units that the configuration says."""
    estimator = configured(estimator, config)
    given = last_step(estimator)[1].get_params(deep=False)
    learner = Learner(estimator, (X, y), pace, {})
    learner.advance(config[pace.parameter])
    if "random_state" in given:
        learner.last.set_params(random_state=given["random_state"])
    return learner.estimator
