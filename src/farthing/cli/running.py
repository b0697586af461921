"""`farthing run` and `farthing resume`: what to run, remembered in the study's file, and how it ended.

Paths are remembered from the folder in which the study was begun, and that folder from the one of the study's file: who
moves all of it can go on from there.
"""

from __future__ import annotations

import logging
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, TextIO

from farthing.budget import Budget
from farthing.cli.program import CLOSING_SECONDS, SAVING_SECONDS, Program
from farthing.cli.script import Objective, loaded, parts_of
from farthing.cli.space_file import read_space
from farthing.cli.template import require_fillable
from farthing.errors import InvalidArgument, InvalidBudget, InvalidSpace, NoTrial, StudyMismatch
from farthing.runner.options import PAUSED_LIMIT
from farthing.space import Space
from farthing.study import Study
from farthing.trial import Trial

NOTE = "cli"  # the name of our note in a study's file


@dataclass(frozen=True)
class Plan:
    """What is run and how: all that the file of a study remembers for `farthing resume`."""

    objective: str | None = None  # script.py:name, or
    command: str | None = None
    iterative: bool = False
    pause: str = "stop"
    steps: int | None = None
    space: str | None = None  # script.py:name, where the space is not in the file
    folder: str = "."  # where it is run, from the folder of the study's file
    workers: int = 1
    trial_seconds: str | None = None
    trial_memory: str | None = None

    def __post_init__(self) -> None:
        if (self.objective is None) == (self.command is None):
            raise InvalidArgument(
                "give either an objective, as in `farthing run train.py:objective`, or --command, and not both"
            )
        if self.command is None and (self.iterative or self.pause != "stop"):
            raise InvalidArgument(
                "--iterative and --pause are for --command: a script that yields is iterative by itself"
            )
        if self.pause != "stop" and not self.iterative:
            raise InvalidArgument("--pause is for --iterative: what prints one value has nothing to pause")

    @property
    def what(self) -> str:
        """What is run, in words."""
        return self.objective if self.command is None else f"--command {self.command!r}"  # type: ignore[return-value]

    def as_json(self) -> dict[str, Any]:
        return {key: value for key, value in asdict(self).items() if value is not None}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Plan:
        """What newer versions remember beside this is not needed here."""
        return cls(**{field.name: stored[field.name] for field in fields(cls) if field.name in stored})

    def require_same(self, found: Plan, name: str) -> None:
        """An existing file goes on with what it was begun with."""
        for key in ("objective", "command", "iterative", "steps"):
            here, there = getattr(self, key), getattr(found, key)
            if here != there:
                raise StudyMismatch(
                    f"{name}: {key} is {there!r} in the file and {here!r} here; "
                    f"to go on with another on purpose: farthing resume {name}"
                )


@dataclass(frozen=True)
class Manner:
    """How a run shows itself; nothing to remember."""

    quiet: bool = False
    show_output: bool = False


def budget_of(text: str) -> Budget:
    """A budget as Python reads it ("10m", "$5, 100 evaluations"), or limits by their names.

    >>> budget_of("cost=300, 40 evaluations")
    Budget(cost=300.0, evaluations=40)
    >>> budget_of("usd=5, usd_per_hour=2.5")
    Budget(usd=5.0, usd_per_hour=2.5)
    """
    names = [field.name for field in fields(Budget)]
    named: dict[str, float] = {}
    rest: list[str] = []
    for part in text.split(","):
        name, equals, amount = (word.strip() for word in part.partition("="))
        if not equals:
            rest.append(part)
            continue
        try:
            number = float(amount)
        except ValueError:
            number = 0.0
        if name not in names or name in named or number <= 0.0:
            raise InvalidBudget(
                f"budget: cannot read {part.strip()!r}; expected one of {', '.join(names)} and a number above 0"
            )
        named[name] = number
    if rest or not named:
        given = Budget.of(", ".join(rest)).as_json()
        if twice := given.keys() & named.keys():
            raise InvalidBudget(f"budget: {twice.pop()} is given twice in {text!r}")
        named = {**given, **named}
    return Budget.from_json(named)


def space_of(given: str | None, plan: Plan, folder: str) -> tuple[Space, str | None]:
    """The space, and its address where it comes from a script: of a file, of an address, or `space` beside the
    objective."""
    address = given
    if given is None:
        if plan.objective is None:
            raise InvalidArgument("--space is missing: a TOML file, or script.py:name")
        address = f"{parts_of(plan.objective)[0]}:space"
    elif ":" not in given or Path(given).is_file():
        return read_space(given), None
    assert address is not None
    try:
        space = loaded(address, folder)
    except InvalidArgument as error:
        if given is not None or "defines no 'space'" not in str(error):
            raise
        raise InvalidArgument(
            f"--space is missing, and {address.rpartition(':')[0]} defines no 'space' either"
        ) from error
    if not isinstance(space, Space):
        raise InvalidSpace(f"{address}: expected a farthing.Space, got {type(space).__name__}")
    return space, address


