"""`auto`, which is Farthing as it is by default, compared with peers that begin as they do by themselves.

    python -m benchmarks.auto --data FOLDER              10 seeds, 5 live; writes docs/auto-bench.md, .svg and its data
    python -m benchmarks.auto --data FOLDER --groups a b --methods farthing farthing-uninformed      prints only
    python -m benchmarks.auto --groups c --problems live/knn --seeds 1                                prints only
    python -m benchmarks.auto --data FOLDER --kept       the page from the runs done so far
    python -m benchmarks.auto --page                     the page again, from its data
    python -m benchmarks.auto --data FOLDER --methods farthing --update    the page with these runs in place of its own
    QUICK=1 python -m benchmarks.auto                    2 tables and a live model, 1 seed, some methods; prints only

(a) are twelve tables, (b) more of them and LCBench, (c) models that are trained live, for 20 seconds each. FOLDER: see
problems.py. One thread per run; finished runs are kept, so that an interrupted benchmark continues. Live runs are done
one at a time: nothing else should run then.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

from benchmarks.auto.findings import curves, kept, part_of
from benchmarks.auto.methods import methods
from benchmarks.auto.page import document
from benchmarks.auto.problems import CHEAP, GROUPS, problems
from benchmarks.auto.runs import FILES, Result, Run, measure
from benchmarks.auto.text import lines_of, problem_table, rank_table, regret_table
from benchmarks.common.command import parser
from benchmarks.common.documents import kept_data, machine, write, write_page
from benchmarks.common.environments import DOCS, quick, run_module
from benchmarks.common.kept_runs import by_name

NAME = "auto-bench"
SEEDS, LIVE_SEEDS = 10, 5
FEWER = {"hebo": 1}  # seeds on tables, of methods that take minutes per run
QUICK_PROBLEMS, QUICK_METHODS = ("mlp_car", "nas_cifar10", "live/tree"), ("random", "tpe", "flaml", "farthing")


def planned(given: Namespace) -> list[Run]:
    """On tables methods outermost, those that are quick first; then seeds, so that a part is a fair part. Live methods
    innermost: runs that are compared follow one another, so that whatever else the machine does meets all of them."""
    every = [one for one in problems(given.data) if one.group in given.groups]
    if given.problems:
        every = [one for one in every if one.name in given.problems]
    runs = (Run(problem, method, seed) for method, seed, problem in product(given.methods, range(SEEDS), every))
    wanted = [run for run in runs if run.seed < (given.seeds or seeds_of(run))]
    live = sorted((run for run in wanted if run.problem.is_live), key=lambda run: (run.seed, run.problem.place))
    return [run for run in wanted if not run.problem.is_live] + live


def seeds_of(run: Run) -> int:
    return LIVE_SEEDS if run.problem.is_live else FEWER.get(run.searcher.name, SEEDS)


def results_of(runs: list[Run], given: Namespace) -> Mapping[Run, Result]:
    if given.kept:
        return FILES.all_kept(runs)
    live, tabled = ([run for run in runs if run.problem.is_live is is_live] for is_live in (True, False))
    return {**measure(tabled, given.workers, given.data), **measure(live, 1, given.data)}


def print_findings(data: Mapping[str, Any]) -> None:
    for group in GROUPS:
        part = part_of(data, group)
        if part is not None and part.methods and part.seeds:
            parts = ["\n".join(lines_of(part)), regret_table(part), rank_table(part), problem_table(part, 1.0)]
            print("\n" + "\n\n".join([f"({group})", *parts]))


def publish(results: Mapping[Run, Result]) -> None:
    publish_data({"machine": machine(), "cheap": CHEAP, **kept(results)})


def update(results: Mapping[Run, Result]) -> None:
    """The page with these runs in place of those that it has of the same methods, problems and seeds. Only for runs
    that are made in the same way: where the code of a peer has changed, its runs are made again."""
    data, new = kept_data(NAME), kept(results)
    runs = {
        problem: {**data["runs"].get(problem, {}), **new["runs"].get(problem, {})}
        for problem in {**data["runs"], **new["runs"]}
    }
    data |= {part: {**data[part], **new[part]} for part in ("problems", "versions")} | {"runs": runs}
    publish_data(data | {"machine": machine(), "cheap": CHEAP})


def publish_data(data: dict[str, Any]) -> None:
    data |= curves(data)
    write(NAME, document(data), data)
    run_module("blackbox", "auto.figure", DOCS / "data" / f"{NAME}.json", DOCS / f"{NAME}.svg")


def page_again() -> None:
    data = kept_data(NAME)
    write_page(NAME, document(data), data)


def main() -> None:
    options = parser(__doc__, has_page=True)
    options.add_argument("--data", type=Path, help="the folder of (b)")
    options.add_argument("--groups", nargs="+", choices=list(GROUPS), default=[])
    options.add_argument("--problems", nargs="+", default=[])
    options.add_argument("--methods", nargs="+", type=by_name(methods()), default=[])
    options.add_argument("--seeds", type=int)
    options.add_argument("--workers", type=int, default=1, help="runs at a time on tables")
    options.add_argument("--update", action="store_true", help="the page, with these runs in place of its own")
    options.add_argument("--kept", action="store_true", help="from the runs that are done")
    given = options.parse_args()
    if given.page:
        page_again()
        return
    selected = (given.groups, given.problems, given.methods, given.seeds)
    is_whole = given.data is not None and not quick() and not any(selected)
    if quick():
        given.problems, given.seeds = given.problems or list(QUICK_PROBLEMS), given.seeds or 1
        given.methods = given.methods or [one for one in methods() if one.name.startswith(QUICK_METHODS)]
    given.data = given.data and given.data.resolve()
    given.groups, given.methods = given.groups or list(GROUPS), given.methods or list(methods())
    results = results_of(planned(given), given)
    if given.update:
        update(results)
    elif is_whole:
        publish(results)
    else:
        print_findings(kept(results))


if __name__ == "__main__":
    main()
