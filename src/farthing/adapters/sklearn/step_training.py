"""Train an estimator step by step, by its `StepPlan`, on all folds at once.

After each step the mean score over the folds is yielded, and the runner decides whether to continue, pause or stop. A
paused configuration writes its models to a checkpoint and frees its process for the next one: a new process would have
to import scikit-learn first. The best parameters are fitted to all rows by the same loop if `fit` would not give the
same model.
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

from farthing.adapters.sklearn.boosting import library_of
from farthing.adapters.sklearn.folds import Record, ScoringSetup, raised
from farthing.adapters.sklearn.step_plan import StepPlan, last_step
from farthing.run_context import Run, current_run
from farthing.trial import Config

State = tuple[Any, int, float, float]  # estimator, units, seconds of fitting, of scoring

CHECKPOINT = "step-{}.pickle"
STEP = "step {}"  # attribute of a trial: the records after that step


class Learner:
    """A model that is trained some units at a time, on fixed rows. Transformers before it are fitted once.

    `trained` is the estimator of a checkpoint, to go on with.
    """

    def __init__(
        self, estimator: Any, rows: tuple[Any, Any], plan: StepPlan, fit_params: Mapping[str, Any], trained: Any = None
    ) -> None:
        prefix, self._untrained = last_step(estimator)
        self.estimator, self.units, self._plan = estimator if trained is None else trained, 0, plan
        self._params = {name.removeprefix(prefix): value for name, value in fit_params.items()}
        self._name = plan.parameter.rpartition("__")[2]
        self._X, self._y = rows
        self._rows_read: list[Any] = []  # as the library holds them, if it can keep them
        if trained is None:
            self._begin()
        else:
            self._X = self.transform(self._X)

    def _begin(self) -> None:
        if self.has_transformers:
            before = self.estimator[:-1]
            self._X = before.fit_transform(self._X, self._y)
            self.estimator.steps[:-1] = before.steps  # with `memory` they are copies
        seed = self.last.get_params(deep=False).get("random_state")
        if self._plan.by == "partial_fit" and isinstance(seed, int | np.integer):
            # A fixed number would shuffle the rows of every epoch in the same way.
            self.last.set_params(random_state=np.random.RandomState(seed))

    @property
    def last(self) -> Any:
        """What is trained: the estimator, or the last step of a pipeline."""
        return last_step(self.estimator)[1]

    @property
    def has_transformers(self) -> bool:
        return self.last is not self.estimator and len(self.estimator.steps) > 1

    def transform(self, X: Any) -> Any:
        """Rows as the model sees them."""
        return self.estimator[:-1].transform(X) if self.has_transformers else X

    def advance(self, units: int) -> None:
        """Train up to a number of units, or until the estimator stops by itself."""
        if self._plan.by == "warm_start":
            self._fit_again(units)
        elif self._plan.by == "partial_fit":
            self._fit_epochs(units)
        else:
            self._succeed(units)

    @property
    def _target(self) -> tuple[Any, ...]:
        return () if self._y is None else (self._y,)

    def _fit_again(self, units: int) -> None:
        with warnings.catch_warnings():
            warnings.filterwarnings(
                "ignore", message=".*not recommended for warm_start"
            )  # here the rows are always the same
            self.last.set_params(warm_start=True, **{self._name: units}).fit(self._X, *self._target, **self._params)
        self.units = units

    def _fit_epochs(self, units: int) -> None:
        while self.units < units and not self.ended:
            first = self.units == 0 and is_classifier(self.last)
            self.last.partial_fit(self._X, *self._target, **({"classes": np.unique(self._y)} if first else {}))
            self.units += 1

    def _succeed(self, units: int) -> None:
        """A new estimator begins with the model of the last one: CatBoost's cannot be changed once they are fitted."""
        library = library_of(self._untrained)
        assert library is not None
        params = self._untrained.get_params(deep=False)
        successor = clone(self._untrained).set_params(**{self._name: units - self.units})
        model = {}
        if self.units:
            successor.set_params(**library.seeds_after(params, self.units))
            model = {self._plan.by: self.last}
        with library.keeping_rows(successor, self._rows_read):
            successor.fit(self._X, *self._target, **self._params, **model)
        if self.estimator is self.last:
            self.estimator = successor
        else:
            self.estimator.steps[-1] = (self.estimator.steps[-1][0], successor)
        self.units = units

    @property
    def ended(self) -> bool:
        """Whether a multi-layer perceptron has stopped: its loss has not improved for n_iter_no_change epochs."""
        patience = getattr(self.last, "n_iter_no_change", None)
        return patience is not None and getattr(self.last, "_no_improvement_count", 0) > patience


