"""Cost-aware black-box tuning on twelve tables of real evaluations with their measured costs.

    python -m benchmarks.blackbox                    10 seeds; writes docs/blackbox.md, .svg and docs/data/blackbox.json
    QUICK=1 python -m benchmarks.blackbox            3 tables, 2 seeds, the quick methods; prints only
    python -m benchmarks.blackbox --methods tpe ei carbo-paper cei:tradeoff=0.8 --seeds 3      prints only
    python -m benchmarks.blackbox --page             writes the page again, from its data
    python -m benchmarks.blackbox --batches          batches of 1, 4 and 16; writes docs/blackbox-batches.md and data

The budget is 40 times the mean cost of the table's configurations, also for batches. With the same seed every method
starts from the same 5 configurations, uniform over the grid. Two runs at a time unless `--workers` says otherwise, one
thread each; finished runs are kept, so that an interrupted benchmark continues.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from benchmarks.blackbox.batches import batches
from benchmarks.blackbox.kept_page import kept_findings
from benchmarks.blackbox.page import MEANS, MOST, data, document, per_table, sections
from benchmarks.blackbox.regret import Findings
from benchmarks.blackbox.runs import BATCH_METHODS, METHODS, known, measure, method_of, planned
from benchmarks.common.command import parser
from benchmarks.common.documents import kept_data, machine, write, write_page
from benchmarks.common.environments import DOCS, quick, run_module
from benchmarks.common.tables import CHOOSING, HELD_OUT, TABLES

SEEDS = 10
WORKERS = 2
BATCH_SEEDS = 5
QUICK_TABLES = ("mlp_car", "mlp_vehicle", "fcnet_protein_structure")
QUICK_METHODS = ("random", "tpe", "gpsampler", "ei", "cei", "carbo")
QUICK_MOST = 150
GROUPS = {"all": TABLES, "choosing": CHOOSING, "held_out": HELD_OUT}


def page_again() -> None:
    """The page, from the data that it was made with."""
    kept = kept_data("blackbox")
    write_page("blackbox", document(kept_findings(kept, MOST), kept["machine"], []), kept)


def blackbox(arguments: argparse.Namespace) -> None:
    """The comparison with the peers."""
    methods = known(arguments.methods)
    runs = planned(arguments.seeds, arguments.tables, methods, MEANS, (1,), arguments.most)
    found = Findings(measure(runs, arguments.workers), arguments.tables, methods)
    if not arguments.whole:
        print("\n" + "\n\n".join((sections(found), per_table(found, 0.25), per_table(found, 1.0))))
        return
    facts, missing = machine(), [method for method in arguments.methods if method not in methods]
    write("blackbox", document(found, facts, missing), data(found, facts))
    files = (DOCS / "data" / "blackbox.json", DOCS / "blackbox.svg")
    run_module("blackbox", "blackbox.figure", *files)


def _tables(names: Sequence[str]) -> list[str]:
    """Names of tables, or of groups of them, in the usual order."""
    wanted = {table for name in names for table in GROUPS.get(name, (name,))}
    if unknown := wanted.difference(TABLES):
        raise SystemExit(f"no table is called {', '.join(sorted(unknown))}; there are {', '.join((*GROUPS, *TABLES))}")
    return [name for name in TABLES if name in wanted]


def main() -> None:
    options = parser(__doc__, has_page=True)
    options.add_argument("--batches", action="store_true", help="batch sizes of some of Farthing's policies instead")
    options.add_argument("--methods", nargs="+", type=method_of, help="peers, policies, policies with options")
    options.add_argument("--tables", nargs="+", help="names, or: all, choosing, held_out")
    options.add_argument("--seeds", type=int)
    options.add_argument("--workers", type=int, default=WORKERS)
    options.add_argument("--most", type=int, help=f"evaluations of one run of Farthing ({MOST})")
    arguments = options.parse_args()
    if arguments.page:
        page_again()
        return
    selected = (arguments.methods, arguments.tables, arguments.seeds, arguments.most)
    arguments.whole = not quick() and all(option is None for option in selected)
    usual = BATCH_METHODS if arguments.batches else METHODS
    if quick():
        usual = tuple(method for method in usual if method.policy in QUICK_METHODS)
    arguments.methods = arguments.methods or list(usual)
    usual_tables = QUICK_TABLES if quick() else HELD_OUT if arguments.batches else TABLES
    arguments.tables = _tables(arguments.tables or usual_tables)
    arguments.seeds = arguments.seeds or (2 if quick() else BATCH_SEEDS if arguments.batches else SEEDS)
    arguments.most = arguments.most or (QUICK_MOST if quick() else MOST)
    (batches if arguments.batches else blackbox)(arguments)


if __name__ == "__main__":
    main()
