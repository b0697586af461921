"""The pages of the benchmark on learners that train in steps: own time not charged, and charged."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.common.documents import machine_text, table
from benchmarks.common.fingerprints import module_file
from benchmarks.common.statistics import percent
from benchmarks.curves.comparison import comparison_text, kind_table, losses, ranks_by_kind, regrets_by_kind
from benchmarks.curves.findings import GRID, RESAMPLES, SHARES, Findings, pooled
from benchmarks.curves.methods import Method
from benchmarks.curves.peers.sources import LCBENCH
from benchmarks.curves.runs import SAMPLE
from benchmarks.curves.sets import set_named
from benchmarks.curves.text import budget_text, is_comparable, regret_table

PLAIN, CHARGED = "curves-bench", "curves-bench-charged"


@dataclass(frozen=True)
class Page:
    """What a page is made of."""

    name: str
    found: Mapping[float, Findings]
    seeds: Sequence[int]
    missing: Sequence[Method]
    machine: dict[str, Any]

    @property
    def pool(self) -> Findings:
        return pooled(self.found)


# -- the problems ------------------------------------------------------------------------------------------------------


def kinds_text(pool: Findings) -> str:
    """What the recorded kinds are, in the words of their own files, and their numbers."""
    kinds = [kind for kind in pool.kinds if kind != LCBENCH]
    if not kinds:
        return ""
    lines = "\n".join(f"- `{kind}`: {_about(kind)}" for kind in kinds)
    rows = []
    for problem in pool.problems:
        if problem.kind != LCBENCH:
            one = set_named(problem.name)
            failed = percent(float(np.isnan(one.values[:, -1]).mean()))
            cells = (len(one.space), one.steps, len(one.configs), f"{one.cost:.1f}", failed)
            rows.append([problem.name, *map(str, cells)])
    header = ["recorded set", "hyperparameters", "steps", "configurations", "seconds of a training", "failed"]
    return lines + "\n\n" + table(header, rows)


def _about(kind: str) -> str:
    """The first sentence of a kind's module."""
    text = ast.get_docstring(ast.parse(module_file(f"curves.kinds.{kind}").read_text())) or ""
    return text.partition("\n\n")[0].replace("\n", " ")


# -- the text ----------------------------------------------------------------------------------------------------------

FIRST = """\
# Learners that train in steps, under a budget

Which method finds the lowest validation error of a learner for a given total cost of training? Farthing's `auto`,
compared with random search, Hyperband, BOHB, DEHB, ASHA, SMAC3 and Optuna, on training curves of {kinds} kinds of
learners: {problems} problems in all. The methods' own time is not charged here; [the same with
it](curves-bench-charged.md) is a page of its own.
"""

SECOND = """\
# Learners that train in steps: the methods' own time charged

The runs of [this page](curves-bench.md), with the CPU seconds that each method needs to choose as a part of what it
spends. A step counts if its training and all choosing until then fit into the budget. Starting a process and importing
libraries are not counted.

The recorded trainings take seconds, so that many of them could be recorded, while choosing takes as long as it would
for trainings of hours. So choosing weighs far more here than for a learner that trains for minutes or hours. No method
was told that its own time would be charged: the runs are the same, and the budget that Farthing's policies plan with is
that of the trainings.
"""

BODY = """
Budgets are 4, 8 and 16 times the average cost of a complete training, over random configurations. {seeds} paired seeds:
on a problem all methods have the same.

{comparison}

{figure}

Regret is normalised per problem: 0 is the lowest value known, 1 the median of random configurations. What counts is the
best value at any step seen so far. A method that has nothing below the median yet has 1. All kinds count alike, however
many problems they have. In parentheses and brackets are 95 % intervals from {resamples} bootstrap samples of the pairs
of problem and seed, drawn within each kind. Where the interval of a ratio includes 1 the difference may be chance.
Ranks are among `auto` and the peers; Farthing's other policies are shown for comparison and have none.

## All budgets

{pool}

{kind_table}

{regrets}

{ranks}

## Where a peer was better

At the end of the budget, mean over the seeds. {losses}

{sections}
"""

