"""The command group `farthing`, and the options that several of its commands have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

import farthing
from farthing.cli.exit_status import EXIT_CODES, GlobalOptions

F = TypeVar("F", bound=Callable[..., Any])


def _set_debug(context: click.Context, _: click.Parameter, value: bool) -> None:
    context.ensure_object(GlobalOptions).debug |= value


DEBUG = click.option(
    "--debug", is_flag=True, expose_value=False, callback=_set_debug, help="Show the traceback of an error."
)
JSON = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
STUDY = click.argument("study", metavar="STUDY", type=click.Path(dir_okay=False))


@click.group(
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=EXIT_CODES + '\n\nShell completion: eval "$(_FARTHING_COMPLETE=bash_source farthing)"; also zsh and fish.',
)
@click.version_option(farthing.__version__, prog_name="farthing", message="%(prog)s %(version)s")
@DEBUG
@click.pass_context
def group(context: click.Context) -> None:
    """Find the best hyperparameters a budget can buy.

    \b
    farthing run train.py:objective --space space.toml --budget 10m --storage s.db
    farthing run --command "./train --lr {lr}" --space space.toml --budget 10m --storage s.db
    farthing status s.db
    farthing best s.db --json
    farthing resume s.db --budget 20m
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())
