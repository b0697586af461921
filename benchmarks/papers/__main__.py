"""The papers' forms of our policies compared with our defaults, and what each of our changes is worth.

    python -m benchmarks.papers --data FOLDER          10 seeds; writes docs/papers.md and docs/data/papers.json
    python -m benchmarks.papers --only tables          one group; the other groups of the page stay as they are
    QUICK=1 python -m benchmarks.papers                2 seeds of little; prints only
    python -m benchmarks.papers --page                 the page again, from its data
    python -m benchmarks.papers --kept                 the page from the runs that are done, perhaps with --seeds 5
    python -m benchmarks.papers --methods carbo bapi-paper --tables choosing --seeds 3 --workers 16      prints only

Groups are `tables`, `lcbench` (needs FOLDER, the surrogate of LCBench, see common/lcbench.py) and `two-level`. One
thread per worker; finished runs are kept, so that an interrupted benchmark continues.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.common.command import parser
from benchmarks.common.documents import kept_data, publish, write_page
from benchmarks.common.environments import DOCS, quick
from benchmarks.common.tables import CHOOSING, HELD_OUT, TABLES
from benchmarks.papers.groups import Group, lcbench_group, tables_group, two_level_group
from benchmarks.papers.measured import measured
from benchmarks.papers.page import WORDS, document

PAGE = "papers"
SEEDS, QUICK_SEEDS = 10, 2
QUICK_METHODS = ("carbo-paper", "ei", "bopt")
QUICK_PROBLEMS = ("mlp_car", "mlp_vehicle", "3945", "currin")
TABLE_GROUPS = {"all": TABLES, "choosing": CHOOSING, "held_out": HELD_OUT}


def groups_of(only: Sequence[str], folder: Path | None) -> list[Group]:
    """The groups that are asked for and can be measured."""
    found = []
    if "lcbench" in only and folder is not None:  # first, as its runs are the longest
        found.append(lcbench_group(folder.resolve()))
    if "lcbench" in only and folder is None:
        print("LCBench is left out: --data FOLDER (make: LCBENCH=FOLDER) is needed", flush=True)
    if "tables" in only:
        found.append(tables_group())
    if "two-level" in only:
        found.append(two_level_group())
    return found


def data_of(parts: dict[str, Any], with_earlier: bool) -> dict[str, Any]:
    """The data of the page: what was measured now, and the groups that only an earlier page has."""
    earlier: dict[str, Any] = {}
    if with_earlier and (DOCS / "data" / f"{PAGE}.json").exists():
        earlier = kept_data(PAGE)["groups"]
    merged = {**earlier, **parts}
    return {"groups": {name: merged[name] for name in WORDS if name in merged}}


def parsed() -> argparse.Namespace:
    options = parser(__doc__, has_page=True)
    options.add_argument("--data", type=Path, help="the folder of the surrogate of LCBench")
    options.add_argument("--only", nargs="+", choices=list(WORDS), default=list(WORDS))
    options.add_argument("--methods", nargs="+", help="policies, with all of their forms, or forms such as cei-paper")
    options.add_argument("--tables", nargs="+", help="names, or: all, choosing, held_out")
    options.add_argument("--tasks", nargs="+", help="of LCBench")
    options.add_argument("--functions", nargs="+", help="of two levels")
    options.add_argument("--seeds", type=int)
    options.add_argument("--workers", type=int, default=os.cpu_count())
    options.add_argument("--kept", action="store_true", help="from the runs that are done")
    return options.parse_args()


def main() -> None:
    arguments = parsed()
    if arguments.page:
        data = kept_data(PAGE)
        write_page(PAGE, document(data), data)
        return
    tables = arguments.tables and [t for name in arguments.tables for t in TABLE_GROUPS.get(name, (name,))]
    problems = [*(tables or ()), *(arguments.tasks or ()), *(arguments.functions or ())]
    fewer = None if arguments.kept else arguments.seeds
    is_whole = not quick() and not any((arguments.methods, problems, fewer))
    methods = arguments.methods or (QUICK_METHODS if quick() else None)
    problems = problems or list(QUICK_PROBLEMS if quick() else ())
    seeds = arguments.seeds or (QUICK_SEEDS if quick() else SEEDS)
    parts = {}
    for group in groups_of(arguments.only, arguments.data):
        named = [problem for problem in problems if problem in group.problems]
        part = group.only(methods, named or None)
        if part.forms and (found := measured(part, seeds, arguments.workers, arguments.kept)) is not None:
            parts[group.name] = found
    if parts:
        data = data_of(parts, with_earlier=is_whole)
        publish(PAGE, document(data), data, is_whole)


if __name__ == "__main__":
    main()
