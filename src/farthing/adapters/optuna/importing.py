"""A Farthing study from an Optuna one: its trials are known results, from which every policy learns.

Nothing of an import is left behind if it fails: the study is made in memory, and then written under another name, which
becomes that of the file at the end.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import optuna
from optuna.storages import BaseStorage
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState

from farthing import checks
from farthing.adapters.optuna.frozen import OWN, SPACE
from farthing.adapters.optuna.inferring import inferred
from farthing.adapters.optuna.results import Reading, agrees
from farthing.adapters.optuna.storages import naming, storage_to_read, study_named
from farthing.adapters.optuna.translation import Translation
from farthing.budget import Budget
from farthing.errors import FarthingError, InvalidArgument, InvalidBudget, StorageError
from farthing.policies import Policy
from farthing.record.paths import COMPANIONS, beside, resolved
from farthing.record.settings import checked_space
from farthing.record.storage import SQLiteLog
from farthing.space import Space
from farthing.study import Study
from farthing.text.plain import counted, shown, warn
from farthing.trial import Config

COST = "cost"  # the attribute of trials that Farthing exported
SHOWN = 3  # trials that are named among those left out


def from_optuna(
    source: optuna.Study | BaseStorage | str | os.PathLike[str],
    budget: Budget | str | None = None,
    *,
    study_name: str | None = None,
    storage: str | os.PathLike[str] | None = None,
    space: Space | Mapping[str, Any] | None = None,
    cost: str | None = None,
    policy: str | Policy = "auto",
    seed: int | None = None,
    max_steps: int | None = None,
) -> Study:
    """A new Farthing study that knows what an Optuna study has found.

    source      an Optuna study, a storage, a database URL or the path of a journal file
    budget      what may be spent from here on; None takes that of a study that Farthing exported
    study_name  the name of the study in the storage; None if it holds only one
    storage     a new file to keep the study in; None keeps it in memory
    space       where to search, and which trials to take: those that do not fit are left out. None takes it from the
                trials' distributions
    cost        the user attribute that holds what a trial cost, in the budget's unit; None takes its duration, under
                budgets of time, and of dollars at an hourly rate
    policy, seed, max_steps    as those of a Study

    >>> import optuna
    >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
    >>> theirs = optuna.create_study()
    >>> theirs.optimize(lambda trial: trial.suggest_float("x", -1, 1) ** 2, n_trials=5)
    >>> study = from_optuna(theirs, "20 evaluations")
    >>> len(study.trials), study.best.value == theirs.best_value
    (5, True)
    """
    if storage is not None and os.path.exists(resolved(storage)):
        raise StorageError(f"{storage}: is there already; an import makes a new file")
    given = None if space is None else checked_space(space)
    theirs = source if isinstance(source, optuna.Study) else study_named(storage_to_read(source), study_name, source)
    with naming(source):  # it may be a stranger's, or damaged: nothing that is in it is what it should be for certain
        trials, attributes, directions = theirs.get_trials(deepcopy=False), theirs.user_attrs, theirs.directions
        if len(directions) != 1:
            raise InvalidArgument(f"{shown(theirs.study_name)} has {len(directions)} objectives; Farthing tunes one")
        own = attributes.get(OWN) if isinstance(attributes.get(OWN), dict) else None
        limits = _budget(budget, own)
        maximize = directions[0] is StudyDirection.MAXIMIZE
        found, translation = _space(given, trials, attributes.get(SPACE))
        reading = _reading(trials, own is not None, maximize, limits, cost, attributes.get("unit"))
        most = max_steps if max_steps is not None else _longest(trials, reading)
        study = Study(found, limits, policy=policy, maximize=maximize, seed=seed, max_steps=most)
        _add_all(study, trials, translation, reading)
    if storage is None:
        return study
    _write(study, storage)
    return Study.resume(storage, space=found, policy=None if isinstance(policy, str) else policy)


def _budget(given: Budget | str | None, own: Mapping[str, Any] | None) -> Budget:
    if given is not None:
        return Budget.of(given)
    with suppress(Exception):  # whatever a stranger's storage says
        if own is not None:
            return Budget.from_json(own["budget"])
    raise InvalidBudget("budget: is missing: what may be spent from here on, such as '10m' or '100 evaluations'")


# -- the space ---------------------------------------------------------------------------------------------------------


def _space(given: Space | None, trials: Sequence[FrozenTrial], stored: Any) -> tuple[Space, Translation]:
    """The space that the user gives, or that of the study that was exported, or what the trials say."""
    asked = [trial for trial in trials if trial.state is not TrialState.WAITING]
    if given is None and stored is not None:
        with suppress(Exception):  # a stranger's, or one with options that no file can hold
            space = Space.from_json(stored)
            if (translation := Translation.of(space)).reads(asked):
                return space, translation
    if given is None:
        return inferred(asked)
    exported = Translation.of(given)
    if exported.reads(asked):
        return given, exported
    return given, Translation.plain(given)


# -- the trials --------------------------------------------------------------------------------------------------------


def _reading(
    trials: Sequence[FrozenTrial], ours: bool, maximize: bool, budget: Budget, cost: str | None, unit: Any
) -> Reading:  # fmt: skip
    """How to read the trials, by what they are like all together."""
    if cost is not None:
        cost = checks.instance("cost", cost, str, of="the name of a user attribute")
        if not any(cost in trial.user_attrs for trial in trials):
            raise InvalidArgument(f"cost: no trial has a user attribute {shown(cost)}")
    elif ours and unit == budget.unit:
        cost = COST
    reading = Reading(ours, maximize, budget, cost)
    curved = [trial for trial in trials if trial.state is TrialState.COMPLETE and trial.intermediate_values]
    if ours or all(agrees(trial.value, curve) for trial in curved if (curve := reading.curve(trial))):
        return reading
    warn(
        "the intermediate values of this study are left out, and its pruned trials have no value: some complete trial "
        "ended with a value that is neither the last nor the best one that it reported, so they seem to measure "
        "something else"
    )
    return replace(reading, curves=False)


def _longest(trials: Sequence[FrozenTrial], reading: Reading) -> int | None:
    """The length of a complete training."""
    lengths = [len(reading.curve(trial)) for trial in trials if trial.state is TrialState.COMPLETE]
    return max(lengths, default=0) or None


def _add_all(study: Study, trials: Sequence[FrozenTrial], translation: Translation, reading: Reading) -> None:
    """Every trial of which the whole configuration is known, by its number there as long as none is left out."""
    record, most = study._session.record, study._history.max_steps
    left_out: list[str] = []
    for trial in trials:
        try:
            config = _config(study.space, translation, trial)
            added = reading.added(len(study._history.trials), config, trial)
            if most is not None and len(added.curve) > most:
                raise InvalidArgument(f"it has {len(added.curve)} steps, and max_steps is {most}")
            added.check(record.state)
        except (FarthingError, ValueError) as error:
            left_out.append(f"trial {trial.number}: {error}")
            continue
        record.write(added)
    if left_out:
        more = f"; and {len(left_out) - SHOWN} more" if len(left_out) > SHOWN else ""
        warn(f"{counted(len(left_out), 'trial')} left out: {'; '.join(left_out[:SHOWN])}{more}")
    if left_out and not study._history.trials:
        raise InvalidArgument(f"no trial can be taken over; {left_out[0]}")


def _config(space: Space, translation: Translation, trial: FrozenTrial) -> Config:
    if trial.state is TrialState.WAITING:
        raise InvalidArgument("it is waiting to be evaluated")
    config = space.validate(translation.from_optuna(trial.params))
    if not space.allows(config):
        raise InvalidArgument("it is forbidden by the space's own forbid")
    return config


# -- the file ----------------------------------------------------------------------------------------------------------


def _write(study: Study, storage: str | os.PathLike[str]) -> None:
    """Every event of a study, in a new file that is there as a whole or not at all."""
    path = resolved(storage)
    part = beside(path, f".{secrets.token_hex(4)}.part")
    try:
        with closing(SQLiteLog(part)) as log:
            log.append(*study._session.record.log.read())
        _rename(part, path, str(storage))
    finally:
        for file in (part, *(beside(part, suffix) for suffix in COMPANIONS)):
            with suppress(OSError):
                file.unlink()


def _rename(part: Path, path: Path, name: str) -> None:
    """Under its own name, if that is still free."""
    try:
        os.link(part, path)
    except FileExistsError:
        raise StorageError(f"{name}: is there already; an import makes a new file") from None
    except OSError:  # a file system without links
        os.rename(part, path)
