"""Rules for the end of the fast-improving period: `elbow`, `progress`, `quotient`, `share`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from farthing.checks import number, whole_number
from farthing.numerics.arrays import Array, Mask
from farthing.policies.bopt.stopping.measures import (
    STRIP,
    elbows,
    fall_begins,
    generalization_loss,
    progress_quotient,
    real_improvement,
    training_progress,
)
from farthing.policies.bopt.stopping.rule import Rule, all_reported, step_at
from farthing.policies.protocol import settle_option


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
