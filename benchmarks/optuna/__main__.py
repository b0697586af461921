"""FarthingSampler inside `study.optimize`, compared with Optuna's samplers and with Farthing by itself.

    python -m benchmarks.optuna                    5 seeds; writes docs/optuna-bench.md and docs/data/optuna-bench.json
    QUICK=1 python -m benchmarks.optuna            2 tables, 1 seed; prints only
    python -m benchmarks.optuna --seeds 2          fewer seeds, on the page too
    python -m benchmarks.optuna --tables mlp_car   prints only
    python -m benchmarks.optuna --page             the page again, from its data

The twelve tables, the budgets and the first configurations are those of the black-box benchmark. Two runs at a time
unless `--workers` says otherwise, one thread each; finished runs are kept, so that an interrupted benchmark continues.
"""

from __future__ import annotations

from benchmarks.blackbox.regret import Findings
from benchmarks.blackbox.runs import planned
from benchmarks.common.command import parser
from benchmarks.common.documents import kept_data, machine, publish, write_page
from benchmarks.common.environments import quick
from benchmarks.common.tables import TABLES
from benchmarks.optuna.page import data, document
from benchmarks.optuna.runs import METHODS, measure, same_choices

MEANS, SEEDS, WORKERS = 40, 5, 2
MOST = 1_000  # evaluations of one run of Farthing
QUICK_TABLES = ("mlp_car", "fcnet_protein_structure")


def main() -> None:
    options = parser(__doc__, has_page=True)
    options.add_argument("--tables", nargs="+", choices=TABLES, metavar="TABLE")
    options.add_argument("--seeds", type=int)
    options.add_argument("--workers", type=int, default=WORKERS)
    arguments = options.parse_args()
    if arguments.page:
        kept = kept_data("optuna-bench")
        write_page("optuna-bench", document(kept), kept)
        return
    is_whole = not quick() and arguments.tables is None
    tables = arguments.tables or list(QUICK_TABLES if quick() else TABLES)
    seeds = arguments.seeds or (1 if quick() else SEEDS)
    runs = planned(seeds, tables, METHODS, MEANS, (1,), MOST)
    findings = Findings(measure(runs, arguments.workers), tables, METHODS)
    found = data(findings, machine(), same_choices(runs))
    publish("optuna-bench", document(found), found, is_whole)


if __name__ == "__main__":
    main()
