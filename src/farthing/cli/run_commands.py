"""The commands that run a study: `run`, `resume` and `demo`. What they need is imported when they are called."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from farthing import errors
from farthing.cli.exit_status import EXIT_CODES, FAILURE, INTERRUPTED, GlobalOptions
from farthing.cli.group import DEBUG, JSON, STUDY, F, group
from farthing.cli.run_note import PAUSES
from farthing.cli.streams import json_for, result_stream, say
from farthing.escaping import on_lines

if TYPE_CHECKING:
    from farthing.study import Study

# Listed here, so that --help need not import the policies.
POLICIES = ("auto", "bapi", "bopt", "carbo", "cei", "ei_alpha", "ei_cool", "eipu", "ei", "sobol", "random")
QUIET = click.option("--quiet", "-q", is_flag=True, help="Do not show progress on standard error.")


def _run_options(command: F) -> F:
    """The options that `run` and `resume` share."""
    for option in reversed(
        [
            click.option("--command", metavar="TEXT", help="A program and its arguments, with {placeholders}."),
            click.option("--iterative", is_flag=True, default=None, help="The program prints 'step value' per step."),
            click.option(
                "--pause", type=click.Choice(PAUSES),
                help="How to pause a program: suspend it (SIGSTOP), or end it and restart it from its checkpoint."
                "  [default: stop]",
            ),
            click.option("--workers", type=click.IntRange(1), help="Number of parallel evaluations.  [default: 1]"),
            click.option("--trial-seconds", metavar="TIME", help="Kill a trial that takes longer, such as 5m."),
            click.option("--trial-memory", metavar="SIZE", help="Kill a trial that uses more memory, such as 4GB."),
            QUIET,
            click.option("--show-output", is_flag=True, help="Show the output of programs on standard error."),
            JSON,
            DEBUG,
        ]
    ):  # fmt: skip
        command = option(command)
    return command


def _given(**options: Any) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


def _task(_: click.Context, __: click.Parameter, given: Sequence[str]) -> dict[str, float | str] | None:
    task: dict[str, float | str] = {}
    for item in given:
        name, equals, value = item.partition("=")
        if not name or not equals or not value:
            raise click.BadParameter(f"expected NAME=VALUE, such as rows=1000, got {item!r}")
        try:
            task[name] = float(value)
        except ValueError:
            task[name] = value
    return task or None


@group.command(epilog=EXIT_CODES)
@click.argument("objective", required=False)
@click.option("--space", metavar="FILE", help="A TOML file, or script.py:name.  [default: `space` in the script]")
@click.option(
    "--budget",
    metavar="TEXT",
    required=True,
    help="10m, 1h30m, $5, '100 evaluations' or cost=300; several separated by commas.",
)
@click.option("--storage", metavar="FILE", type=click.Path(dir_okay=False), help="Store the study in this file.")
@click.option("--policy", type=click.Choice(POLICIES), default="auto", show_default=True, help="The search method.")
@click.option("--seed", type=click.IntRange(0), help="Make proposals reproducible.")
@click.option("--maximize", is_flag=True, help="Search for the largest value instead of the smallest.")
@click.option("--max-steps", type=click.IntRange(1), help="The number of steps of a complete training.")
@click.option("--stop-at", type=float, metavar="VALUE", help="End the search once a value is this good.")
@click.option(
    "--task",
    multiple=True,
    callback=_task,
    metavar="NAME=VALUE",
    help="A property of the data, such as rows=1000, for predictions of cost.",
)
@_run_options
@click.pass_obj
def run(
    options: GlobalOptions, /, objective: str | None, space: str | None, budget: str, storage: str | None,
    max_steps: int | None, policy: str, seed: int | None, maximize: bool, stop_at: float | None, task: Any,
    quiet: bool, show_output: bool, as_json: bool, **how: Any,
) -> int:  # fmt: skip
    """Tune a Python function, or a program in any language.

    OBJECTIVE is script.py:name or package.module:name: a function of a configuration. It returns a value to minimise,
    or a dict with "value", "cost" and notes; or it yields one of these per training step.

    --command runs a program instead. The command is split into arguments like in a shell, but no shell runs it. {name}
    is replaced by the value of a parameter; {farthing.trial}, {farthing.steps}, {farthing.start_step},
    {farthing.checkpoint_dir}, {farthing.config} and {farthing.result} are replaced too; {{ is a literal brace. The
    value is the last line the program prints: a number, a number and its cost, or JSON with "value".

    If the file of --storage exists and holds the same study, the study is continued.

    \b
    farthing run train.py:objective --space space.toml --budget 10m --storage s.db
    farthing run --command "./train.sh {lr}" --space space.toml --budget "10m, 50 evaluations"
    farthing run --command "./train.sh {lr}" --iterative --max-steps 30 --space space.toml --budget 5m
    """
    from farthing.cli.arguments import find_space, parse_budget
    from farthing.cli.run_note import RunNote
    from farthing.cli.running import Display, begin
    from farthing.runner.clock import counted_from

    note = RunNote(**_given(objective=objective, steps=max_steps, **how))
    with result_stream() as out, counted_from(options.began):
        found, address = find_space(space, note.objective, os.getcwd())
        study = begin(
            replace(note, space=address), found, parse_budget(budget), storage, Display(quiet, show_output),
            policy=policy, seed=seed, maximize=maximize, stop_at=stop_at, task=task,
        )  # fmt: skip
        return _show_end(study, storage, as_json, out)


@group.command(epilog=EXIT_CODES)
@STUDY
@click.option("--budget", metavar="TEXT", help="The new budget: a total, not an addition.")
@click.option("--objective", metavar="ADDRESS", help="script.py:name, to replace what was run before.")
@click.option("--yes", is_flag=True, help="Run what the file says, even if you have not run it here before.")
@click.option("--outside", is_flag=True, help="Allow code and folders outside of the current folder.")
@_run_options
@click.pass_obj
def resume(
    options: GlobalOptions, /, study: str, budget: str | None, yes: bool, outside: bool,
    quiet: bool, show_output: bool, as_json: bool, **given: Any,
) -> int:  # fmt: skip
    """Continue a study that `farthing run` started.

    The file knows what was run, in which folder, and with how many workers. Options given here replace what it says.

    If you ran it yourself, in this folder on this machine, it continues at once. Otherwise the file may be a
    stranger's: what it would run is shown, and needs your answer at the terminal, or --yes.

    \b
    farthing resume s.db
    farthing resume s.db --budget 20m --workers 4
    farthing resume s.db --objective train.py:objective
    """
    from farthing.cli.arguments import parse_budget
    from farthing.cli.consent import Permission
    from farthing.cli.resuming import resume as continued
    from farthing.cli.running import Display

    with result_stream() as out:
        total = None if budget is None else parse_budget(budget)
        may = Permission(yes, outside, options.arguments, options.began)
        found = continued(study, total, _given(**given), Display(quiet, show_output), may)
        return _show_end(found, study, as_json, out)


def _show_end(study: Study, storage: str | None, as_json: bool, out: TextIO) -> int:
    """Write what a run found and how it ended; the exit status."""
    from farthing.cli import formatting
    from farthing.cli.running import best_of

    trials, best, ledger = study.trials, best_of(study), study.ledger
    why = (
        "interrupted" if study.interrupted else str(study.ended or "there is nothing more to propose").partition(";")[0]
    )
    study.close()
    if as_json:
        found = {
            "ended": why, "best": best and formatting.best_json(best), "trials": formatting.counts(trials),
            "ledger": formatting.ledger_json(ledger), "storage": storage,
        }  # fmt: skip
        text = json_for(out, formatting.as_json(found))
    else:
        text = formatting.best_text(best, ledger.unit) if best is not None else formatting.NO_BEST
        text += f"\n{formatting.counts_text(trials)}\n{ledger}"
    written = _write_result(text, storage, out)
    if study.interrupted:
        if storage is not None:
            say(f"farthing: interrupted; to continue: farthing resume {shlex.quote(storage)}")
        return INTERRUPTED
    if best is None:
        errors_seen = [trial.error for trial in trials if trial.error]
        last = f"; the last error: {errors_seen[-1].strip().splitlines()[-1]}" if errors_seen else ""
        raise errors.NoTrial(f"no trial has succeeded{last}")
    return 0 if written else FAILURE


def _write_result(text: str, storage: str | None, out: TextIO) -> bool:
    """Write the result of a run, which is stored already: a standard output that cannot take it loses nothing else."""
    try:
        out.write(f"{on_lines(text)}\n")
        out.flush()
    except OSError as error:
        kept = "" if storage is None else f"; the study is stored: farthing best {shlex.quote(storage)}"
        say(f"farthing: error: the result cannot be written to standard output: {error.strerror}{kept}")
        return False
    return True


@group.command(epilog=EXIT_CODES)
@click.option("--budget", metavar="TEXT", default="30s", show_default=True, help="The budget of the search.")
@click.option(
    "--storage",
    metavar="FILE",
    default="farthing-demo.db",
    show_default=True,
    help="The study's file; it is overwritten.",
)
@QUIET
@DEBUG
def demo(budget: str, storage: str, quiet: bool) -> int:
    """Tune a random forest on handwritten digits (needs scikit-learn)."""
    from importlib.util import find_spec

    from farthing.cli.arguments import find_space, parse_budget
    from farthing.cli.run_note import RunNote
    from farthing.cli.running import Display, begin

    if find_spec("sklearn") is None:
        raise ImportError("the demo tunes a scikit-learn model: pip install 'farthing[demo]'")
    limits = parse_budget(budget)
    for name in (storage, f"{storage}-wal", f"{storage}-shm"):
        Path(name).unlink(missing_ok=True)
    note = RunNote("farthing.problems.demo:objective", space="farthing.problems.demo:SPACE")
    with result_stream() as out:
        space, _ = find_space(note.space, note.objective, os.getcwd())
        study = begin(note, space, limits, storage, Display(quiet), seed=0)
        return _show_end(study, storage, False, out)
