"""The commands that run a study: `run`, `resume` and `demo`. What they need is imported when they are called."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import chdir
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from farthing.cli.config_file import from_file, load_config
from farthing.cli.exit_status import EXIT_CODES, GlobalOptions
from farthing.cli.group import DEBUG, JSON, STUDY, F, group
from farthing.cli.run_note import ISOLATES, KEPT, METERS, NO_LIMIT, PAUSES
from farthing.cli.streams import result_stream

if TYPE_CHECKING:
    ParamType = click.ParamType[Any]
else:
    ParamType = click.ParamType  # which is generic only in newer versions of click

# Listed here, so that --help need not import the policies.
PUBLISHED = ("bapi", "bopt", "carbo", "cei", "ei_alpha", "ei_cool", "eipu", "ei", "eqie", "pbgi")
NAMED = ("auto", *PUBLISHED, "thaw", "sobol", "random")
POLICIES = (*NAMED, *(f"{name}-paper" for name in PUBLISHED))
WORTH_HELP = "End when no evaluation is worth its cost: what an improvement is worth, such as '1s per 0.001'."
QUIET = click.option("--quiet", "-q", is_flag=True, help="Do not show progress on standard error.")


class FileOrText(ParamType):
    """Text that often names a file: shells complete it as one. What a config file holds instead stays as it is."""

    name = "text"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return value

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return [CompletionItem(incomplete, type="file")]


class CountOr(ParamType):
    """A number from 1, or one of some words."""

    name = "count"

    def __init__(self, *words: str) -> None:
        self._words = words

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        text = str(value).lower()
        if text not in self._words and not (text.isascii() and text.isdigit() and int(text) > 0):
            self.fail(
                f"expected a whole number of at least 1, or {' or '.join(self._words)}, got {value!r}", param, ctx
            )
        return text

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return [CompletionItem(word) for word in self._words if word.startswith(incomplete)]


def _run_options(command: F) -> F:
    """The options that `run` and `resume` share."""
    for option in reversed(
        [
            click.option(
                "--command", metavar="TEXT", type=FileOrText(),
                help="A program and its arguments, with {placeholders}.",
            ),
            click.option("--iterative", is_flag=True, default=None, help="The program prints 'step value' per step."),
            click.option(
                "--pause", type=click.Choice(PAUSES),
                help="How to pause a program: suspend it (SIGSTOP), or end it and restart it from its checkpoint."
                "  [default: stop]",
            ),
            click.option("--workers", type=click.IntRange(1), help="Number of parallel evaluations.  [default: 1]"),
            click.option(
                "--isolate", type=click.Choice(ISOLATES),
                help="Evaluate a Python function in worker processes, in this one, or in workers that are started "
                "anew and never forked.  [default: yes if time, money or memory is limited]",
            ),
            click.option("--trial-seconds", metavar="TIME", help="Kill a trial that takes longer: 30, 5m, 1h."),
            click.option("--trial-memory", metavar="SIZE", help="Kill a trial that uses more memory, such as 4GB."),
            click.option(
                "--max-failures", metavar="N|none", type=CountOr(NO_LIMIT),
                help="Stop if the first N trials all fail with the same type of error.  [default: 5]",
            ),
            click.option(
                "--keep-checkpoints", metavar="best|all|N", type=CountOr(*KEPT),
                help="Of which trials that ended checkpoints are kept; N: the N best.  [default: best]",
            ),
            click.option(
                "--meter", type=click.Choice(METERS),
                help="Measure cost by CPU time (for compute_seconds) or energy (for joules).  [default: the clock]",
            ),
            click.option(
                "--ray", metavar="ADDRESS",
                help="Evaluate on this Ray cluster (auto, HOST:PORT, ray://HOST:PORT, local): --workers at most.",
            ),
            click.option("--ray-cpus", metavar="N", help="Processors that each worker holds there.  [default: 1]"),
            click.option("--ray-gpus", metavar="N", help="GPUs that each worker holds there.  [default: 0]"),
            click.option(
                "--ray-usd-per-hour", metavar="RATE|LABEL=RATE,...",
                help="What a worker costs there: a rate, or one for each kind of node.",
            ),
            click.option(
                "--ray-checkpoints", metavar="FOLDER", type=click.Path(file_okay=False),
                help="A folder for checkpoints that all nodes see.  [default: next to --storage]",
            ),
            QUIET,
            click.option("--show-output", is_flag=True, help="Show the output of programs on standard error."),
            JSON,
            DEBUG,
        ]
    ):  # fmt: skip
        command = option(command)
    return command


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


def _worth(_: click.Context, __: click.Parameter, given: Any) -> Any:
    """A number, or text that says it in the budget's unit."""
    try:
        return given if given is None else float(given)
    except (TypeError, ValueError):
        return given


