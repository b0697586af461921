"""Iterative learners under a budget: `bapi` on twelve tasks of LCBench, compared with its peers.

    python -m benchmarks.bapi --data FOLDER            5 seeds; writes docs/bapi-bench.md, .svg and its data
    QUICK=1 python -m benchmarks.bapi --data FOLDER    2 tasks, 2 seeds, some methods; prints only
    python -m benchmarks.bapi --data FOLDER --kept     the page from the runs done so far
    python -m benchmarks.bapi --data FOLDER --tasks 34539 189354 --methods bapi random --seeds 100-104 --budget 8
    python -m benchmarks.bapi --data FOLDER --policy '{"name": "bapi", "points": "last"}' --workers 2    print only

FOLDER holds the surrogate of LCBench, see common/lcbench.py. One thread per worker; finished runs are kept, so
that an interrupted benchmark continues.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from itertools import product
from pathlib import Path

from benchmarks.bapi.page import data, document, summary
from benchmarks.bapi.runs import METHODS, MULTIPLES, TASKS, USUAL, WIDE, run_of
from benchmarks.common.documents import machine, write
from benchmarks.common.environments import DOCS, quick, run_module
from benchmarks.curves.findings import findings
from benchmarks.curves.methods import Method
from benchmarks.curves.runs import FILES, Run, measure
from benchmarks.curves.selection import is_whole, selected_methods, selected_seeds, selection

SEEDS, QUICK_SEEDS = tuple(range(5)), (0, 1)
QUICK_TASKS, QUICK_METHODS = TASKS[:2], ("bapi", "ei", "random", "hyperband", "tpe-median")


def planned(
    folder: Path,
    methods: Sequence[Method],
    seeds: Sequence[int],
    tasks: Sequence[int],
    multiples: Sequence[float] | None,
) -> list[Run]:
    """Every method on every task, one method after the other; without `multiples` the budgets of the page."""
    cells = [
        (multiple, task)
        for multiple in multiples or MULTIPLES
        for task in sorted(tasks)
        if multiples or multiple == USUAL or task in WIDE
    ]
    return [
        run_of(folder, task, method, multiple, seed)
        for method, seed, (multiple, task) in product(methods, seeds, sorted(cells))
    ]


def parsed() -> argparse.Namespace:
    options = selection(__doc__, METHODS)
    given = options.parse_args()
    if given.data is None:
        options.error("--data FOLDER (make: LCBENCH=FOLDER) is needed; docs/extrapolation.md says what it holds")
    known = json.loads((given.data / "encoding.json").read_text())["OpenML_task_id"]
    if unknown := [task for task in given.tasks or [] if task not in known]:
        options.error(f"the surrogate has no task {', '.join(unknown)}; it has {', '.join(list(known)[1:])}")
    return given


def main() -> None:
    given = parsed()
    seeds = selected_seeds(given, SEEDS, QUICK_SEEDS)
    tasks = [*map(int, given.tasks)] if given.tasks else [*(QUICK_TASKS if quick() else TASKS)]
    multiples = given.budget or ([USUAL] if quick() or given.tasks else None)
    runs = planned(given.data.resolve(), selected_methods(given, METHODS, QUICK_METHODS), seeds, tasks, multiples)
    results = FILES.all_kept(runs) if given.kept else measure(runs, given.workers)
    found, missing = findings(results, runs)
    if not found:
        print("no method has all of its runs")
    elif not is_whole(given):
        print("\n" + summary(found))
    else:
        facts = machine()
        write("bapi-bench", document(found, missing, len(seeds), facts), data(found, seeds, facts))
        files = (DOCS / "data" / "bapi-bench.json", DOCS / "bapi-bench.svg")
        run_module("blackbox", "bapi.figure", *files)


if __name__ == "__main__":
    main()
