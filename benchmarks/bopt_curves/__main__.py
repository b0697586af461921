"""Real learners that train step by step, live: `bopt`, which pauses and completes, beside `ei` on complete trainings.

    python -m benchmarks.bopt_curves                     writes docs/bopt-curves.md and docs/data/bopt-curves.json
    python -m benchmarks.bopt_curves --mnist FILE.npz    also on 15,000 rows of MNIST (X, y); else fetched from OpenML
                                                         with --mnist fetch
    QUICK=1 python -m benchmarks.bopt_curves             one learner, two seeds; prints only

Cost is the processor time of a step, value the error on a validation half. Both policies start from the same four
configurations with the same seed. Two processes, one thread each. Finished runs are kept in benchmarks/cache, under the
code of the policies, so that an interrupted benchmark continues.
"""

from __future__ import annotations

import argparse
import os
from dataclasses import replace
from itertools import product

from benchmarks.common.environments import THREAD_LIMITS, quick

os.environ.update(dict.fromkeys(THREAD_LIMITS, "1"))  # before NumPy is imported


import numpy as np

from benchmarks.bopt_curves.learners import LEARNERS
from benchmarks.bopt_curves.runs import FIRST, OPTIONS, POLICIES, Curve, Task, compared, measured
from benchmarks.common.documents import machine, machine_text, table, verdict, write

SEEDS = 5
BAR = 0.5
MEASURED = ("digits", "sgd")  # with all options

PAGE = """\
# Two levels of training on real learners

Learners of scikit-learn that train step by step, live: `bopt` beside `ei`, which trains every configuration completely.
Cost is the processor time of the steps, value the error on a validation half; both policies start from the same {first}
configurations with the same seed, {seeds} seeds. Share: the seconds after which `bopt` had an error as low as the best
of `ei`, over those that `ei` needed for it (and over its whole budget); where it never had, its whole budget counts.

{table}

The bar: as low as the best of `ei` at {bar:.0%} of its cost or less, by the median over learners and seeds.

- of all that `ei` spent: {whole}
- of what `ei` had spent when it found that value (with hindsight: it could have stopped there): {need}

## Options

SGD on digits: medians of the share of the budget of `ei` after which its best was reached, and means of the errors at
the end in units of the one `ei` had (below 1: better).

{options}

{machine}

Reproduce with `make bench-bopt-curves`{how}.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mnist", default="", help="a file with X and y, or: fetch")
    arguments = parser.parse_args()
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
    needs, wholes, *_ = np.median([compared(curves, "bopt", task) for task in blinds], axis=0)
    facts = machine()
    text = PAGE.format(
        first=FIRST, seeds=seeds, bar=BAR, how=" (with `MNIST=fetch` also on MNIST)",
        options=options_table(curves, blinds),
        table=table(["medians", "share of what `ei` needed", "of its budget", "error of `ei`", "of `bopt`"], rows),
        whole=f"{wholes:.2f}, {verdict(wholes <= BAR)}", need=f"{needs:.2f}, {verdict(needs <= BAR)}",
        machine=machine_text(facts, {"farthing": {"numpy": np.__version__}}),
    )  # fmt: skip
    if quick():
        print("\n" + text)
        return
    write("bopt-curves", text, {"machine": facts, "columns": ["share", "of_budget", "ei", "bopt"], "runs": data})


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
