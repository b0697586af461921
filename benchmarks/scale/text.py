"""What the numbers say: the page of studies of thousands of observations."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.common.documents import listed, machine_text, table
from farthing.numerics.rows import EXACT, MOST_FITTED, MOST_KNOWN

NAMES = {"farthing": "Farthing `auto`", "tpe": "Optuna TPE", "gp": "Optuna GPSampler"}

PAGE = """\
# Thousands of observations

How much processor time and memory a suggestion takes in long studies, with many evaluations running, and what the
approximation costs that makes it possible.

{headline}

Up to {exact:,} observations Farthing's models are exact: they know all of them, and hyperparameters are found from all.
With more, a model knows the {half:,} best and {other:,} others, evenly spread over the study. Its hyperparameters are
found from {fitted} of them, starting from the last fit. The same holds for models of value, cost and success.

## Time and memory

Policy `auto` under a budget of cost, so values and costs are modelled, compared with Optuna's samplers, which model
values only. All at their defaults, one thread. Processor milliseconds of one suggestion: the median of {asks}, each
told before the next, after a first one that fits from nothing. Memory is the peak of the whole process in MB.

{sizes}

{first} {given_up}TPE has no model whose cost grows with the cube of the observations, and is the fastest by far.

## What the approximation costs

Studies that begin with {observations:,} observations, three tenths of them random and the others around the best so
far, and go on for {evaluations} evaluations under policy `ei`: with the models above, and with models that know all
observations. The table shows the least value before and after, without noise; the least possible value is 0. Medians of
{repetitions} repetitions.

{regret}

{regret_findings}

What a model knows was chosen on five other functions. The best and others that are evenly spread in time were compared
with: only the evenly spread; the neighbours of the best 1, 3 or 10; the most recent; and points far from each other.
None led to a lower value.

## Many evaluations running

Time of one suggestion with {pending} evaluations running, compared with none, in 7 parameters. Processor milliseconds,
medians, in turn:

{pending_table}

{pending_findings}

## Telling and opening

`tell` and opening a file, in 20 parameters:

{files}

{files_findings}

{machine}

