"""Tables and sentences that pages on learners that train in steps share."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from benchmarks.common.documents import table
from benchmarks.common.statistics import less
from benchmarks.curves.findings import SHARES, Findings

Array = NDArray[np.float64]


def with_interval(part: Findings, cells: Array, digits: int) -> str:
    found = part.interval(cells)
    return f"{found.value:.{digits}f} ({found.to(f'.{digits}f')})"


def budget_text(multiple: float | None) -> str:
    return "all budgets" if multiple is None else f"{multiple:g} trainings"


def regret_table(part: Findings) -> str:
    """Regrets and ranks of all methods at the shares of the budget."""
    header = ["mean regret at", *(f"{share:.0%}" for share in SHARES), *(f"rank at {share:.0%}" for share in SHARES)]
    header += ["trainings begun", "own seconds"]
    rows = []
    for method in part.methods:
        ranks = part.ranks.get(method)
        cells = [with_interval(part, column, 3) for column in part.regrets[method].T]
        cells += ["" for _ in SHARES] if ranks is None else [with_interval(part, column, 1) for column in ranks.T]
        begun, seconds = (float(part.mean(of[method])) for of in (part.trainings, part.seconds))
        rows.append([method.title, *cells, f"{begun:.0f}", f"{seconds:.1f}"])
    return table(header, rows)


def peer_line(part: Findings) -> str:
    """The regret at the end, compared with the best peer's."""
    assert part.subject is not None
    peer = part.best(part.of("peer"))
    ratio = part.ratio(part.subject, peer)
    ours, theirs = (float(part.mean(part.regrets[method][:, -1])) for method in (part.subject, peer))
    note = " The interval includes 1: the difference may be chance." if ratio.low <= 1.0 <= ratio.high else ""
    return (
        f"- Budget of {budget_text(part.multiple)}: {less(ratio.value)} regret at the end than the best peer, "
        f"{peer.title} ({ours:.3f}, compared with {theirs:.3f}; ratio {ratio.value:.2f}, 95 % interval "
        f"{ratio.to('.2f')}).{note}"
    )


def brief(found: Mapping[float, Findings]) -> str:
    """For the screen: what each method reached, over all pairs and problem by problem."""
    parts = []
    for part in found.values():
        names = [problem.name for problem in part.problems]
        rows = []
        for method in part.methods:
            ends = part.regrets[method][:, -1]
            means = [ends[[one.name == name for one, _ in part.pairs]].mean() for name in names]
            rows.append([method.title, *(f"{mean:.3f}" for mean in means)])
        parts += [regret_table(part), table([f"regret at the end, x{part.multiple:g}", *names], rows)]
    return "\n\n".join(parts)


def is_comparable(found: Mapping[float, Findings]) -> bool:
    return all(part.subject is not None and part.of("peer") for part in found.values())
