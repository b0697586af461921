"""`FarthingSearchCV`: a scikit-learn search that ends with its budget."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from functools import partial
from numbers import Integral
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
    from sklearn.utils._param_validation import InvalidParameterError
    from sklearn.utils.validation import _check_method_params, _num_samples
except ImportError as error:
    raise ImportError('FarthingSearchCV needs scikit-learn 1.7 or newer: pip install "farthing[sklearn]"') from error

from farthing.adapters.sklearn.estimator_config import estimator_config
from farthing.adapters.sklearn.failing import is_hopeless, nothing_fitted
from farthing.adapters.sklearn.folds import CrossValidation, ScoringSetup, fingerprint, reraise
from farthing.adapters.sklearn.objective import SearchObjective
from farthing.adapters.sklearn.results import (
    candidates_of,
    columns,
    complete_scores,
    outputs,
    require_same_data,
    without_skipped,
)
from farthing.adapters.sklearn.search_space import SearchSpace, require_search_space, search_space
from farthing.adapters.sklearn.skipping import Rival
from farthing.adapters.sklearn.step_plan import StepPlan, step_plan
from farthing.adapters.sklearn.step_training import StepTraining, train_in_steps
from farthing.budget import Budget
from farthing.checks import one_of, optional, refuse, switch, whole_number
from farthing.errors import FarthingError, InvalidArgument, NoTrial
from farthing.policies import Auto, policy_of
from farthing.policies.protocol import needs_steps
from farthing.report.cards import search_card
from farthing.runner.clock import counted_from
from farthing.runner.limits import TrialLimits
from farthing.study import Study
from farthing.trial import Status, Trial

OF_A_FIT = (  # attributes that must not be left of an earlier fit when the next one fails
    "cv_results_", "best_index_", "best_score_", "best_params_", "best_estimator_", "refit_time_", "scorer_",
    "multimetric_", "feature_names_in_", "trials_", "ledger_",
)  # fmt: skip


class FarthingSearchCV(BaseSearchCV):
    """Cross-validated search for the best parameters a budget can buy; a replacement for RandomizedSearchCV.

    estimator            as in RandomizedSearchCV
    param_distributions  a dict from names to Farthing parameters, scipy.stats distributions (uniform, loguniform,
                         randint) or lists; a list of such dicts, of which each candidate comes from one; or a
                         farthing.Space, which may have conditions
    budget               "10m", "100 evaluations" or Budget(...): what the search may spend. The final fit of the best
                         parameters to all rows is not part of it; its time is in `refit_time_`
    policy               a name ("auto", "carbo", "ei", "random", ...) or a policy object
    scoring, refit, cv, error_score, return_train_score    as in RandomizedSearchCV
    n_jobs               the number of candidates evaluated in parallel, each in its own process
    verbose              1 or more shows progress
    random_state         makes proposals reproducible
    iterative            "auto" trains estimators in steps if that is sound and worth it and the policy can use it, True
                         whenever it is possible (otherwise an error says why), False never
    max_steps            the length of a complete training in trees, rounds or epochs; None: as the estimator says
    skip_folds           True skips the remaining folds of a candidate that cannot become the best any more
    storage              a file that stores every event; a search with the same file continues where it ended
    start                parameters to evaluate first: a list of dicts, or "own" for the estimator's current ones
    earlier              files of earlier searches, or studies: the search learns from them, see `farthing.Study`
    trial_seconds, trial_memory    limits of one candidate, over all folds
    max_failures         if so many candidates come first that fail on all folds with the same type of error, the search
                         ends with a ValueError that quotes it; None: it goes on

    After `fit` it has all attributes of RandomizedSearchCV. `cv_results_` also has the columns cost, predicted_cost and
    budget_share, `ledger_` says what was spent, and `trials_` how each trial ended. See docs/sklearn.md.

    >>> import farthing as ft
    >>> from scipy.stats import loguniform
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.svm import SVC
    >>> X, y = load_iris(return_X_y=True)
    >>> search = ft.FarthingSearchCV(SVC(), {"C": loguniform(1e-2, 1e2)}, budget="8 evaluations", random_state=0)
    >>> bool(search.fit(X, y).best_score_ > 0.97)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {  # of the arguments that scikit-learn has too
        **{name: accepted for name, accepted in BaseSearchCV._parameter_constraints.items() if name != "pre_dispatch"},
        "random_state": ["random_state"],
    }

    def __init__(
        self, estimator: Any, param_distributions: Any, *, budget: Any = "5m", policy: Any = "auto",
        scoring: Any = None, n_jobs: int | None = None, refit: Any = True, cv: Any = None, verbose: int = 0,
        random_state: Any = None, error_score: Any = np.nan, return_train_score: bool = False,
        iterative: Literal["auto"] | bool = "auto", max_steps: int | None = None, skip_folds: bool = False,
        storage: str | os.PathLike[str] | None = None, start: Sequence[dict[str, Any]] | Literal["own"] = "own",
        earlier: Any = (),
        trial_seconds: float | str | None = None, trial_memory: float | str | None = None,
        max_failures: int | None = 5,
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
        self.earlier = earlier
        self.trial_seconds = trial_seconds
        self.trial_memory = trial_memory
        self.max_failures = max_failures

    def _validate_params(self) -> None:
        """Check all arguments; scikit-learn calls this at the beginning of `fit`."""
        try:
            super()._validate_params()
        except InvalidParameterError as error:
            raise InvalidArgument(str(error)) from error
        require_search_space(self.param_distributions)
        Budget.of(self.budget)
        policy_of(self.policy)
        one_of("iterative", self.iterative, ("auto", True, False))
        optional(whole_number, "max_steps", self.max_steps, least=1)
        switch("skip_folds", self.skip_folds)
        if self.storage is not None and not isinstance(self.storage, str | os.PathLike):
            refuse("storage", "the path of a file, or None", self.storage)
        listed = isinstance(self.start, list | tuple) and all(isinstance(config, Mapping) for config in self.start)
        if not listed and not (isinstance(self.start, str) and self.start == "own"):
            refuse("start", "a list of dicts, or 'own'", self.start)
        TrialLimits.of(self.trial_seconds, self.trial_memory)
        optional(whole_number, "max_failures", self.max_failures, least=1)

    @_fit_context(prefer_skip_nested_validation=False)  # type: ignore[untyped-decorator]  # scikit-learn has no types
    def fit(self, X: Any, y: Any = None, **params: Any) -> FarthingSearchCV:
        """Search until the budget is spent, then fit the best parameters to all rows.

        `params` are passed to the estimator's `fit`, the splitter and the scorer, as in RandomizedSearchCV. Ctrl-C
        raises KeyboardInterrupt; `cv_results_` and `best_params_` then hold what was found so far.
        """
        began = time.perf_counter()
        for name in OF_A_FIT:
            self.__dict__.pop(name, None)
        scorers, refit_metric = self._get_scorers()
        X, y = indexable(X, y)
        routed = self._get_routed_params_for_fit(_check_method_params(X, params=params))
        splits = self._splits(X, y, routed.splitter.split)
        searched, budget = search_space(self.param_distributions), Budget.of(self.budget)
        plan = self._step_plan(searched, budget, y, _num_samples(X), routed.estimator.fit)
        setup = ScoringSetup(
            clone(self.estimator), X, y, splits, scorers, self.refit if isinstance(self.refit, str) else None,
            routed.estimator.fit, routed.scorer.score, self.return_train_score, self.error_score,
            reports_cost=budget.unit == "cost",
            data=None if self.storage is None else fingerprint(X, y, splits, str(plan and plan.stored)),
        )  # fmt: skip
        with counted_from(began):
            interrupted = self._search(setup, searched, budget, plan)
        self.scorer_ = scorers._scorers if isinstance(scorers, _MultimetricScorer) else scorers
        with suppress(NoTrial, ValueError) if interrupted else nullcontext():  # nothing found is no error of Ctrl-C
            self._take_results(refit_metric, plan)
        if interrupted:
            what = "cv_results_ has what was found" if hasattr(self, "cv_results_") else "nothing was found"
            raise KeyboardInterrupt(f"after {len(self.trials_)} trials; {what}")
        if self.refit:
            self._refit(setup, plan)
        return self

    def _repr_html_inner(self) -> str:
        return f"{self._card}{super()._repr_html_inner()}"

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        """What a notebook shows: a card of what was found, and scikit-learn's diagram."""
        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)
        return bundle | ({"text/html": f"{self._card}{bundle['text/html']}"} if "text/html" in bundle else {})

    @property
    def _card(self) -> str:
        """Nothing before `fit` has come to its end."""
        if not self.__sklearn_is_fitted__():
            return ""
        score, params = getattr(self, "best_score_", None), getattr(self, "best_params_", None)
        return search_card(type(self).__name__, self.trials_, self.ledger_, score, params)

    def __sklearn_is_fitted__(self) -> bool:
        """Whether the last `fit` has come to its end; after Ctrl-C there are results, and nothing to predict with."""
        return hasattr(self, "best_estimator_" if self.refit else "cv_results_")

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

    # -- searching -----------------------------------------------------------------------------------------------------

    def _step_plan(self, searched: SearchSpace, budget: Budget, y: Any, rows: int, fit_params: Any) -> StepPlan | None:
        """How the estimator is trained in steps, None if each candidate is fitted at once."""
        policy = policy_of(self.policy)
        needed = needs_steps(policy)
        asked_for = self.iterative is True or (needed and self.iterative == "auto")
        used = budget.unit in budget.limits if isinstance(policy, Auto) else needed
        if not asked_for and (self.iterative is False or not used or self.skip_folds):
            if needed:
                refuse("policy", "one that does not train in steps, for iterative=False", policy.name)
            return None
        if self.skip_folds:
            refuse("skip_folds", "False for training in steps, where all folds train together", True)
        plan = step_plan(self.estimator, searched.names, y, rows, fit_params, self.max_steps, asked_for)
        if isinstance(plan, StepPlan):
            return plan
        if asked_for:
            what = "iterative=True" if self.iterative is True else f"policy={policy.name!r}"
            raise InvalidArgument(f"estimator: cannot be trained in steps, as {what} demands: {plan}")
        return None

    def _search(self, setup: ScoringSetup, searched: SearchSpace, budget: Budget, plan: StepPlan | None) -> bool:
        """Run the study. Returns whether Ctrl-C ended it."""
        with (
            Study(
                searched.space, budget, policy=self.policy, maximize=True, seed=self._seed(), storage=self.storage,
                start=self._start(searched), warm_start=self.earlier, max_steps=None if plan is None else plan.steps,
            ) as study,
            tempfile.TemporaryDirectory(prefix="farthing-") as folder,
        ):  # fmt: skip
            require_same_data(study, setup.data)
            rival = Rival(str(Path(folder, "rival.json"))) if self.skip_folds else None
            publish = partial(_publish_best, rival, setup.metric)
            publish(study)
            function = CrossValidation(setup, rival) if plan is None else StepTraining(setup, plan)
            try:
                study.run(
                    SearchObjective(function, searched),
                    workers=effective_n_jobs(self.n_jobs), progress=None if self.verbose else False,
                    trial_seconds=self.trial_seconds, trial_memory=self.trial_memory,
                    paused_limit=0,  # paused trainings continue from their checkpoints
                    callbacks=[self._raise_error, self._end_if_hopeless, publish],
                    max_failures=None,  # a search has a rule of its own for candidates that all fail, by folds
                )  # fmt: skip
            except KeyboardInterrupt:
                return True
            finally:
                self.trials_ = tuple(replace(trial, config=searched.params(trial.config)) for trial in study.trials)
                self.ledger_ = study.ledger
            return study.interrupted

    def _start(self, searched: SearchSpace) -> Sequence[dict[str, Any]]:
        if self.start != "own":
            return [searched.config(params) for params in self.start] if searched.dicts else self.start
        first = estimator_config(self.estimator, searched)
        return [] if first is None else [first]

    def _seed(self) -> int | None:
        """The seed of the study; None takes the one in the file."""
        if self.random_state is None and self.storage is not None:
            return None
        if isinstance(self.random_state, Integral):
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _raise_error(self, study: Study, trial: Trial) -> None:
        reraise(trial)
        if self.error_score == "raise" and trial.status is Status.FAILED:
            raise FarthingError(f"{trial.config}: {trial.error}")

    def _end_if_hopeless(self, study: Study, trial: Trial) -> None:
        if trial.status is Status.FAILED and is_hopeless(study.trials, self.max_failures):
            study.stop()

    # -- results -------------------------------------------------------------------------------------------------------

    def _take_results(self, refit_metric: Any, plan: StepPlan | None) -> None:
        found = candidates_of(self.trials_, self.n_splits_, plan, self.error_score, self.return_train_score)
        if not found:
            raise NoTrial(nothing_fitted(self.trials_, self.ledger_, self.n_splits_))
        records = outputs(found)
        _warn_or_raise_about_fit_failures(records, self.error_score)
        _insert_error_scores(records, self.error_score)
        results = self._format_results(
            [candidate.params for candidate in found], self.n_splits_, records, columns(found, self.ledger_.budget)
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

    def _refit(self, setup: ScoringSetup, plan: StepPlan | None) -> None:
        began = time.perf_counter()
        if plan is not None and plan.by == "partial_fit":
            self.best_estimator_ = train_in_steps(setup.estimator, self.best_params_, setup.X, setup.y, plan)
        else:
            best = clone(setup.estimator).set_params(**clone(self.best_params_, safe=False))
            target = () if setup.y is None else (setup.y,)
            self.best_estimator_ = best.fit(setup.X, *target, **setup.fit_params)
        self.refit_time_ = time.perf_counter() - began
        if hasattr(self.best_estimator_, "feature_names_in_"):
            self.feature_names_in_ = self.best_estimator_.feature_names_in_


def _publish_best(rival: Rival | None, metric: str | None, study: Study, trial: Trial | None = None) -> None:
    """Tell the workers which configuration is to be beaten."""
    if rival is not None and (known := complete_scores(study.trials, metric)):
        rival.publish(*known)