Reproduce with `make bench-scale`. The numbers are in [data/scale.json](data/scale.json).
"""

Cells = Mapping[str, Mapping[str, Mapping[str, Any]]]  # by system, dimensions and n


def median_ms(cell: Mapping[str, Any]) -> float:
    return 1e3 * statistics.median(cell["later"])


def size_table(cells: Cells) -> str:
    ours = cells["farthing"]
    header = ["parameters", "observations", *(f"{name}, ms" for name in NAMES.values()), *NAMES.values()]
    header[-3:] = [f"{name}, MB" for name in NAMES.values()]
    rows = []
    for dimensions, by_n in ours.items():
        for n in by_n:
            row = [cells[system][dimensions].get(n, {"given_up": ""}) for system in NAMES]
            times = ["-" if "given_up" in one else f"{median_ms(one):,.0f}" for one in row]
            peaks = ["-" if "given_up" in one else f"{one['peak_mb']:,.0f}" for one in row]
            rows.append([dimensions, f"{int(n):,}", *times, *peaks])
    return table(header, rows)


def first_text(ours: Mapping[str, Mapping[str, Any]]) -> str:
    slowest = max(one["first"] for by_n in ours.values() for one in by_n.values())
    largest = max(by_n[max(by_n, key=int)]["first"] for by_n in ours.values())
    return (
        f"The first suggestion of a process that knows no earlier fit takes up to {slowest:.1f} s here, and up to "
        f"{largest:.1f} s at the largest size."
    )


def given_up_text(cells: Cells) -> str:
    lines = [
        f"{NAMES[system]} was given up at {int(n):,} observations in {dimensions} parameters ({one['given_up']})"
        for system, by_dimensions in cells.items()
        for dimensions, by_n in by_dimensions.items()
        for n, one in by_n.items()
        if "given_up" in one
    ]
    return f"{listed(lines)}; larger sizes were not tried. " if lines else ""


def regret_table(tasks: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    rows = []
    for name, repetitions in tasks.items():
        ends = [
            statistics.median(one[model][when] for one in repetitions)
            for model, when in (("some", "before"), ("exact", "after"), ("some", "after"))
        ]
        seconds = [statistics.median(one[model]["seconds"] for one in repetitions) for model in ("exact", "some")]
        rows.append([name, *(f"{end:.3g}" for end in ends), *(f"{1e3 * second:,.0f}" for second in seconds)])
    header = ["function, parameters", "before", "after, exact", "after, approximate", "ms, exact", "ms, approximate"]
    return table(header, rows)


def regret_findings(tasks: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    pairs = [one for repetitions in tasks.values() for one in repetitions]
    ratios = np.array([np.log(one["some"]["after"] / one["exact"]["after"]) for one in pairs])
    better, worse = int((ratios < 0.0).sum()), int((ratios > 0.0).sum())
    error = float(ratios.std(ddof=1) / np.sqrt(len(ratios))) if len(ratios) > 1 else float("nan")
    low, high = (float(np.exp(ratios.mean() + sign * 2.0 * error)) for sign in (-1.0, 1.0))
    faster = statistics.median(one["exact"]["seconds"] / one["some"]["seconds"] for one in pairs)
    return (
        f"The least value with approximate models is {np.exp(ratios.mean()):.2f} times that with exact ones, in the "
        f"geometric mean (95 % interval {low:.2f} to {high:.2f}): lower in {better} of {len(pairs)} studies, higher in "
        f"{worse}, equal in the others. A suggestion is {faster:.0f} times as fast."
    )


def pending_table(found: Mapping[str, Mapping[str, Mapping[str, float]]]) -> str:
    rows = [
        [f"{int(n):,}", f"`{policy}`", f"{1e3 * one['none']:.0f}", f"{1e3 * one['many']:.0f}", f"{ratio(one):.2f}"]
        for n, by_policy in found.items()
        for policy, one in by_policy.items()
    ]
    return table(["observations", "policy", "none running", "with running", "ratio"], rows)


def ratio(one: Mapping[str, float]) -> float:
    return one["many"] / one["none"]


def file_table(found: Mapping[str, Mapping[str, float]]) -> str:
    rows = [
        [f"{int(n):,}", f"{1e3 * one['tell']:.2f}", f"{one['open']:.2f}", f"{one['size_mb']:.0f}"]
        for n, one in found.items()
    ]
    return table(["trials", "ms per tell", "s to open", "MB"], rows)


def file_findings(found: Mapping[str, Mapping[str, float]]) -> str:
    (few, one), *_, (many, other) = found.items()
    return (
        f"With {int(many) / int(few):.0f} times as many trials a `tell` takes {other['tell'] / one['tell']:.1f} times "
        f"and opening the file {other['open'] / one['open']:.1f} times as long."
    )


def headline(data: Mapping[str, Any]) -> str:
    ours = data["sizes"]["farthing"]
    dimensions = max(ours, key=int)
    n = max(ours[dimensions], key=int)
    one = ours[dimensions][n]
    return (
        f"With {int(n):,} observations in {dimensions} parameters a suggestion takes {median_ms(one) / 1e3:.2f} s and "
        f"the process {one['peak_mb']:,.0f} MB."
    )


def document(data: Mapping[str, Any]) -> str:
    """The page."""
    cells, regret = data["sizes"], data["regret"]
    versions = {name: next(iter(next(iter(by.values())).values()))["versions"] for name, by in cells.items()}
    first_cell = next(iter(next(iter(cells["farthing"].values())).values()))
    highest = max(ratio(one) for by_policy in data["pending"].values() for one in by_policy.values())
    return PAGE.format(
        headline=headline(data), exact=EXACT, half=MOST_KNOWN // 2, other=MOST_KNOWN - MOST_KNOWN // 2,
        fitted=MOST_FITTED, asks=len(first_cell["later"]), sizes=size_table(cells), first=first_text(cells["farthing"]),
        given_up=given_up_text(cells), observations=regret["observations"], evaluations=regret["evaluations"],
        repetitions=len(next(iter(regret["tasks"].values()))), regret=regret_table(regret["tasks"]),
        regret_findings=regret_findings(regret["tasks"]), pending=data["running"],
        pending_table=pending_table(data["pending"]),
        pending_findings=f"The highest ratio is {highest:.2f}.", files=file_table(data["files"]),
        files_findings=file_findings(data["files"]),
        machine=machine_text(data["machine"], {"Farthing": versions["farthing"], "Optuna": versions["tpe"]}),
    )  # fmt: skip
