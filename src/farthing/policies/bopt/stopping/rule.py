"""What a stopping rule is: a function of the curve so far that says where a period of training ended."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from farthing.checks import optional, refuse, whole_number
from farthing.numerics.arrays import Array, Mask

ROUNDING = 1e-9  # of a step: 0.07 * 100 is 7.000000000000001 and still means step 7


@dataclass(frozen=True)
class Rule:
    """Says where a period of training ended: at the first step that meets the rule, or at its limit."""

    name: ClassVar[str]

    def met(self, values: Array, train_values: Array) -> Mask:
        """Whether the curve up to each step meets the rule (k,), k at least 1."""
        raise NotImplementedError

    def limit(self, max_steps: int | None) -> int | None:
        """The step at which the period ends at the latest; None if there is no such step."""
        return None

    def first_end(
        self, values: ArrayLike, train_values: ArrayLike | None = None, max_steps: int | None = None
    ) -> int | None:
        """The first step at which the period had ended, None while it has not."""
        E, E_tr = _checked_curve(values, train_values, max_steps)
        seen, limit = len(E), self.limit(max_steps)
        E, E_tr = E[:limit], E_tr[:limit]  # nothing after the limit matters
        with np.errstate(over="ignore", invalid="ignore"):  # curves may diverge
            met = self.met(E, E_tr) if seen else np.zeros(0, dtype=bool)
        if met.any():
            return int(met.argmax()) + 1
        return limit if limit is not None and limit <= seen else None

    def ended(self, values: ArrayLike, train_values: ArrayLike | None = None, max_steps: int | None = None) -> bool:
        """Whether the period had ended at the last value seen, or before."""
        return self.first_end(values, train_values, max_steps) is not None


def step_at(share: float | None, max_steps: int | None) -> int | None:
    """The step at a share of max_steps, rounded up; None if either is not known.

    >>> step_at(0.2, 100), step_at(1 / 3, 10), step_at(None, 10)
    (20, 4, None)
    """
    return None if share is None or max_steps is None else max(1, ceil(share * max_steps - ROUNDING))


def all_reported(train_values: Array) -> Mask:
    """Whether all steps up to each one reported a training value (k,)."""
    return np.logical_and.accumulate(np.isfinite(train_values))


def _checked_curve(values: ArrayLike, train_values: ArrayLike | None, max_steps: int | None) -> tuple[Array, Array]:
    E = np.asarray(values, dtype=np.float64)
    if E.ndim != 1 or not np.isfinite(E).all():
        refuse("values", "a list of finite numbers", values)
    E_tr = np.full(len(E), np.nan) if train_values is None else np.asarray(train_values, dtype=np.float64)
    if E_tr.shape != E.shape:
        refuse("train_values", f"{len(E)} numbers, as many as values", train_values)
    optional(whole_number, "max_steps", max_steps, least=1)
    return E, E_tr
