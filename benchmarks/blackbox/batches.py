"""Batches: the final regret of Farthing's own policies when they are asked for several configurations at a time.

The other table of the black-box benchmark; `python -m benchmarks.blackbox --batches` makes it.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from benchmarks.blackbox.regret import Findings, mean_interval, ratio
from benchmarks.blackbox.runs import known, measure, planned
from benchmarks.common.documents import machine, machine_text, publish, table
from benchmarks.common.statistics import Interval, less

MEANS = 160
BATCHES = (1, 2, 4, 8, 16)

PAGE = """\
# Suggestions in batches

How much worse do results get when several configurations are asked for at a time, and all of them told before the next
are asked for? The tables of [the black-box benchmark](blackbox.md), with a budget of {means} mean costs. The total cost
is the same at every batch size, except for runs that end after {most} evaluations with budget left.

{sentences}

Mean normalised regret at the end, number of seeds: {seeds}. In brackets: bootstrap 95 % intervals, the tables drawn
again.

{table}

{machine}

Reproduce with `make bench-batches`. Every run is in [data/blackbox-batches.json](data/blackbox-batches.json).
"""


def sentence(title: str, largest: Interval) -> str:
    """How much regret the largest batches add, in one line."""
    note = " The interval includes 1: no difference is shown." if largest.low <= 1.0 <= largest.high else ""
    return (
        f"- {title}: {less(largest.value)} regret with batches of {BATCHES[-1]} than with one at a time (ratio "
        f"{largest.value:.2f}, 95 % interval {largest.to('.2f')}).{note}"
    )


def batch_page(found: Findings, facts: dict[str, Any], most: int) -> str:
    """Final regret at each batch size, and the ratio of the largest to the smallest."""
    rows, sentences = [], []
    for method in found.methods:
        cells = {batch: found.regret(method, 1.0, batch).mean(axis=1)[None, :] for batch in BATCHES}  # (1, tables)
        largest = ratio(cells[BATCHES[-1]], cells[BATCHES[0]])
        shown = [f"{mean_interval(cells[batch]):.4f}" for batch in BATCHES]
        rows.append([method.title, *shown, f"{largest:.2f}"])
        sentences.append(sentence(method.title, largest))
    return PAGE.format(
        means=MEANS,
        seeds=found.seeds,
        most=most,
        sentences="\n".join(sentences),
        table=table(["batch size", *map(str, BATCHES), f"{BATCHES[-1]} / {BATCHES[0]}"], rows),
        machine=machine_text(facts, found.versions()),
    )


def batch_data(found: Findings, facts: dict[str, Any]) -> dict[str, Any]:
    """Final regret and evaluations per method, size, table and seed."""
    finals = {
        method.name: {str(b): np.round(found.regret(method, 1.0, b), 5).tolist() for b in BATCHES}
        for method in found.methods
    }
    return {"machine": facts, "versions": found.versions(), "means": MEANS, "tables": found.tables, "regret": finals}


def batches(arguments: argparse.Namespace) -> None:
    """Batch sizes of Farthing's own policies."""
    methods = known(arguments.methods)
    if not methods:
        return
    runs = planned(arguments.seeds, arguments.tables, methods, MEANS, BATCHES, arguments.most)
    found, facts = Findings(measure(runs, arguments.workers), arguments.tables, methods), machine()
    text, data = batch_page(found, facts, arguments.most), batch_data(found, facts)
    publish("blackbox-batches", text, data, is_whole=arguments.whole)