MEASURED = """
## The problems

{about}

Each kind has four data sets in the code. Those recorded so far were used in turn, which was said before any was looked
at: the first and the third to choose defaults of Farthing's, the second and the fourth for this page. Random
configurations were trained completely, with one thread; every step was timed in CPU seconds, which is its cost.
A set lists those configurations, so what a method proposes is not trained itself. A new training is that of the nearest
listed configuration that the search has not begun: ranges are scaled to [0, 1], logarithmic ones by their logarithm,
two different choices are 1 apart, and the distance is Euclidean. When all have been begun, it is the nearest that was
not trained to its end; it is trained again from its start and paid for again. 0 regret is the lowest value of a set, 1
the median of the best values of its configurations.{lcbench}

## How it was measured

- Every method is charged the steps it trains{charge}. Trainings may be paused and resumed: then only the new steps
  cost. The step that would end past the budget is cut and does not count.
- A training whose value is not a number has failed. The step that failed is charged. Farthing is told by
  `Study.tell(failed=...)`, Optuna by the state FAIL, HpBandSter by a run without a result, SMAC3 by the status CRASHED
  and the worst value so far (infinity, its default, would leave its model nothing of the other values), DEHB by a
  value of 1e6, NePS by an exception.
- `auto`, which is `thaw` here, and `bapi` use `Study.ask` and `Study.report` with `max_steps`, at their defaults.
  They know the budget.
- Random search and GPSampler: Optuna's, complete trainings. TPE with `MedianPruner` and with `HyperbandPruner`, told
  the number of steps: Optuna's defaults, every step reported. Pruned trainings are lost, because Optuna cannot resume
  them.
- Hyperband and BOHB: HpBandSter 0.7.4 in an environment of its own, its brackets and models without the network of
  workers. DEHB by its ask and tell. SMAC3: `MultiFidelityFacade` with 10 random configurations as its first design: its
  default, 10 for each hyperparameter, is more than most of the budgets can begin. NePS: its ASHA, by its ask and tell.
  All of them with eta = 3 and rungs from 1 step on; a promoted configuration goes on and is charged its new steps.
- `ifbo` is not here. The packages ifbo 0.4.1 and NePS 0.17.0 do not hold the weights of its network: they fetch them
  from figshare.com when it is first used, and the environments of this benchmark are made from package registries
  alone.
- A method that takes one value per run is told the best so far. Methods that do not know the budget are run once with
  the largest budget, and cut for the others.
- A method's own seconds are CPU seconds of its process until the last step within the budget, with one thread. Looking
  up a curve is not among them.

{machine}

Reproduce with `make bench-curves LCBENCH=FOLDER`; [extrapolation](extrapolation.md) says what the folder holds. The
regrets of all runs are in [data/{name}.json](data/{name}.json).{missing}
"""

LCBENCH_TEXT = """

`lcbench`: {count} tasks of LCBench, networks that train for up to 52 epochs, with 7 hyperparameters. The curves come
from the surrogate of YAHPO Gym, which has a curve for every configuration; the cost is the seconds that it predicts for
an epoch. They sometimes fall: an epoch costs what their running maximum rises by, and at least 1e-4 of the whole
training. 0 regret is the lowest error known, from {sample} random configurations and from all runs on this page; 1 is
the median of what those configurations have after their last epoch. Other tasks were used for choosing defaults."""


def document(page: Page) -> str:
    pool, is_charged = page.pool, page.name == CHARGED
    tasks = [problem for problem in pool.problems if problem.kind == LCBENCH]
    absent = ", ".join(method.title for method in page.missing)
    is_compared = is_comparable(page.found)
    return ((SECOND if is_charged else FIRST) + BODY + MEASURED).format(
        name=page.name,
        kinds=len(pool.kinds),
        problems=len(pool.problems),
        seeds=len(page.seeds),
        resamples=RESAMPLES,
        comparison=comparison_text(page.found),
        figure="" if is_charged else f"![mean normalised regret against the share of the budget]({PLAIN}.svg)",
        pool=regret_table(pool),
        kind_table=kind_table(pool) if is_compared else "",
        regrets=regrets_by_kind(pool),
        ranks=ranks_by_kind(pool),
        losses=losses(page.found) if is_compared else "",
        sections="\n\n".join(
            f"## Budget of {budget_text(part.multiple)}\n\n{regret_table(part)}" for part in page.found.values()
        ),
        about=kinds_text(pool),
        lcbench=LCBENCH_TEXT.format(count=len(tasks), sample=f"{SAMPLE:,}") if tasks else "",
        charge=" and its own CPU seconds" if is_charged else " and nothing else",
        machine=machine_text(page.machine, versions(page.found)),
        missing=f" Left out, because their runs are not done: {absent}." if page.missing else "",
    )


def versions(found: Mapping[float, Findings]) -> dict[str, dict[str, str]]:
    part = next(iter(found.values()))
    return {m.library: part.results[m][0].versions for m in part.methods}


def data(page: Page) -> dict[str, Any]:
    """Per budget and method: regret of each run (seed after seed, problem after problem) at the shares; mean curves."""
    pool = page.pool
    parts = {"all kinds": pool, **{kind: pool.only(kind) for kind in pool.kinds}}
    return {
        "machine": page.machine,
        "versions": versions(page.found),
        "seeds": list(page.seeds),
        "problems": [problem.name for problem in pool.problems],
        "shares": list(SHARES),
        "grid": [round(float(share), 3) for share in GRID],
        "methods": {method.name: {"title": method.title, "kind": method.kind} for method in pool.methods},
        "curves": {
            name: {m.name: part.mean(part.curves[m]).round(4).tolist() for m in part.methods}
            for name, part in parts.items()
        },
        "budgets": {
            f"{multiple:g}": {
                "regrets": {m.name: part.regrets[m].round(4).tolist() for m in part.methods},
                "seconds": {m.name: part.seconds[m].round(2).tolist() for m in part.methods},
            }
            for multiple, part in page.found.items()
        },
    }
