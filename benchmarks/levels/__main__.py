"""Where the rules of farthing.policies.bopt.stopping end real training curves, and what they saw of the end by then.

    python -m benchmarks.levels              trains (a minute), writes docs/levels.md, .svg and docs/data/levels.json
    QUICK=1 python -m benchmarks.levels      5 configurations each; prints only

A cell is a learner, a data set and a value that is minimised; its configurations are drawn at random. Rules see a curve
as they would during training. One process, one thread; seconds are processor seconds of training alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.metadata import version
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.common.documents import machine, machine_text, write
from benchmarks.common.environments import DOCS, quick, run_module
from benchmarks.common.statistics import percent
from benchmarks.levels.judging import COMPLETE, LEVEL_ONE, Comparison, Ends, by_rule, cell_table, speed_table
from benchmarks.levels.training import SEED, Cell, train_all
from farthing.policies.bopt.stopping import Elbow, Loss

CONFIGURATIONS, QUICK_CONFIGURATIONS = 15, 5
LONG = 300  # steps, on the smaller data set

PAGE = """\
# Where the fast period of training ends

The policy [`bopt`](bopt.md) trains a configuration to one of two levels: to the end of its fast-improving period
(eighty-percent training, which the paper expects at 20 % to a third of the time) or completely.
`farthing.policies.bopt.stopping` finds both ends while a curve is being trained. This page compares its rules on {runs}
runs: {configurations} random configurations each of three learners on two data sets that scikit-learn carries, judged
by validation error and by validation log-loss. That makes {cells} cells.

*Reached* is the share of the final improvement (first value minus best value of the whole run) that the best value so
far had; a tenth of all curves stayed below the *lowest tenth*. *Rank correlation* is Spearman's, of the best value at
the end of the level with the best value of the whole run, over the configurations of a cell: it tells how useful a
level is for tuning. The last two columns compare with one fixed share of max_steps for all runs that takes as much time
on average; ± is one standard error over the cells. Rows of *hindsight* know the rest of the curve.

![curves and where the rules end](levels.svg)

## The end of the fast period

{level_one}

The default is `elbow`:

- It reaches what the paper says, about 80 % in 20 % to a third of the time, from the values alone. {limits}
- It does not change when values are shifted or scaled. Prechelt's ratios do, and need positive values, while Farthing
  minimises minus the accuracy if you maximise accuracy: `progress` ends elsewhere on the same curves minus 6.
- **It does not rank configurations better than one fixed share of the same time**, nor does the step that hindsight
  would choose. It has reached a little more by then. Without `latest` it ranks worse than a fixed share: slow runs are
  then trained much further than fast ones.
- Where steps report training values, `progress` ranks better than a fixed share of its time with 80 or 100 steps, most
  often because it waits for `latest`. It does not from values alone, nor with {long} steps.
- `quotient` rarely ends a curve in the first third, because overfitting comes later. It is then the share `latest`
  under another name.

### With {long} steps, on breast_cancer

With a larger max_steps, `elbow` ends at a smaller share of it, still near 80 %, while a fixed share grows with it.
Ranks are worse than above with every rule, and best after a fixed third.

{level_one_long}

## The end of complete training

{complete}

With {long} steps on breast_cancer:

{complete_long}

The default is `converged`:

- Where training values are reported it loses less than 1 % of the improvement with 80 or 100 steps, 2 % with {long}. It
  saves more the longer max_steps is; with 80 or 100 steps half of the curves still improve in their last tenth.
- **Its weakness is a validation error that stays the same for a while and then falls by a few examples**, worst without
  training values, which would show that learning goes on. With {long} steps it ranks no better than a fixed share, and
  perhaps worse: final errors are then a few examples apart.
- `rises` loses nothing and saves little, because it waits for overfitting; `quotient` is in between. `loss` at
  Prechelt's 5 % takes the noise of a validation error for overfitting: it ended {lost} of the curves within 10 steps.

## Cell by cell

{each}

## Time

{speed}

## How it was measured

- SGD and networks: one pass over the data per step (`partial_fit`), 100 and 80 steps; boosting: one round per step, 100
  steps. 60 % of the rows train, 40 % validate: 719 of digits, 228 of breast_cancer. Seconds are processor seconds of
  training alone. Rules get max_steps, and the training loss where the row does not say *values only*.
