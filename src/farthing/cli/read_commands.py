"""The commands that read a study's file: `status`, `best`, `export`, `report` and `pareto`. They never change it."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import click

from farthing.cli import run_note
from farthing.cli.group import DEBUG, JSON, STUDY, group
from farthing.cli.streams import json_for, show, warn
from farthing.errors import InvalidArgument
from farthing.record.whole_file import write_whole
from farthing.text.escaping import on_one_line

if TYPE_CHECKING:
    from farthing.record.reader import StudyFile


def _read(path: str) -> StudyFile:
    """The study of a file."""
    from farthing.record.reader import read_study

    return read_study(path)


@group.command()
@STUDY
@click.option("--outlook", is_flag=True, help="Say what more budget is expected to bring, if that takes a moment only.")
@click.option("--watch", is_flag=True, help="Show it again and again until the run ends, or until Ctrl-C.")
@click.option(
    "--interval", type=click.FloatRange(0.05, 3600.0), metavar="SECONDS",
    help="How often --watch looks.  [default: 1]",
)  # fmt: skip
@JSON
@DEBUG
def status(study: str, outlook: bool, watch: bool, interval: float | None, as_json: bool) -> None:
    """Show the state of a study, even while it is running.

    \b
    farthing status s.db
    farthing status s.db --outlook
    farthing status s.db --watch
    farthing status s.db --json
    """
    from farthing.cli import formatting, watching

    if watch:
        if outlook:
            raise InvalidArgument("--outlook asks the models of the study, which takes a moment: not with --watch")
        watching.watch(study, 1.0 if interval is None else interval, as_json)
        return
    if interval is not None:
        raise InvalidArgument("--interval goes with --watch")
    stored = _read(study)
    best = stored.best if stored.best_value is not None else None
    settings = stored.record.settings
    if as_json:
        found = watching.status_json(stored) | ({"outlook": _outlook(stored) or None} if outlook else {})
        show(json_for(sys.stdout, formatting.as_json(found)))
        return
    _echo_line(f"study       {stored.path}, {f'run by {stored.runner}' if stored.runner else 'not running'}")
    _echo_runs(stored.notes.get(run_note.NAME))
    aim = "maximise" if settings.maximize else "minimise"
    _echo_line(f"search      {aim}, policy {settings.policy.get('name')}, seed {settings.seed}")
    show(formatting.best_text(best, stored.ledger.unit) if best else "best        none yet")
    show(formatting.counts_text(stored.trials))
    if error := formatting.last_error_text(stored.trials):
        _echo_line(error)
    if ended := stored.why_ended:
        _echo_line(f"ended       {ended}")
    if outlook:
        _echo_line(f"outlook     {_outlook(stored) or 'not known'}")
    for trial in stored.trials:
        if trial.status.value in ("running", "paused"):
            at = f"step {len(trial.curve)}, " if len(trial.curve) else ""
            _echo_line(f"  {trial.status.value:<8} trial {trial.number}, {at}{formatting.config_text(trial.config)}")
    show(str(stored.ledger))


def _outlook(stored: StudyFile) -> str:
    """What more budget is expected to bring, if the file says enough and it is found out in a moment."""
    from farthing.errors import FarthingError
    from farthing.policies import policy_from_json
    from farthing.policies.outlook import outlook_in_time

    if stored.left_out or stored.best_value is None:
        return ""
    try:
        return str(outlook_in_time(stored.record, policy_from_json(stored.record.settings.policy)) or "")
    except (FarthingError, ValueError):  # of a policy of the user's own
        return ""


def _echo_line(text: str) -> None:
    """Show one line, whatever the file says."""
    show(on_one_line(text))


def _echo_runs(note: Any) -> None:
    """What `farthing resume` would run, and in which folder, seen from that of the study's file."""
    if isinstance(note, dict):
        _echo_line(f"runs        {note.get('objective') or note.get('command')}")
        _echo_line(f"in          {note.get('folder', '.')}")
    elif note is not None:
        from farthing.text.plain import shown

        _echo_line(f"runs        {shown(note)}, which makes no sense")


@group.command()
@STUDY
@JSON
@DEBUG
def best(study: str, as_json: bool) -> None:
    """Show the best configuration found.

    \b
    farthing best s.db
    farthing best s.db --json
    """
    from farthing.cli import formatting

    stored = _read(study)
    found = stored.best
    if as_json:
        show(json_for(sys.stdout, formatting.as_json(formatting.best_json(found))))
    else:
        show(formatting.best_text(found, stored.ledger.unit))


