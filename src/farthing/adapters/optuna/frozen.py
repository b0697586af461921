"""Trials and settings of a Farthing study as Optuna stores them.

What Optuna has no place for becomes user attributes: of a trial `status`, `cost`, `predicted_cost`, `ended_by`,
`reason`, `error`, and `attributes.NAME` for its own; of a study the budget, its unit, what was spent, the policy, the
seed and the best trial. `farthing` and `farthing.space` hold what it takes to make the same study of it again.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

from optuna.trial import FrozenTrial, TrialState

from farthing.adapters.optuna.translation import LONGEST_NAME, Translation, distinct, storable_name
from farthing.history.history import TrackedTrial
from farthing.study_view import StudyView
from farthing.text.plain import LEFT_OUT, cut_text, plain, readable
from farthing.trial import Status

OWN = "farthing"  # the attribute of an exported study
SPACE = "farthing.space"  # its space as JSON, which may be too large to keep
FORMAT = 1
OF_THE_USER = "attributes."
LONGEST_VALUE = 60_000  # characters of JSON per attribute: MySQL keeps 65,535
LONGEST_TEXT = 8_000  # characters of a longer text that are kept: in JSON each may take six
STATES = {
    Status.RUNNING: TrialState.RUNNING,
    Status.COMPLETE: TrialState.COMPLETE,
    Status.PAUSED: TrialState.PRUNED,
    Status.STOPPED: TrialState.PRUNED,
    Status.FAILED: TrialState.FAIL,
    Status.KILLED: TrialState.FAIL,
    Status.INTERRUPTED: TrialState.FAIL,
}


def frozen_trials(study: StudyView, translation: Translation, *, going_on: bool) -> list[FrozenTrial]:
    """All trials, in order. While a study is `going_on`, those that may still do so are running: Optuna lets nobody
    change a trial that has ended."""
    moments = _known_times(study)
    return [
        _frozen(shown, _state(tracked, going_on), translation, began, ended)
        for shown, tracked, (began, ended) in zip(study.trials, study._history.trials, moments, strict=True)
    ]


def _state(trial: TrackedTrial, going_on: bool) -> TrialState:
    may_go_on = trial.status is Status.PAUSED or (trial.status is Status.INTERRUPTED and not trial.forgotten)
    return TrialState.RUNNING if going_on and may_go_on else STATES[trial.status]


def _frozen(trial: Any, state: TrialState, translation: Translation, began: datetime, ended: datetime) -> FrozenTrial:
    return FrozenTrial(
        number=trial.number,
        trial_id=-1,  # given by the storage
        state=state,
        value=None if state in (TrialState.FAIL, TrialState.RUNNING) else trial.value,
        datetime_start=began,
        datetime_complete=ended if state.is_finished() else None,
        params=translation.to_optuna(trial.config),
        distributions=translation.distributions(trial.config),
        user_attrs=trial_attributes(trial, state),
        system_attrs={},
        intermediate_values=dict(enumerate(trial.curve.values, 1)),
    )


def trial_attributes(trial: Any, state: TrialState) -> dict[str, Any]:
    """What a trial says beyond what Optuna has a place for. Of a trial that runs, only what stays: nothing is ever
    taken away from it."""
    lost = trial.value if state is TrialState.FAIL else None  # a training that ended so has values all the same
    ended = {"ended_by": trial.ended_by and trial.ended_by.value, "error": trial.error, "value": lost}
    found = {
        "status": trial.status.value,
        "cost": trial.cost,
        "predicted_cost": trial.predicted_cost,
        "reason": trial.reason or None,
        **(ended if state.is_finished() else {}),
    }
    names = distinct((storable_name(f"{OF_THE_USER}{name}") for name in trial.attributes), LONGEST_NAME)
    given = zip(names, trial.attributes.values(), strict=True)
    return {name: storable(value) for name, value in (*found.items(), *given) if value is not None}


def storable(value: Any) -> Any:
    """An attribute as JSON of a size that every database holds."""
    known = _readable(plain(value))
    if len(json.dumps(known)) <= LONGEST_VALUE:
        return known
    return cut_text(known, LONGEST_TEXT) if isinstance(known, str) else LEFT_OUT


def _readable(value: Any) -> Any:
    """JSON without halves of characters."""
    if isinstance(value, str):
        return readable(value)
    if isinstance(value, dict):
        return {readable(name): _readable(item) for name, item in value.items()}
    return [_readable(item) for item in value] if isinstance(value, list) else value


# -- times -------------------------------------------------------------------------------------------------------------


def _known_times(study: StudyView) -> Iterator[tuple[datetime, datetime]]:
    """When each trial began and ended. Optuna wants to know it: where nobody does, it is as the trial before."""
    known = (_moment(time) for trial in study.trials for time in (trial.began, trial.ended))
    last = next((moment for moment in known if moment is not None), datetime.fromtimestamp(time.time()))
    for trial in study.trials:
        began = _moment(trial.began) or last
        last = max(_moment(trial.ended) or began, began)
        yield began, last


def _moment(seconds: float | None) -> datetime | None:
    """A local time without its zone, as Optuna has them; None for one that no calendar knows."""
    try:
        return None if seconds is None else datetime.fromtimestamp(seconds)
    except (ValueError, OverflowError, OSError):
        return None


# -- the study ---------------------------------------------------------------------------------------------------------


def study_attributes(study: StudyView, first_time: float | None) -> dict[str, Any]:
    """What a study says of itself."""
    ledger, settings = study.ledger, study._session.record.settings
    best = study._history.incumbent
    found = {
        OWN: {
            "format": FORMAT, "study": identity(study, first_time), "budget": ledger.budget.as_json(),
            "max_steps": study._history.max_steps,
        },
        SPACE: settings.space,
        "budget": str(ledger.budget),
        "unit": ledger.unit,
        "spent": {unit: ledger.total(unit) for unit in dict.fromkeys((*ledger.budget.limits, ledger.unit))},
        "policy": settings.policy.get("name"),
        "seed": settings.seed,
        "best_trial": None if best is None else best.number,
        "best_value": None if best is None else study.best.value,
        "ended": study.why_ended,
    }  # fmt: skip
    return {name: storable(value) for name, value in found.items() if value is not None}


def identity(study: StudyView, first_time: float | None) -> str:
    """What tells one study from all others, also from one that was begun in the same way: when that was."""
    settings = study._session.record.settings
    text = json.dumps([settings.body(), first_time], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def same_trial(a: FrozenTrial, b: FrozenTrial) -> bool:
    """Whether two trials say the same, but for their times."""
    return (a.state, a.value, a.params, a.intermediate_values) == (
        b.state, b.value, b.params, b.intermediate_values,
    ) and all(_text(a, name) == _text(b, name) for name in {*a.user_attrs, *b.user_attrs})  # fmt: skip


def changed_attributes(old: FrozenTrial, new: FrozenTrial) -> Iterable[str]:
    """The names of attributes that are other than before."""
    return [name for name in new.user_attrs if _text(old, name) != _text(new, name)]


def _text(trial: FrozenTrial, name: str) -> str:
    """As JSON, in which a NaN is equal to another."""
    return json.dumps(trial.user_attrs.get(name), sort_keys=True)
