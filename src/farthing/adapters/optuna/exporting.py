"""A Farthing study in an Optuna storage, for optuna-dashboard and Optuna's plots.

A second export brings the study there up to date. Trials that are new are added, those that were running go on or end.
A trial that has ended cannot be changed in Optuna; if one has gone on since, the study there has to be replaced.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import optuna
from optuna.exceptions import DuplicatedStudyError
from optuna.storages import BaseStorage
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial

from farthing import checks
from farthing.adapters.optuna.frozen import (
    OWN,
    changed_attributes,
    frozen_trials,
    same_trial,
    study_attributes,
)
from farthing.adapters.optuna.storages import address, naming, storage_to_write
from farthing.adapters.optuna.translation import LONGEST_NAME, Translation, storable_name
from farthing.errors import InvalidArgument, StorageError
from farthing.record.lock import runner_of
from farthing.record.storage import open_log
from farthing.study_view import OpenedStudy, StudyView
from farthing.text.plain import counted, shown

IN_MEMORY = "farthing"  # the name of a study without a file


def to_optuna(
    study: str | os.PathLike[str] | StudyView,
    storage: str | os.PathLike[str] | BaseStorage | None = None,
    *,
    study_name: str | None = None,
    replace: bool = False,
) -> optuna.Study:
    """Write a study, or that of a file, into an Optuna storage; returns it as an Optuna study.

    study       a study, or the path of its file, which may be running; it is only looked at
    storage     a database URL ("sqlite:///optuna.db"), the path of a journal file, or an Optuna storage; None makes one
                in memory
    study_name  its name there; by default that of the file
    replace     whether a study that was exported there before may be deleted and written anew, if trials have gone on
                that Optuna holds to have ended

    >>> import farthing as ft
    >>> study = ft.tune(lambda config: config["x"] ** 2, {"x": (-1.0, 1.0)}, "5 evaluations", seed=0, progress=False)
    >>> exported = to_optuna(study)
    >>> exported.best_value == study.best.value, len(exported.trials)
    (True, 5)
    """
    checks.switch("replace", replace)
    view = study if isinstance(study, StudyView) else OpenedStudy(study)
    _require_another_file(view, storage)
    name = _checked_name(study_name, view)
    translation = Translation.of(view.space)
    going_on = view.storage is not None and runner_of(view.storage) is not None and not view.why_ended
    trials = frozen_trials(view, translation, going_on=going_on)
    attributes = study_attributes(view, _first_time(view))
    direction = StudyDirection.MAXIMIZE if view.maximize else StudyDirection.MINIMIZE
    opened = storage_to_write(storage)
    with naming(storage):
        place = _Place(opened, name, direction, attributes, address(storage))
        place.write(trials, replace=replace)
        return optuna.load_study(study_name=name, storage=opened)


def _checked_name(given: str | None, study: StudyView) -> str:
    if given is None:
        return storable_name(Path(study.storage).stem) if study.storage else IN_MEMORY
    if not isinstance(given, str) or not given or len(given) > LONGEST_NAME or storable_name(given) != given:
        checks.refuse("study_name", f"a text of at most {LONGEST_NAME} characters", given)
    return given


def _require_another_file(study: StudyView, storage: Any) -> None:
    """Not even an empty table is made in a study's own file."""
    if study.storage is None or not isinstance(storage, str | os.PathLike):
        return
    path = str(os.fspath(storage)).partition(":///")[2] or os.fspath(storage)
    if os.path.exists(path) and os.path.samefile(path, study.storage):
        raise InvalidArgument(f"storage: {address(storage)} is the study itself; expected another file")


def _first_time(study: StudyView) -> float | None:
    """When a study was begun: the time of the first event of its file."""
    if study.storage is None:
        return study._history.trials[0].began if len(study._history.trials) else None
    with closing(open_log(study.storage)) as log:
        log.read()
        return log.times[0]