class Fold:
    """One fold of a configuration: a learner on its rows, and the seconds it has taken so far."""

    def __init__(
        self, setup: ScoringSetup, estimator: Any, plan: StepPlan, split: tuple[Any, Any], trained: Any = None
    ) -> None:
        began, (train, test) = time.perf_counter(), split
        rows = {"train": _safe_split(estimator, setup.X, setup.y, train)}
        rows["test"] = _safe_split(estimator, setup.X, setup.y, test, train)
        fit_params = _check_method_params(setup.X, params=setup.fit_params, indices=train)
        self._setup, self._rows = setup, rows
        self._params = {
            name: _check_method_params(setup.X, params=setup.score_params, indices=indices)
            for name, indices in (("train", train), ("test", test))
        }
        self.learner = Learner(estimator, rows["train"], plan, fit_params, trained)
        self._scores_last = self.learner.has_transformers and asks_for_predictions(setup.scorer)
        if self._scores_last:
            self._rows = {name: (self.learner.transform(X), y) for name, (X, y) in rows.items() if self._wants(name)}
        self._fitting, self._scoring = time.perf_counter() - began, 0.0

    @property
    def seconds(self) -> float:
        return self._fitting + self._scoring

    @property
    def state(self) -> State:
        """All that cannot be recomputed from the data."""
        return self.learner.estimator, self.learner.units, self._fitting, self._scoring

    @classmethod
    def from_state(
        cls, setup: ScoringSetup, estimator: Any, plan: StepPlan, split: tuple[Any, Any], state: State
    ) -> Fold:
        """The fold of a checkpoint. The time to restore it is not counted as the fold's."""
        trained, units, fitting, scoring = state
        fold = cls(setup, estimator, plan, split, trained)
        fold.learner.units, fold._fitting, fold._scoring = units, fitting, scoring
        return fold

    def _wants(self, name: str) -> bool:
        return name == "test" or self._setup.return_train_score

    def advance(self, units: int) -> Record:
        """Train up to a number of units, and score."""
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
        scored = self.learner.last if self._scores_last else self.learner.estimator
        return _score(scored, X, y, self._setup.scorer, self._params[name], self._setup.error_score)


def configured(estimator: Any, config: Mapping[str, Any]) -> Any:
    """A copy of an estimator with these parameters, which may be estimators themselves."""
    return clone(estimator).set_params(**clone(config, safe=False))


def asks_for_predictions(scorer: Any) -> bool:
    """Whether a scorer uses nothing but predictions, as scikit-learn's own do.

    For such a scorer the last step of a pipeline, on rows that are transformed once, is as good as the pipeline.
    """
    if isinstance(scorer, _MultimetricScorer):
        return all(map(asks_for_predictions, scorer._scorers.values()))
    return isinstance(scorer, _BaseScorer | _PassthroughScorer)


@dataclass(frozen=True)
class StepTraining:
    """The objective of a search in steps: trains all folds of a configuration one step at a time."""

    setup: ScoringSetup
    plan: StepPlan

    def __call__(self, config: Config) -> Iterator[dict[str, Any]]:
        try:
            configured(self.setup.estimator, config)
        except Exception as error:  # a parameter that does not exist ends the search, as in scikit-learn
            yield raised(error)
        try:
            yield from self._steps(config)
        except Exception as error:
            if self.setup.error_score != "raise":
                raise
            yield raised(error)

    def _steps(self, config: Config) -> Iterator[dict[str, Any]]:
        run = current_run()
        folds = self._restored(run, config) or [
            Fold(self.setup, configured(self.setup.estimator, config), self.plan, split) for split in self.setup.splits
        ]
        spent = sum(fold.seconds for fold in folds) if run.step else 0.0
        for step in range(run.step + 1, self.plan.steps + 1):
            records = [fold.advance(self.plan.units_at(step)) for fold in folds]
            total = sum(fold.seconds for fold in folds)
            try:
                yield self.setup.report(records, total - spent, STEP.format(step))
            except GeneratorExit:  # paused
                if step < self.plan.steps:
                    self._save(run, step, folds)
                raise
            spent = total
            if all(fold.learner.ended for fold in folds):
                return

    def _save(self, run: Run, step: int, folds: Sequence[Fold]) -> None:
        """Write a checkpoint, and remove the one before it."""
        path = run.checkpoint_dir / CHECKPOINT.format(step)
        with suppress(Exception):  # a model that cannot be pickled is trained again
            path.with_suffix(".new").write_bytes(cloudpickle.dumps([fold.state for fold in folds]))
            path.with_suffix(".new").replace(path)
        for other in path.parent.iterdir():
            if other != path:
                other.unlink()

    def _restored(self, run: Run, config: Config) -> list[Fold]:
        """The folds after the step to continue from, if there is a checkpoint."""
        path = run.checkpoint_dir / CHECKPOINT.format(run.step)
        if run.step == 0 or not path.exists():
            return []
        states = pickle.loads(path.read_bytes())
        return [
            Fold.from_state(self.setup, configured(self.setup.estimator, config), self.plan, split, state)
            for state, split in zip(states, self.setup.splits, strict=True)
        ]


def train_in_steps(estimator: Any, config: Mapping[str, Any], X: Any, y: Any, plan: StepPlan) -> Any:
    """An estimator with a configuration, trained by this loop up to the number of units in the configuration."""
    estimator = configured(estimator, config)
    given = last_step(estimator)[1].get_params(deep=False)
    learner = Learner(estimator, (X, y), plan, {})
    learner.advance(config[plan.parameter])
    if "random_state" in given:
        learner.last.set_params(random_state=given["random_state"])
    return learner.estimator
