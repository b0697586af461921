"""Failures and regret on functions that crash next to their optimum: Farthing compared with Optuna.

    python -m benchmarks.failures            10 seeds; writes docs/failures.md and docs/data/failures.json
    QUICK=1 python -m benchmarks.failures    2 seeds, prints only

Every method runs with and without the crashes, from its own first points, at its defaults. One run at a time, one
thread each. Finished runs are kept, so that an interrupted benchmark continues.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.common.command import parser
from benchmarks.common.documents import listed, machine, machine_text, publish, table
from benchmarks.common.environments import quick
from benchmarks.common.statistics import percent
from benchmarks.failures.peers.task import PROBLEMS, Problem
from benchmarks.failures.runs import EVALUATIONS, METHODS, PEERS, POLICIES, Answers, Method, Run, measure

LATE = 30
SEEDS = 10
CHOSEN_ON = 5  # seeds, of `ei` and `carbo`, on which the constants of the model were chosen
BEST = 0.05  # share of the box that counts as its best area
DRAWS = 200_000  # points by which areas are measured
REGRET_RATIO, REGRET_SHARE = 1.5, 0.01  # crashes cost little if regret is within either: times, share of the range

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


def _span(shares: Sequence[float]) -> str:
    return f"{100 * min(shares):.0f} to {percent(max(shares))}"


def late_line(late: Mapping[str, Sequence[float]]) -> str:
    """Shares of late trials that failed, by who searches."""
    shown = "; ".join(f"{title} {_span(shares)}" for title, shares in late.items())
    return f"- Of trials {LATE} to {EVALUATIONS - 1} these failed: {shown}."


def regret_line(ours: Sequence[bool], theirs: Sequence[bool], exceptions: Sequence[str]) -> str:
    """What crashes cost in the end; True where the mean regret stays small."""
    within = f"{REGRET_RATIO} times that without them and {percent(REGRET_SHARE)} of the function's range"
    rest = f" Farthing's is larger for {listed(exceptions)}." if exceptions else ""
    return (
        f"- The mean regret at the end with crashes stays within the larger of {within} in {sum(ours)} of {len(ours)} "
        f"cases (policy and problem) of Farthing, and in {sum(theirs)} of {len(theirs)} of Optuna.{rest}"
    )


def unseen_line(seeds: Sequence[int], late: float, cases: int, means: int, medians: int) -> str:
    """The same on the seeds that nothing was chosen on."""
    return (
        f"- Seeds {seeds[0]} to {seeds[-1]} alone, on which nothing was chosen: at most {percent(late)} of the late "
        f"trials failed; the mean regret stays within those limits in {means} of {cases} cases, the median in "
        f"{medians}."
    )


def comparison_lines(answers: Answers, seeds: int) -> str:
    """What crashes did to Farthing's policies and to the peers."""
    every = list(cells(answers, seeds))
    late = {"Farthing's policies": [c.late for _, method, c in every if method in POLICIES]}
    late |= {peer.title: [c.late for _, method, c in every if method == peer] for peer in PEERS}
    ours = [(f"{method.title} on {name}", c) for name, method, c in every if method in POLICIES]
    exceptions = [
        f"{name} ({c.regret:.2e}, compared with {c.free_regret:.2e})" for name, c in ours if not c.small_regret
    ]  # fmt: skip
    small = [[c.small_regret for _, method, c in every if method in some] for some in (POLICIES, PEERS)]
    lines = [late_line(late), regret_line(*small, exceptions)]
    unseen = range(CHOSEN_ON, seeds)
    if unseen:
        held_out = [cell(answers, name, method, unseen) for name, method in product(PROBLEMS, POLICIES)]
        means, medians = sum(c.small_regret for c in held_out), sum(c.small_median for c in held_out)
        lines.append(unseen_line(unseen, max(c.late for c in held_out), len(held_out), means, medians))
    return "\n".join(lines)


