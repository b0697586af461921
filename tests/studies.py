"""Small studies without steps, for the tests of several files."""

from __future__ import annotations

import math
from typing import Any

import farthing as ft
from farthing.policies import BY_NAME

LINE = ft.Space(x=ft.Real(-1, 1))

BOOSTER = ft.Space(
    eta=ft.Real(1e-4, 1.0, log=True),
    depth=ft.Integer(1, 16),
    booster=ft.Choice(["gbtree", "dart", "gblinear"]),
    drop=ft.Real(0.0, 0.5, when={"booster": "dart"}),
)

POLICIES = sorted(BY_NAME)


def line_study(budget: str | ft.Budget = "100 evaluations", **options: Any) -> ft.Study:
    return ft.Study(LINE, budget, **{"policy": "sobol", "seed": 0, **options})


def error_of(config: dict[str, Any]) -> float:
    """A smooth function of BOOSTER."""
    return (
        (math.log10(config["eta"]) + 2) ** 2
        + 0.1 * abs(config["depth"] - 6)
        + {"gbtree": 0.3, "dart": 0.0, "gblinear": 1.0}[config["booster"]]
        + (config.get("drop", 0.0) - 0.1) ** 2
    )


def tell_truth(study: ft.Study, proposal: ft.Proposal) -> ft.Trial:
    """Evaluate: deep trees cost more, and steps near 1 diverge."""
    config = proposal.config
    if config["eta"] > 0.3:
        return study.tell(proposal, failed="diverged", cost=0.1)
    return study.tell(proposal, value=error_of(config), cost=0.01 * 1.3 ** config["depth"])


class Awkward:
    """Looks like a number until it is read, as a tensor of two elements does."""

    def __float__(self) -> float:
        raise RuntimeError("a Tensor with 2 elements cannot be converted to Scalar")