@group.command(epilog=EXIT_CODES)
@click.argument("objective", required=False, type=FileOrText())
@click.option(
    "--config",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    is_eager=True,
    callback=load_config,
    help="A TOML file with any of these options as keys; it runs what it says in its own folder.",
)
@click.option(
    "--space",
    metavar="FILE",
    type=FileOrText(),
    help="A TOML file, or script.py:name.  [default: `space` in the script]",
)
@click.option(
    "--budget",
    metavar="TEXT",
    required=True,
    help="10m, 1h30m, $5, '100 evaluations' or cost=300; several separated by commas.",
)
@click.option("--storage", metavar="FILE", type=click.Path(dir_okay=False), help="Store the study in this file.")
@click.option(
    "--start",
    metavar="FILE|NAME=VALUE,...",
    type=FileOrText(),
    multiple=True,
    help="Try this configuration first: lr=0.1,depth=3, or a JSON or TOML file. May be given several times.",
)
@click.option(
    "--warm-start",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    multiple=True,
    help="Learn from the study in this file, and begin with its best configurations. May be given several times.",
)
@click.option(
    "--policy", type=click.Choice(POLICIES), default="auto", show_default=True, metavar="NAME",
    help=f"The search method: {', '.join(NAMED)}. With -paper (carbo-paper) a published one is as its paper has it.",
)  # fmt: skip
@click.option("--seed", type=click.IntRange(0), help="Make proposals reproducible.")
@click.option(
    "--maximize/--minimize", default=False, help="Search for the largest value, or the smallest.  [default: minimize]"
)
@click.option("--max-steps", type=click.IntRange(1), help="The number of steps of a complete training.")
@click.option("--stop-at", type=float, metavar="VALUE", help="End the search once a value is this good.")
@click.option("--stop-when-not-worth", metavar="WORTH", callback=_worth, help=WORTH_HELP)
@click.option(
    "--cheap",
    multiple=True,
    metavar="NAME=VALUE,...",
    help="Values at which evaluations are cheap, such as n_estimators=10: the first ones are near them.",
)
@click.option(
    "--task",
    multiple=True,
    callback=_task,
    metavar="NAME=VALUE",
    help="A property of the data, such as rows=1000, for predictions of cost.",
)
@_run_options
@click.pass_obj
def run(options: GlobalOptions, /, as_json: bool, **given: Any) -> int:
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
    farthing run train.py:objective --space space.toml --budget 10m --start lr=0.1,depth=3
    farthing run --command "./train.sh {lr}" --space space.toml --budget "10m, 50 evaluations"
    farthing run --command "./train.sh {lr}" --iterative --max-steps 30 --space space.toml --budget 5m
    farthing run train.py:objective --space space.toml --budget 10m --warm-start last-month.db
    farthing run --config farthing.toml --workers 4
    """
    filed = from_file(click.get_current_context())
    with result_stream() as out:
        from farthing.cli.ending import show_end
        from farthing.cli.request import request_of
        from farthing.cli.running import begin
        from farthing.runner.clock import counted_from

        with counted_from(options.began):
            request = request_of(given, filed)
            with chdir(request.place):
                return show_end(begin(request), request.named, as_json, out)


@group.command(epilog=EXIT_CODES)
@STUDY
@click.option("--budget", metavar="TEXT", help="The new budget: a total, not an addition.")
@click.option(
    "--objective", metavar="ADDRESS", type=FileOrText(), help="script.py:name, to replace what was run before."
)
@click.option("--stop-when-not-worth", metavar="WORTH", callback=_worth, help=WORTH_HELP)
@click.option("--yes", is_flag=True, help="Run what the file says, even if you have not run it here before.")
@click.option("--outside", is_flag=True, help="Allow code and folders outside of the current folder.")
@_run_options
@click.pass_obj
def resume(
    options: GlobalOptions, /, study: str, budget: str | None, yes: bool, outside: bool,
    quiet: bool, show_output: bool, as_json: bool, stop_when_not_worth: Any, **given: Any,
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
    from farthing.cli.ending import show_end
    from farthing.cli.request import note_options
    from farthing.cli.resuming import resume as continued
    from farthing.cli.running import Display

    with result_stream() as out:
        total = None if budget is None else parse_budget(budget)
        may = Permission(yes, outside, options.arguments, options.began)
        display = Display(quiet, show_output)
        ran = continued(study, total, note_options(given), display, may, stop_when_not_worth)
        return show_end(ran, study, as_json, out)


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
    from farthing.cli.ending import show_end
    from farthing.cli.run_note import RunNote
    from farthing.cli.running import Display, Request, begin

    if find_spec("sklearn") is None:
        raise ImportError("the demo tunes a scikit-learn model: pip install 'farthing[demo]'")
    limits = parse_budget(budget)
    for name in (storage, f"{storage}-wal", f"{storage}-shm"):
        Path(name).unlink(missing_ok=True)
    note = RunNote("farthing.problems.demo:objective")
    with result_stream() as out:
        found = find_space("farthing.problems.demo:SPACE", note.objective, os.getcwd())
        request = Request(note, found, limits, storage, display=Display(quiet), options={"seed": 0})
        return show_end(begin(request), storage, False, out)