@contextmanager
def objective_of(plan: Plan, space: Space, folder: str, manner: Manner) -> Iterator[Objective | Program]:
    """What is evaluated, checked as far as it can be without running it."""
    if plan.command is None:
        yield Objective(str(plan.objective), folder)
        return
    with tempfile.TemporaryDirectory(prefix="farthing-", ignore_cleanup_errors=True) as results:
        patience = SAVING_SECONDS if plan.pause == "checkpoint" else CLOSING_SECONDS
        program = Program(plan.command, plan.iterative, plan.steps, results, patience, manner.show_output)
        unused = require_fillable(program.template, space, program.own, program.missing)
        _require_program(program.template.program)
        if unused and "farthing.config" not in program.template.names:
            warn(f"the command has no placeholder for {', '.join(unused)}: in FARTHING_CONFIG alone")
        yield program


def _require_program(name: str | None) -> None:
    if name is None or shutil.which(name) is not None:
        return
    why = "is not executable" if Path(name).is_file() and os.sep in name else "is not a program that can be found"
    raise InvalidArgument(f"command: {name!r} {why}")


def begin(plan: Plan, space: Space, budget: Budget, storage: str | None, manner: Manner, **options: Any) -> Study:
    """Run a new study, or go on with the same one."""
    max_steps = plan.steps if plan.command is None or plan.iterative else None
    with objective_of(plan, space, os.getcwd(), manner) as objective:
        study = Study(space, budget, storage=storage, max_steps=max_steps, **options)
        if storage is not None:
            folder = os.path.relpath(os.getcwd(), os.path.dirname(os.path.abspath(storage)))
            plan = replace(plan, folder=folder)
            if NOTE in study.notes:
                plan.require_same(Plan.from_json(study.notes[NOTE]), storage)
            study.note(**{**study.notes, NOTE: plan.as_json()})
        return _run(study, plan, objective, manner)


def go_on(storage: str, budget: Budget | None, given: Mapping[str, Any], manner: Manner) -> Study:
    """Go on with the study of a file as it was run, but for what is given anew."""
    path = os.path.abspath(storage)
    study, plan = _remembered(path, storage, budget, given)
    try:
        with objective_of(plan, study.space, os.getcwd(), manner) as objective:
            study.note(**{**study.notes, NOTE: plan.as_json()})
            return _run(study, plan, objective, manner)
    except BaseException:
        study.close()
        raise


def _remembered(path: str, shown: str, budget: Budget | None, given: Mapping[str, Any]) -> tuple[Study, Plan]:
    from farthing.record.reader import read_study

    stored = read_study(path).notes.get(NOTE)
    anew = "objective" in given or "command" in given
    if stored is None and not anew:
        raise InvalidArgument(
            f"{shown}: was not begun by `farthing run`, so it is not known what to evaluate; "
            f"say so: farthing resume {shown} --objective script.py:name, or --command '...'"
        )
    before = {} if stored is None else dict(stored)
    folder = os.path.relpath(os.getcwd(), os.path.dirname(path))
    if anew:  # another program, started from here
        for key in ("objective", "command", "iterative", "pause", "folder"):
            before.pop(key, None)
        before["folder"] = folder
    plan = Plan.from_json({**before, **given})
    place = os.path.normpath(os.path.join(os.path.dirname(path), plan.folder))
    try:
        os.chdir(place)
    except OSError as error:
        raise InvalidArgument(
            f"{shown}: was run in {place}, where one cannot go ({error.strerror}); "
            "give --objective or --command to run it from here"
        ) from error
    try:
        return Study.resume(path, budget=budget), plan
    except InvalidSpace:
        if plan.space is None:
            raise
        space, _ = space_of(plan.space, plan, os.getcwd())
        return Study.resume(path, budget=budget, space=space), plan


def _run(study: Study, plan: Plan, objective: Objective | Program, manner: Manner) -> Study:
    """Run it, and pass on the runner's warnings."""
    heard = Heard(study)
    logger = logging.getLogger("farthing")
    logger.addHandler(heard)
    try:
        study.run(
            objective,
            workers=plan.workers,
            isolate=True if plan.command is not None else None,
            trial_seconds=plan.trial_seconds,
            trial_memory=plan.trial_memory,
            paused_limit=0 if plan.pause == "checkpoint" else PAUSED_LIMIT,
            progress=False if manner.quiet else None,
        )
    finally:
        logger.removeHandler(heard)
    return study


class Heard(logging.Handler):
    """What the runner warns of, but for ends of trials and of the run, which are told anyway."""

    def __init__(self, study: Study) -> None:
        super().__init__(logging.WARNING)
        self._study = study

    def emit(self, record: logging.LogRecord) -> None:
        if not getattr(record, "shown_anyway", False):
            warn(record.getMessage())


def warn(text: str) -> None:
    sys.stderr.write(f"farthing: warning: {text}\n")
    sys.stderr.flush()


def best_of(study: Study) -> Trial | None:
    try:
        return study.best
    except NoTrial:
        return None


@contextmanager
def own_output() -> Iterator[TextIO]:
    """Standard output for the result alone: what objectives and their processes print meanwhile goes to standard
    error."""
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        kept, wanted = os.dup(1), os.dup(1)
    except OSError:  # it is closed
        yield sys.stdout
        return
    os.dup2(2, 1)
    try:
        with os.fdopen(wanted, "w", encoding=sys.stdout.encoding, errors=sys.stdout.errors) as out:
            yield out
    finally:
        sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)
