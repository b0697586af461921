"""Policy `ei`: expected improvement under an exact Gaussian process, without regard to cost.

A few points of a Sobol sequence, then the maximiser of log EI. Running trials enter as fantasies, so that several
proposals at once, or parallel workers, spread out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from farthing.checks import whole_number
from farthing.history import History
from farthing.policies.cost_models import CostModelFit, linear_cost_model
from farthing.policies.fits import FittedModels
from farthing.policies.initial_design import design_size
from farthing.policies.model_based import ModelBased, RankingWithReason
from farthing.policies.protocol import settle_option
from farthing.policies.ranking import in_words
from farthing.space import Space


@dataclass(frozen=True, repr=False)
class EI(ModelBased):
    """Expected improvement. `initial` points of a Sobol design come first; by default p + 2, from 4 to 16."""

    name: ClassVar[str] = "ei"
    initial: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        settle_option(self, "initial", whole_number, least=1, or_none=True)

    @property
    def cost_model_fit(self) -> CostModelFit:
        return linear_cost_model

    def design_size(self, space: Space, history: History) -> int:
        return design_size(self.initial, space)

    def rank(self, models: FittedModels) -> RankingWithReason:
        return RankingWithReason(models.by_improvement(), in_words(0.0))
