"""Batches: the final regret of CArBO and of its paper's rivals, asked for several configurations at a time.

The other table of the black-box benchmark; `python -m benchmarks.blackbox --batches` makes it.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from benchmarks.blackbox.regret import Findings, mean_interval, ratio
from benchmarks.blackbox.runs import known, measure, planned
from benchmarks.blackbox.savings import claim_of
from benchmarks.common.documents import listed, machine, machine_text, publish, table
from benchmarks.common.statistics import Interval, less, percent

MEANS = 40
BATCHES = (1, 4, 16)

PAGE = """\
# Suggestions in batches

How much worse do results get when several configurations are asked for at a time, and all of them told before the next
are asked for? The {tables} tables of [the black-box benchmark](blackbox.md) that no default was chosen on, with the
same budget of {means} mean costs. The total cost is the same at every batch size, except for runs that end after {most}
evaluations with budget left. `ei:end=ignored` is EI that does not look at costs at all.

{sentences}

Mean normalised regret at the end, number of seeds: {seeds}. In brackets: bootstrap 95 % intervals, the seeds of every
table drawn again.

{table}

{claims}

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


def claims_text(found: Findings) -> str:
    """Table 2 of CArBO's paper at each batch size."""
    claims = {batch: claim for batch in BATCHES if (claim := claim_of(found, batch)) is not None}
    if not claims:
        return ""
    first = claims[BATCHES[0]]
    rivals = [rival.title for rival in first.each]
    rows = [
        [f"{batch}", *(percent(saved) for saved in claim.each.values()), *map(percent, _middles(claim.best))]
        for batch, claim in claims.items()
    ]
    return (
        f"Share of the budget that {first.claimant.title} saves, as Table 2 of CArBO's paper counts it: what is left "
        "of the budget when its median curve over the seeds of a table reaches where the rival's ends with the same "
        "batch size; negative, the other way round, if it does not. Medians over the tables, compared with "
        f"{listed(rivals)}, and with the best of them on each table.\n\n"
        + table(["batch size", *rivals, "best of them", "best of them, mean"], rows)
    )


def _middles(savings: list[float]) -> tuple[float, float]:
    return float(np.median(savings)), float(np.mean(savings))


def batch_page(found: Findings, facts: dict[str, Any], most: int) -> str:
    """Final regret at each batch size, and the ratio of the largest to the smallest."""
    rows, sentences = [], []
    for method in found.methods:
        cells = {batch: found.regret(method, 1.0, batch) for batch in BATCHES}  # (tables, seeds) each
        largest = ratio(cells[BATCHES[-1]], cells[BATCHES[0]])
        shown = [f"{mean_interval(cells[batch]):.4f}" for batch in BATCHES]
        rows.append([method.title, *shown, f"{largest:.2f}"])
        sentences.append(sentence(method.title, largest))
    return PAGE.format(
        means=MEANS,
        tables=len(found.tables),
        seeds=found.seeds,
        most=most,
        sentences="\n".join(sentences),
        table=table(["batch size", *map(str, BATCHES), f"{BATCHES[-1]} / {BATCHES[0]}"], rows),
        claims=claims_text(found),
        machine=machine_text(facts, found.versions()),
    )


def batch_data(found: Findings, facts: dict[str, Any]) -> dict[str, Any]:
    """Final regret per method, size, table and seed; what CArBO saves at each size, per table."""
    finals = {
        method.name: {str(b): np.round(found.regret(method, 1.0, b), 5).tolist() for b in BATCHES}
        for method in found.methods
    }
    claims = {batch: claim for batch in BATCHES if (claim := claim_of(found, batch)) is not None}
    savings = {str(batch): np.round(claim.best, 4).tolist() for batch, claim in claims.items()}
    return {
        "machine": facts, "versions": found.versions(), "means": MEANS, "tables": found.tables, "regret": finals,
        "savings": savings,
    }  # fmt: skip


def batches(arguments: argparse.Namespace) -> None:
    """Batch sizes of some of Farthing's policies."""
    methods = known(arguments.methods)
    if not methods:
        return
    runs = planned(arguments.seeds, arguments.tables, methods, MEANS, BATCHES, arguments.most)
    found, facts = Findings(measure(runs, arguments.workers), arguments.tables, methods), machine()
    text, data = batch_page(found, facts, arguments.most), batch_data(found, facts)
    publish("blackbox-batches", text, data, is_whole=arguments.whole)
