"""What the times of policies for learners that train in steps say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.common.documents import listed, table

Times = Mapping[str, Mapping[str, Mapping[str, Any]]]  # by the number of curves and policy
OURS, OTHER = "thaw", "bapi"


def step_table(found: Times) -> str:
    header = ["curves known", "policy", "ms per ask", "ms per report", "steps per ask", "ms per step, both together"]
    rows = []
    for count, cells in found.items():
        for policy, one in cells.items():
            numbers = (1e3 * one["ask"], 1e3 * one["report"], one["reports"] / one["asks"], 1e3 * one["per_step"])
            digits = (0, 2, 0, 1)
            shown = [f"{number:,.{places}f}" for number, places in zip(numbers, digits, strict=True)]
            rows.append([f"{int(count):,}", f"`{policy}`", *shown])
    return table(header, rows)


def step_findings(found: Times) -> str:
    """Each measure as a ratio, with the numbers of curves at which `thaw` is the slower one said as such."""
    lines = [_line(found, name, title) for name, title in (("ask", "an ask"), ("report", "a report"))]
    lines.append(_line(found, "per_step", "a step of training, with its share of the ask,"))
    alone = [
        f"with {int(count):,} curves the times of `{policy}` are those of a single ask and its run"
        for count, cells in found.items()
        for policy, one in cells.items()
        if one["asks"] == 1
    ]
    return "\n".join([*lines, *(f"- To save time, {said}." for said in alone)])


def _line(found: Times, name: str, title: str) -> str:
    ratios = {count: cells[OURS][name] / cells[OTHER][name] for count, cells in found.items()}
    slower = [f"{int(count):,}" for count, ratio in ratios.items() if ratio > 1.0]
    shown = listed([f"{ratio:.2f} (with {int(count):,} curves)" for count, ratio in ratios.items()])
    text = f"- Under `{OURS}` {title} takes {shown} times as long as under `{OTHER}`."
    return text + (f" It is slower with {listed(slower)} curves." if slower else "")


def auto_text(found: Times) -> str:
    """The policies that `auto` chose, by the reasons of its proposals."""
    names = dict.fromkeys(str(cells["auto"]["reason"]).partition(":")[0] for cells in found.values())
    return listed([f"`{name}`" for name in names])
