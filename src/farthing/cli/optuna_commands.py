"""Studies to and from Optuna: `export --optuna` and `import`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import click

from farthing.cli.group import DEBUG, JSON, group
from farthing.cli.run_commands import NAMED, POLICIES, FileOrText
from farthing.cli.streams import json_for, show
from farthing.errors import NoTrial
from farthing.text.escaping import on_one_line
from farthing.text.plain import counted


def export_to_optuna(study: str, url: str, study_name: str | None, replace: bool) -> None:
    """Write a study into an Optuna storage, and say where it is."""
    from farthing.record.reader import read_study

    read_study(study)  # an error about the study comes first
    with _optuna():
        from farthing.adapters.optuna import to_optuna
        from farthing.adapters.optuna.storages import address

        theirs = to_optuna(study, url, study_name=study_name, replace=replace)
    trials = counted(len(theirs.get_trials(deepcopy=False)), "trial")
    show(on_one_line(f"exported    {trials}, as study {theirs.study_name!r} of {address(url)}"))


@group.command("import")
@click.argument("source", metavar="URL", type=FileOrText())
@click.option("--study-name", metavar="NAME", help="The study in the Optuna storage.  [default: the only one]")
@click.option(
    "--storage", metavar="FILE", required=True, type=click.Path(dir_okay=False), help="The new study file to make."
)
@click.option(
    "--budget", metavar="TEXT",
    help="What may be spent from here on: 10m, $5, '100 evaluations' or cost=300.  [default: that of a study which "
    "Farthing exported]",
)  # fmt: skip
@click.option("--cost", metavar="NAME", help="The user attribute with the cost of a trial.  [default: its duration]")
@click.option(
    "--space", metavar="FILE", type=FileOrText(),
    help="A TOML file, or script.py:name; trials that do not fit are left out.  [default: found from the trials]",
)  # fmt: skip
@click.option(
    "--policy", type=click.Choice(POLICIES), default="auto", show_default=True, metavar="NAME",
    help=f"The search method: {', '.join(NAMED)}.",
)  # fmt: skip
@click.option("--seed", type=click.IntRange(0), help="Make proposals reproducible.")
@click.option("--max-steps", type=click.IntRange(1), help="The number of steps of a complete training.")
@JSON
@DEBUG
def import_study(
    source: str, study_name: str | None, storage: str, budget: str | None, cost: str | None, space: str | None,
    policy: str, seed: int | None, max_steps: int | None, as_json: bool,
) -> None:  # fmt: skip
    """Make a study file from an Optuna study: its trials are known results, and cost nothing.

    URL is the address of an Optuna storage, such as sqlite:///optuna.db, or the path of a journal file.

    \b
    farthing import sqlite:///optuna.db --storage s.db --budget "100 evaluations"
    farthing resume s.db --objective train.py:objective
    """
    from farthing.cli import formatting
    from farthing.cli.arguments import find_space, parse_budget

    found = None if space is None else find_space(space, None, ".").space
    limits = None if budget is None else parse_budget(budget)
    with _optuna():
        from farthing.adapters.optuna import from_optuna

        study = from_optuna(
            source, limits, study_name=study_name, storage=storage, space=found, cost=cost, policy=policy, seed=seed,
            max_steps=max_steps,
        )  # fmt: skip
    with study:
        trials, best = study.trials, None
        with suppress(NoTrial):
            best = study.best
        if as_json:
            told: dict[str, Any] = {
                "trials": formatting.counts(trials), "best": best and formatting.best_json(best),
                "budget": study.ledger.budget.as_json(),
            }  # fmt: skip
            show(json_for(sys.stdout, formatting.as_json(told)))
            return
        show(formatting.counts_text(trials))
        show(formatting.best_text(best, study.ledger.unit) if best else formatting.NO_BEST)
        show(on_one_line(f"budget      {study.ledger.budget}"))


@contextmanager
def _optuna() -> Iterator[None]:
    """What Optuna itself says of its storages is left out."""
    try:
        import optuna
    except ModuleNotFoundError as error:
        raise ImportError("this needs Optuna: pip install 'farthing[optuna]'") from error
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        yield
    finally:
        optuna.logging.set_verbosity(before)
