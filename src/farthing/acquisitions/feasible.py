"""The value of an evaluation that may fail.

A failed evaluation improves nothing. So the expected improvement of one that succeeds with probability P, independent
of its value, is EI * P (Gelbart et al. 2014, arXiv 1403.5607): in logarithms log EI + log P. The same holds for any
other log utility of a point that is worth nothing without a value.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from farthing.acquisitions.improvement import Acquisition
from farthing.numerics.arrays import Array


class SuccessModel(Protocol):
    """log of the probability of success, (m,), at X (m, f); with its gradient (m, f)."""

    def log_success(self, X: Array) -> Array: ...
    def log_success_with_gradient(self, X: Array) -> tuple[Array, Array]: ...


@dataclass(frozen=True)
class IfSuccessful:
    """An acquisition plus the log probability that the evaluation succeeds."""

    acquisition: Acquisition
    success: SuccessModel

    def __call__(self, X: Array) -> Array:
        """Values (m,)."""
        return np.asarray(self.acquisition(X) + self.success.log_success(X))

    def with_gradient(self, X: Array) -> tuple[Array, Array]:
        """Values (m,) and gradients (m, f)."""
        value, slope = self.acquisition.with_gradient(X)
        log_chance, chance_slope = self.success.log_success_with_gradient(X)
        return value + log_chance, slope + chance_slope