PAGE = """\
# Learning from failed trials

A trial that raised, died, ran out of memory or was killed at its own limit has no value, and Farthing does not make one
up: the model of values is fitted to values alone. But a failure says that trials like it may fail again, and Farthing
learns to avoid them.

## The model

From the first failure on, a second model gives the probability P(x) that a trial at x succeeds. Every model-based
policy adds log P(x) to its log utility: `ei` takes the largest log EI + log P, `eipu` the largest
log EI + log P - log cost, `cei` the cheapest point whose EI times P is nearly the best. Without any failure nothing is
added, and every proposal is what it would have been.

The model is a Gaussian process on labels: +1 for a success, -3 for a failure, prior mean +1, so that what was never
tried is expected to succeed (P about 5/6). P is the probability that the label at x is above zero. Successes, and runs
that were paused or stopped, count as successes. Trials that are running, were interrupted, or were killed because the
budget was spent do not count. Between a success and a failure the boundary is a quarter of the way from the success.
Parameters that show no influence on failing come to count less.

No region is excluded for good: P is never below one in a million, so a region that fails is tried again once everything
else promises a million times less, and successes around an old failure raise P there again.

In the initial design, points of the Sobol sequence that are more likely to fail than not are skipped. If everything has
failed so far, the design goes on with the points that are most likely to succeed, which are those far from all
failures.

## What was measured

Two functions over the unit box, each of which crashes inside a ball next to its optimum. The optimum itself is outside
the ball. The ball covers about half of the best {best} of the box. Farthing's policies, compared with Optuna's
samplers:

{comparison}

Shares of trials that failed, and regret: how far the best value found is above the optimum at the end (means over
seeds).

{results}

Where a mean is far above its median, single seeds had not reached the optimum after {evaluations} evaluations. An early
failure lowers P in a wide region until something near it has succeeded; that may be what kept these runs away.

## The problems

{problems}

- branin: Branin's function plus 5 x1 (Forrester, Sobester and Keane 2008), which leaves one global minimum.
- hartmann4: Hartmann's function of four parameters (Picheny, Wagner and Ginsbourger 2013).

The cost of an evaluation is 10^mean(u) for u in the unit box, from 1 to 10, crashed or not. Each run has {evaluations}
evaluations; seeds 0 to {last_seed}; every method at its defaults with its own first points. Optuna is told of a crash
as a failed trial, as its own `optimize(..., catch=...)` does. The constants of the model were chosen with `ei` and
`carbo` on seeds 0 to 4 of these two problems.

{machine} Milliseconds per trial are the method's own, on a machine that was doing other work too.

Reproduce with `make bench-failures`. Every run is in [data/failures.json](data/failures.json).
"""


def document(answers: Answers, seeds: int, facts: dict[str, Any]) -> str:
    """The page."""
    versions = {run.method.system: answer["versions"] for run, answer in answers.items()}
    return PAGE.format(
        best=percent(BEST), problems=problem_table(), evaluations=EVALUATIONS, last_seed=seeds - 1,
        results=result_table(answers, seeds), comparison=comparison_lines(answers, seeds),
        machine=machine_text(facts, versions),
    )  # fmt: skip


def data(answers: Answers, facts: dict[str, Any]) -> dict[str, Any]:
    """Final regret and the numbers of the trials that lay in the ball, per run."""
    runs = [
        {
            **run.task,
            "regret": float(f"{regret(PROBLEMS[run.problem], answer):.5g}"),
            "seconds": round(answer["seconds"], 3),
            "in_ball": [i for i, inside in enumerate(answer["inside"]) if inside],
        }
        for run, answer in answers.items()
    ]
    versions = {run.method.system: answer["versions"] for run, answer in answers.items()}
    return {"machine": facts, "versions": versions, "runs": runs}


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--seeds", type=int, default=2 if quick() else SEEDS)
    seeds = options.parse_args().seeds
    answers, facts = measure(seeds), machine()
    text, kept = document(answers, seeds, facts), data(answers, facts)
    publish("failures", text, kept, is_whole=seeds == SEEDS)


if __name__ == "__main__":
    main()
