"""The commands that read a study's file: `status`, `best`, `export` and `pareto`. They never change it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from farthing.cli import run_note
from farthing.cli.group import DEBUG, JSON, STUDY, group
from farthing.cli.streams import warn
from farthing.errors import InvalidArgument

if TYPE_CHECKING:
    from farthing.record.reader import StudyFile


def _read(path: str) -> StudyFile:
    """The study of a file."""
    from farthing.record.reader import read_study

    return read_study(path)


@group.command()
@STUDY
@JSON
@DEBUG
def status(study: str, as_json: bool) -> None:
    """Show the state of a study, even while it is running.

    \b
    farthing status s.db
    farthing status s.db --json
    """
    from farthing.cli import formatting

    stored = _read(study)
    best = stored.best if stored.best_value is not None else None
    settings = stored.record.settings
    if as_json:
        click.echo(
            formatting.as_json(
                {
                    "runner": stored.runner, "policy": settings.policy.get("name"), "seed": settings.seed,
                    "maximize": settings.maximize, "trials": formatting.counts(stored.trials),
                    "best": best and formatting.best_json(best), "ledger": formatting.ledger_json(stored.ledger),
                    "run": stored.notes.get(run_note.NAME),
                }
            )
        )  # fmt: skip
        return
    click.echo(f"study       {stored.path}, {f'run by {stored.runner}' if stored.runner else 'not running'}")
    if note := stored.notes.get(run_note.NAME):
        click.echo(f"runs        {note.get('objective') or note.get('command')}")
    aim = "maximise" if settings.maximize else "minimise"
    click.echo(f"search      {aim}, policy {settings.policy.get('name')}, seed {settings.seed}")
    click.echo(formatting.best_text(best, stored.ledger.unit) if best else "best        none yet")
    click.echo(formatting.counts_text(stored.trials))
    for trial in stored.trials:
        if trial.status.value in ("running", "paused"):
            at = f"step {len(trial.curve)}, " if len(trial.curve) else ""
            click.echo(f"  {trial.status.value:<8} trial {trial.number}, {at}{formatting.config_text(trial.config)}")
    click.echo(str(stored.ledger))


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
        click.echo(formatting.as_json(formatting.best_json(found)))
    else:
        click.echo(formatting.best_text(found, stored.ledger.unit))


@group.command()
@STUDY
@click.option("--csv", "csv_file", metavar="[FILE]", is_flag=False, flag_value="-", help="Write CSV (the default).")
@click.option("--json", "json_file", metavar="[FILE]", is_flag=False, flag_value="-", help="Write JSON.")
@DEBUG
def export(study: str, csv_file: str | None, json_file: str | None) -> None:
    """Export all trials, one row each, to a file or to standard output.

    \b
    farthing export s.db --csv trials.csv
    farthing export s.db --json
    """
    from farthing.cli import formatting

    for file in (csv_file, json_file):
        if file not in (None, "-") and os.path.realpath(str(file)) == os.path.realpath(study):
            raise InvalidArgument(f"{file}: is the study itself; expected another file to write to")
    stored = _read(study)
    if json_file is not None:
        _write(json_file, formatting.as_json([formatting.trial_json(trial) for trial in stored.trials]) + "\n")
    if csv_file is not None or json_file is None:
        _write(csv_file or "-", formatting.as_csv(stored.trials, stored.record.space.names))


def _write(file: str, text: str) -> None:
    if file == "-":
        click.echo(text, nl=False)
    else:
        Path(file).write_text(text, encoding="utf-8")


@group.command()
@STUDY
@click.option("--trial", type=click.IntRange(0), help="As it was just before this trial was proposed.")
@click.option(
    "--points", type=click.IntRange(2), default=12, show_default=True, help="Number of points of the front to show."
)
@JSON
@DEBUG
def pareto(study: str, trial: int | None, points: int, as_json: bool) -> None:
    """Show the trade-off between expected improvement and cost.

    These are the configurations for which, by the models of the study, no other one promises more improvement for less
    cost; and the ones that EI, EIpu, EI-cool and CEI would evaluate next.

    \b
    farthing pareto s.db
    farthing pareto s.db --trial 7
    """
    from farthing.cli import formatting
    from farthing.cli.pareto import front_json, front_text

    stored = _read(study)
    _warn_of_what_is_missing(stored)
    click.echo(formatting.as_json(front_json(stored, trial)) if as_json else front_text(stored, trial, points))


def _warn_of_what_is_missing(stored: StudyFile) -> None:
    for what in stored.left_out:
        warn(f"{stored.path}: a file cannot hold {what}; the result does not take it into account")
