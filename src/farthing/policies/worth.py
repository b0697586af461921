"""Stopping when it is no longer worth it (Xie et al. 2025, "Cost-aware stopping for Bayesian optimization").

A study ends when no candidate is worth its cost: max over x of log gain(x) - log cost(x) + log worth <= 0, where
`worth` is what an improvement by 1 is worth in the budget's unit. Models change from ask to ask, so the quantity is
bounded and averaged over the last asks, and the average has to be at most 0 twice in a row. Every ask stores its
prospect with the proposals, as hyperparameters are stored, so that a replay comes to the same end.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from farthing.checks import refuse
from farthing.history import History
from farthing.record.state import Prospect
from farthing.trial import Proposal

NAME = "prospects"  # among the fits of a proposal
WINDOW = 10  # asks that are averaged: of 1, 3, 5 and 10 the one that lost least (docs/worth.md)
HITS = 2  # averages in a row
BOUND = 3.0  # of the log of worth against cost: one ask that finds nothing at all does not decide for the others


def not_worth(history: History, proposals: Sequence[Proposal]) -> Prospect | None:
    """The best prospect of an ask, if neither it nor those before it were worth their cost."""
    if history.worth is None or not proposals:
        return None
    recent = [Prospect(gain, cost) for gain, cost in proposals[0].fits.get(NAME, ())]
    return recent[-1] if recent and is_over(recent, history.worth) else None


def is_over(recent: Sequence[Prospect], worth: float) -> bool:
    """Whether the averages over the last asks say HITS times in a row that nothing is worth its cost.

    >>> is_over([Prospect(0.1, 2.0), Prospect(0.1, 2.0)], 19.0), is_over([Prospect(0.1, 2.0), Prospect(0.1, 2.0)], 21.0)
    (True, False)
    """
    logs = [_bounded_log(prospect, worth) for prospect in recent]
    ends = range(len(logs), len(logs) - HITS, -1)
    return len(logs) >= HITS and all(np.mean(logs[max(end - WINDOW, 0) : end]) <= 0.0 for end in ends)


def _bounded_log(prospect: Prospect, worth: float) -> float:
    """log of worth against cost, within BOUND of 0."""
    if prospect.gain <= 0.0 or prospect.cost <= 0.0:
        return BOUND if prospect.cost <= 0.0 < prospect.gain else -BOUND
    found = math.log(prospect.gain) + math.log(worth) - math.log(prospect.cost)
    return min(max(found, -BOUND), BOUND)


def require_judge(policy: Any, worth: float | None) -> None:
    """An error if a policy cannot say what an evaluation is expected to bring."""
    if worth is not None and not getattr(policy, "judges_worth", False):
        accepted = "a policy that models values and costs of whole evaluations (carbo, cei, pbgi, ei, eipu)"
        refuse("stop_when_not_worth", accepted, policy.name)
