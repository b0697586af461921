"""From the trials of a study to the records that scikit-learn's `cv_results_` is made of."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from farthing.adapters.sklearn.folds import DATA, FOLDS, Record
from farthing.adapters.sklearn.skipping import SKIPPED, score_of
from farthing.adapters.sklearn.step_plan import StepPlan
from farthing.adapters.sklearn.step_training import STEP
from farthing.budget import Budget
from farthing.errors import StudyMismatch
from farthing.study import Study
from farthing.trial import Status, Trial

Results = dict[str, Any]


@dataclass(frozen=True)
class Candidate:
    """A configuration with one record per fold."""

    params: dict[str, Any]
    records: Sequence[Record]
    trial: Trial


def candidates_of(
    trials: Sequence[Trial], folds: int, plan: StepPlan | None, error_score: float | str, train_scores: bool
) -> list[Candidate]:
    """The trials that have a score, and those that failed; not those that the end of the budget cut short."""
    number = math.nan if error_score == "raise" else error_score
    found = []
    for trial in trials:
        if trial.unsuccessful:
            records = trial.attributes.get(FOLDS) or _failed(trial, folds, number, train_scores)
            steps = None if plan is None else plan.steps
        elif trial.value is not None:
            steps = None if plan is None else 1 + int(np.argmax(trial.curve.values))
            records = trial.attributes[FOLDS if steps is None else STEP.format(steps)]
        else:
            continue
        units = {} if plan is None or steps is None else {plan.parameter: plan.units_at(steps)}
        found.append(Candidate({**trial.config, **units}, records, trial))
    return found


def _failed(trial: Trial, folds: int, number: Any, train_scores: bool) -> list[Record]:
    """The records of a trial that failed as a whole: no fold has a score."""
    record = {"fit_error": f"{trial.error}\n", "test_scores": number, "fit_time": math.nan, "score_time": math.nan}
    return [{**record, **({"train_scores": number} if train_scores else {})} for _ in range(folds)]


def outputs(candidates: Sequence[Candidate]) -> list[Record]:
    """All records, as scikit-learn orders them."""
    return [
        {name: item for name, item in record.items() if name != SKIPPED} for c in candidates for record in c.records
    ]


def columns(candidates: Sequence[Candidate], budget: Budget) -> dict[str, list[float]]:
    """The cost of each candidate in the budget's unit, its predicted cost, and its share of the budget.

    The share is of the unit that costs are counted in, or of the evaluations if nothing else is limited.
    """
    costs = [_or_nan(candidate.trial.cost) for candidate in candidates]
    limit = budget.limits.get(budget.unit)
    shares = [cost / limit for cost in costs] if limit else [1.0 / budget.limits["evaluations"]] * len(costs)
    predicted = [_or_nan(candidate.trial.predicted_cost) for candidate in candidates]
    return {"cost": costs, "predicted_cost": predicted, "budget_share": shares}


def _or_nan(amount: float | None) -> float:
    return math.nan if amount is None else amount


def without_skipped(results: Results, candidates: Sequence[Candidate]) -> Results:
    """Scores of skipped folds become NaN, without effect on the standard deviation; means and ranks stay."""
    seen = np.array([[SKIPPED not in record for record in c.records] for c in candidates])  # (n, K)
    if seen.all():
        return results
    shown = dict(results)
    for name in results:
        which, _, metric = name.removeprefix("mean_").partition("_")
        if not name.startswith("mean_") or which not in ("test", "train"):
            continue
        scores = np.stack([results[f"split{fold}_{which}_{metric}"] for fold in range(seen.shape[1])], axis=1)
        scores = np.where(seen, scores, math.nan)
        for fold in range(seen.shape[1]):
            shown[f"split{fold}_{which}_{metric}"] = scores[:, fold]
        partial = ~seen.all(axis=1)
        deviations = results[f"std_{which}_{metric}"].copy()
        deviations[partial] = np.nanstd(scores[partial], axis=1)
        shown[f"std_{which}_{metric}"] = deviations
    return shown


def complete_scores(
    trials: Sequence[Trial], metric: str | None
) -> tuple[Sequence[Mapping[str, Any]], np.ndarray[Any, np.dtype[np.float64]]] | None:
    """Of the trials without skipped folds: the records of the best, and the scores (n, K) of all."""
    whole = [t for t in trials if t.status is Status.COMPLETE and not any(SKIPPED in r for r in t.attributes[FOLDS])]
    if not whole:
        return None
    best = max(whole, key=lambda trial: trial.value or -math.inf)
    scores = np.array(
        [[score_of(record["test_scores"], metric) for record in trial.attributes[FOLDS]] for trial in whole]
    )
    return best.attributes[FOLDS], scores


def require_same_data(study: Study, fingerprint: int | None) -> None:
    """Refuse a file whose scores come from other folds or other data: they cannot be compared."""
    for trial in study.trials:
        if trial.attributes.get(DATA, fingerprint) != fingerprint:
            raise StudyMismatch(
                f"{study.storage}: the scores in the file come from other folds or other data than those given to fit; "
                "use another file; a cv that shuffles needs a random_state"
            )
