"""BOPT on functions of two levels, after section 5.1 of the paper: regret against cost, compared with others.

    python -m benchmarks.bopt_synthetic              10 seeds; writes docs/bopt-synthetic.md, .svg and its data
    QUICK=1 python -m benchmarks.bopt_synthetic      Currin and Park, 3 seeds, without SMAC; prints only
    python -m benchmarks.bopt_synthetic --kept       the page from the runs done so far
    python -m benchmarks.bopt_synthetic --page       the page again, from its data
    python -m benchmarks.bopt_synthetic --methods tgp ei --functions park --seeds 3      prints only

One run at a time, one thread; finished runs are kept, so that an interrupted benchmark continues.
"""

from __future__ import annotations

from benchmarks.bopt_synthetic.findings import findings
from benchmarks.bopt_synthetic.page import comparison_text, data, document, sections
from benchmarks.bopt_synthetic.runs import FILES, METHODS, measure, planned
from benchmarks.common.command import parser
from benchmarks.common.documents import kept_data, machine, write, write_page
from benchmarks.common.environments import DOCS, quick, run_module
from benchmarks.common.kept_runs import by_name
from benchmarks.common.two_level_functions import FUNCTIONS

NAME = "bopt-synthetic"
SEEDS, QUICK_SEEDS = 10, 3
WORKERS = 1
QUICK_FUNCTIONS, SLOW = ("currin", "park"), ("smac",)


def main() -> None:
    options = parser(__doc__, has_page=True)
    options.add_argument("--methods", nargs="+", type=by_name(METHODS))
    options.add_argument("--functions", nargs="+", choices=list(FUNCTIONS))
    options.add_argument("--seeds", type=int)
    options.add_argument("--workers", type=int, default=WORKERS)
    options.add_argument("--kept", action="store_true", help="write the page from the runs that are done")
    arguments = options.parse_args()
    if arguments.page:
        kept = kept_data(NAME)
        write_page(NAME, document(kept), kept)
        return
    selected = (arguments.methods, arguments.functions, None if arguments.kept else arguments.seeds)
    is_page = not quick() and all(option is None for option in selected)
    seeds = arguments.seeds or (QUICK_SEEDS if quick() else SEEDS)
    functions = arguments.functions or list(QUICK_FUNCTIONS if quick() else FUNCTIONS)
    usual = [method for method in METHODS if not (quick() and method.name in SLOW)]
    methods = arguments.methods or usual
    runs = planned(seeds, functions, methods)
    results = FILES.all_kept(runs) if arguments.kept else measure(runs, arguments.workers)
    found, missing = findings(results, functions, methods, seeds)
    measured = data(found, missing, seeds, machine())
    if not is_page:
        print("\n" + sections(measured) + "\n\n" + comparison_text(measured))
        return
    write(NAME, document(measured), measured)
    files = (DOCS / "data" / f"{NAME}.json", DOCS / f"{NAME}.svg")
    run_module("blackbox", "bopt_synthetic.figure", *files)


if __name__ == "__main__":
    main()
