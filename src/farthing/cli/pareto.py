"""The Pareto front of expected improvement and cost, for a study's file; what became of an earlier one; and the alphas
that lead to the picks of CEI."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from farthing.acquisitions.pareto import Front
from farthing.budget import amount_text
from farthing.cli.formatting import config_text, table
from farthing.policies import Policy, policy_from_json
from farthing.policies.pareto import front_of, implied_alphas, persistence_between
from farthing.record.reader import StudyFile
from farthing.text.plain import counted


def _policy(study: StudyFile) -> Policy | None:
    try:
        return policy_from_json(study.record.settings.policy)
    except ValueError:  # a policy of the user's, which is not known here
        return None


def _front(study: StudyFile, trial: int | None) -> Front:
    """The front now, or as it was just before a trial was proposed."""
    return front_of(study.record, trial, _policy(study))


def front_json(study: StudyFile, trial: int | None) -> dict[str, Any]:
    """All points of the front, and the picks of the methods."""
    front, space = _front(study, trial), study.record.space
    return {
        "unit": study.ledger.unit,
        "front": [
            {"cost": math.exp(c), "log_ei": e, "config": space.decode(u)}
            for u, c, e in zip(front.U, front.log_cost.tolist(), front.log_ei.tolist(), strict=True)
        ],
        "picks": {
            name: {"cost": math.exp(pick.log_cost), "log_ei": pick.log_ei, "config": space.decode(pick.u)}
            for name, pick in front.picks.items()
        },
        "alphas": front.alphas,
    }


def front_text(study: StudyFile, trial: int | None, most: int) -> str:
    """The front from cheap to expensive, at most `most` points of it, and the picks of the methods."""
    front, unit, space = _front(study, trial), study.ledger.unit, study.record.space
    shown = np.unique(np.linspace(0, len(front.U) - 1, most).round().astype(int)).tolist()

    def row(log_cost: float, log_ei: float, u: Any) -> list[str]:
        return [amount_text(unit, math.exp(log_cost)), f"{log_ei:.2f}", config_text(space.decode(u))]

    points = table(["cost", "log EI", "config"], [row(front.log_cost[i], front.log_ei[i], front.U[i]) for i in shown])
    picks = table(
        ["pick", "cost", "log EI", "config"],
        [[name, *row(pick.log_cost, pick.log_ei, pick.u)] for name, pick in front.picks.items()],
    )
    of = f" (of {len(front.U)})" if len(shown) < len(front.U) else ""
    if front.alphas is None:
        alphas = "no alpha of EI / cost^alpha leads to the pick of CEI"
    else:
        alphas = (
            f"EI / cost^alpha leads to the pick of CEI for alpha from {front.alphas[0]:.3g} to {front.alphas[1]:.3g}"
        )
    return f"{counted(len(shown), 'point')} of the front{of}\n{points}\n\n{picks}\n\n{alphas}"


def persistence_json(study: StudyFile, before: int, trial: int | None) -> dict[str, Any]:
    """The points of an earlier front, then and now."""
    found, space = persistence_between(study.record, before, trial, _policy(study)), study.record.space
    then = found.before
    columns = (then.log_cost, then.log_ei, found.log_cost, found.log_ei, found.kept)
    return {
        "unit": study.ledger.unit,
        "share": found.share,
        "points": [
            {
                "cost_before": math.exp(c), "log_ei_before": e, "cost": math.exp(d), "log_ei": f, "kept": kept,
                "config": space.decode(u),
            }
            for u, c, e, d, f, kept in zip(then.U, *(column.tolist() for column in columns), strict=True)
        ],
    }  # fmt: skip


def persistence_text(study: StudyFile, before: int, trial: int | None, most: int) -> str:
    """The points of an earlier front from cheap to expensive, at most `most` of them, then and now."""
    found, unit, space = (
        persistence_between(study.record, before, trial, _policy(study)),
        study.ledger.unit,
        study.record.space,
    )
    then = found.before
    shown = np.unique(np.linspace(0, len(then.U) - 1, most).round().astype(int)).tolist()
    rows = [
        [
            amount_text(unit, math.exp(then.log_cost[i])), f"{then.log_ei[i]:.2f}",
            amount_text(unit, math.exp(found.log_cost[i])), f"{found.log_ei[i]:.2f}",
            "yes" if found.kept[i] else "no", config_text(space.decode(then.U[i])),
        ]
        for i in shown
    ]  # fmt: skip
    points = table(["cost then", "log EI then", "cost", "log EI", "still on it", "config"], rows)
    kept = f"{int(found.kept.sum())} of {counted(len(then.U), 'point')}"
    return f"{kept} of the front before trial {before} are still on it\n{points}"


def alphas_json(study: StudyFile) -> list[dict[str, Any]]:
    """The implied alphas, trial by trial."""
    found = implied_alphas(study.record, None, _policy(study))
    return [{"trial": item.trial, "alpha": item.alpha, "interval": item.interval} for item in found]


def alphas_text(study: StudyFile) -> str:
    """The implied alphas, trial by trial."""
    rows = []
    for item in implied_alphas(study.record, None, _policy(study)):
        low, high = ("none", "none") if item.interval is None else (f"{end:.3g}" for end in item.interval)
        rows.append([str(item.trial), f"{item.alpha:.3g}", low, high])
    return table(["trial", "alpha", "from", "to"], rows)
