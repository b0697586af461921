"""Stopping rules: functions of the curve so far that say where a period of training ended.

For the fast-improving period `elbow`, `progress`, `quotient` and `share`; for complete training `converged`, `loss` and
`rises`.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from farthing.checks import number, optional, refuse, whole_number
from farthing.numerics.arrays import Array, Mask
from farthing.policies.bopt.stopping.measures import (
    STRIP,
    elbows,
    fall_begins,
    generalization_loss,
    progress_quotient,
    real_improvement,
    successive_rises,
    training_progress,
)
from farthing.policies.protocol import settle_option

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


@dataclass(frozen=True, kw_only=True)
class Share(Rule):
    """The fast period ends at a fixed share of max_steps; never if that is not known."""

    name: ClassVar[str] = "share"
    share: float = 0.2

    def __post_init__(self) -> None:
        settle_option(self, "share", number, above=0.0, most=1.0)

    def met(self, values: Array, train_values: Array) -> Mask:
        return np.zeros(len(values), dtype=bool)

    def limit(self, max_steps: int | None) -> int | None:
        return step_at(self.share, max_steps)


@dataclass(frozen=True, kw_only=True)
class FastPeriod(Rule):
    """A rule for the fast period, which ends at the latest at the share `latest` of max_steps (None: there is none)."""

    latest: float | None = 1 / 3

    def __post_init__(self) -> None:
        settle_option(self, "latest", number, above=0.0, most=1.0, or_none=True)

    def limit(self, max_steps: int | None) -> int | None:
        return step_at(self.latest, max_steps)


@dataclass(frozen=True, kw_only=True)
class Elbow(FastPeriod):
    """The fast period ends when an elbow lies behind and the curve has been slow since.

    The curve is m, from the last step s that had gained at most the share `flat` of G. Its elbow e is where it lies
    farthest below the chord from s to t, both axes scaled to length 1 (Kneedle: Satopää et al. 2011). A chord always
    finds some elbow, so there are two conditions: the elbow lies w steps back or more, w the share `window` of t - s
    and at least `back`; and the slope over the last w steps is at most the share `small` of that from s to e.
    """

    name: ClassVar[str] = "elbow"
    small: float = 0.05
    window: float = 1 / 3
    back: int = 8
    flat: float = 0.05

    def __post_init__(self) -> None:
        super().__post_init__()
        for option in ("small", "window", "flat"):
            settle_option(self, option, number, above=0.0, below=1.0)
        settle_option(self, "back", whole_number, least=1)

    def met(self, values: Array, train_values: Array) -> Mask:
        m = np.minimum.accumulate(values)
        t = np.flatnonzero(real_improvement(values))
        s = fall_begins(m, self.flat)[t]
        w = np.maximum(self.back, np.ceil(self.window * (t - s)).astype(np.intp))
        t, s, w = (a[t - w > s] for a in (t, s, w))
        e = elbows(m, s, t)
        before = (m[s] - m[e]) / np.maximum(e - s, 1)  # 0 where nothing lies below the chord: since is larger then
        since = (m[t - w] - m[t]) / w
        met = np.zeros(len(m), dtype=bool)
        met[t] = (e <= t - w) & (since <= self.small * before)
        return met


@dataclass(frozen=True, kw_only=True)
class Progress(FastPeriod):
    """The fast period ends when P_k is below the share `small` of its largest value so far.

    P_k of the training values where they are reported, else of the values.
    """

    name: ClassVar[str] = "progress"
    small: float = 0.1
    strip: int = STRIP

    def __post_init__(self) -> None:
        super().__post_init__()
        settle_option(self, "small", number, above=0.0, below=1.0)
        settle_option(self, "strip", whole_number, least=2)

    def met(self, values: Array, train_values: Array) -> Mask:
        return np.where(all_reported(train_values), self._slow(train_values), self._slow(values))

    def _slow(self, values: Array) -> Mask:
        progress = training_progress(values, self.strip)
        slow = progress < self.small * np.maximum.accumulate(progress)
        return np.asarray(slow & real_improvement(values))


@dataclass(frozen=True, kw_only=True)
class Quotient(FastPeriod):
    """The fast period ends when PQ = GL / P_k is above `alpha` (Prechelt's PQ_alpha).

    Without training values it ends as `progress` does.
    PQ asks whether more is lost than learned, which comes late: `latest=None` makes it a rule for complete training.
    """

    name: ClassVar[str] = "quotient"
    alpha: float = 0.5
    small: float = 0.1
    strip: int = STRIP

    def __post_init__(self) -> None:
        super().__post_init__()
        settle_option(self, "alpha", number, above=0.0)
        settle_option(self, "small", number, above=0.0, below=1.0)
        settle_option(self, "strip", whole_number, least=2)

    def met(self, values: Array, train_values: Array) -> Mask:
        quotient = progress_quotient(generalization_loss(values), training_progress(train_values, self.strip))
        lost = (quotient > self.alpha) & real_improvement(values)
        lost[: self.strip - 1] = False
        progress = Progress(small=self.small, strip=self.strip)
        return np.where(all_reported(train_values), lost, progress.met(values, np.full(len(values), np.nan)))


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
