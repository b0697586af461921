"""Rules for the end of complete training: `converged`, `loss`, `rises`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from farthing.checks import number, whole_number
from farthing.numerics.arrays import Array, Mask
from farthing.policies.bopt.stopping.measures import STRIP, generalization_loss, real_improvement, successive_rises
from farthing.policies.bopt.stopping.rule import Rule, all_reported
from farthing.policies.protocol import settle_option


@dataclass(frozen=True, kw_only=True)
class Converged(Rule):
    """Complete training ends when the last steps brought at most the share `tolerance` of the improvement so far.

    The last steps are the share `window` of all, at least `steps`. Training values, where reported, must stand still
    too. A curve without a real improvement never ends by this rule.
    """

    name: ClassVar[str] = "converged"
    tolerance: float = 0.02
    window: float = 0.25
    steps: int = 20

    def __post_init__(self) -> None:
        settle_option(self, "tolerance", number, least=0.0, below=1.0)
        settle_option(self, "window", number, above=0.0, below=1.0)
        settle_option(self, "steps", whole_number, least=1)

    def met(self, values: Array, train_values: Array) -> Mask:
        still = self._still(values) & (self._still(train_values) | ~all_reported(train_values))
        return np.asarray(still & real_improvement(values))

    def _still(self, values: Array) -> Mask:
        m = np.minimum.accumulate(values)
        t = np.arange(len(m))
        then = t - np.maximum(self.steps, np.ceil(self.window * t).astype(np.intp))
        brought = m[np.maximum(then, 0)] - m
        return np.asarray((then >= 0) & (brought <= self.tolerance * (m[0] - m)))


@dataclass(frozen=True, kw_only=True)
class Loss(Rule):
    """Complete training ends when GL is above `alpha` percent (Prechelt's GL_alpha)."""

    name: ClassVar[str] = "loss"
    alpha: float = 5.0

    def __post_init__(self) -> None:
        settle_option(self, "alpha", number, least=0.0)

    def met(self, values: Array, train_values: Array) -> Mask:
        return generalization_loss(values) > self.alpha


@dataclass(frozen=True, kw_only=True)
class Rises(Rule):
    """Complete training ends when `strips` strips in a row ended higher than the one before (Prechelt's UP_s)."""

    name: ClassVar[str] = "rises"
    strips: int = 3
    strip: int = STRIP

    def __post_init__(self) -> None:
        settle_option(self, "strips", whole_number, least=1)
        settle_option(self, "strip", whole_number, least=1)

    def met(self, values: Array, train_values: Array) -> Mask:
        return successive_rises(values, self.strip) >= self.strips
