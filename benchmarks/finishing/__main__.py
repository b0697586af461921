"""Finishing the best: how often a study ends with a trained model, and what the rule costs, on tasks of LCBench.

    python -m benchmarks.finishing --data FOLDER            6 tasks, 3 seeds; writes docs/finishing.md and its data
    QUICK=1 python -m benchmarks.finishing --data FOLDER    2 tasks, 1 seed; prints only
    python -m benchmarks.finishing --page                   the page again, from its data

`bapi` by its name does not have the rule. `auto` is the same policy, with the rule of policies/finishing.py. The rule's
constants were chosen on the six tasks of LCBench that are not here. FOLDER holds the surrogate, see common/lcbench.py.
One thread per worker; finished runs are kept, so that an interrupted benchmark continues.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.bapi.runs import STEPS, TASKS, run_of
from benchmarks.common.command import parser
from benchmarks.common.documents import kept_data, machine, machine_text, publish, table, write_page
from benchmarks.common.environments import quick
from benchmarks.common.kept_runs import Files
from benchmarks.common.statistics import percent, resampled_interval
from benchmarks.curves.methods import Method, own
from benchmarks.curves.runs import FILES as SEARCHES
from benchmarks.curves.runs import Run, runner

CHOSEN_ON, JUDGED_ON = TASKS[::2], TASKS[1::2]
MULTIPLES = (2.0, 4.0, 8.0)  # budgets, in mean costs of a training
SEEDS, QUICK_SEEDS = 3, 1
WITHOUT, WITH = own("bapi", "own", "without"), own("auto", "own", "with the rule")
RESAMPLES = 10_000


@dataclass(frozen=True)
class Ending:
    """How a run ended: regrets from 0, the lowest value of 10,000 trainings, to 1, the median of their last values."""

    is_complete: bool  # the best trial
    regret: float
    trained_regret: float  # of the best complete trial; 1 if there is none
    seconds: float
    versions: dict[str, str]

    @classmethod
    def of(cls, run: Run, answer: dict[str, Any]) -> Ending:
        trials, values = np.array(answer["trials"]), np.array(answer["values"])
        steps = np.bincount(trials)
        complete = values[steps[trials] >= STEPS]
        return cls(
            bool(steps[trials[np.argmin(values)]] >= STEPS),
            _regret(run, values.min()),
            _regret(run, complete.min(initial=np.inf)),
            answer["seconds"],
            answer["versions"],
        )


def _regret(run: Run, value: float) -> float:
    facts = run.problem.facts
    return float((min(value, facts.median) - facts.lowest) / (facts.median - facts.lowest))


FILES = Files(lambda run: f"finishing-{SEARCHES.name(run)}", SEARCHES.code, Ending.of)


def measure(folder: Path, tasks: Sequence[int], seeds: int, multiples: Sequence[float]) -> dict[Run, Ending]:
    """Both ways on every task, seeds outermost, so that a part is a fair part."""
    runs = [
        run_of(folder, task, method, multiple, seed)
        for seed, multiple, task, method in product(range(seeds), multiples, tasks, (WITHOUT, WITH))
    ]
    return runner(FILES, _shown, runs).measure_all(runs, 1)


def _shown(run: Run, ending: Ending) -> str:
    how = "complete" if ending.is_complete else "not complete"
    return f"the best is {how}, regret {ending.regret:.3f}, {ending.seconds:.1f} s"


# -- the page ----------------------------------------------------------------------------------------------------------

PAGE = """\
# Finishing the best

Under a budget, `auto` pauses most trainings of a learner that yields. Without a rule for the end, the best one is often
paused too, and there is no trained model. So `auto` keeps what is needed to complete the best trial, and completes it
before the budget is spent; [the runner's page](runner.md#the-winner-whole) says when. How often does a study end with
its best trial complete, and does that cost quality?

{tasks} tasks of LCBench (networks of {steps} epochs, 7 parameters, a surrogate), {seeds} seeds each; budgets in mean
costs of a complete training. "without" is `bapi`, called by its name, which does not have the rule; "with the rule" is
`auto`, which is `bapi` and the rule. Regret is 0 for the lowest error among 10,000 random trainings and 1 for their
median. "of the trained" is the regret of the best *complete* trial: of the model that you can use.

{rows}

The regret with the rule, minus that without it, is {difference} in the mean (95 % interval). Where the best is not
complete with the rule, it was found so late that the rest of the budget was not enough, it needed more than half of the
whole budget, or its later steps cost more than its first ones. The constants of the rule were chosen on six other
tasks: to keep at most half of the budget (in place of a tenth, a quarter or all of it), and to begin when less than a
fifth of a training is left beyond it (in place of 0, a tenth, a half or a whole one).

{machine}

Reproduce with `make bench-finishing LCBENCH=FOLDER` ([the data](extrapolation.md) it needs). Every run is in
[data/finishing.json](data/finishing.json).
"""


def data_of(found: dict[Run, Ending], seeds: int) -> dict[str, Any]:
    """One row per run: task, budget, seed, method, whether the best is complete, both regrets."""
    rows = [
        [
            int(r.problem.data),
            r.multiple,
            r.seed,
            r.method.name,
            e.is_complete,
            round(e.regret, 5),
            round(e.trained_regret, 5),
        ]
        for r, e in found.items()
    ]
    return {
        "machine": machine(),
        "versions": {run.method.system: ending.versions for run, ending in found.items()},
        "seeds": seeds,
        "runs": rows,
    }


def _cells(data: dict[str, Any], method: Method, multiple: float | None) -> list[list[Any]]:
    return [row for row in data["runs"] if row[3] == method.name and multiple in (None, row[1])]


def _row(data: dict[str, Any], multiple: float | None) -> list[str]:
    """Of one budget, or of all: three numbers, each without and with the rule."""
    cells = [f"{multiple:g} trainings" if multiple else "all"]
    for column in (4, 5, 6):
        for method in (WITHOUT, WITH):
            mean = float(np.mean([row[column] for row in _cells(data, method, multiple)]))
            cells.append(percent(mean) if column == 4 else f"{mean:.3f}")
    return cells


def document(data: dict[str, Any]) -> str:
    names = ("best complete", "regret", "of the trained")
    header = ["budget", *(f"{name}, {method.title}" for name in names for method in (WITHOUT, WITH))]
    multiples = sorted({row[1] for row in data["runs"]})
    without, with_rule = ([row[5] for row in _cells(data, method, None)] for method in (WITHOUT, WITH))
    difference = resampled_interval(np.array(with_rule) - np.array(without), RESAMPLES)
    return PAGE.format(
        tasks=len({row[0] for row in data["runs"]}),
        steps=STEPS,
        seeds=data["seeds"],
        rows=table(header, [_row(data, multiple) for multiple in (*multiples, None)]),
        difference=f"{difference:+.3f}",
        machine=machine_text(data["machine"], data["versions"]),
    )


def main() -> None:
    options = parser(__doc__, has_page=True)
    options.add_argument("--data", type=Path, help="the folder of the surrogate of LCBench")
    asked = options.parse_args()
    if asked.page:
        data = kept_data("finishing")
        write_page("finishing", document(data), data)
        return
    if asked.data is None:
        options.error("--data FOLDER (make: LCBENCH=FOLDER) is needed; docs/extrapolation.md says what it holds")
    seeds, tasks = (QUICK_SEEDS, JUDGED_ON[:2]) if quick() else (SEEDS, JUDGED_ON)
    data = data_of(measure(asked.data.resolve(), tasks, seeds, MULTIPLES), seeds)
    publish("finishing", document(data), data, is_whole=not quick())


if __name__ == "__main__":
    main()
