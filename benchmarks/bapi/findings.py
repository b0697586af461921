"""What the runs of the benchmark of `bapi` say besides their regrets: ranks over budgets, and predicted costs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.curves.findings import Findings
from benchmarks.curves.methods import Method

Array = NDArray[np.float64]


def overall_ranks(found: Mapping[float, Findings]) -> dict[Method, Array]:
    """Mean rank over all pairs of all budgets (4,): at each share, and over the three."""
    methods = next(iter(found.values())).ranks
    means = {m: np.concatenate([part.ranks[m] for part in found.values()]).mean(axis=0) for m in methods}
    return {method: np.append(mean, mean.mean()) for method, mean in means.items()}


def plans_of(found: Mapping[float, Findings]) -> dict[str, Any] | None:
    """Cost over predicted cost of all proposals of `bapi` that the budget did not cut."""
    plans = [
        plan
        for part in found.values()
        if part.subject is not None
        for result in part.results[part.subject]
        for plan in result.plans
    ]
    told = [plan for plan in plans if plan[4] != "cut" and plan[0]]
    if not told:
        return None
    ratios = np.array([plan[1] / plan[0] for plan in told])
    low, median, high = np.quantile(ratios, [0.05, 0.5, 0.95])
    return {
        "proposals": len(plans),
        "predicted": len(told),
        "cut": sum(plan[4] == "cut" for plan in plans),
        "median": float(median),
        "low": float(low),
        "high": float(high),
        "above": float((ratios > 1.0).mean()),
        "above_twice": float((ratios > 2.0).mean()),
        "highest": float(ratios.max()),
        "total": float(sum(plan[1] for plan in told) / sum(plan[0] for plan in told)),
    }
