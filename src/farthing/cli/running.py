"""`farthing run`: prepare what is evaluated, leave a note of it in the study's file, and run the study.

Everything is checked before anything is stored: a call that is refused leaves a study's file as it was.
"""

from __future__ import annotations

import logging
import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from farthing.budget import Budget, Ledger, amount_text
from farthing.checks import refuse
from farthing.cli import run_note
from farthing.cli.arguments import FoundSpace
from farthing.cli.program import CLOSING_SECONDS, SAVING_SECONDS, Program
from farthing.cli.run_mark import marked
from farthing.cli.run_note import RunNote
from farthing.cli.script import ScriptObjective
from farthing.cli.streams import warn
from farthing.cli.words import in_options
from farthing.errors import EveryTrialFailed, InvalidArgument, InvalidBudget
from farthing.record.reader import StudyFile, read_study
from farthing.record.study_events import Opened
from farthing.runner.options import PAUSED_LIMIT, Cluster, RunOptions
from farthing.runner.outlet import is_terminal
from farthing.runner.temporary import TemporaryFolder
from farthing.session import Session
from farthing.space import Space
from farthing.space.command_template import check_placeholders
from farthing.study import Study
from farthing.trial import Config

METER_UNITS = {"cpu": "compute_seconds", **dict.fromkeys(["energy", "rapl", "nvidia"], "joules")}
ISOLATE_OF = {None: None, "yes": True, "no": False, "spawn": "spawn"}  # the words of --isolate


@dataclass(frozen=True)
class Display:
    """What a run shows; the study's file does not store it."""

    quiet: bool = False
    show_output: bool = False

    @property
    def ends_with_summary(self) -> bool:
        """Whether somebody sees the end of the run on a terminal."""
        return not self.quiet and is_terminal(sys.stderr)


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
        if note.ray is None:  # else it is on the nodes
            _require_program(program.template.program)
        if unused and "farthing.config" not in program.template.names:
            warn(f"the command has no placeholder for {', '.join(unused)}; the values are only in FARTHING_CONFIG")
        yield program


def _require_program(name: str | None) -> None:
    if name is None or shutil.which(name) is not None:
        return
    expected = "an executable file" if Path(name).is_file() and os.sep in name else "a program that can be found"
    refuse("command", expected, name)


@dataclass(frozen=True)
class Request:
    """All that a call of `farthing run` asks for.

    storage  the study's file, as this process finds it
    named    the same, as the user names it
    place    the folder in which everything is run
    start    configurations to try first
    options  the other arguments of `Study`
    """

    note: RunNote
    found: FoundSpace
    budget: Budget
    storage: str | None = None
    named: str | None = None
    place: str = ""
    start: tuple[Config, ...] = ()
    display: Display = Display()
    options: Mapping[str, Any] = field(default_factory=dict)


def begin(request: Request) -> Ran:
    """Run a new study, or continue the one in the file if it is the same."""
    note, found, storage = replace(request.note, space=request.found.address), request.found, request.storage
    max_steps = note.steps if note.command is None or note.iterative else None
    check_run(note, request.budget)
    with objective_of(note, found.space, os.getcwd(), request.display) as objective:
        before = _stored(storage)
        if storage is not None:
            note = replace(note, folder=folder_from(storage))
        if before is not None and storage is not None:
            if run_note.NAME in before.notes:
                note.require_same(RunNote.from_json(before.notes[run_note.NAME], storage), storage)
            require_unspent(before.ledger, request.budget, storage)
        study = Study(
            found.space, request.budget, storage=storage, max_steps=max_steps,
            start=_start_of(request, is_new=before is None), **request.options,
        )  # fmt: skip
        if storage is not None:
            leave_note(study, note)
        return run_study(study, note, objective, request.display)


def _stored(storage: str | None) -> StudyFile | None:
    """The study that a file holds already."""
    return read_study(storage) if storage is not None and Path(storage).is_file() and os.stat(storage).st_size else None


def _start_of(request: Request, is_new: bool) -> tuple[Config, ...]:
    """What is tried first: the user's own configurations, then the defaults. A study that exists has its own, and is
    asked only about those that the user gives again."""
    default = request.found.default
    if default is None or not (is_new or request.start):
        return request.start
    return (*request.start, default)


def check_run(note: RunNote, budget: Budget) -> None:
    """Refuse options that a run would refuse, before anything is stored."""
    options = RunOptions(**run_options(note))
    unit = METER_UNITS.get(note.meter or "", budget.unit)
    if note.meter is not None and unit not in budget.limits:
        raise InvalidArgument(
            f"--meter {note.meter} measures {unit}, which the budget ({budget}) does not limit; "
            f"write --budget {unit}=600, or leave --meter out"
        )
    options.meters(budget)


