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
from itertools import chain, product
from pathlib import Path

from benchmarks.bapi.findings import findings
from benchmarks.bapi.page import brief, comparison_text, data, document
from benchmarks.bapi.runs import FILES, METHODS, MULTIPLES, TASKS, USUAL, WIDE, Method, Run, measure, own
from benchmarks.common.command import parser
from benchmarks.common.documents import machine, write
from benchmarks.common.environments import DOCS, quick, run_module
from benchmarks.common.kept_runs import by_name

SEEDS, QUICK_SEEDS = tuple(range(5)), (0, 1)
QUICK_TASKS, QUICK_METHODS = TASKS[:2], ("bapi", "ei", "random", "hyperband", "tpe-median")
WORKERS = 1


def _policy(text: str) -> Method:
    described = json.loads(text)
    options = [f"{name}={value}" for name, value in described.items() if name != "name"]
    return own("-".join([described["name"], *options]), **described)


def _seeds(text: str) -> list[int]:
    first, _, last = text.partition("-")
    return list(range(int(first), int(last or first) + 1))


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
        Run(folder, task, method, multiple, seed)
        for method, seed, (multiple, task) in product(methods, seeds, sorted(cells))
    ]


def parsed() -> argparse.Namespace:
    options = parser(__doc__)
    options.add_argument("--data", type=Path, help="the folder of the surrogate of LCBench")
    options.add_argument("--methods", nargs="+", type=by_name(METHODS), default=[])
    options.add_argument("--policy", nargs="+", type=_policy, default=[], help="policies of Farthing, as JSON")
    options.add_argument("--tasks", nargs="+", type=int)
    options.add_argument("--seeds", nargs="+", type=_seeds, help="such as 100-104")
    options.add_argument("--budget", nargs="+", type=float, help="in mean costs of a training")
    options.add_argument("--workers", type=int, default=WORKERS)
    options.add_argument("--kept", action="store_true", help="from the runs that are done")
    arguments = options.parse_args()
    if arguments.data is None:
        options.error("--data FOLDER (make: LCBENCH=FOLDER) is needed; docs/extrapolation.md says what it holds")
    known = json.loads((arguments.data / "encoding.json").read_text())["OpenML_task_id"]
    if unknown := [task for task in arguments.tasks or TASKS if str(task) not in known]:
        options.error(f"the surrogate has no task {', '.join(map(str, unknown))}; it has {', '.join(list(known)[1:])}")
    return arguments


def main() -> None:
    arguments = parsed()
    selected = (arguments.methods, arguments.policy, arguments.tasks, arguments.seeds, arguments.budget)
    is_page = not quick() and not any(selected)
    usual = [method for method in METHODS if not quick() or method.name in QUICK_METHODS]
    methods = [*arguments.methods, *arguments.policy] or usual
    seeds = [*chain(*arguments.seeds)] if arguments.seeds else [*(QUICK_SEEDS if quick() else SEEDS)]
    tasks = arguments.tasks or list(QUICK_TASKS if quick() else TASKS)
    multiples = arguments.budget or ([USUAL] if quick() or arguments.tasks else None)
    runs = planned(arguments.data.resolve(), methods, seeds, tasks, multiples)
    results = FILES.all_kept(runs) if arguments.kept else measure(runs, arguments.workers)
    found, missing = findings(results, runs)
    if not found:
        print("no method has all of its runs")
    elif not is_page:
        print("\n" + brief(found) + "\n\n" + comparison_text(found))
    else:
        facts = machine()
        write("bapi-bench", document(found, missing, len(seeds), facts), data(found, seeds, facts))
        files = (DOCS / "data" / "bapi-bench.json", DOCS / "bapi-bench.svg")
        run_module("blackbox", "bapi.figure", *files)


if __name__ == "__main__":
    main()