@group.command()
@STUDY
@click.option(
    "--csv",
    "csv_file",
    metavar="[FILE]",
    type=click.Path(dir_okay=False),
    is_flag=False,
    flag_value="-",
    help="Write CSV (the default).",
)
@click.option(
    "--json",
    "json_file",
    metavar="[FILE]",
    type=click.Path(dir_okay=False),
    is_flag=False,
    flag_value="-",
    help="Write JSON.",
)
@click.option("--curves", is_flag=True, help="One row per step of the training curves instead.")
@click.option(
    "--optuna", metavar="URL",
    help="Write the study into an Optuna storage: sqlite:///optuna.db, or a journal file. Again: bring it up to date.",
)  # fmt: skip
@click.option("--study-name", metavar="NAME", help="The study's name in the Optuna storage.  [default: of the file]")
@click.option(
    "--replace", is_flag=True, help="Write the study in the Optuna storage anew if trials there have gone on."
)
@DEBUG
def export(
    study: str, csv_file: str | None, json_file: str | None, curves: bool, optuna: str | None, study_name: str | None,
    replace: bool,
) -> None:  # fmt: skip
    """Export all trials, one row each, to a file or to standard output; or the study to Optuna.

    \b
    farthing export s.db --csv trials.csv
    farthing export s.db --json
    farthing export s.db --curves --csv curves.csv
    farthing export s.db --optuna sqlite:///optuna.db
    """
    from farthing.cli import formatting

    if optuna is not None:
        from farthing.cli.optuna_commands import export_to_optuna

        if csv_file is not None or json_file is not None or curves:
            raise InvalidArgument("--optuna writes the whole study: it goes with none of --csv, --json and --curves")
        export_to_optuna(study, optuna, study_name, replace)
        return
    if study_name is not None or replace:
        raise InvalidArgument("--study-name and --replace go with --optuna")
    for file in (csv_file, json_file):
        if file not in (None, "-") and os.path.realpath(str(file)) == os.path.realpath(study):
            raise InvalidArgument(f"{file}: is the study itself; expected another file to write to")
    stored = _read(study)
    steps = formatting.step_rows(stored.trials) if curves else []
    if json_file is not None:
        text = formatting.as_json(steps if curves else [formatting.trial_json(trial) for trial in stored.trials])
        _write(json_file, json_for(sys.stdout, text) if json_file == "-" else text)
    if csv_file is not None or json_file is None:
        one_line = csv_file in (None, "-") and sys.stdout.isatty()
        if curves:
            table = formatting.csv_text(formatting.STEP_COLUMNS, steps, one_line=one_line)
        else:
            table = formatting.as_csv(stored.trials, stored.record.space.names, one_line=one_line)
        _write(csv_file, table.removesuffix("\n"))


def _write(file: str | None, text: str) -> None:
    """Write lines to a file, or to standard output."""
    if file in (None, "-"):
        show(text)
    else:
        write_whole(str(file), f"{text}\n")


@group.command()
@click.argument("studies", metavar="STUDY...", nargs=-1, required=True, type=click.Path(dir_okay=False))
@click.option(
    "-o", "--output", metavar="FILE", type=click.Path(dir_okay=False),
    help="Where to write it.  [default: the name of the first study, with .html]",
)  # fmt: skip
@DEBUG
def report(studies: tuple[str, ...], output: str | None) -> None:
    """Write a report to look at: one HTML file that needs no network.

    \b
    farthing report s.db
    farthing report s.db -o report.html
    farthing report s.db other.db -o both.html
    """
    from farthing.report.saving import report_of_files

    file = f"{os.path.splitext(os.path.basename(studies[0]))[0]}.html" if output is None else output
    if any(os.path.realpath(file) == os.path.realpath(study) for study in studies):
        raise InvalidArgument(f"{file}: is the study itself; expected another file to write to")
    write_whole(file, report_of_files(studies))
    show(on_one_line(f"report      {file}"))


@group.command()
@STUDY
@click.option("--trial", type=click.IntRange(0), help="As it was just before this trial was proposed.")
@click.option(
    "--points", type=click.IntRange(2), default=12, show_default=True, help="Number of points of the front to show."
)
@click.option(
    "--persistence",
    "before",
    metavar="TRIAL",
    type=click.IntRange(0),
    help="What became of the front that was there before this trial was proposed.",
)
@click.option("--alphas", is_flag=True, help="For each trial, the alphas that lead to the pick of CEI.")
@JSON
@DEBUG
def pareto(study: str, trial: int | None, points: int, before: int | None, alphas: bool, as_json: bool) -> None:
    """Show the trade-off between expected improvement and cost.

    These are the configurations for which, by the models of the study, no other one promises more improvement for less
    cost; and the ones that EI, EIpu, EI-cool and CEI would evaluate next.

    \b
    farthing pareto s.db
    farthing pareto s.db --trial 7
    farthing pareto s.db --persistence 7
    farthing pareto s.db --alphas
    """
    from farthing.cli import formatting

    if alphas and (before is not None or trial is not None):
        raise InvalidArgument("--alphas is of all trials: it goes with neither --trial nor --persistence")
    stored = _read(study)
    _warn_of_what_is_missing(stored)
    found = _tradeoff(stored, trial, points, before, alphas, as_json)
    show(json_for(sys.stdout, formatting.as_json(found)) if as_json else found)


def _tradeoff(
    stored: StudyFile, trial: int | None, points: int, before: int | None, alphas: bool, as_json: bool
) -> Any:  # fmt: skip
    """What `pareto` shows: text, or what becomes JSON."""
    from farthing.cli import pareto as shown

    if alphas:
        return shown.alphas_json(stored) if as_json else shown.alphas_text(stored)
    if before is None:
        return shown.front_json(stored, trial) if as_json else shown.front_text(stored, trial, points)
    if as_json:
        return shown.persistence_json(stored, before, trial)
    return shown.persistence_text(stored, before, trial, points)


def _warn_of_what_is_missing(stored: StudyFile) -> None:
    for what in stored.left_out:
        warn(f"{stored.path}: a file cannot hold {what}; the result does not take it into account")
