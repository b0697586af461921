"""What the benchmark on learners that train in steps says of its subject: sentences and tables, with the losses."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from benchmarks.common.documents import listed, table
from benchmarks.common.statistics import percent
from benchmarks.curves.findings import SHARES, Findings, pooled
from benchmarks.curves.methods import Method
from benchmarks.curves.text import budget_text, is_comparable, with_interval

HALF = 0.5
END = -1  # the last of the shares


def _subject(part: Findings) -> Method:
    assert part.subject is not None
    return part.subject


def _regret(part: Findings, method: Method, share: int = END) -> float:
    return float(part.mean(part.regrets[method][:, share]))


def _rank(part: Findings, method: Method) -> tuple[float, float]:
    """At the end, and over the shares."""
    means = part.mean(part.ranks[method])
    return float(means[END]), float(means.mean())


def _next(part: Findings, which: int) -> Method:
    """Of the others the one with the lowest mean rank: at the end (0), or over the shares (1)."""
    others = [method for method in part.ranks if method != part.subject]
    return min(others, key=lambda method: _rank(part, method)[which])


def _is_first(part: Findings, which: int) -> bool:
    return _rank(part, _subject(part))[which] <= _rank(part, _next(part, which))[which]


# -- sentences ---------------------------------------------------------------------------------------------------------


def rank_line(pool: Findings) -> str:
    """Which method has the lowest mean rank, over all kinds."""
    subject = _subject(pool)
    said = []
    for which, when in enumerate(("at the end of the budgets", "over the three shares of the budgets")):
        ours, other = _rank(pool, subject)[which], _next(pool, which)
        has, who = ("the lowest", "the next is") if _is_first(pool, which) else ("not the lowest", "lower is")
        said.append(f"{has} mean rank {when} ({ours:.2f}; {who} {other.title} with {_rank(pool, other)[which]:.2f})")
    return f"- Over all kinds, {subject.title} has {listed(said)}."


def kind_rank_line(pool: Findings) -> str:
    """On which kinds it has the lowest mean rank."""
    subject = _subject(pool)
    said = []
    for which, when in enumerate(("at the end", "over the three shares")):
        parts = {kind: pool.only(kind) for kind in pool.kinds}
        behind = [f"{kind} ({_next(part, which).title})" for kind, part in parts.items() if not _is_first(part, which)]
        count = f"{len(parts) - len(behind)} of {len(parts)} kinds {when}"
        said.append(count + (f", not on {listed(behind)}" if behind else ""))
    return f"- {subject.title} has the lowest mean rank on {said[0]}; and on {said[1]}."


def half_line(pool: Findings) -> str:
    """Its regret as a multiple of the best peer's, over all kinds, at each share."""
    subject = _subject(pool)
    said: dict[bool, list[str]] = {True: [], False: []}
    for i, share in enumerate(SHARES):
        peer = pool.best(pool.of("peer"), i)
        ratio = pool.ratio(subject, peer, i)
        cell = f"{ratio.value:.2f} times at {percent(share)} ({peer.title}; 95 % interval {ratio.to('.2f')})"
        said[ratio.value <= HALF].append(cell)
    parts = [f"{what}: {listed(said[is_half])}" for is_half, what in ((True, "at most half"), (False, "more than half"))
             if said[is_half]]  # fmt: skip
    return (
        f"- Mean regret over all kinds and budgets, compared with the peer that is best at that share of the budget. "
        f"{subject.title} has {'; '.join(parts)}."
    )


def kind_regret_line(pool: Findings) -> str:
    """The kinds where a peer has less regret at the end."""
    subject = _subject(pool)
    worse = []
    for kind in pool.kinds:
        part = pool.only(kind)
        peer = part.best(part.of("peer"))
        if (ours := _regret(part, subject)) > (theirs := _regret(part, peer)):
            worse.append(f"{kind} ({ours:.3f}, compared with {theirs:.3f} of {peer.title})")
    if not worse:
        return f"- On every kind, {subject.title} has at most the regret of the best peer at the end of the budgets."
    return f"- At the end of the budgets a peer has less regret than {subject.title} on {listed(worse)}."


def comparison_text(found: Mapping[float, Findings]) -> str:
    if not is_comparable(found):
        return "No comparison: it needs `auto` and a peer."
    pool = pooled(found)
    lines = [rank_line(pool), half_line(pool)]
    if len(pool.kinds) > 1:
        lines[1:1] = [kind_rank_line(pool)]
        lines.append(kind_regret_line(pool))
    return "\n".join(lines)


# -- tables ------------------------------------------------------------------------------------------------------------


def kind_table(pool: Findings) -> str:
    """Kind by kind: the method of the page and the best peer at the end, and the ratio at all shares."""
    subject = _subject(pool)
    header = ["kind, all budgets", subject.title, "best peer at 100%", "its regret"]
    header += [f"ratio to the best peer at {share:.0%}" for share in SHARES]
    rows = []
    for kind, part in [*((kind, pool.only(kind)) for kind in pool.kinds), ("all kinds", pool)]:
        peer = part.best(part.of("peer"))
        ours, theirs = (f"{_regret(part, method):.3f}" for method in (subject, peer))
        bests = [part.best(part.of("peer"), i) for i in range(len(SHARES))]
        ratios = [f"{part.ratio(subject, best, i):.2f}" for i, best in enumerate(bests)]
        rows.append([kind, ours, peer.title, theirs, *ratios])
    return table(header, rows)


def regrets_by_kind(pool: Findings) -> str:
    """The regret of every method at the end, kind by kind."""
    parts = [pool.only(kind) for kind in pool.kinds]
    rows = [[m.title, *(with_interval(part, part.regrets[m][:, END], 3) for part in parts)] for m in pool.methods]
    return table(["mean regret at 100%", *pool.kinds], rows)


def ranks_by_kind(pool: Findings) -> str:
    """The mean rank of every method, kind by kind: at the end, and over the shares."""
    parts = [*(pool.only(kind) for kind in pool.kinds), pool]
    methods = sorted(pool.ranks, key=lambda method: _rank(pool, method)[0])
    cells = {m: ["{:.2f} / {:.2f}".format(*_rank(part, m)) for part in parts] for m in methods}
    rows = [[method.title, *cells[method]] for method in methods]
    return table(["mean rank at 100% / over the shares", *pool.kinds, "all kinds"], rows)


def losses(found: Mapping[float, Findings]) -> str:
    """Every problem and budget where a peer ended with less regret than the method of the page, over the seeds."""
    rows = []
    for part in found.values():
        subject = _subject(part)
        for problem in part.problems:
            mine = np.array([one == problem for one, _ in part.pairs])
            ends = {method: float(part.regrets[method][mine, END].mean()) for method in part.methods}
            peer = min(part.of("peer"), key=lambda method: ends[method])
            if ends[peer] < ends[subject]:
                cells = [f"{ends[subject]:.3f}", peer.title, f"{ends[peer]:.3f}"]
                rows.append([problem.name, budget_text(part.multiple), *cells])
    total = sum(len(part.problems) for part in found.values())
    if not rows:
        return f"None of {total} pairs of problem and budget."
    title = _subject(next(iter(found.values()))).title
    return f"{len(rows)} of {total} pairs of problem and budget:\n\n" + table(
        ["problem", "budget", title, "best peer", "its regret"], rows
    )
