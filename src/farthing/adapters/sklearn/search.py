"""`FarthingSearchCV`: a search of scikit-learn's kind that ends when its budget does."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Sequence
from copy import copy
from functools import partial
from numbers import Integral, Real
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np

try:
    from joblib import effective_n_jobs  # type: ignore[import-untyped]
    from sklearn.base import _fit_context, clone, is_classifier
    from sklearn.metrics._scorer import _MultimetricScorer
    from sklearn.model_selection import check_cv
    from sklearn.model_selection._search import BaseSearchCV
    from sklearn.model_selection._validation import _insert_error_scores, _warn_or_raise_about_fit_failures
    from sklearn.utils import check_random_state, indexable
    from sklearn.utils._param_validation import Interval, StrOptions
    from sklearn.utils.validation import _check_method_params, _num_samples
except ImportError as error:
    raise ImportError('FarthingSearchCV needs scikit-learn 1.7 or newer: pip install "farthing[sklearn]"') from error

from farthing.adapters.sklearn.defaults import own_config
from farthing.adapters.sklearn.folds import CrossValidation, Problem, fingerprint, reraise
from farthing.adapters.sklearn.results import (
    candidates_of,
    columns,
    complete_scores,
    outputs,
    require_same_data,
    without_skipped,
)
from farthing.adapters.sklearn.skipping import Bar
from farthing.adapters.sklearn.stepping import Pace, pace_of
from farthing.adapters.sklearn.steps import Stepwise, trained
from farthing.budget import Budget
from farthing.errors import FarthingError, InvalidArgument, NoTrial
from farthing.policies import Auto, policy_of
from farthing.space import Space
from farthing.study import Study
from farthing.trial import EndedBy, Status, Trial


class FarthingSearchCV(BaseSearchCV):
    """Cross-validated search for the best parameters that a budget can buy, in place of RandomizedSearchCV.

    estimator            as in RandomizedSearchCV
    param_distributions  a dict from names to Farthing parameters, scipy.stats distributions (uniform, loguniform,
                         randint) or lists; or a farthing.Space, with conditions
    budget               "10m", "100 evaluations", Budget(...): what the search may spend; the last fit of the best
                         parameters to all rows comes after it, and is in `refit_time_`
    policy               a name ("auto", "carbo", "ei", "random", ...) or an object with options
    scoring, refit, cv, error_score, return_train_score    as in RandomizedSearchCV
    n_jobs               how many candidates are evaluated side by side, each in a process of its own
    verbose              1 or more shows progress
    random_state         makes proposals repeatable
    iterative            "auto" trains estimators step by step where that is sound and the policy can use it, True
                         wherever it can be done (an error says why not), False never
    max_steps            how long a complete training is, in trees, rounds or epochs; None: as the estimator says
    skip_folds           True leaves a candidate after some folds when it cannot win any more
    storage              a file that keeps every event; a search with the same file goes on where it was
    start                parameters to evaluate first: a list of dicts, or "own", those that the estimator has
    trial_seconds, trial_memory    limits of one candidate, over all folds

    After `fit` there is all that RandomizedSearchCV has; `cv_results_` has the columns cost, predicted_cost and
    budget_share too; `ledger_` says what was spent, `trials_` how each trial ended. See docs/sklearn.md.

    >>> import farthing as ft
    >>> from scipy.stats import loguniform
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.svm import SVC
    >>> X, y = load_iris(return_X_y=True)
    >>> search = ft.FarthingSearchCV(SVC(), {"C": loguniform(1e-2, 1e2)}, budget="8 evaluations", random_state=0)
    >>> bool(search.fit(X, y).best_score_ > 0.97)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **{name: kinds for name, kinds in BaseSearchCV._parameter_constraints.items() if name != "pre_dispatch"},
        "param_distributions": [dict, Space],
        "random_state": ["random_state"],
        "iterative": [StrOptions({"auto"}), "boolean"],
        "max_steps": [Interval(Integral, 1, None, closed="left"), None],
        "skip_folds": ["boolean"],
        "storage": [str, os.PathLike, None],
        "start": ["array-like", StrOptions({"own"})],
        "trial_seconds": [Interval(Real, 0, None, closed="neither"), str, None],
        "trial_memory": [Interval(Real, 0, None, closed="neither"), str, None],
    }

    def __init__(
        self, estimator: Any, param_distributions: Any, *, budget: Any = "5m", policy: Any = "auto",
        scoring: Any = None, n_jobs: int | None = None, refit: Any = True, cv: Any = None, verbose: int = 0,
        random_state: Any = None, error_score: Any = np.nan, return_train_score: bool = False,
        iterative: Literal["auto"] | bool = "auto", max_steps: int | None = None, skip_folds: bool = False,
        storage: str | os.PathLike[str] | None = None, start: Sequence[dict[str, Any]] | Literal["own"] = "own",
        trial_seconds: float | str | None = None, trial_memory: float | str | None = None,
    ) -> None:  # fmt: skip
        super().__init__(
            estimator=estimator, scoring=scoring, n_jobs=n_jobs, refit=refit, cv=cv, verbose=verbose,
            error_score=error_score, return_train_score=return_train_score,
        )  # fmt: skip
        self.param_distributions = param_distributions
        self.budget = budget
        self.policy = policy
        self.random_state = random_state
        self.iterative = iterative
        self.max_steps = max_steps
        self.skip_folds = skip_folds
        self.storage = storage
        self.start = start
        self.trial_seconds = trial_seconds
        self.trial_memory = trial_memory

    @_fit_context(prefer_skip_nested_validation=False)  # type: ignore[untyped-decorator]  # scikit-learn has no types
    def fit(self, X: Any, y: Any = None, **params: Any) -> FarthingSearchCV:
        """Search until the budget is spent, then fit the best parameters to all rows.

        `params` go to the estimator's `fit`, the splitter and the scorer, as in RandomizedSearchCV. Ctrl-C raises
        KeyboardInterrupt; `cv_results_` and `best_params_` are then those found so far.
        """
        scorers, refit_metric = self._get_scorers()
        X, y = indexable(X, y)
        routed = self._get_routed_params_for_fit(_check_method_params(X, params=params))
        splits = self._splits(X, y, routed.splitter.split)
        space, budget = self._space(), Budget.of(self.budget)
        pace = self._pace(space, budget, y, _num_samples(X), routed.estimator.fit)
        problem = Problem(
            clone(self.estimator), X, y, splits, scorers, self.refit if isinstance(self.refit, str) else None,
            routed.estimator.fit, routed.scorer.score, self.return_train_score, self.error_score,
            reports_cost=budget.unit == "cost",
            data=None if self.storage is None else fingerprint(X, y, splits, repr(pace)),
        )  # fmt: skip
        interrupted = self._search(problem, space, budget, pace)
        self._take_results(problem, refit_metric, pace)
        self.scorer_ = scorers._scorers if isinstance(scorers, _MultimetricScorer) else scorers
        if interrupted:
            raise KeyboardInterrupt(f"after {len(self.trials_)} trials; what was found is in cv_results_")
        if self.refit:
            self._refit(problem, pace)
        return self

    def _splits(self, X: Any, y: Any, split_params: Any) -> list[tuple[Any, Any]]:
        cv = check_cv(self.cv, y, classifier=is_classifier(self.estimator))
        self.n_splits_ = cv.get_n_splits(X, y, **split_params)
        splits = list(cv.split(X, y, **split_params))
        if len(splits) != self.n_splits_ or not splits:
            raise ValueError(
                f"cv.split and cv.get_n_splits return inconsistent results. Expected {self.n_splits_} splits, "
                f"got {len(splits)}"
            )
        return splits

    def _space(self) -> Space:
        """Of copies: parameters remember what they computed, and scikit-learn wants what it gave unchanged."""
        given = self.param_distributions
        return given if isinstance(given, Space) else Space.of({name: copy(param) for name, param in given.items()})

    # -- searching -----------------------------------------------------------------------------------------------------

    def _pace(self, space: Space, budget: Budget, y: Any, rows: int, fit_params: Any) -> Pace | None:
        """How the estimator trains step by step, None where each candidate is fitted at once."""
        policy = policy_of(self.policy)
        needed = hasattr(policy, "decide") and getattr(policy, "needs_steps", True)
        asked_for = self.iterative is True or (needed and self.iterative == "auto")
        used = budget.unit in budget.limits if isinstance(policy, Auto) else needed
        if not asked_for and (self.iterative is False or not used or self.skip_folds):
            if needed:
                raise InvalidArgument(f"policy {policy.name!r} is for training step by step, and iterative is False")
            return None
        if self.skip_folds:
            raise InvalidArgument("skip_folds: all folds train side by side when an estimator trains step by step")
        pace = pace_of(self.estimator, space.names, y, rows, fit_params, self.max_steps, asked_for)
        if isinstance(pace, Pace):
            return pace
        if asked_for:
            what = "iterative=True" if self.iterative is True else f"policy {policy.name!r}"
            raise InvalidArgument(f"{what}: the estimator cannot be trained step by step: {pace}")
        return None

    def _search(self, problem: Problem, space: Space, budget: Budget, pace: Pace | None) -> bool:
        """Run the study; whether Ctrl-C ended it."""
        with (
            Study(
                space, budget, policy=self.policy, maximize=True, seed=self._seed(), storage=self.storage,
                start=self._start(space), max_steps=None if pace is None else pace.steps,
            ) as study,
            tempfile.TemporaryDirectory(prefix="farthing-") as folder,
        ):  # fmt: skip
            require_same_data(study, problem.data)
            bar = Bar(str(Path(folder, "bar.json"))) if self.skip_folds else None
            raise_bar = partial(_raise_bar, bar, problem.metric)
            raise_bar(study)
            study.run(
                CrossValidation(problem, bar) if pace is None else Stepwise(problem, pace),
                workers=effective_n_jobs(self.n_jobs), progress=None if self.verbose else False,
                trial_seconds=self.trial_seconds, trial_memory=self.trial_memory,
                paused_limit=0,  # they go on from their checkpoints
                 callbacks=[self._raise_error, raise_bar],
            )  # fmt: skip
            self.trials_, self.ledger_ = tuple(study.trials), study.ledger
            return study.interrupted

    def _start(self, space: Space) -> Sequence[dict[str, Any]]:
        if self.start != "own":
            return self.start
        own = own_config(self.estimator, space)
        return [] if own is None else [own]

    def _seed(self) -> int | None:
        """None leaves it to the study's file."""
        if self.random_state is None and self.storage is not None:
            return None
        if isinstance(self.random_state, Integral):
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _raise_error(self, study: Study, trial: Trial) -> None:
        reraise(trial)
        if self.error_score == "raise" and trial.status is Status.FAILED:
            raise FarthingError(f"{trial.config}: {trial.error}")

    # -- results -------------------------------------------------------------------------------------------------------

    def _take_results(self, problem: Problem, refit_metric: Any, pace: Pace | None) -> None:
        budget = self.ledger_.budget
        found = candidates_of(self.trials_, self.n_splits_, pace, self.error_score, self.return_train_score)
        if not found:
            cut = sum(trial.ended_by is EndedBy.BUDGET for trial in self.trials_)
            raise NoTrial(
                f"no candidate was fitted on all {self.n_splits_} folds within {budget} ({cut} were cut short): "
                "give a larger budget, or fewer folds"
            )
        records = outputs(found)
        _warn_or_raise_about_fit_failures(records, self.error_score)
        _insert_error_scores(records, self.error_score)
        results = self._format_results(
            [candidate.params for candidate in found], self.n_splits_, records, columns(found, budget)
        )
        self.cv_results_ = without_skipped(results, found)
        self.multimetric_ = isinstance(records[0]["test_scores"], dict)
        if callable(self.scoring) and self.multimetric_:
            self._check_refit_for_multimetric(records[0]["test_scores"])
            refit_metric = self.refit
        if self.refit or not self.multimetric_:
            self.best_index_ = self._select_best_index(self.refit, refit_metric, self.cv_results_)
            if not callable(self.refit):
                self.best_score_ = self.cv_results_[f"mean_test_{refit_metric}"][self.best_index_]
            self.best_params_ = self.cv_results_["params"][self.best_index_]

    def _refit(self, problem: Problem, pace: Pace | None) -> None:
        began = time.perf_counter()
        if pace is not None and pace.by == "partial_fit":
            self.best_estimator_ = trained(problem.estimator, self.best_params_, problem.X, problem.y, pace)
        else:
            best = clone(problem.estimator).set_params(**clone(self.best_params_, safe=False))
            target = () if problem.y is None else (problem.y,)
            self.best_estimator_ = best.fit(problem.X, *target, **problem.fit_params)
        self.refit_time_ = time.perf_counter() - began
        if hasattr(self.best_estimator_, "feature_names_in_"):
            self.feature_names_in_ = self.best_estimator_.feature_names_in_


def _raise_bar(bar: Bar | None, metric: str | None, study: Study, trial: Trial | None = None) -> None:
    if bar is not None and (known := complete_scores(study.trials, metric)):
        bar.raise_to(*known)
