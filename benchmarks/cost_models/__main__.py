"""How well models of log cost predict after n evaluations: the automatic choice compared with every single model.

    python -m benchmarks.cost_models              writes docs/cost-models.md, .svg and docs/data/cost-models.json
    QUICK=1 python -m benchmarks.cost_models      4 data sets, 5 training sets, up to 30 evaluations; prints only

Twelve tables of published training times, and fits of scikit-learn and XGBoost that are timed here (five minutes, once;
kept in benchmarks/cache). One process, one thread.
"""

from __future__ import annotations

from threadpoolctl import threadpool_limits

from benchmarks.common.documents import machine, write
from benchmarks.common.environments import DOCS, quick, run_module
from benchmarks.cost_models.data import table_sources, timed_source
from benchmarks.cost_models.fits import AUTO, SINGLE, all_errors
from benchmarks.cost_models.page import (
    FITS,
    REPETITIONS,
    average_table,
    best_table,
    comparison_lines,
    data,
    document,
    worst_table,
)
from benchmarks.cost_models.programs import Program, programs, timings
from benchmarks.cost_models.summary import Findings

SIZES = (2, 3, 5, 8, 12, 20, 30, 50, 75, 100)
QUICK_SIZES = (2, 5, 12, 30)
QUICK_REPETITIONS = 5
QUICK_FITS = 60
QUICK_TABLES = ("mlp_car", "fcnet_protein_structure")
QUICK_PROGRAMS = ("xgboost_breast_cancer", "mlp_digits")
QUICK_NOTE = "Five training sets on four data sets are too few to judge by: see docs/cost-models.md."


def main() -> None:
    short = quick()
    everyone = programs(QUICK_FITS if short else FITS)
    wanted: list[Program] = [program for program in everyone if not short or program.name in QUICK_PROGRAMS]
    timed = timings(wanted)
    tables = table_sources(QUICK_TABLES) if short else table_sources()
    sources = [*tables, *map(timed_source, timed)]
    sizes = QUICK_SIZES if short else SIZES
    with threadpool_limits(1):
        errors = all_errors(sources, sizes, QUICK_REPETITIONS if short else REPETITIONS)
    found = Findings(errors, sizes, [AUTO, *SINGLE])
    if short:
        parts = (average_table(found, "geometric mean"), best_table(found, "geometric mean"), worst_table(found))
        print("\n" + "\n\n".join((*parts, "\n".join(comparison_lines(found)), QUICK_NOTE)))
        return
    facts = machine()
    write("cost-models", document(found, sources, timed, facts), data(found, facts, timed))
    files = (DOCS / "data" / "cost-models.json", DOCS / "cost-models.svg")
    run_module("costs", "cost_models.figure", *files)


if __name__ == "__main__":
    main()
