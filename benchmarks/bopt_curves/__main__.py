"""Real learners that train step by step, live: `bopt`, which pauses and completes, compared with `ei`.

    python -m benchmarks.bopt_curves                     writes docs/bopt-curves.md and docs/data/bopt-curves.json
    python -m benchmarks.bopt_curves --mnist FILE.npz    also on 15,000 rows of MNIST (X, y); else fetched from OpenML
                                                         with --mnist fetch
    QUICK=1 python -m benchmarks.bopt_curves             one learner, two seeds; prints only

Cost is the processor time of a step, value the error on a validation half. Both policies start from the same four
configurations with the same seed. Two processes, one thread each. Finished runs are kept in benchmarks/cache, under the
code of the policies, so that an interrupted benchmark continues.
"""

from __future__ import annotations

import os
from dataclasses import replace
from itertools import product

from benchmarks.common.environments import THREAD_LIMITS, quick

os.environ.update(dict.fromkeys(THREAD_LIMITS, "1"))  # before NumPy is imported


import numpy as np

from benchmarks.bopt_curves.learners import LEARNERS
from benchmarks.bopt_curves.runs import FIRST, OPTIONS, POLICIES, Curve, Task, compared, measured
from benchmarks.common.command import parser
from benchmarks.common.documents import machine, machine_text, publish, table
from benchmarks.common.statistics import less, percent

SEEDS = 5
HEADER = ["medians", "share of what `ei` needed", "share of its budget", "error of `ei`", "error of `bopt`"]
MEASURED = ("digits", "sgd")  # with all options

PAGE = """\
# Two levels of training on real learners

Does it pay to pause trainings at the end of their fast period and to complete only the promising ones? Learners of
scikit-learn that train step by step: `bopt`, compared with `ei`, which trains every configuration completely and is
blind to cost, also at the end of the budget (`end="ignored"`). Cost is the processor time of the steps, value the error
on a validation half. Both policies start from the same {first} configurations with the same seed; {seeds} seeds.

{sentences}

Share: the seconds after which `bopt` had an error as low as the best of `ei`, divided by those that `ei` needed for it
(or by its whole budget). Where `bopt` never had it, its whole budget counts.

{table}

## Options

SGD on digits: median share of the budget of `ei` after which its best error was reached, and mean error at the end in
units of that of `ei` (below 1: better).

{options}

{machine}

Reproduce with `make bench-bopt-curves`{how}. The numbers are in [data/bopt-curves.json](data/bopt-curves.json).
"""


def sentences(whole: float, need: float, lower: int, places: int) -> str:
    """What the shares mean."""
    when = f"{less(need)} time than" if need != 1.0 else "the same time as"
    return "\n".join(
        [
            f"- The error that `ei` has at the end of its budget is reached by `bopt` after {percent(whole)} of that "
            "budget (median over learners and seeds).",
            f"- But `ei` often has its best error long before the end of its budget. To reach it, `bopt` needs {when} "
            "`ei` (median; with hindsight, `ei` could have stopped there).",
            f"- At the end of the budget the median error of `bopt` is lower on {lower} of {places} pairs of learner "
            "and data.",
        ]
    )


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--mnist", default="", help="a file with X and y, or: fetch")
    arguments = options.parse_args()
    names = ["digits", *(["mnist"] if arguments.mnist and not quick() else [])]
    learners, seeds = (["sgd"], 2) if quick() else (list(LEARNERS), SEEDS)
    blinds = [Task(d, arguments.mnist, m, "ei", seed) for d, m, seed in product(names, learners, range(seeds))]
    others = [*POLICIES, *([] if quick() else OPTIONS)]
    tasks = [replace(task, policy=p) for p in others for task in blinds if p in POLICIES or task.place == MEASURED]
    curves = measured(tasks)
    rows, data = [], {}
    for name, learner in dict.fromkeys(task.place for task in blinds):
        here = [task for task in blinds if task.place == (name, learner)]
        found = np.array([compared(curves, "bopt", task) for task in here])
        data[f"{name} {learner}"] = found.round(5).tolist()
        share, whole, value, own_value = np.median(found, axis=0)
        rows.append([f"{learner} on {name}", f"{share:.2f}", f"{whole:.2f}", f"{value:.4f}", f"{own_value:.4f}"])
    lower = sum(float(row[4]) < float(row[3]) for row in rows)
    needs, wholes, *_ = np.median([compared(curves, "bopt", task) for task in blinds], axis=0)
    facts = machine()
    text = PAGE.format(
        first=FIRST, seeds=seeds, how=" (with `MNIST=fetch` also on MNIST)",
        options=options_table(curves, blinds),
        table=table(HEADER, rows),
        sentences=sentences(float(wholes), float(needs), lower, len(rows)),
        machine=machine_text(facts, {"farthing": {"numpy": np.__version__}}),
    )  # fmt: skip
    kept = {"machine": facts, "columns": ["share", "of_budget", "ei", "bopt"], "runs": data}
    publish("bopt-curves", text, kept, is_whole=not quick())


def options_table(curves: dict[Task, Curve], blinds: list[Task]) -> str:
    rows = []
    for policy in ("bopt", *OPTIONS):
        pairs = [task for task in blinds if task.place == MEASURED and replace(task, policy=policy) in curves]
        if pairs:
            found = np.array([compared(curves, policy, task) for task in pairs])
            ratio = found[:, 3] / np.maximum(found[:, 2], 1e-4)
            error = ratio.std(ddof=1) / np.sqrt(len(ratio))
            rows.append([f"`{policy}`", f"{np.median(found[:, 1]):.2f}", f"{ratio.mean():.3f} ± {error:.3f}"])
    return table(["", "share of the budget of `ei`", "error over that of `ei`"], rows)


if __name__ == "__main__":
    main()
