"""`farthing resume`: continue the study of a file with what the file says, once that is the user's will."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from farthing.budget import Budget
from farthing.cli import run_note
from farthing.cli.arguments import find_space
from farthing.cli.consent import Permission, Wanted, require_consent
from farthing.cli.run_mark import is_marked
from farthing.cli.run_note import RunNote
from farthing.cli.running import (
    Display,
    Ran,
    check_run,
    folder_from,
    leave_note,
    objective_of,
    require_unspent,
    run_study,
    settings_of,
)  # fmt: skip
from farthing.errors import InvalidArgument, InvalidSpace, StorageError
from farthing.record.reader import StudyFile, read_study
from farthing.runner.clock import counted_from
from farthing.space import Space
from farthing.study import Study

OBJECTIVE_FIELDS = (  # another objective replaces them all; it is not sent to a cluster that a file names
    "objective", "command", "iterative", "pause", "folder", "isolate", *run_note.RAY,
)  # fmt: skip


@dataclass(frozen=True)
class Plan:
    """What is to be run, where, and whether a script has to be loaded for the space."""

    note: RunNote
    place: str
    load_space: bool
    asked: float = 0.0  # seconds that the user took to allow it


def resume(
    storage: str, budget: Budget | None, given: Mapping[str, Any], display: Display, may: Permission, worth: Any = None
) -> Ran:  # fmt: skip
    """Continue the study of a file as it was run before, except for the options given."""
    path = os.path.realpath(storage)
    stored = read_study(path)
    plan = _plan(stored, path, storage, given, may)
    _enter(plan.place, storage)
    with counted_from(may.began + plan.asked):
        return _continue(path, storage, budget, stored, plan, display, worth)


def _continue(
    path: str, name: str, budget: Budget | None, stored: StudyFile, plan: Plan, display: Display, worth: Any
) -> Ran:  # fmt: skip
    note, described = plan.note, stored.record.settings.space
    check_run(note, budget or stored.ledger.budget)
    if budget is not None:
        require_unspent(stored.ledger, budget, name)
    space = Space.from_json(described) if not plan.load_space else find_space(note.space, None, os.getcwd()).space
    with objective_of(note, space, os.getcwd(), display) as objective:
        study = Study.resume(path, budget=budget, space=space, stop_when_not_worth=worth)
        try:
            if study.notes != stored.notes or settings_of(study) != stored.record.settings:
                raise StorageError(f"{name}: was changed while it was being opened")
            leave_note(study, note)
            return run_study(study, note, objective, display)
        except BaseException:
            study.close()
            raise


def _plan(stored: StudyFile, path: str, name: str, given: Mapping[str, Any], may: Permission) -> Plan:
    """What the file and the options say together, allowed by the user as far as it comes from the file."""
    noted = stored.notes.get(run_note.NAME)
    replaced = "objective" in given or "command" in given
    if noted is None and not replaced:
        raise InvalidArgument(
            f"{name}: was not started by `farthing run`, so it is not known what to evaluate; "
            f"use farthing resume {name} --objective script.py:name, or --command '...'"
        )
    before = {} if noted is None else noted
    if replaced and isinstance(before, Mapping):
        kept = {key: value for key, value in before.items() if key not in OBJECTIVE_FIELDS}
        note = RunNote.from_json({**kept, "folder": folder_from(path)}, name, **given)
    else:
        note = RunNote.from_json(before, name, **given)
    place = os.path.realpath(os.path.join(os.path.dirname(path), note.folder))
    described = stored.record.settings.space
    plan = Plan(note, place, note.space is not None and not _is_complete(described))
    own = place if noted is None else _marked_place(before, name, path, described)
    if own == place or (own is not None and not plan.load_space):
        return plan
    if own is None and replaced and "workers" not in given:
        _require_few_workers(note.workers, name)
    if replaced and not plan.load_space:
        return plan
    wanted = Wanted.by(note, place, objective=not replaced, space=plan.load_space)
    return replace(plan, asked=require_consent(name, wanted, may))


def _require_few_workers(count: int, name: str) -> None:
    """With an objective of the user's nothing is asked, and a stranger's number of workers could fill the machine."""
    cores = os.cpu_count() or 1
    if count > cores:
        raise InvalidArgument(
            f"{name}: asks for {count} workers, and this machine has {cores} cores; say how many with --workers"
        )


def _marked_place(noted: Mapping[str, Any], name: str, path: str, described: Mapping[str, Any]) -> str | None:
    """The folder for which a note, as it is in the file, carries the mark of this user."""
    try:
        note = RunNote.from_json(noted, name)
        place = os.path.realpath(os.path.join(os.path.dirname(path), note.folder))
        return place if is_marked(noted, note, place, described) else None
    except InvalidArgument:  # a part that the user has replaced makes no sense
        return None


def _is_complete(described: Mapping[str, Any]) -> bool:
    """Whether a space can be made from its description alone."""
    try:
        Space.from_json(described)
    except InvalidSpace:
        return False
    return True


def _enter(place: str, name: str) -> None:
    try:
        os.chdir(place)
    except OSError as error:
        raise InvalidArgument(
            f"{name}: was run in {place}, which cannot be entered ({error.strerror}); "
            "use --objective or --command to run it from here"
        ) from error
