"""Policy `ei`: expected improvement under an exact Gaussian process, blind to cost.

A few points of a Sobol sequence, then the maximiser of log EI. Running trials enter as fantasies, so that several
proposals at once, or workers side by side, spread out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from farthing.budget import Ledger
from farthing.history import History
from farthing.policies.cost_models import linear_cost_model
from farthing.policies.fits import Models, Pick, check_initial, design_size, propose_by
from farthing.space import Space
from farthing.trial import Proposal


@dataclass(frozen=True)
class EI:
    """Expected improvement. `initial` points of a Sobol design come first; by default p + 2, from 4 to 16."""

    name: ClassVar[str] = "ei"
    initial: int | None = None

    def __post_init__(self) -> None:
        check_initial(self.name, self.initial)

    def propose(
        self, space: Space, history: History, ledger: Ledger, n: int, rng: np.random.Generator
    ) -> list[Proposal]:
        design = design_size(self.initial, space)
        return propose_by(self.pick, design, space, history, ledger, n, rng, cost_model=linear_cost_model)

    def pick(self, models: Models) -> Pick:
        return models.by_improvement(), "largest expected improvement"
