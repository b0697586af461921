"""Learners that train in steps under a budget: `auto` on recorded curves and tasks of LCBench, compared with its peers.

    python -m benchmarks.curves --data FOLDER            10 seeds; writes docs/curves-bench.md and -charged.md
    python -m benchmarks.curves                          the same without LCBench; prints only
    QUICK=1 python -m benchmarks.curves                  2 recorded sets, 2 seeds, some methods; prints only
    python -m benchmarks.curves --data FOLDER --kept     the pages from the runs done so far
    python -m benchmarks.curves --tasks sgd lcbench/3945 --methods auto random --seeds 100-104 --budget 8
    python -m benchmarks.curves --choosing --policy '{"name": "bapi", "points": "last"}' --workers 2    print only

FOLDER holds the surrogate of LCBench, see common/lcbench.py. A task is a kind or one set of it. `--choosing` takes the
sets that defaults are chosen on, and no task of LCBench by itself. One thread per worker; finished runs are kept, so
that an interrupted benchmark continues.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from itertools import product

from benchmarks.common.documents import machine, write
from benchmarks.common.environments import DOCS, quick, run_module
from benchmarks.curves import sets
from benchmarks.curves.comparison import comparison_text
from benchmarks.curves.findings import complete, findings
from benchmarks.curves.methods import PEERS, Method, own
from benchmarks.curves.page import CHARGED, PLAIN, Page, data, document
from benchmarks.curves.peers.sources import LCBENCH
from benchmarks.curves.runs import FILES, LCBENCH_TASKS, Problem, Run, measure
from benchmarks.curves.selection import is_whole, selected_methods, selected_seeds, selection
from benchmarks.curves.text import brief

UNRANKED = ("own",)
METHODS = (own("auto", "subject"), own("bapi"), *PEERS)  # `auto` is `thaw` here, and finishes the best
MULTIPLES = (4.0, 8.0, 16.0)  # budgets, in mean costs of a training
SEEDS, QUICK_SEEDS = tuple(range(10)), (0, 1)
QUICK_METHODS, QUICK_SETS, QUICK_MULTIPLES = ("auto", "random", "hyperband", "tpe-median"), 2, (4.0,)


def problems_of(given: Namespace) -> list[Problem]:
    names = sets.names(given.choosing)
    if given.data and not given.choosing:
        names += [f"{LCBENCH}/{task}" for task in LCBENCH_TASKS]
    if given.tasks:
        every = [*sets.names(True), *sets.names(False)]
        names = [name for task in given.tasks for name in _named(task, names, every)]
    elif quick():
        names = names[:: max(len(names) // QUICK_SETS, 1)][:QUICK_SETS]
    if given.data is None and any(map(_is_lcbench, names)):
        raise ValueError("tasks of LCBench need --data FOLDER; docs/extrapolation.md says what it holds")
    return [Problem(name, given.data.resolve() if _is_lcbench(name) else None) for name in names]


def _named(task: str, planned: Sequence[str], every: Sequence[str]) -> list[str]:
    """The problems that a task of the command line means: one, or those of a kind that would be run."""
    if of_kind := [name for name in planned if name.startswith(f"{task}/")]:
        return of_kind
    if task in every or _is_lcbench(task):
        return [task]
    raise ValueError(f"no task {task!r}; expected one of {', '.join(every)}, a kind, or {LCBENCH}/NUMBER")


def _is_lcbench(name: str) -> bool:
    return name.startswith(f"{LCBENCH}/")


def planned(
    problems: Sequence[Problem], methods: Sequence[Method], seeds: Sequence[int], multiples: Sequence[float]
) -> list[Run]:
    """Every method on every problem with every budget; seeds outermost, so that a part is a fair part."""
    longest = max(multiples) if quick() else max(*multiples, *MULTIPLES)
    return [
        Run(problem, method, multiple, seed, longest)
        for seed, problem, method, multiple in product(seeds, problems, methods, multiples)
    ]


def main() -> None:
    options = selection(__doc__, METHODS)
    options.add_argument("--choosing", action="store_true", help="on the sets that defaults are chosen on")
    given = options.parse_args()
    try:
        problems = problems_of(given)
    except ValueError as wrong:
        options.error(str(wrong))
    methods = selected_methods(given, METHODS, QUICK_METHODS)
    seeds = selected_seeds(given, SEEDS, QUICK_SEEDS)
    multiples = given.budget or (QUICK_MULTIPLES if quick() else MULTIPLES)
    runs = planned(problems, methods, seeds, multiples)
    results = FILES.all_kept(runs) if given.kept else measure(runs, given.workers)
    runs = complete(results, runs)
    found, missing = findings(results, runs, UNRANKED)
    if not found:
        print("no method has all runs of a seed")
    elif not is_whole(given) or given.choosing or given.data is None:
        print("\n" + brief(found) + "\n\n" + comparison_text(found))
    else:
        charged, _ = findings({run: result.charged for run, result in results.items()}, runs, UNRANKED)
        done, facts = sorted({run.seed for run in runs}), machine()
        for page in (Page(PLAIN, found, done, missing, facts), Page(CHARGED, charged, done, missing, facts)):
            write(page.name, document(page), data(page))
        run_module("blackbox", "curves.figure", DOCS / "data" / f"{PLAIN}.json", DOCS / f"{PLAIN}.svg")


if __name__ == "__main__":
    main()
