"""The Pareto front of expected improvement and cost, for a study's file."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from farthing.acquisitions.pareto import Front
from farthing.budget import amount_text
from farthing.cli.formatting import config_text, table
from farthing.plain import counted
from farthing.policies import policy_from_json
from farthing.policies.pareto import front_of
from farthing.record.reader import StudyFile


def _front(study: StudyFile, trial: int | None) -> Front:
    """The front now, or as it was just before a trial was proposed."""
    try:
        policy = policy_from_json(study.record.settings.policy)
    except ValueError:  # a policy of the user's, which is not known here
        policy = None
    return front_of(study.record, trial, policy)


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
