"""`farthing run`: prepare what is evaluated, leave a note of it in the study's file, and run the study."""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from farthing.budget import Budget
from farthing.checks import refuse
from farthing.cli import run_note
from farthing.cli.command_template import check_placeholders
from farthing.cli.program import CLOSING_SECONDS, SAVING_SECONDS, Program
from farthing.cli.run_mark import marked
from farthing.cli.run_note import RunNote
from farthing.cli.script import ScriptObjective
from farthing.cli.streams import warn
from farthing.errors import NoTrial
from farthing.record.events import Opened
from farthing.runner.options import PAUSED_LIMIT
from farthing.runner.temporary import TemporaryFolder
from farthing.space import Space
from farthing.study import Study
from farthing.trial import Trial


@dataclass(frozen=True)
class Display:
    """What a run shows; the study's file does not store it."""

    quiet: bool = False
    show_output: bool = False


@contextmanager
def objective_of(note: RunNote, space: Space, folder: str, display: Display) -> Iterator[ScriptObjective | Program]:
    """What is evaluated, checked as far as possible without running it."""
    if note.command is None:
        yield ScriptObjective(str(note.objective), folder)
        return
    with TemporaryFolder() as results:
        patience = SAVING_SECONDS if note.pause == "checkpoint" else CLOSING_SECONDS
        program = Program(note.command, note.iterative, note.steps, str(results), patience, display.show_output)
        unused = check_placeholders(program.template, space, program.placeholders, program.unavailable)
        _require_program(program.template.program)
        if unused and "farthing.config" not in program.template.names:
            warn(f"the command has no placeholder for {', '.join(unused)}; the values are only in FARTHING_CONFIG")
        yield program


def _require_program(name: str | None) -> None:
    if name is None or shutil.which(name) is not None:
        return
    expected = "an executable file" if Path(name).is_file() and os.sep in name else "a program that can be found"
    refuse("command", expected, name)


def begin(note: RunNote, space: Space, budget: Budget, storage: str | None, display: Display, **options: Any) -> Study:
    """Run a new study, or continue the one in the file if it is the same."""
    max_steps = note.steps if note.command is None or note.iterative else None
    with objective_of(note, space, os.getcwd(), display) as objective:
        study = Study(space, budget, storage=storage, max_steps=max_steps, **options)
        if storage is not None:
            note = replace(note, folder=folder_from(storage))
            if run_note.NAME in study.notes:
                note.require_same(RunNote.from_json(study.notes[run_note.NAME], storage), storage)
            leave_note(study, note)
        return run_study(study, note, objective, display)


def folder_from(storage: str) -> str:
    """This folder, as seen from that of a study's file."""
    return os.path.relpath(os.path.realpath(os.getcwd()), os.path.dirname(os.path.realpath(storage)))


def leave_note(study: Study, note: RunNote) -> None:
    """Let the study's file know what is run, in this folder, marked by this user."""
    described = settings_of(study).space
    study.note(**{**study.notes, run_note.NAME: marked(note, os.path.realpath(os.getcwd()), described)})


def settings_of(study: Study) -> Opened:
    """The settings of a study as its file holds them."""
    return study._session.record.settings


def run_study(study: Study, note: RunNote, objective: ScriptObjective | Program, display: Display) -> Study:
    """Run the study, and pass on the runner's warnings."""
    warnings = RunnerWarnings()
    logger = logging.getLogger("farthing")
    logger.addHandler(warnings)
    try:
        with suppress(KeyboardInterrupt):  # `study.interrupted` says it, and the exit status
            study.run(
                objective,
                workers=note.workers,
                isolate=True if note.command is not None else None,
                trial_seconds=note.trial_seconds,
                trial_memory=note.trial_memory,
                paused_limit=0 if note.pause == "checkpoint" else PAUSED_LIMIT,
                progress=False if display.quiet else None,
            )
    finally:
        logger.removeHandler(warnings)
    return study


class RunnerWarnings(logging.Handler):
    """Passes on the warnings of the runner, except those that the progress shows anyway: how trials and the run end."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)

    def emit(self, record: logging.LogRecord) -> None:
        if not getattr(record, "shown_anyway", False):
            warn(record.getMessage())


def best_of(study: Study) -> Trial | None:
    """The best trial, None if none has succeeded."""
    try:
        return study.best
    except NoTrial:
        return None
