"""Where a training curve leaves its fast-improving period, and where complete training ends: rules that only look back.

BOPT-HPO (Yang, Deng, Zhu, section 1 and Figure 1) trains to two levels. Eighty-percent training stops "immediately
after the fast-improving period ends", found as "the elbow point of the loss curve [...] via some stopping criteria
(Prechelt, 2012)": rules `elbow`, `progress`, `quotient`, `share`. Complete training goes on "until a pre-given
convergence criterion is met": rules `converged`, `loss`, `rises`. docs/levels.md compares them on real curves.

Symbols; steps count from 1, and what is said of step t is computed from the steps up to t alone:
    k             how many steps were seen
    E    (k,)     values: what is minimised, after each step (Prechelt's E_va); finite
    E_tr (k,)     train_values, where steps report them: used at t if all steps up to t did (NaN: not reported)
    m    (k,)     the best value so far (Prechelt's E_opt)
    G    (k,)     m_1 - m_t, the improvement so far
    max_steps     how long complete training may last, where that is known

A period that ended stays ended: `first_end` is the first step that meets a rule. A rule for the fast period is met at
the latest at the share `latest` of max_steps.

Prechelt's GL and P_k are ratios of errors and need positive values. While the best value so far is zero or less, they
are taken as if a constant had been added to all values that makes the best one as large as their range so far: a loss
of 5 % is then 5 % of that range. The rules `elbow` and `converged` compare improvements with improvements and change
neither with the scale nor with the origin of the values.

An improvement is real once it is REAL times the largest rise so far, values above the first counted as the first. A
plateau at the start, flat or noisy, has none, so no rule takes it for an end, save `share` and `latest`, which look at
the step alone, and `loss` and `rises`, which look for training gone bad.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from typing import ClassVar, TypeAlias

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import ArrayLike, NDArray

from farthing.errors import InvalidArgument
from farthing.numerics.arrays import Array

Bools = NDArray[np.bool_]
Steps = NDArray[np.intp]

STRIP = 5  # Prechelt's k
REAL = 3.0
BLOCK = 1 << 16  # numbers at once in the search for elbows


# -- Prechelt's measures, as of each step ------------------------------------------------------------------------------


def generalization_loss(values: Array) -> Array:
    """GL = 100 (E / E_opt - 1): how far, in percent, the value is above the best so far (k,).

    >>> generalization_loss(np.array([4.0, 2.0, 3.0])).tolist()
    [0.0, 0.0, 50.0]
    """
    best = np.minimum.accumulate(values)
    return _ratio(100.0 * (values - best), best + _shift(values), 0.0)


def training_progress(values: Array, strip: int = STRIP) -> Array:
    """P_k = 1000 (sum_strip E / (k min_strip E) - 1) over the last k = `strip` steps (k,); 0 while there are fewer.

    Prechelt measures at the end of every strip; here the strip slides, so that a period can end at any step.

    >>> training_progress(np.array([3.0, 1.0, 1.0]), strip=2).tolist()
    [0.0, 1000.0, 0.0]
    """
    progress = np.zeros(len(values))
    if len(values) >= strip:
        strips = sliding_window_view(values, strip)  # (k - strip + 1, strip)
        least = strips.min(axis=1)
        above = 1000.0 * (strips - least[:, None]).mean(axis=1)
        progress[strip - 1 :] = _ratio(above, least + _shift(values)[strip - 1 :], 0.0)
    return progress


def progress_quotient(loss: Array, progress: Array) -> Array:
    """PQ = GL / P_k (k,): 0 where nothing is lost, infinite where something is and nothing moves."""
    return np.where(loss > 0.0, _ratio(loss, progress, np.inf), 0.0)


def successive_rises(values: Array, strip: int = STRIP) -> Steps:
    """How many strips in a row ended higher than the one before (k,): UP_s stops where this reaches s.

    >>> successive_rises(np.array([1.0, 1.0, 2.0, 3.0, 0.0, 1.0]), strip=2).tolist()
    [0, 0, 0, 1, 1, 0]
    """
    ends = values[strip - 1 :: strip]
    rising = np.zeros(len(ends), dtype=bool)
    rising[1:] = ends[1:] > ends[:-1]
    number = np.arange(1, len(ends) + 1)
    in_a_row = number - np.maximum.accumulate(np.where(rising, 0, number))
    return np.concatenate(([0], in_a_row))[np.arange(1, len(values) + 1) // strip]


def _shift(values: Array) -> Array:
    """What ratios add to every value as of each step (k,): nothing while all are positive."""
    best = np.minimum.accumulate(values)
    return np.where(best > 0.0, 0.0, np.maximum.accumulate(values) - 2.0 * best)


def _ratio(a: Array, b: Array, otherwise: float) -> Array:
    return np.asarray(np.divide(a, b, out=np.full(len(a), otherwise), where=b > 0.0))


# -- what counts as an improvement -------------------------------------------------------------------------------------


def real_improvement(values: Array) -> Bools:
    """Whether the improvement so far is more than noise (k,).

    >>> real_improvement(np.array([9.0, 9.5, 9.0, 8.0, 8.3, 8.2])).tolist()
    [False, False, False, True, True, True]
    """
    clipped = np.minimum(values, values[0])
    rise = np.maximum.accumulate(np.diff(clipped, prepend=clipped[0]))
    gain = values[0] - np.minimum.accumulate(values)
    return np.asarray((gain > 0.0) & (gain >= REAL * rise))


# -- the rules ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Rule:
    """Says where a period of training ended: at the first step that meets it, or at its limit."""

    name: ClassVar[str]

    def met(self, values: Array, train_values: Array) -> Bools:
        """Whether the curve up to each step meets the rule (k,), k at least 1."""
        raise NotImplementedError

    def limit(self, max_steps: int | None) -> int | None:
        """The step at which the period ends whatever the curve; None where there is no such step."""
        return None

    def first_end(
        self, values: ArrayLike, train_values: ArrayLike | None = None, max_steps: int | None = None
    ) -> int | None:
        """The first step at which the period had ended, None while it has not."""
        E, E_tr = _checked(values, train_values, max_steps)
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

    def _check(self, good: bool, option: str, accepted: str) -> None:
        if not good:
            raise InvalidArgument(f"{self.name}: {option} must be {accepted}, got {getattr(self, option)!r}")

    def _check_shares(self, *options: str) -> None:
        for option in options:
            self._check(0.0 < getattr(self, option) < 1.0, option, "between 0 and 1")


@dataclass(frozen=True, kw_only=True)
class Share(Rule):
    """The fast period ends at a fixed share of max_steps; never where that is not known."""

    name: ClassVar[str] = "share"
    share: float = 0.2

    def __post_init__(self) -> None:
        self._check(0.0 < self.share <= 1.0, "share", "above 0 and at most 1")

    def met(self, values: Array, train_values: Array) -> Bools:
        return np.zeros(len(values), dtype=bool)

    def limit(self, max_steps: int | None) -> int | None:
        return step_at(self.share, max_steps)


@dataclass(frozen=True, kw_only=True)
class FastPeriod(Rule):
    """A rule for the fast period, which ends at the latest at the share `latest` of max_steps (None: there is none)."""

    latest: float | None = 1 / 3

    def __post_init__(self) -> None:
        good = self.latest is None or 0.0 < self.latest <= 1.0
        self._check(good, "latest", "above 0 and at most 1, or None")

    def limit(self, max_steps: int | None) -> int | None:
        return step_at(self.latest, max_steps)


@dataclass(frozen=True, kw_only=True)
class Elbow(FastPeriod):
    """The fast period ends when an elbow lies behind and the curve has been slow since.

    The curve is m, from the last step s that had gained at most the share `flat` of G. Its elbow e is where it lies
    farthest below the chord from s to t, both axes scaled to length 1 (Kneedle: Satopää et al. 2011). A chord always
    finds some elbow, so two things are asked of it: that it lies w steps back or more, w the share `window` of t - s
    and at least `back`; and that the slope over the last w steps is at most the share `small` of that from s to e.
    """

    name: ClassVar[str] = "elbow"
    small: float = 0.05
    window: float = 1 / 3
    back: int = 8
    flat: float = 0.05

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_shares("small", "window", "flat")
        self._check(self.back >= 1, "back", "at least 1")

    def met(self, values: Array, train_values: Array) -> Bools:
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
        self._check_shares("small")
        self._check(self.strip >= 2, "strip", "at least 2")

    def met(self, values: Array, train_values: Array) -> Bools:
        return np.where(_reported(train_values), self._slow(train_values), self._slow(values))

    def _slow(self, values: Array) -> Bools:
        progress = training_progress(values, self.strip)
        slow = progress < self.small * np.maximum.accumulate(progress)
        return np.asarray(slow & real_improvement(values))


@dataclass(frozen=True, kw_only=True)
class Quotient(FastPeriod):
    """Ends when PQ = GL / P_k is above `alpha` (Prechelt's PQ_alpha); where no training values are, as `progress` does.

    PQ asks whether more is lost than learned, which comes late: `latest=None` makes it a rule for complete training.
    """

    name: ClassVar[str] = "quotient"
    alpha: float = 0.5
    small: float = 0.1
    strip: int = STRIP

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check(self.alpha > 0.0, "alpha", "above 0")
        self._check_shares("small")
        self._check(self.strip >= 2, "strip", "at least 2")

    def met(self, values: Array, train_values: Array) -> Bools:
        quotient = progress_quotient(generalization_loss(values), training_progress(train_values, self.strip))
        lost = (quotient > self.alpha) & real_improvement(values)
        lost[: self.strip - 1] = False
        progress = Progress(small=self.small, strip=self.strip)
        return np.where(_reported(train_values), lost, progress.met(values, np.full(len(values), np.nan)))


@dataclass(frozen=True, kw_only=True)
class Converged(Rule):
    """Complete training ends when the last steps brought at most the share `tolerance` of the improvement so far.

    Those are the share `window` of all steps, at least `steps`. Training values, where reported, must stand still too.
    A curve without a real improvement never ends by this rule.
    """

    name: ClassVar[str] = "converged"
    tolerance: float = 0.02
    window: float = 0.25
    steps: int = 20

    def __post_init__(self) -> None:
        self._check(0.0 <= self.tolerance < 1.0, "tolerance", "at least 0 and below 1")
        self._check_shares("window")
        self._check(self.steps >= 1, "steps", "at least 1")

    def met(self, values: Array, train_values: Array) -> Bools:
        still = self._still(values) & (self._still(train_values) | ~_reported(train_values))
        return np.asarray(still & real_improvement(values))

    def _still(self, values: Array) -> Bools:
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
        self._check(self.alpha >= 0.0, "alpha", "at least 0")

    def met(self, values: Array, train_values: Array) -> Bools:
        return generalization_loss(values) > self.alpha


@dataclass(frozen=True, kw_only=True)
class Rises(Rule):
    """Complete training ends when `strips` strips in a row ended higher than the one before (Prechelt's UP_s)."""

    name: ClassVar[str] = "rises"
    strips: int = 3
    strip: int = STRIP

    def __post_init__(self) -> None:
        self._check(self.strips >= 1, "strips", "at least 1")
        self._check(self.strip >= 1, "strip", "at least 1")

    def met(self, values: Array, train_values: Array) -> Bools:
        return successive_rises(values, self.strip) >= self.strips


# -- where a falling curve begins and bends ----------------------------------------------------------------------------


def fall_begins(m: Array, flat: float) -> Steps:
    """The last place, from 0, at which the falling curve m had gained at most a share of what it has by each step (k,).

    >>> fall_begins(np.array([9.0, 9.0, 9.0, 5.0, 1.0]), 0.05).tolist()
    [0, 1, 2, 2, 2]
    """
    gain = m[0] - m
    places = np.searchsorted(gain, flat * gain, side="right") - 1
    return np.asarray(np.minimum(places, np.arange(len(m))))


def elbows(m: Array, s: Steps, t: Steps) -> Steps:
    """The places, from 0, where the falling curve m (k,) is farthest below its chords from s (n,) to t (n,).

    >>> elbows(np.array([8.0, 4.0, 2.0, 1.0, 0.5, 0.25]), np.array([0, 0]), np.array([2, 5])).tolist()
    [1, 2]
    """
    found = np.empty(len(t), dtype=np.intp)
    rows = max(1, BLOCK // len(m))
    for first in range(0, len(t), rows):
        a, b = s[first : first + rows, None], t[first : first + rows, None]
        i = np.arange(b.max() + 1)
        below = (m[a] - m[i]) / (m[a] - m[b]) - (i - a) / (b - a)  # (rows, i), of the chord
        found[first : first + rows] = np.where((i >= a) & (i <= b), below, -np.inf).argmax(axis=1)
    return found


# -- rules by name -----------------------------------------------------------------------------------------------------

BY_NAME: Mapping[str, type[Rule]] = {
    kind.name: kind for kind in (Elbow, Progress, Quotient, Share, Converged, Loss, Rises)
}
EIGHTY_PERCENT = Elbow.name  # the default of level one
COMPLETE = Converged.name  # the default of complete training

Named: TypeAlias = str | Rule


def rule_of(rule: Named) -> Rule:
    """A rule as it is, or the one of that name with its default options.

    >>> rule_of("share")
    Share(share=0.2)
    """
    if isinstance(rule, Rule):
        return rule
    if not isinstance(rule, str) or rule not in BY_NAME:
        raise InvalidArgument(f"rule: expected one of {', '.join(BY_NAME)} or an object such as Elbow(), got {rule!r}")
    return BY_NAME[rule]()


def first_end(
    rule: Named, values: ArrayLike, train_values: ArrayLike | None = None, max_steps: int | None = None
) -> int | None:
    """The first step, from 1, at which the period had ended; None while it has not.

    >>> curve = 2.0 ** -np.arange(40)
    >>> first_end("elbow", curve), first_end("elbow", curve, max_steps=18), first_end("elbow", curve[:5])
    (13, 6, None)
    """
    return rule_of(rule).first_end(values, train_values, max_steps)


def ended(rule: Named, values: ArrayLike, train_values: ArrayLike | None = None, max_steps: int | None = None) -> bool:
    """Whether the period had ended at the last value seen, or before.

    >>> ended("share", [3.0, 2.0], max_steps=10), ended("share", [3.0], max_steps=10)
    (True, False)
    """
    return rule_of(rule).ended(values, train_values, max_steps)


def step_at(share: float | None, max_steps: int | None) -> int | None:
    """The step at a share of max_steps, rounded up; None where either is not known.

    >>> step_at(0.2, 100), step_at(1 / 3, 10), step_at(None, 10)
    (20, 4, None)
    """
    return None if share is None or max_steps is None else max(1, ceil(share * max_steps - 1e-9))


def _reported(train_values: Array) -> Bools:
    """Whether all steps up to each one reported a training value (k,)."""
    return np.logical_and.accumulate(np.isfinite(train_values))


def _checked(values: ArrayLike, train_values: ArrayLike | None, max_steps: int | None) -> tuple[Array, Array]:
    E = np.asarray(values, dtype=np.float64)
    if E.ndim != 1 or not np.isfinite(E).all():
        raise InvalidArgument(f"values: expected a list of finite numbers, got {values!r}")
    E_tr = np.full(len(E), np.nan) if train_values is None else np.asarray(train_values, dtype=np.float64)
    if E_tr.shape != E.shape:
        raise InvalidArgument(f"train_values: expected {len(E)} numbers, as many as values, got shape {E_tr.shape}")
    if max_steps is not None and max_steps < 1:
        raise InvalidArgument(f"max_steps: must be at least 1 or None, got {max_steps!r}")
    return E, E_tr
