"""Batches: the final regret of Farthing's own policies when they are asked for several configurations at a time.

The other table of the black-box benchmark; `python -m benchmarks.blackbox --batches` makes it.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from benchmarks.blackbox.regret import Findings, mean_interval, ratio
from benchmarks.blackbox.runs import known, measure, planned
from benchmarks.common.documents import machine, machine_text, table, verdict, write

MEANS = 160
BATCHES = (1, 2, 4, 8, 16)
BAR = 1.25

PAGE = """\
# Batches

The tables and the seeds of [the black-box benchmark](blackbox.md), with a budget of {means} mean costs, asked for
several configurations at a time and told all of them before the next are asked for. The total cost is the same at
every size, but for runs that end after {most} evaluations with budget left. Mean normalised regret at the end, number
of seeds: {seeds}; in brackets bootstrap 95 % intervals, the tables drawn again.

{table}

The bar: regret with batches of {largest} at most {bar} times that with one at a time.

{bars}

{machine}

Reproduce with `make bench-batches`. Every run is in
[data/blackbox-batches.json](data/blackbox-batches.json).
"""


def batch_page(found: Findings, facts: dict[str, Any], most: int) -> str:
    """Final regret at each batch size, and the ratio of the largest to the smallest."""
    rows, bars = [], []
    for method in found.methods:
        cells = {batch: found.regret(method, 1.0, batch).mean(axis=1)[None, :] for batch in BATCHES}  # (1, tables)
        largest = ratio(cells[BATCHES[-1]], cells[BATCHES[0]])
        shown = [f"{mean_interval(cells[batch]):.4f}" for batch in BATCHES]
        rows.append([method.title, *shown, f"{largest:.2f}"])
        bars.append(f"- {method.title}: {largest:.2f}, {verdict(largest.value <= BAR)}")
    return PAGE.format(
        means=MEANS,
        seeds=found.seeds,
        most=most,
        table=table(["batch size", *map(str, BATCHES), f"{BATCHES[-1]} to {BATCHES[0]}"], rows),
        largest=BATCHES[-1],
        bar=BAR,
        bars="\n".join(bars),
        machine=machine_text(facts, found.versions()),
    )


def batch_data(found: Findings, facts: dict[str, Any]) -> dict[str, Any]:
    """Final regret and evaluations per method, size, table and seed."""
    finals = {
        method.name: {str(b): np.round(found.regret(method, 1.0, b), 5).tolist() for b in BATCHES}
        for method in found.methods
    }
    return {"machine": facts, "means": MEANS, "tables": found.tables, "regret": finals}


def batches(arguments: argparse.Namespace) -> None:
    """Batch sizes of Farthing's own policies."""
    methods = known(arguments.methods)
    if not methods:
        return
    runs = planned(arguments.seeds, arguments.tables, methods, MEANS, BATCHES, arguments.most)
    found, facts = Findings(measure(runs, arguments.workers), arguments.tables, methods), machine()
    text = batch_page(found, facts, arguments.most)
    if arguments.whole:
        write("blackbox-batches", text, batch_data(found, facts))
    else:
        print("\n" + text)
