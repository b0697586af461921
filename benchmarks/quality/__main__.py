"""Simple regret of Farthing's policy `ei` after 60 evaluations, compared with Optuna's GPSampler.

    python -m benchmarks.quality            20 seeds; writes docs/quality.md and docs/data/quality.json
    QUICK=1 python -m benchmarks.quality    3 seeds, prints only
    python -m benchmarks.quality --seeds 10 --problems branin mixed6    prints only
    python -m benchmarks.quality --page       the page again, from its data

Five functions with known optimum, noise-free. With the same seed every method starts from the same 8
configurations, a scrambled Sobol design drawn here, so that runs are paired. Two runs at a time, one thread
each. Finished runs are kept, so that an interrupted benchmark continues.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.common.command import parser
from benchmarks.common.documents import kept_data, listed, machine, machine_text, publish, table, write_page
from benchmarks.common.environments import quick
from benchmarks.common.statistics import resampled_interval
from benchmarks.quality.runs import EVALUATIONS, FARTHING, INITIAL, METHODS, PEERS, Method, Result, Run, measure
from farthing.problems.functions import FUNCTIONS

SEEDS = 20
RESAMPLES = 10_000

Array = NDArray[np.float64]


class Table:
    """Regrets (seeds,) by problem and method, from the data of the page."""

    def __init__(self, data: dict[str, Any]) -> None:
        self._regrets = {p: {m: np.array(column) for m, column in by.items()} for p, by in data["regret"].items()}
        self.problems = list(self._regrets)
        self.seeds = len(self.regrets(self.problems[0], FARTHING))

    def regrets(self, problem: str, method: Method) -> Array:
        return self._regrets[problem][method.name]

    def median(self, problem: str, method: Method) -> float:
        return float(np.median(self.regrets(problem, method)))


def _regret_cell(regrets: Array) -> str:
    found = resampled_interval(regrets, RESAMPLES, np.median)
    return f"{found.value:.2e} [{found.low:.1e}, {found.high:.1e}]"


def _wins_cell(ours: Array, theirs: Array) -> str:
    return f"{np.sum(ours < theirs)} / {np.sum(ours == theirs)} / {np.sum(ours > theirs)}"


def regret_table(found: Table) -> str:
    """Median regret with its interval, per problem and method."""
    rows = [[p, *(_regret_cell(found.regrets(p, method)) for method in METHODS)] for p in found.problems]
    return table(["problem", *(method.title for method in METHODS)], rows)


def wins_table(found: Table) -> str:
    """Paired wins, ties and losses of Farthing, per problem and peer."""
    rows = [
        [p, *(_wins_cell(found.regrets(p, FARTHING), found.regrets(p, peer)) for peer in PEERS)]
        for p in found.problems
    ]  # fmt: skip
    return table(["problem", *(f"compared with {peer.title}" for peer in PEERS)], rows)


def comparison(found: Table, peer: Method) -> str:
    """On which problems the median is lower than a peer's, and where it is not, in one line."""
    medians = {p: (found.median(p, FARTHING), found.median(p, peer)) for p in found.problems}
    lower = [p for p, (ours, theirs) in medians.items() if ours < theirs]
    others = [
        f"{'the same' if ours == theirs else 'higher'} on {p} ({ours:.2g}, compared with {theirs:.2g})"
        for p, (ours, theirs) in medians.items()
        if ours >= theirs
    ]
    where = f" ({', '.join(lower)})" if lower else ""
    rest = f"; it is {listed(others)}" if others else ""
    return f"- {peer.title}: lower on {len(lower)} of {len(medians)} problems{where}{rest}."


PAGE = """\
# Regret after {evaluations} evaluations

How close does Farthing's policy `ei` come to the minimum of a function in {evaluations} evaluations, compared with
Optuna's GPSampler? Regret is the best value found minus the known minimum; lower is better. The functions have no
noise.

Farthing's median regret, compared with

{comparisons}

GPSampler's defaults allow for noise. "GPSampler, deterministic" is told that there is none
(`deterministic_objective=True`); Farthing is not told.

Median regret over {seeds} seeds, with bootstrap 95 % intervals. With the same seed every method starts from the same
{initial} configurations, a scrambled Sobol design.

{regrets}

Number of seeds on which Farthing's regret is lower / equal / higher:

{wins}

{machine}

Reproduce with `make bench-quality`. Every run is in [data/quality.json](data/quality.json).
"""


def document(data: dict[str, Any]) -> str:
    """The page."""
    found = Table(data)
    return PAGE.format(
        evaluations=data["evaluations"],
        initial=data["initial"],
        seeds=found.seeds,
        comparisons="\n".join(comparison(found, peer) for peer in PEERS),
        regrets=regret_table(found),
        wins=wins_table(found),
        machine=machine_text(data["machine"], data["versions"]),
    )


def data_of(results: dict[Run, Result], problems: Sequence[str], seeds: int) -> dict[str, Any]:
    """Regret per problem, method and seed."""

    def regrets(problem: str, method: Method) -> list[float]:
        return [float(f"{results[Run(problem, method, seed)].regret:.5g}") for seed in range(seeds)]

    return {
        "machine": machine(),
        "versions": {run.method.system: result.versions for run, result in results.items()},
        "evaluations": EVALUATIONS,
        "initial": INITIAL,
        "regret": {problem: {method.name: regrets(problem, method) for method in METHODS} for problem in problems},
    }


def main() -> None:
    options = parser(__doc__, has_page=True)
    options.add_argument("--seeds", type=int, default=3 if quick() else SEEDS)
    options.add_argument("--problems", nargs="+", choices=list(FUNCTIONS), default=list(FUNCTIONS))
    asked = options.parse_args()
    if asked.page:
        data = kept_data("quality")
        write_page("quality", document(data), data)
        return
    data = data_of(measure(asked.problems, asked.seeds), asked.problems, asked.seeds)
    publish("quality", document(data), data, is_whole=asked.seeds == SEEDS and len(asked.problems) == len(FUNCTIONS))


if __name__ == "__main__":
    main()
