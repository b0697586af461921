"""Failures and regret on functions that crash next to their optimum: Farthing's policies beside Optuna's samplers.

    python -m benchmarks.failures            10 seeds; writes docs/failures.md and docs/data/failures.json
    QUICK=1 python -m benchmarks.failures    2 seeds, prints only

Every method runs with and without the crashes, from its own first points, at its defaults. One run at a time, one
thread each. Finished runs are kept in benchmarks/cache under a hash of the task and of the code that did it.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.common.documents import machine, machine_text, table, verdict, write
from benchmarks.common.environments import quick
from benchmarks.failures.peers.task import PROBLEMS, Problem
from benchmarks.failures.runs import EVALUATIONS, METHODS, POLICIES, Answers, Method, Run, measure

LATE = 30
SEEDS = 10
CHOSEN_ON = 5  # so many seeds, of `ei` and `carbo`, were looked at when the model's constants were chosen
BEST = 0.05  # share of the box that counts as its best area
DRAWS = 200_000  # points by which areas are measured
MOST_FAILURES = 0.15
REGRET_RATIO, REGRET_SHARE = 1.5, 0.01

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Cell:
    """One method on one problem, over seeds."""

    early: float  # share of trials 0 to 29 that failed
    late: float  # share of trials 30 to 59 that failed
    regret: float  # mean final regret with crashes
    free_regret: float  # and without
    medians: tuple[float, float]
    seconds: float  # per trial, with crashes
    spread: float  # largest less smallest value of the function

    @property
    def few_failures(self) -> bool:
        return self.late <= MOST_FAILURES

    @property
    def small_regret(self) -> bool:
        return self._small(self.regret, self.free_regret)

    @property
    def small_median(self) -> bool:
        return self._small(*self.medians)

    def _small(self, crashing: float, free: float) -> bool:
        return crashing <= max(REGRET_RATIO * free, REGRET_SHARE * self.spread)


def regret(problem: Problem, answer: dict[str, Any]) -> float:
    """How far the best value found is above the optimum."""
    seen = [value for value in answer["values"] if value is not None]
    return max(0.0, min(seen) - problem.optimum) if seen else problem.largest - problem.optimum


def cell(answers: Answers, name: str, method: Method, seeds: range) -> Cell:
    """What one method did on one problem."""
    problem = PROBLEMS[name]
    crashing, free = ([answers[Run(name, method, f, s)] for s in seeds] for f in (True, False))
    inside = np.array([answer["inside"] for answer in crashing])
    with_crashes, without = ([regret(problem, answer) for answer in side] for side in (crashing, free))
    return Cell(
        float(inside[:, :LATE].mean()), float(inside[:, LATE:].mean()),
        float(np.mean(with_crashes)), float(np.mean(without)),
        (float(np.median(with_crashes)), float(np.median(without))),
        float(np.mean([answer["seconds"] for answer in crashing])) / EVALUATIONS,
        problem.largest - problem.optimum,
    )  # fmt: skip


def cells(answers: Answers, seeds: int) -> Iterator[tuple[str, Method, Cell]]:
    for name, method in product(PROBLEMS, METHODS):
        yield name, method, cell(answers, name, method, range(seeds))


def areas(problem: Problem) -> tuple[float, float]:
    """The share of the box, and of its best area, that the ball covers."""
    U = np.random.default_rng(0).random((DRAWS, problem.p))
    values, crashes = problem.function(U), problem.crashes(U)
    return float(crashes.mean()), float(crashes[values <= np.quantile(values, BEST)].mean())


def problem_table() -> str:
    """What is minimised, and where it crashes."""
    rows = []
    for name, problem in PROBLEMS.items():
        of_box, of_best = areas(problem)
        gap = float(np.linalg.norm(np.subtract(problem.minimizer, problem.centre))) - problem.radius
        rows.append([
            name, str(problem.p), f"{problem.optimum:.3f} to {problem.largest:.3f}", _point(problem.minimizer),
            _point(problem.centre), f"{problem.radius}", f"{gap:.3f}", f"{of_box:.1%}", f"{of_best:.1%}",
        ])  # fmt: skip
    header = ["problem", "parameters", "range", "optimum at", "ball's centre", "radius", "from optimum to ball"]
    return table([*header, "of the box", f"of the best {BEST:.0%}"], rows)


def _point(u: tuple[float, ...]) -> str:
    return "(" + ", ".join(f"{value:.3f}" for value in u) + ")"


def result_table(answers: Answers, seeds: int) -> str:
    rows = [
        [
            name, method.title, f"{c.early:.1%}", f"{c.late:.1%}", f"{c.regret:.2e}", f"{c.free_regret:.2e}",
            f"{c.medians[0]:.1e} / {c.medians[1]:.1e}", f"{1e3 * c.seconds:.0f}",
        ]
        for name, method, c in cells(answers, seeds)
    ]  # fmt: skip
    header = ["problem", "method", "failed of 0-29", "failed of 30-59", "regret", "regret without crashes"]
    return table([*header, "medians of the two", "ms per trial"], rows)


def bar_lines(answers: Answers, seeds: int) -> str:
    """Each bar over all policies and problems, with what misses it."""
    ours = [(f"{method.name} on {name}", c) for name, method, c in cells(answers, seeds) if method in POLICIES]
    lines = []
    few = f"at most {MOST_FAILURES:.0%} failures over trials {LATE} to {EVALUATIONS - 1}"
    larger = f"the larger of {REGRET_RATIO} times that without crashes and {REGRET_SHARE:.0%} of the range"
    for title, missing in (
        (few, [name for name, c in ours if not c.few_failures]),
        (f"mean final regret at most {larger}", [name for name, c in ours if not c.small_regret]),
        ("the same of medians", [name for name, c in ours if not c.small_median]),
    ):
        lines.append(f"- {title}: {verdict(not missing)}" + (f" ({', '.join(missing)})" if missing else ""))
    unseen = range(CHOSEN_ON, seeds)
    if unseen:
        held_out = [cell(answers, name, method, unseen) for name, method in product(PROBLEMS, POLICIES)]
        few_of = sum(c.few_failures for c in held_out)
        means, medians = sum(c.small_regret for c in held_out), sum(c.small_median for c in held_out)
        largest = max(c.late for c in held_out)
        lines.append(
            f"- over seeds {unseen[0]} to {unseen[-1]} alone, of {len(held_out)} cases: few failures in {few_of} "
            f"(at most {largest:.1%}), small mean regret in {means}, small median regret in {medians}"
        )
    return "\n".join(lines)


PAGE = """\
# Failures teach

