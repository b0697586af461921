"""The page of the Optuna benchmark, from its data alone."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.blackbox.regret import Findings, mean_interval, ratio
from benchmarks.common.documents import machine_text, table
from benchmarks.common.statistics import less, percent
from benchmarks.optuna.runs import GP, METHODS, NATIVE, SAMPLER, TPE

Array = NDArray[np.float64]

SHARES = (0.1, 0.25, 0.5, 1.0)
DIGITS = 5

PAGE = """\
# FarthingSampler in Optuna, compared with Optuna's samplers

What does an Optuna user gain who changes one sampler? `FarthingSampler` inside `study.optimize`, compared with Optuna's
TPESampler and GPSampler at their defaults, and with Farthing by itself (`ft.Study`, policy `auto`). {tables} tables of
real trainings with their measured costs, the same budget and the same 5 first configurations as in
[the black-box benchmark](blackbox.md), {seeds} seeds. The cost of a trial is a user attribute.

The budget is 40 times the mean cost of a table's configurations. An evaluation that would end past it is cut there: it
is charged and does not count. Regret is (best - optimum) / (median of the table - optimum), at most 1. In brackets:
bootstrap 95 % intervals, the seeds of every table drawn again.

In {same} of {runs} runs `FarthingSampler` evaluated the same configurations in the same order as Farthing by itself.

{sentences}

{regrets}

{ratios}

{efforts}

"Own seconds" are those that a method took for a whole run. `FarthingSampler` reads the history from Optuna's storage at
each ask, here from memory.

{machine}

Reproduce with `make bench-optuna`. Every run is in [data/optuna-bench.json](data/optuna-bench.json).
"""


def data(found: Findings, facts: dict[str, Any], same: int) -> dict[str, Any]:
    """What the page is made from: regrets (tables, seeds) by method and share, evaluations and seconds, and in how many
    runs both ways of using Farthing evaluated the same."""

    def regrets(method: Any) -> dict[str, Any]:
        return {str(share): np.round(found.regret(method, share), DIGITS).tolist() for share in SHARES}

    results = {method.name: found.results(method) for method in METHODS}
    return {
        "machine": facts,
        "versions": {method.title.strip("`"): dict(found.results(method)[0].versions) for method in METHODS},
        "tables": list(found.tables),
        "same": same,
        "regret": {method.name: regrets(method) for method in METHODS},
        "evaluations": {name: [result.evaluations for result in of] for name, of in results.items()},
        "seconds": {name: [round(result.seconds, 2) for result in of] for name, of in results.items()},
    }


def document(kept: dict[str, Any]) -> str:
    def cells(method: Any, share: float) -> Array:
        return np.array(kept["regret"][method.name][str(share)])

    def ratio_at(ours: Any, theirs: Any, share: float) -> str:
        return f"{ratio(cells(ours, share), cells(theirs, share)):.2f}"

    regrets = [
        [method.title, *(f"{mean_interval(cells(method, share)):.3f}" for share in SHARES)] for method in METHODS
    ]
    pairs = ((SAMPLER, TPE), (NATIVE, TPE), (SAMPLER, GP), (NATIVE, GP), (SAMPLER, NATIVE))
    ratios = [
        [f"{ours.title} / {theirs.title}", *(ratio_at(ours, theirs, share) for share in SHARES)]
        for ours, theirs in pairs
    ]
    efforts = [
        [method.title, *(f"{np.mean(kept[what][method.name]):.{digits}f}" for what, digits in OF_A_RUN)]
        for method in METHODS
    ]
    columns = [*map(percent, SHARES)]
    return PAGE.format(
        tables=len(kept["tables"]),
        seeds=cells(TPE, 1.0).shape[1],
        same=kept["same"],
        runs=cells(TPE, 1.0).size,
        sentences="\n".join(_sentence(cells, share) for share in SHARES[1:]),
        regrets=table(["mean regret at", *columns], regrets),
        ratios=table(["ratio of mean regrets at", *columns], ratios),
        efforts=table(["per run", "evaluations", "own seconds"], efforts),
        machine=machine_text(kept["machine"], kept["versions"]),
    )


OF_A_RUN = (("evaluations", 0), ("seconds", 1))


def _sentence(cells: Any, share: float) -> str:
    by_sampler, by_itself = (ratio(cells(method, share), cells(TPE, share)) for method in (SAMPLER, NATIVE))
    line = (
        f"- With {percent(share)} of the budget `FarthingSampler` has {less(by_sampler.value)} regret than TPE (ratio "
        f"{by_sampler:.2f}); Farthing by itself has a ratio of {by_itself:.2f}."
    )
    if np.array_equal(cells(SAMPLER, share), cells(NATIVE, share)):
        return f"{line} Both have the same regret in every run."
    same = ratio(cells(SAMPLER, share), cells(NATIVE, share))
    holds = "the interval holds 1" if same.low <= 1.0 <= same.high else "the interval does not hold 1"
    return f"{line} One over the other is {same:.2f}: {holds}."
