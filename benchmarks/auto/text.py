"""Tables and sentences of the page of `auto`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from benchmarks.auto.findings import SHARES, Part, mean_interval, ratio
from benchmarks.auto.methods import Method
from benchmarks.common.documents import listed, table
from benchmarks.common.statistics import Interval, percent

HALF = 0.5


# -- tables ------------------------------------------------------------------------------------------------------------


def regret_table(part: Part, methods: Sequence[Method] | None = None) -> str:
    """Of all methods of a part, or of some of them, on the runs that all have."""
    shown = part.methods if methods is None else methods
    rows = [[m.title, *(f"{mean_interval(part.regret(m, share)):.3f}" for share in SHARES)] for m in shown]
    return table(["mean regret at", *map(percent, SHARES)], rows)


def rank_table(part: Part) -> str:
    """Mean place at shares of the budget, and what a run does."""
    places = [part.places(share) for share in SHARES]
    rows = []
    for method in part.methods:
        cells = [f"{mean_interval(place[method]):.2f}" for place in places]
        evaluations, seconds = (part.mean_number(method, what) for what in ("evaluations", "seconds"))
        rows.append([method.title, *cells, f"{evaluations:.0f}", f"{seconds:.1f}"])
    return table(["mean rank at", *map(percent, SHARES), "evaluations", "own seconds"], rows)


def problem_table(part: Part, share: float) -> str:
    """Mean regret, problem by problem."""
    means = {method: part.regret(method, share).mean(axis=1) for method in part.methods}
    rows = [
        [problem, *(f"{means[method][i]:.3f}" for method in part.methods)] for i, problem in enumerate(part.problems)
    ]
    return table([f"mean regret at {percent(share)}", *(method.title for method in part.methods)], rows)


# -- sentences ---------------------------------------------------------------------------------------------------------


def rank_line(part: Part, subject: Method) -> str:
    """At which shares Farthing has the lowest mean rank, and who has a lower one elsewhere."""
    first: list[str] = []
    behind: list[str] = []
    for share in SHARES:
        means = {method: float(places.mean()) for method, places in part.places(share).items()}
        leader = min(part.peers, key=lambda method: means[method])
        cell = f"{percent(share)} ({means[subject]:.2f}, {leader.title} {means[leader]:.2f})"
        (first if means[subject] <= means[leader] else behind).append(cell)
    said = []
    if first:
        said.append(f"has the lowest mean rank of {len(part.methods)} methods at {listed(first)} of the budget")
    if behind:
        said.append(f"{'but ' if first else ''}does not have the lowest mean rank at {listed(behind)}")
    return f"- {subject.title} {', '.join(said)}; in brackets its mean rank, and that of the best peer."


def ratio_to_best(part: Part, subject: Method, share: float) -> tuple[Method, Interval]:
    peer = part.best_peer(share)
    return peer, ratio(part.regret(subject, share), part.regret(peer, share))


def ratio_lines(part: Part, subject: Method) -> list[str]:
    """The regret as a multiple of the best peer's."""
    lines = []
    for share in SHARES:
        peer, of = ratio_to_best(part, subject, share)
        ours, theirs = (part.mean_regret(method, share) for method in (subject, peer))
        what = "at most half" if of.value <= HALF else "less, but more than half" if of.value < 1.0 else "not less"
        lines.append(
            f"- With {percent(share)} of the budget the best peer is {peer.title} with a regret of {theirs:.3f}. "
            f"{subject.title} has {ours:.3f}: {what} (ratio {of.value:.2f}, 95 % interval {of.to('.2f')})."
        )
    return lines


def short_line(what: str, part: Part | None) -> list[str]:
    """The ratios of a part in one line."""
    if part is None or part.subject is None or not part.peers:
        return []
    cells = []
    for share in SHARES:
        peer, of = ratio_to_best(part, part.subject, share)
        cells.append(f"{of.value:.2f} ({of.to('.2f')}; {peer.title}) at {percent(share)}")
    ranks = [part.places(share) for share in SHARES]
    first = [
        percent(share) for share, places in zip(SHARES, ranks, strict=True)
        if places[part.subject].mean() <= min(places[peer].mean() for peer in part.peers)
    ]  # fmt: skip
    led = f"the lowest mean rank at {listed(first)}" if first else "the lowest mean rank nowhere"
    return [f"- {what}: regret relative to the best peer's {listed(cells)}; {led}."]


def behind_lines(part: Part, subject: Method | None) -> list[str]:
    """Methods with too few runs, on the runs that they have."""
    lines = []
    for method in part.behind:
        others = [subject] if subject else [part.best_peer(1.0)]
        pairs = part.pairs_of(method, *others)
        if pairs:
            cells = [f"{_mean_on(part, one, pairs):.3f} of {one.title}" for one in others]
            lines.append(
                f"- {method.title} has {len(pairs)} of {len(part.problems) * part.planned} runs, which take "
                f"{_seconds(part, method, pairs):.0f} seconds of its own time each, and is in no table. On those its "
                f"mean regret at the end is {_mean_on(part, method, pairs):.3f}, compared with {listed(cells)}."
            )
    return lines


def _mean_on(part: Part, method: Method, pairs: Sequence[tuple[str, int]]) -> float:
    return float(np.mean([part.regret_at(method, problem, seed, 1.0) for problem, seed in pairs]))


def _seconds(part: Part, method: Method, pairs: Sequence[tuple[str, int]]) -> float:
    return float(np.mean([part.data["runs"][p][method.name][str(s)]["seconds"] for p, s in pairs]))


def lines_of(part: Part) -> list[str]:
    subject = part.subject
    if subject is None or not part.peers:
        return ["- Farthing's runs, or all runs of the peers, are missing.", *behind_lines(part, None)]
    return [rank_line(part, subject), *ratio_lines(part, subject), *behind_lines(part, subject)]