A trial that raised, died, ran out of memory or was killed at a limit of its own has no value, and Farthing makes none
up: the model of the value is fitted to values alone. What a failure does say is that trials like it may fail again.

From the first failure on a second model gives the probability P(x) that a trial at x succeeds, and every model-based
policy adds log P(x) to its log utility: `ei` takes the largest log EI + log P, `eipu` the largest
log EI + log P - log cost, `cei` the cheapest point whose EI times P is nearly the best. Without any failure nothing is
added, and every proposal is what it would have been.

The model is a Gaussian process on labels: +1 for a success, -3 for a failure, prior mean +1, so that what was never
tried is expected to succeed (P about 5/6). P is the probability that the label at x is above zero. Successes, and runs
that were paused or stopped, count for success; trials that are running, were interrupted, or were killed because the
budget was spent say nothing. Between a success and a failure the line is drawn a quarter of the way from the success.
Parameters that show no influence on failing come to count less.

Nothing is forgotten and nothing is forbidden for ever: P is never below one in a million, so a region that fails is
tried again once the rest promises a million times less, and successes around an old failure raise P there again.

In the initial design, points of the Sobol sequence that more likely fail than not are passed over; where everything has
failed so far, the design goes on with the points that are likeliest to succeed, which are those far from all failures.

## The crashing ball

Two functions over the unit box, each of which crashes inside a ball next to its optimum. The optimum itself is outside
of the ball and stays what it is; the ball covers about half of the best {best} of the box.

{problems}

- branin: Branin's function plus 5 x1 (Forrester, Sobester and Keane 2008), which leaves one global minimum.
- hartmann4: Hartmann's function of four parameters (Picheny, Wagner and Ginsbourger 2013).

The cost of an evaluation is 10^mean(u) for u in the unit box, from 1 to 10, crashed or not. Each run is of
{evaluations} evaluations; seeds 0 to {last_seed}; every method at its defaults with its own first points. Optuna is
told of a crash as a failed trial, as its own `optimize(..., catch=...)` does.

Shares of trials that failed, and how far the best value found is above the optimum at the end (means over seeds):

{results}

The bars, for each of Farthing's policies on each problem:

{bars}

The constants of the model were chosen with `ei` and `carbo` on seeds 0 to 4 of these two problems; hence the last line.
Where a mean is far above its median, single seeds had not reached the optimum after {evaluations} evaluations. One
early failure casts a wide shadow as long as nothing near it has succeeded, and that may be what held a run off.

{machine} Milliseconds per trial are the method's own, on a machine that was doing other work too.

Reproduce with `make bench-failures`. Every run is in [data/failures.json](data/failures.json).
"""


def document(answers: Answers, seeds: int, facts: dict[str, Any]) -> str:
    """The page."""
    versions = {run.method.system: answer["versions"] for run, answer in answers.items()}
    return PAGE.format(
        best=f"{BEST:.0%}", problems=problem_table(), evaluations=EVALUATIONS, last_seed=seeds - 1,
        results=result_table(answers, seeds), bars=bar_lines(answers, seeds), machine=machine_text(facts, versions),
    )  # fmt: skip


def data(answers: Answers, facts: dict[str, Any]) -> dict[str, Any]:
    """Final regret and the numbers of the trials that lay in the ball, per run."""
    runs = [
        {
            **run.task,
            "regret": float(f"{regret(PROBLEMS[run.problem], answer):.5g}"),
            "in_ball": [i for i, inside in enumerate(answer["inside"]) if inside],
        }
        for run, answer in answers.items()
    ]
    return {"machine": facts, "runs": runs}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=2 if quick() else SEEDS)
    seeds = parser.parse_args().seeds
    answers, facts = measure(seeds), machine()
    text = document(answers, seeds, facts)
    if seeds == SEEDS:
        write("failures", text, data(answers, facts))
    else:
        print("\n" + text)


if __name__ == "__main__":
    main()
