"""Ways of thinking: how carefully a policy chooses, from the most careful to the quickest.

A budget of seconds pays for thinking too. With thousands of trials a fit takes longer than what is left of it, so an
ask takes the most careful way for which there is time. The way is stored with the ask: the same history and the same
way give the same proposal, however fast the machine is.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import TypeVar

import numpy as np

from farthing.numerics.arrays import Array, Ints
from farthing.numerics.rows import MOST_KNOWN, few_rows

MOST_FEW = 256  # trials of the way FEW: an ask takes a tenth of a second, and is nearly as good as with all of them
HURRIED_ROWS = 100  # that hyperparameters are found from where none were stored: 20 milliseconds

T = TypeVar("T")


class Way(StrEnum):
    """How a policy thinks."""

    FULL = "full"  # all models are fitted again, to all trials; where there are thousands, to some (numerics.rows)
    KEPT = "kept"  # hyperparameters are those of the last fit, or of a fit to few trials; models know what FULL does
    FEW = "few"  # as KEPT, but models know few trials: the best, and some of the others
    NONE = "none"  # without a model

    @property
    def refits(self) -> bool:
        """Whether hyperparameters are searched for."""
        return self is Way.FULL

    def rows(self, n: int, values: Array | None = None, most: int = MOST_FEW) -> Ints:
        """Which of n observations the models know, in order: all, or `few_rows`."""
        return few_rows(n, values, most) if self is Way.FEW else np.arange(n)

    def known(self, n: int, values: Array | None = None) -> Ints:
        """The same for models of what may be thousands of observations, which no way knows all of."""
        return few_rows(n, values, MOST_FEW if self is Way.FEW else MOST_KNOWN)

    def of(self, items: Sequence[T], values: Array | None = None, most: int = MOST_FEW) -> list[T]:
        """The items of these rows."""
        return [items[i] for i in self.rows(len(items), values, most)]
