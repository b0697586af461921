"""How much less of the budget a method needs than others: run by run, and as Table 2 of CArBO's paper counts it.

Table 2 speaks of the time that CArBO needs for what "the next best optimizer" has at the end; where CArBO ends worse,
it is negative. Its rivals are random search, EI and EIpu: `RIVALS`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.blackbox.regret import Array, Findings
from benchmarks.blackbox.runs import Method, Result

NEVER = np.inf
SHARES = np.linspace(0.005, 1.0, 200)  # of the budget, at which curves are compared
CLAIMANT, RIVALS = "carbo", ("random", "ei", "eipu")  # policies of the paper's Table 2


@dataclass(frozen=True)
class Saving:
    """How much less of the budget a method needs than a peer to reach the peer's final value, in three readings.

    of_budget   share at which the peer first had its final value, less the share at which the method had one as good;
                median over tables and seeds
    of_need     the same, relative to what the peer needed
    of_curve    with the median curves over seeds: see `curve_saving`; median over tables
    reached     how often the method has a value as good within the budget; where it has not, its need counts as all
    """

    of_budget: float
    of_need: float
    of_curve: float
    reached: float


def first_at(result: Result, value: float) -> float:
    """The share of the budget at which a run first had a value as good."""
    good = np.flatnonzero(np.array(result.best) <= value)
    return result.spent[good[0]] if len(good) else NEVER


def saving(found: Findings, method: Method, peer: Method) -> Saving:
    """Over all tables and seeds of the findings."""
    needs = []
    for ours, theirs in zip(found.results(method), found.results(peer), strict=True):
        if theirs.best:  # else the first configuration, the same for both, took the whole budget
            needs.append((first_at(ours, theirs.best[-1]), first_at(theirs, theirs.best[-1])))
    ours_need, theirs_need = np.array(needs).T
    counted = np.minimum(ours_need, 1.0)
    return Saving(
        float(np.median(theirs_need - counted)),
        float(np.median(1.0 - counted / theirs_need)),
        float(np.median(table_savings(found, method, [peer]))),
        float(np.mean(ours_need < NEVER)),
    )


def table_savings(found: Findings, method: Method, rivals: Sequence[Method], batch: int = 1) -> list[float]:
    """Of each table: the saving compared with the rival whose median curve ends best there."""
    savings = []
    for table in found.tables:
        ours, *theirs = (_median_curve(found.on([table]), m, batch) for m in (method, *rivals))
        savings.append(curve_saving(ours, min(theirs, key=lambda curve: curve[-1])))
    return savings


def _median_curve(found: Findings, method: Method, batch: int) -> Array:
    """The median over seeds of the best value at SHARES."""
    return np.array([np.median(found.best(method, share, batch)) for share in SHARES])


def curve_saving(ours: Array, theirs: Array) -> float:
    """The part of the budget that is left when one curve at SHARES reaches the end of the other; negative, the other
    way round, if it never does."""
    if ours[-1] <= theirs[-1]:
        return float(1.0 - SHARES[np.argmax(ours <= theirs[-1])])
    return float(SHARES[np.argmax(theirs <= ours[-1])] - 1.0)


@dataclass(frozen=True)
class Claim:
    """Table 2 on our tables: what CArBO saves compared with the best rival of each, and with each rival."""

    claimant: Method
    best: list[float]  # of each table, compared with the best of the rivals there
    each: dict[Method, float]  # medians over the tables


def claim_of(found: Findings, batch: int = 1) -> Claim | None:
    """None if CArBO or all of its rivals were left out."""
    claimant = next((method for method in found.methods if method.policy == CLAIMANT), None)
    rivals = [method for method in found.methods if method.policy in RIVALS]
    if claimant is None or not rivals:
        return None
    each = {rival: float(np.median(table_savings(found, claimant, [rival], batch))) for rival in rivals}
    return Claim(claimant, table_savings(found, claimant, rivals, batch), each)