class _Place:
    """Where a study goes: under its name in a storage, which may have it already."""

    def __init__(
        self, storage: BaseStorage, name: str, direction: StudyDirection, attributes: dict[str, Any], where: str
    ) -> None:
        self._storage, self._name, self._direction = storage, name, direction
        self._attributes, self._where = attributes, where

    def write(self, trials: Sequence[FrozenTrial], *, replace: bool) -> None:
        """All trials, as far as they are not there as they are."""
        study = self._found_or_made()
        held = self._storage.get_all_trials(study, deepcopy=False)
        self._require_ours(study, held, trials)
        changed = [i for i, trial in enumerate(held) if not same_trial(trial, trials[i])]
        ended = [i for i in changed if held[i].state.is_finished()]
        if ended and not replace:
            raise StorageError(
                f"{self._where}: study {shown(self._name)} has {counted(len(ended), 'trial')} that went on after they "
                f"had ended there, such as trial {ended[0]}, and Optuna cannot change these; to write the study anew "
                "give replace=True, or another study_name=..."
            )
        if ended:
            study, held, changed = self._made_anew(study), [], []
        self._describe(study, only=OWN)
        for i in changed:
            self._update(held[i], trials[i])
        for trial in trials[len(held) :]:
            self._add(study, trial)
        self._describe(study)

    def _found_or_made(self) -> int:
        with suppress(KeyError):
            return self._storage.get_study_id_from_name(self._name)
        try:
            return self._storage.create_new_study([self._direction], self._name)
        except DuplicatedStudyError:  # by somebody else, a moment ago
            return self._storage.get_study_id_from_name(self._name)

    def _require_ours(self, study: int, held: Sequence[FrozenTrial], trials: Sequence[FrozenTrial]) -> None:
        """Nobody else's study is touched, nor one that somebody else has gone on with."""
        own = self._storage.get_study_user_attrs(study).get(OWN)
        theirs = own if isinstance(own, dict) else {}
        is_empty = own is None and not held and self._storage.get_study_directions(study) == [self._direction]
        if not is_empty and theirs.get("study") != self._attributes[OWN]["study"]:
            raise StorageError(
                f"{self._where}: holds another study of the name {shown(self._name)}; give another study_name=..."
            )
        others = [i for i, trial in enumerate(held) if i >= len(trials) or trial.params != trials[i].params]
        if others:
            raise StorageError(
                f"{self._where}: trial {others[0]} of {shown(self._name)} does not come from this study; give another "
                "study_name=..."
            )

    def _made_anew(self, study: int) -> int:
        """The study without its trials. What others have noted of it stays."""
        noted = self._storage.get_study_user_attrs(study)
        self._storage.delete_study(study)
        anew = self._storage.create_new_study([self._direction], self._name)
        for name, value in noted.items():
            self._storage.set_study_user_attr(anew, name, value)
        return anew

    def _describe(self, study: int, only: str | None = None) -> None:
        known = self._storage.get_study_user_attrs(study)
        for name, value in self._attributes.items():
            if only in (None, name) and (name not in known or known[name] != value):
                self._storage.set_study_user_attr(study, name, value)

    def _add(self, study: int, trial: FrozenTrial) -> None:
        added = self._storage.create_new_trial(study, template_trial=trial)
        if self._storage.get_trial_number_from_id(added) != trial.number:
            raise StorageError(
                f"{self._where}: somebody else has written to study {shown(self._name)} meanwhile; give another "
                "study_name=..."
            )

    def _update(self, held: FrozenTrial, trial: FrozenTrial) -> None:
        """Let a trial that was running be as it is now."""
        number = held._trial_id
        for step, value in trial.intermediate_values.items():
            if held.intermediate_values.get(step) != value:
                self._storage.set_trial_intermediate_value(number, step, value)
        for name in changed_attributes(held, trial):
            self._storage.set_trial_user_attr(number, name, trial.user_attrs[name])
        if trial.state.is_finished():
            values = None if trial.value is None else [trial.value]
            self._storage.set_trial_state_values(number, trial.state, values)