- The options of `elbow` and `converged`, what counts as a real improvement, and the number of strips of `rises` were
  chosen on five other draws of configurations of these learners and data sets (seeds 100 to 104), before the runs of
  this page (seed {seed}) were trained; the other options are Prechelt's, or a guess made before any curve was seen.
  Data and models are small, and curves of large networks may be different.
- On an exponential curve `elbow` ends at about 4.6 time constants, beyond 80 %. Real curves have longer tails: with
  options that end an exponential curve after 2.1 (small = 0.25, window = 0.25, back = 3: 88 %), real ones reached 68 %.

{machine}

Reproduce with `make bench-levels`. The curves of the figure and all ends are in [data/levels.json](data/levels.json).
"""


def share_of_curves(cells: Sequence[Cell], ends: Ends, which: Callable[[int, int], bool]) -> str:
    """The share of curves for which `which(step at which the rule ends, length)` holds."""
    found = [
        which(ends(run.values[cell.value], run.train) or len(run.train), len(run.train))
        for cell in cells
        for run in cell.runs
    ]
    return percent(np.mean(found))


def limits_text(cells: Sequence[Cell], longer: Sequence[Cell]) -> str:
    """How often the default of level one is met before its limit."""
    rule = Elbow()
    met = [share_of_curves(group, by_rule(rule), lambda end, k: end != rule.limit(k)) for group in (cells, longer)]
    return f"An elbow ends {met[0]} of the curves here and {met[1]} of those with {LONG} steps, `latest` the others."


def document(cells: Sequence[Cell], longer: Sequence[Cell], facts: dict[str, Any]) -> str:
    comparison, long = Comparison(cells), Comparison(longer)
    return PAGE.format(
        runs=sum(len(cell.runs) for cell in cells) // 2,
        configurations=CONFIGURATIONS,
        cells=len(cells),
        level_one=comparison.table(LEVEL_ONE),
        limits=limits_text(cells, longer),
        lost=share_of_curves(cells, by_rule(Loss()), lambda end, k: end <= 10),
        long=LONG,
        level_one_long=long.table(LEVEL_ONE),
        complete=comparison.table(COMPLETE),
        complete_long=long.table(COMPLETE),
        each=cell_table(cells),
        speed=speed_table(),
        seed=SEED,
        machine=machine_text(facts, {"farthing": versions()}),
    )


def versions() -> dict[str, str]:
    return {name: version(name) for name in ("farthing", "numpy", "scipy", "scikit-learn")}


def data_of(cells: Sequence[Cell], longer: Sequence[Cell], facts: dict[str, Any]) -> dict[str, Any]:
    """Where every rule ended every curve, and one curve per cell for the figure."""
    return {
        "machine": facts,
        "versions": versions(),
        "seed": SEED,
        "ends": {cell.title: ends_of(cell) for cell in cells},
        f"ends with {LONG} steps": {cell.title: ends_of(cell) for cell in longer},
        "shown": [shown(cell) for cell in cells],
    }


def ends_of(cell: Cell) -> dict[str, list[int | None]]:
    """Per rule, the step at which each run ended, None for its last."""
    rules = {**LEVEL_ONE, **COMPLETE}
    curves = [(run.values[cell.value], run.train) for run in cell.runs]
    return {plain(title): [rule(*curve) for curve in curves] for title, rule in rules.items()}


def shown(cell: Cell) -> dict[str, Any]:
    """The curve of a cell whose final value is the middle one."""
    final = [run.values[cell.value].min() for run in cell.runs]
    middle = int(np.argsort(final)[len(final) // 2])
    values = cell.runs[middle].values[cell.value]
    return {"title": cell.title, "run": middle, "values": [float(f"{v:.4g}") for v in values]}


def plain(title: str) -> str:
    return title.replace("*", "").replace("`", "").removesuffix(" (default)")


def main() -> None:
    short = quick()
    with threadpool_limits(1):
        cells = train_all(QUICK_CONFIGURATIONS if short else CONFIGURATIONS)
        longer = [] if short else train_all(CONFIGURATIONS, ["breast_cancer"], LONG)
    if short:
        comparison = Comparison(cells)
        print("\n" + "\n\n".join((comparison.table(LEVEL_ONE), comparison.table(COMPLETE), speed_table())))
        return
    facts = machine()
    write("levels", document(cells, longer, facts), data_of(cells, longer, facts))
    files = (DOCS / "data" / "levels.json", DOCS / "levels.svg")
    run_module("blackbox", "levels.figure", *files)


if __name__ == "__main__":
    main()
