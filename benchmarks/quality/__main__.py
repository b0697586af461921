"""Simple regret of Farthing's policy `ei` after 60 evaluations, beside Optuna's GPSampler.

    python -m benchmarks.quality            20 seeds; writes docs/quality.md and docs/data/quality.json
    QUICK=1 python -m benchmarks.quality    3 seeds, prints only
    python -m benchmarks.quality --seeds 10 --problems branin mixed6

Five functions with known optimum, noise-free. With the same seed every method starts from the same 8
configurations, a scrambled Sobol design drawn here, so that runs are paired. Two runs at a time, one thread
each. Finished runs are kept in benchmarks/cache under a hash of the task and of the code that did it, so a
benchmark that was interrupted continues, and one whose code changed starts anew.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.common.documents import machine, machine_text, table, verdict, write
from benchmarks.common.environments import quick
from benchmarks.common.statistics import resampled_interval
from benchmarks.quality.runs import EVALUATIONS, FARTHING, INITIAL, METHODS, PEERS, Method, Result, Run, measure
from farthing.problems.functions import FUNCTIONS

SEEDS = 20
RESAMPLES = 10_000
ENOUGH = 4  # of the five problems

Array = NDArray[np.float64]


class Table:
    """Results as arrays over seeds."""

    def __init__(self, results: dict[Run, Result], problems: Sequence[str], seeds: int) -> None:
        self._results, self.problems, self.seeds = results, problems, seeds

    def _column(self, problem: str, method: Method) -> list[Result]:
        return [self._results[Run(problem, method, seed)] for seed in range(self.seeds)]

    def regrets(self, problem: str, method: Method) -> Array:  # (seeds,)
        return np.array([result.regret for result in self._column(problem, method)])

    def versions(self) -> dict[str, dict[str, str]]:
        return {run.method.system: result.versions for run, result in self._results.items()}

    def not_worse(self, peer: Method) -> list[str]:
        """Problems on which Farthing's median regret is at most the peer's."""
        return [
            problem
            for problem in self.problems
            if np.median(self.regrets(problem, FARTHING)) <= np.median(self.regrets(problem, peer))
        ]


def _regret_cell(regrets: Array) -> str:
    found = resampled_interval(regrets, RESAMPLES, np.median)
    return f"{found.value:.2e} [{found.low:.1e}, {found.high:.1e}]"


def _wins_cell(ours: Array, theirs: Array) -> str:
    return f"{np.sum(ours < theirs)} / {np.sum(ours == theirs)} / {np.sum(ours > theirs)}"


def regret_table(found: Table) -> str:
    """Median regret with its interval, per problem and method."""
    rows = [
        [problem, *(_regret_cell(found.regrets(problem, method)) for method in METHODS)] for problem in found.problems
    ]
    return table(["problem", *(method.title for method in METHODS)], rows)


def wins_table(found: Table) -> str:
    """Paired wins, ties and losses of Farthing, per problem and peer."""
    rows = [
        [problem, *(_wins_cell(found.regrets(problem, FARTHING), found.regrets(problem, p)) for p in PEERS)]
        for problem in found.problems
    ]
    return table(["problem", *(f"against {peer.title}" for peer in PEERS)], rows)


def bar_lines(found: Table) -> list[str]:
    """The bar against GPSampler at its defaults, and the same count against its other setting."""
    lines = []
    for peer in PEERS:
        good = found.not_worse(peer)
        outcome = verdict(len(good) >= ENOUGH) if len(found.problems) == len(FUNCTIONS) else "not all measured"
        counted = f"median not worse on {len(good)} of {len(found.problems)} problems"
        lines.append(f"- against {peer.title}: {counted} ({', '.join(good) or 'none'}), {outcome}")
    return lines


PAGE = """\
# Regret after {evaluations} evaluations

How far the best of {evaluations} evaluations is above the known optimum (simple regret; less is better):
median and bootstrap 95 % interval, number of seeds: {seeds}. With the same seed every method starts from the
same {initial} configurations, a scrambled Sobol design. The functions are noise-free.

{regrets}

Seeds on which Farthing is better / equal / worse:

{wins}

The bar: Farthing's median not worse than GPSampler's at its defaults on at least {enough} of the five
problems. GPSampler's defaults allow for noise; `deterministic_objective=True` tells it that there is none,
which Farthing is not told. The second line counts against that setting, with the same bar.

{bars}

{machine}

Reproduce with `make bench-quality`. Every run is in [data/quality.json](data/quality.json).
"""


def document(found: Table, facts: dict[str, Any]) -> str:
    """The page."""
    return PAGE.format(
        evaluations=EVALUATIONS,
        initial=INITIAL,
        seeds=found.seeds,
        enough=ENOUGH,
        regrets=regret_table(found),
        wins=wins_table(found),
        bars="\n".join(bar_lines(found)),
        machine=machine_text(facts, found.versions()),
    )


def data(found: Table, facts: dict[str, Any]) -> dict[str, Any]:
    """Regret per problem, method and seed."""
    return {
        "machine": facts,
        "versions": found.versions(),
        "evaluations": EVALUATIONS,
        "initial": INITIAL,
        "regret": _per_method(found, found.regrets, "{:.5g}"),
    }


def _per_method(found: Table, column: Any, digits: str) -> dict[str, dict[str, list[float]]]:
    return {
        problem: {
            method.name: [float(digits.format(number)) for number in column(problem, method)] for method in METHODS
        }
        for problem in found.problems
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3 if quick() else SEEDS)
    parser.add_argument("--problems", nargs="+", choices=list(FUNCTIONS), default=list(FUNCTIONS))
    arguments = parser.parse_args()
    found = Table(measure(arguments.problems, arguments.seeds), arguments.problems, arguments.seeds)
    facts = machine()
    text = document(found, facts)
    if arguments.seeds == SEEDS and len(arguments.problems) == len(FUNCTIONS):
        write("quality", text, data(found, facts))
    else:
        print("\n" + text)


if __name__ == "__main__":
    main()
