"""Policy `ei`: expected improvement under an exact Gaussian process, without regard to cost.

A few points of a Sobol sequence, then the maximiser of log EI. Running trials enter as fantasies, so that several
proposals at once, or parallel workers, spread out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from farthing.budget import Ledger
from farthing.checks import whole_number
from farthing.history import History
from farthing.policies.cost_models import linear_cost_model
from farthing.policies.fits import FittedModels, rows_known
from farthing.policies.initial_design import design_size
from farthing.policies.model_based import RankingWithReason, propose_by_rank
from farthing.policies.model_options import ModelOptions
from farthing.policies.protocol import settle_option
from farthing.space import Space
from farthing.trial import Proposal


@dataclass(frozen=True, repr=False)
class EI(ModelOptions):
    """Expected improvement. `initial` points of a Sobol design come first; by default p + 2, from 4 to 16."""

    name: ClassVar[str] = "ei"
    initial: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        settle_option(self, "initial", whole_number, least=1, or_none=True)

    def propose(
        self, space: Space, history: History, ledger: Ledger, n: int, rng: np.random.Generator
    ) -> list[Proposal]:
        design = design_size(self.initial, space)
        return propose_by_rank(self.rank, self, design, space, history, ledger, n, rng, linear_cost_model)

    def rows(self, history: History) -> int:
        return rows_known(history)

    def rank(self, models: FittedModels) -> RankingWithReason:
        return RankingWithReason(models.by_improvement(), "largest expected improvement")
