"""Searches in scikit-learn with equal time: FarthingSearchCV compared with random search, halving and Optuna.

    python -m benchmarks.sklearn_search            5 seeds; writes docs/sklearn-bench.md, .svg and its data
    QUICK=1 python -m benchmarks.sklearn_search    2 tasks, 2 seeds, 8 seconds; prints only
    python -m benchmarks.sklearn_search --kept     the page from the runs done so far
    python -m benchmarks.sklearn_search --tasks boosting --methods farthing random --seeds 4    prints only

Two searches run side by side, each with one thread; run nothing else on the machine meanwhile (45 minutes for all of
it). Finished runs are kept, so that an interrupted benchmark continues.
"""

from __future__ import annotations

import argparse

from benchmarks.common.command import parser
from benchmarks.common.documents import machine, write
from benchmarks.common.environments import DOCS, quick, run_module
from benchmarks.sklearn_search.findings import findings
from benchmarks.sklearn_search.page import comparison_lines, data, document, overall_table, task_table
from benchmarks.sklearn_search.runs import FILES, FIRST_SEED, METHODS, RANDOM, SYSTEM, TASKS, measure, planned

BUDGET, QUICK_BUDGET = 40.0, 8.0  # seconds
SEEDS, QUICK_SEEDS = 5, 2
QUICK_TASKS = ("pipeline", "boosting")
WORKERS = 2


def parsed() -> argparse.Namespace:
    options = parser(__doc__)
    options.add_argument("--kept", action="store_true", help="only what was done before")
    options.add_argument("--tasks", nargs="+", choices=TASKS)
    options.add_argument("--methods", nargs="+", choices=[method.key for method in METHODS])
    options.add_argument("--seeds", type=int)
    options.add_argument("--budget", type=float, help="seconds")
    options.add_argument("--workers", type=int, default=WORKERS)
    return options.parse_args()


def main() -> None:
    asked = parsed()
    is_page = not quick() and not any((asked.tasks, asked.methods, asked.seeds, asked.budget))
    runs = planned(
        asked.tasks or (QUICK_TASKS if quick() else TASKS),
        [method for method in METHODS if not asked.methods or method.key in asked.methods],
        range(FIRST_SEED, FIRST_SEED + (asked.seeds or (QUICK_SEEDS if quick() else SEEDS))),
        asked.budget or (QUICK_BUDGET if quick() else BUDGET),
    )
    results = FILES.all_kept(runs) if asked.kept else measure(runs, asked.workers)
    found, missing = findings(results, runs)
    if found is None:
        print("no method has all of its runs on a task")
    elif not is_page:
        tables = [task_table(found, task) for task in found.tasks if {RANDOM} & {m.name for m in found.methods(task)}]
        print("\n\n".join(["", *tables, overall_table(found), *comparison_lines(found)]))
    else:
        facts = machine()
        write("sklearn-bench", document(found, missing, facts), data(found, facts))
        files = (DOCS / "data" / "sklearn-bench.json", DOCS / "sklearn-bench.svg")
        run_module(SYSTEM, "sklearn_search.figure", *files)


if __name__ == "__main__":
    main()
