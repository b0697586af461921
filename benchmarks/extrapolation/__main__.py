"""How well training curves are extrapolated from 20 %, whether predicted curves fall, and how long it takes.

    python -m benchmarks.extrapolation --data FOLDER    all of it (ten minutes): docs/extrapolation.md and its data
    QUICK=1 python -m benchmarks.extrapolation          live curves and few states; prints only

FOLDER holds the surrogate of LCBench, see common/lcbench.py; the page is written only with it.
"""

from __future__ import annotations

from pathlib import Path

from benchmarks.common.command import parser
from benchmarks.common.documents import machine, machine_text, write
from benchmarks.common.environments import quick
from benchmarks.extrapolation.mlp_curves import DATA_SETS, mlp_curves
from benchmarks.extrapolation.page import (
    PAGE,
    coverage_table,
    data_of,
    draws_text,
    findings,
    rises_table,
    score_table,
    summary_table,
    timing_table,
    versions,
)
from benchmarks.extrapolation.properties import STATES_OF, improbable_draws, rises_of, timings
from benchmarks.extrapolation.scores import DRAWN, SETTINGS, TASKS, Task, best_so_far, lcbench_tasks, scores_of
from farthing.numerics.threads import one_blas_thread

LIVE = 40  # configurations per data set of the live networks
SEEDS, QUICK_SEEDS = 5, 2
STATES, QUICK_STATES = 1000, 30


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--data", type=Path, help="folder of the LCBench surrogate; without it, live curves only")
    folder, short = options.parse_args().data, quick()
    seeds, states = (QUICK_SEEDS, QUICK_STATES) if short else (SEEDS, STATES)
    sources = {} if folder is None else {"LCBench": lcbench_tasks(folder)}
    with one_blas_thread():
        live = [Task(name, X, best_so_far(Y)) for name, X, Y in mlp_curves(LIVE // 2 if short else LIVE)]
        sources["live"] = live
        groups = {
            group: {setting: scores_of(tasks, *setting, seeds) for setting in SETTINGS}
            for group, tasks in sources.items()
        }
        rises = {title: rises_of(kernel, shapes, states) for title, (kernel, shapes) in STATES_OF.items()}
        draws = improbable_draws(states)
        taken = timings(3 if short else 9)
    if short or folder is None:
        shown = [summary_table(groups), *map(score_table, groups.values()), *map(coverage_table, groups.values())]
        print("\n\n".join([*shown, rises_table(rises), draws_text(draws), timing_table(taken)]))
        return
    facts = machine()
    text = PAGE.format(
        summary=summary_table(groups),
        findings=findings(groups["LCBench"], groups["live"]),
        lcbench_errors=score_table(groups["LCBench"]),
        lcbench_coverage=coverage_table(groups["LCBench"]),
        live_errors=score_table(groups["live"]),
        live_coverage=coverage_table(groups["live"]),
        states=f"{states:,}",
        rises=rises_table(rises),
        draws=draws_text(draws),
        timings=timing_table(taken),
        drawn=DRAWN,
        tasks=len(TASKS),
        task_list=", ".join(map(str, TASKS)),
        live=LIVE,
        data_sets=", ".join(DATA_SETS),
        seeds=seeds,
        machine=machine_text(facts, {"farthing": versions()}),
    )
    data = {"machine": facts, "versions": versions(), "timings": taken, **data_of(groups, rises, draws)}
    write("extrapolation", text, data)


if __name__ == "__main__":
    main()
