"""The subcommands of `farthing`: their options, and what they print. What they do is imported when they are called."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

import farthing
from farthing import errors
from farthing.cli.calling import EXIT_CODES, INTERRUPTED, Settings

if TYPE_CHECKING:
    from farthing.record.reader import StudyFile
    from farthing.study import Study

POLICIES = ("auto", "bapi", "bopt", "carbo", "cei", "ei_alpha", "ei_cool", "eipu", "ei", "sobol", "random")

F = TypeVar("F", bound=Callable[..., Any])


def _debug(context: click.Context, _: click.Parameter, value: bool) -> None:
    context.ensure_object(Settings).debug |= value


def _common(command: F) -> F:
    return click.option(
        "--debug", is_flag=True, expose_value=False, callback=_debug, help="Show the traceback of an error."
    )(command)


@click.group(
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=EXIT_CODES + '\n\nShell completion: eval "$(_FARTHING_COMPLETE=bash_source farthing)"; also zsh, fish.',
)
@click.version_option(farthing.__version__, prog_name="farthing", message="%(prog)s %(version)s")
@_common
def group() -> None:
    """Find the best hyperparameters a budget can buy.

    \b
    farthing run train.py:objective --space space.toml --budget 10m --storage s.db
    farthing run --command "./train --lr {lr}" --space space.toml --budget 10m --storage s.db
    farthing status s.db
    farthing best s.db --json
    farthing resume s.db --budget 20m
    """


STUDY = click.argument("study", metavar="STUDY", type=click.Path(dir_okay=False))
JSON = click.option("--json", "as_json", is_flag=True, help="Write JSON.")


def _how_to_run(command: F) -> F:
    """Options that `run` and `resume` share."""
    for option in reversed(
        [
            click.option("--command", metavar="TEXT", help="A program and its arguments, with {placeholders}."),
            click.option("--iterative", is_flag=True, default=None, help="The program prints 'step value' per step."),
            click.option(
                "--pause", type=click.Choice(["stop", "checkpoint"]),
                help="How a program rests: stopped (SIGSTOP; the default), or ended, to go on from its checkpoint.",
            ),
            click.option("--workers", type=click.IntRange(1), help="Evaluations side by side.  [default: 1]"),
            click.option("--trial-seconds", metavar="TIME", help="Kill a trial that takes longer, such as 5m."),
            click.option("--trial-memory", metavar="SIZE", help="Kill a trial that holds more memory, such as 4GB."),
            click.option("--quiet", "-q", is_flag=True, help="No progress on standard error."),
            click.option("--show-output", is_flag=True, help="Show what programs print, on standard error."),
            JSON,
            _common,
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
@click.option(
    "--space", metavar="FILE", help="A TOML file, or script.py:name.  [default: `space` beside the objective]"
)
@click.option(
    "--budget", metavar="TEXT", required=True, help="10m, 1h30m, $5, '100 evaluations', cost=300; joined by commas."
)
@click.option("--storage", metavar="FILE", type=click.Path(dir_okay=False), help="Keep the study in this file.")
@click.option("--policy", type=click.Choice(POLICIES), default="auto", show_default=True, help="How to search.")
@click.option("--seed", type=click.IntRange(0), help="Make proposals repeatable.")
@click.option("--maximize", is_flag=True, help="Look for the largest value instead of the least.")
@click.option("--max-steps", type=click.IntRange(1), help="Steps of a complete training.")
@click.option("--stop-at", type=float, metavar="VALUE", help="A value good enough to end.")
@click.option(
    "--task", multiple=True, callback=_task, metavar="NAME=VALUE", help="What the data is like, such as rows=1000."
)
@_how_to_run
def run(
    objective: str | None, space: str | None, budget: str, storage: str | None, max_steps: int | None,
    policy: str, seed: int | None, maximize: bool, stop_at: float | None, task: Any,
    quiet: bool, show_output: bool, as_json: bool, **how: Any,
) -> int:  # fmt: skip
    """Run a study: of a Python function, or of a program in any language.

    OBJECTIVE is script.py:name or package.module:name, a function of a config that returns a value to minimise, or a
    dict with "value", "cost" and notes, or yields them step by step.

    A program is given by --command. It is split into arguments as a shell would, without a shell; {name} stands for a
    parameter, {farthing.trial}, {farthing.steps}, {farthing.start_step}, {farthing.checkpoint_dir}, {farthing.config}
    and {farthing.result} for what a run knows, {{ for a brace. Its value is the last line it prints: a number, a number
    and its cost, or JSON with "value".

    An existing --storage goes on, if it holds the same study.

    \b
    farthing run train.py:objective --space space.toml --budget 10m --storage s.db
    farthing run --command "python train.py --lr {lr}" --space space.toml --budget "10m, 50 evaluations"
    farthing run --command "./train.sh {lr}" --iterative --max-steps 30 --space space.toml --budget 5m
    """
    from farthing.cli.running import Manner, Plan, begin, budget_of, own_output, space_of

    plan = Plan(**_given(objective=objective, steps=max_steps, **how))
    with own_output() as out:
        found, address = space_of(space, plan, os.getcwd())
        plan = Plan(**{**plan.as_json(), **_given(space=address)})
        study = begin(
            plan, found, budget_of(budget), storage, Manner(quiet, show_output),
            policy=policy, seed=seed, maximize=maximize, stop_at=stop_at, task=task,
        )  # fmt: skip
        return _ended(study, storage, as_json, out)


@group.command(epilog=EXIT_CODES)
@STUDY
@click.option("--budget", metavar="TEXT", help="The new total, not an addition.")
@click.option("--objective", metavar="ADDRESS", help="script.py:name, in place of what was run before.")
@_how_to_run
def resume(study: str, budget: str | None, quiet: bool, show_output: bool, as_json: bool, **given: Any) -> int:
    """Go on with the study of a file, as `farthing run` began it.

    What was run, where, and with how many workers is in the file; options given here replace it from now on.

    \b
    farthing resume s.db
    farthing resume s.db --budget 20m --workers 4
    farthing resume s.db --objective train.py:objective
    """
    from farthing.cli.running import Manner, budget_of, go_on, own_output

    with own_output() as out:
        total = None if budget is None else budget_of(budget)
        found = go_on(study, total, _given(**given), Manner(quiet, show_output))
        return _ended(found, study, as_json, out)


def _ended(study: Study, storage: str | None, as_json: bool, out: Any) -> int:
    """Say what a run found, and how it ended."""
    from farthing.cli import formatting as shown
    from farthing.cli.running import best_of

    trials, best, ledger = study.trials, best_of(study), study.ledger
    why = (
        "interrupted" if study.interrupted else str(study.ended or "there is nothing more to propose").partition(";")[0]
    )
    study.close()
    if as_json:
        found = {
            "ended": why, "best": best and shown.best_json(best), "trials": shown.counts(trials),
            "ledger": shown.ledger_json(ledger), "storage": storage,
        }  # fmt: skip
        out.write(shown.as_json(found) + "\n")
    else:
        text = shown.best_text(best, ledger.unit) if best is not None else "best        none: no trial has succeeded"
        out.write(f"{text}\n{shown.counts_text(trials)}\n{ledger}\n")
    out.flush()
    if study.interrupted:
        if storage is not None:
            sys.stderr.write(f"farthing: interrupted; to go on: farthing resume {storage}\n")
        return INTERRUPTED
    if best is None:
        errors_seen = [trial.error for trial in trials if trial.error]
        last = f"; the last error: {errors_seen[-1].splitlines()[-1]}" if errors_seen else ""
        raise errors.NoTrial(f"no trial has succeeded{last}")
    return 0


@group.command()
@STUDY
@JSON
@_common
def status(study: str, as_json: bool) -> None:
    """Show where a study stands, also while it runs elsewhere."""
    from farthing.cli import formatting as shown
    from farthing.record.reader import read_study

    stored = read_study(study)
    best = stored.best if stored.best_value is not None else None
    settings = stored.record.settings
    if as_json:
        click.echo(
            shown.as_json(
                {
                    "runner": stored.runner, "policy": settings.policy.get("name"), "seed": settings.seed,
                    "maximize": settings.maximize, "trials": shown.counts(stored.trials),
                    "best": best and shown.best_json(best), "ledger": shown.ledger_json(stored.ledger),
                    "run": stored.notes.get("cli"),
                }
            )
        )  # fmt: skip
        return
    click.echo(f"study       {stored.path}, {f'run by {stored.runner}' if stored.runner else 'not running'}")
    if stored.notes.get("cli"):
        plan = stored.notes["cli"]
        click.echo(f"runs        {plan.get('objective') or plan.get('command')}")
    aim = "maximise" if settings.maximize else "minimise"
    click.echo(f"search      {aim}, policy {settings.policy.get('name')}, seed {settings.seed}")
    click.echo(shown.best_text(best, stored.ledger.unit) if best else "best        none yet")
    click.echo(shown.counts_text(stored.trials))
    for trial in stored.trials:
        if trial.status.value in ("running", "paused"):
            at = f"step {len(trial.curve)}, " if len(trial.curve) else ""
            click.echo(f"  {trial.status.value:<8} trial {trial.number}, {at}{shown.config_text(trial.config)}")
    click.echo(str(stored.ledger))


@group.command()
@STUDY
@JSON
@_common
def best(study: str, as_json: bool) -> None:
    """Show the best configuration found.

    \b
    farthing best s.db --json
    """
    from farthing.cli import formatting as shown
    from farthing.record.reader import read_study

    stored = read_study(study)
    trial = stored.best
    click.echo(shown.as_json(shown.best_json(trial)) if as_json else shown.best_text(trial, stored.ledger.unit))


@group.command()
@STUDY
@click.option("--csv", "csv_file", metavar="[FILE]", is_flag=False, flag_value="-", help="Write CSV, the default.")
@click.option("--json", "json_file", metavar="[FILE]", is_flag=False, flag_value="-", help="Write JSON.")
@_common
def export(study: str, csv_file: str | None, json_file: str | None) -> None:
    """Write all trials, one row each, to a file or to standard output.

    \b
    farthing export s.db --csv trials.csv
    farthing export s.db --json
    """
    from farthing.cli import formatting as shown
    from farthing.record.reader import read_study

    for file in (csv_file, json_file):
        if file not in (None, "-") and os.path.realpath(str(file)) == os.path.realpath(study):
            raise errors.InvalidArgument(f"{file}: is the study itself; name another file to write to")
    stored = read_study(study)
    if json_file is not None:
        _write(json_file, shown.as_json([shown.trial_json(trial) for trial in stored.trials]) + "\n")
    if csv_file is not None or json_file is None:
        _write(csv_file or "-", shown.as_csv(stored.trials, stored.record.space.names))


def _write(file: str, text: str) -> None:
    if file == "-":
        click.echo(text, nl=False)
    else:
        Path(file).write_text(text, encoding="utf-8")


@group.command()
@STUDY
@click.option("--trial", type=click.IntRange(0), help="As it was when that trial was asked for.")
@click.option(
    "--points", type=click.IntRange(2), default=12, show_default=True, help="Points of the front in the table."
)
@JSON
@_common
def pareto(study: str, trial: int | None, points: int, as_json: bool) -> None:
    """Show what improvement can be expected for what cost.

    The front of expected improvement against cost, as the models of the study see it, and where EI, EIpu, EI-cool and
    CEI would evaluate next.
    """
    from farthing.cli import formatting as shown
    from farthing.cli.pareto import front_json, front_text
    from farthing.record.reader import read_study

    stored = read_study(study)
    _say_what_is_left_out(stored)
    click.echo(shown.as_json(front_json(stored, trial)) if as_json else front_text(stored, trial, points))


def _say_what_is_left_out(stored: StudyFile) -> None:
    for what in stored.left_out:
        click.echo(f"farthing: warning: {stored.path}: a file cannot hold {what}; it is left out here", err=True)


@group.command(epilog=EXIT_CODES)
@click.option("--budget", metavar="TEXT", default="30s", show_default=True, help="What it may spend.")
@click.option("--storage", metavar="FILE", default="farthing-demo.db", show_default=True, help="Written anew.")
@click.option("--quiet", "-q", is_flag=True, help="No progress on standard error.")
@_common
def demo(budget: str, storage: str, quiet: bool) -> int:
    """Tune a random forest on handwritten digits (needs scikit-learn)."""
    from importlib.util import find_spec

    from farthing.cli.running import Manner, Plan, begin, budget_of, own_output, space_of

    if find_spec("sklearn") is None:
        raise ImportError("the demo tunes a scikit-learn model: pip install 'farthing[demo]'")
    limits = budget_of(budget)
    for name in (storage, f"{storage}-wal", f"{storage}-shm"):
        Path(name).unlink(missing_ok=True)
    plan = Plan("farthing.problems.demo:objective", space="farthing.problems.demo:SPACE")
    with own_output() as out:
        space, _ = space_of(plan.space, plan, os.getcwd())
        study = begin(plan, space, limits, storage, Manner(quiet), seed=0)
        return _ended(study, storage, False, out)