def require_unspent(ledger: Ledger, budget: Budget, name: str) -> None:
    """Refuse a new total of which nothing is left. The budget that a study has already may be spent."""
    unit = replace(ledger, budget=budget).reached
    if unit is not None and budget != ledger.budget:
        limit, spent = (amount_text(unit, amount) for amount in (budget.limits[unit], ledger.total(unit)))
        raise InvalidBudget(f"budget: expected more than the {spent} that {name} has used: it is a total, got {limit}")


def folder_from(storage: str) -> str:
    """This folder, as seen from that of a study's file."""
    return os.path.relpath(os.path.realpath(os.getcwd()), os.path.dirname(os.path.realpath(storage)))


def leave_note(study: Study, note: RunNote) -> None:
    """Let the study's file know what is run, in this folder, marked by this user."""
    described = settings_of(study).space
    study.note(**{**study.notes, run_note.NAME: marked(note, os.path.realpath(os.getcwd()), described)})


def settings_of(study: Study) -> Opened:
    """The settings of a study as its file holds them."""
    return session_of(study).record.settings


def session_of(study: Study) -> Session:
    """What runs a study, and knows more of it than its users need."""
    return study._session


def run_options(note: RunNote) -> dict[str, Any]:
    """The arguments of `Study.run`."""
    options = {
        "workers": note.workers if note.ray is None else cluster_of(note),
        "isolate": True if note.command is not None else ISOLATE_OF[note.isolate],
        "trial_seconds": note.trial_seconds,
        "trial_memory": note.trial_memory,
        "paused_limit": 0 if note.pause == "checkpoint" else PAUSED_LIMIT,
        "meter": note.meter,
    }
    if note.max_failures is not None:
        options["max_failures"] = None if note.max_failures == run_note.NO_LIMIT else int(note.max_failures)
    if (kept := note.keep_checkpoints) is not None:
        options["keep_checkpoints"] = kept if kept in run_note.KEPT else int(kept)
    return options


def cluster_of(note: RunNote) -> Cluster:
    """The workers on a Ray cluster."""
    from farthing.adapters.ray.workers import Ray

    cpus, gpus = _amount("ray-cpus", note.ray_cpus or "1"), _amount("ray-gpus", note.ray_gpus or "0")
    rates = None if note.ray_usd_per_hour is None else _rates(note.ray_usd_per_hour)
    return Ray(note.ray, note.workers, cpus, gpus, usd_per_hour=rates, checkpoints=note.ray_checkpoints)


def _rates(text: str) -> float | dict[str, float]:
    """A rate, or rates by label: the last = of each is before the rate.

    >>> _rates("2.5"), _rates("market=spot=1.2, H100=3.5")
    (2.5, {'market=spot': 1.2, 'H100': 3.5})
    """
    if "=" not in text:
        return _amount("ray-usd-per-hour", text)
    parts = [part.strip().rpartition("=") for part in text.split(",")]
    return {name: _amount("ray-usd-per-hour", rate) for name, _, rate in parts}


def _amount(option: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        refuse(option, "a number of at least 0", text)


@dataclass(frozen=True)
class Ran:
    """A study that was run, and the error that ended the run, if its trials did.

    summary  whether it ends with a summary on a terminal, and not only with a result
    """

    study: Study
    error: EveryTrialFailed | None = None
    summary: bool = False


def run_study(study: Study, note: RunNote, objective: ScriptObjective | Program, display: Display) -> Ran:
    """Run the study, and pass on the runner's warnings."""
    warnings = RunnerWarnings()
    logger = logging.getLogger("farthing")
    logger.addHandler(warnings)
    summary = display.ends_with_summary
    session_of(study).shows_end = not summary
    try:
        study.run(objective, progress=False if display.quiet else None, **run_options(note))
    except EveryTrialFailed as error:
        return Ran(study, error, summary)
    except KeyboardInterrupt:  # after Ctrl-C all is recorded, and shown as after any other run
        if not study.interrupted:
            raise
    finally:
        logger.removeHandler(warnings)
    return Ran(study, None, summary)


class RunnerWarnings(logging.Handler):
    """Passes on the warnings of the runner, except those that the progress shows anyway: how trials and the run end."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)

    def emit(self, record: logging.LogRecord) -> None:
        if not getattr(record, "shown_anyway", False):
            warn(in_options(record.getMessage()))
