"""What the times of asks say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from benchmarks.common.documents import listed, table

Times = Mapping[str, Mapping[str, Mapping[str, Any]]]  # by the number of curves and policy
OURS, OTHER = "thaw", "bapi"
Cells = Mapping[str, Mapping[str, Mapping[str, float]]]  # seconds by space, number of known results and who asks
Batches = Mapping[str, Mapping[str, Sequence[float]]]  # seconds of one and of a batch by space and policy
PEERS = ("TPE", "GPSampler")


# -- policies and samplers, alone and in batches -----------------------------------------------------------------------


def cell_table(cells: Cells) -> str:
    names = list(next(iter(next(iter(cells.values())).values())))
    header = ["parameters", "known", *(name if name in PEERS else f"`{name}`" for name in names)]
    rows = [
        [space, count, *(_milliseconds(one[name]) for name in names)]
        for space, counts in cells.items()
        for count, one in counts.items()
    ]
    return table(header, rows)


def _milliseconds(seconds: float) -> str:
    return f"{1e3 * seconds:,.{1 if seconds < 0.0995 else 0}f}"


def cell_findings(cells: Cells) -> str:
    """Each comparison with its range over all cells, and `auto` with the cells in which it is slower than a peer."""
    lines = [_compared(cells, "auto", peer) for peer in PEERS]
    ratios = [one["cei"] / one["ei"] for counts in cells.values() for one in counts.values()]
    lines.append(f"- `cei` takes {min(ratios):.1f} to {max(ratios):.1f} times as long as `ei`.")
    return "\n".join(lines)


def searched_text(searched: Cells) -> str:
    """The share of asks that searched for hyperparameters, by the number of known results at the beginning."""
    shares: dict[str, list[float]] = {}
    for counts in searched.values():
        for count, one in counts.items():
            shares.setdefault(count, []).extend(one.values())
    return listed([f"{100 * fmean(found):.0f} % (from {count} results on)" for count, found in shares.items()])


def _compared(cells: Cells, policy: str, peer: str) -> str:
    by_space = {
        space: [one[peer] / one[policy] for one in counts.values()] for space, counts in cells.items()
    }  # fmt: skip
    shown = [f"{min(ratios):.1f} to {max(ratios):.1f} ({space})" for space, ratios in by_space.items()]
    return f"- {peer} takes {listed(shown)} times as long as `{policy}`."


def batch_table(batches: Batches) -> str:
    rows = [
        [space, f"`{policy}`", *(_milliseconds(s) for s in (one, batch)), f"{batch / one:.1f}"]
        for space, policies in batches.items()
        for policy, (one, batch) in policies.items()
    ]
    return table(["parameters", "policy", "ms of one", "ms of a batch", "ratio"], rows)


def batch_findings(batches: Batches) -> str:
    ratios = {
        space: [batch / one for one, batch in policies.values()] for space, policies in batches.items()
    }  # fmt: skip
    shown = [f"{min(found):.1f} to {max(found):.1f} ({space})" for space, found in ratios.items()]
    return f"A batch takes {listed(shown)} times as long as one suggestion."


# -- learners that train in steps --------------------------------------------------------------------------------------


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
