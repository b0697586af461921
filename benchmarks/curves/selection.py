"""The command line of benchmarks on learners that train in steps: what of it is run."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

from benchmarks.common.command import parser
from benchmarks.common.environments import quick
from benchmarks.common.kept_runs import by_name
from benchmarks.curves.methods import Method, described


def _seeds(text: str) -> list[int]:
    first, _, last = text.partition("-")
    return list(range(int(first), int(last or first) + 1))


def selection(about: str | None, methods: Sequence[Method]) -> ArgumentParser:
    """A parser of what is selected of the methods, problems, seeds and budgets."""
    options = parser(about)
    options.add_argument("--data", type=Path, help="the folder of the surrogate of LCBench")
    options.add_argument("--methods", nargs="+", type=by_name(methods), default=[])
    options.add_argument("--policy", nargs="+", type=described, default=[], help="policies of Farthing, as JSON")
    options.add_argument("--tasks", nargs="+")
    options.add_argument("--seeds", nargs="+", type=_seeds, help="such as 100-104")
    options.add_argument("--budget", nargs="+", type=float, help="in mean costs of a training")
    options.add_argument("--workers", type=int, default=1)
    options.add_argument("--kept", action="store_true", help="from the runs that are done")
    return options


def is_whole(given: Namespace) -> bool:
    """Whether nothing was selected, so that the page may be written."""
    return not quick() and not any((given.methods, given.policy, given.tasks, given.seeds, given.budget))


def selected_methods(given: Namespace, methods: Sequence[Method], quick_methods: Sequence[str]) -> list[Method]:
    usual = [method for method in methods if not quick() or method.name in quick_methods]
    return [*given.methods, *given.policy] or usual


def selected_seeds(given: Namespace, seeds: Sequence[int], quick_seeds: Sequence[int]) -> list[int]:
    return [*chain(*given.seeds)] if given.seeds else [*(quick_seeds if quick() else seeds)]
