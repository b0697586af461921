"""Which kernel over time suits some training curves, and whether it helps to know that they fall.

Curves are cut, the process is fitted to what is left, and predicts their ends. A kernel is judged by the density that
it gave to the true ends, without the constraint. The evidence of the same fits is no guide: "rbf" has more of it on
curves that fall fast and then slowly, whose ends it predicts far worse.

Symbols and shapes
    R (m, f)     configurations, in the unit cube;  y_i (l_i,) the best values so far of the i-th, one per step
    c_i          steps that are left of it: a third of l_i, so that an end is as far away as in a search
    score (m,)   log density of y_i at l_i given all curves up to c_i, noise included
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from farthing.numerics.arrays import Array, Ints
from farthing.surrogates.curves import monotone, unconstrained
from farthing.surrogates.curves.paths import Mixture
from farthing.surrogates.curves.time_kernels import TimeKernel
from farthing.surrogates.curves.unconstrained import CurveGP

Auto: TypeAlias = Literal["auto"]
KernelOption: TypeAlias = Literal[TimeKernel, "auto"]

KERNELS: tuple[TimeKernel, TimeKernel] = ("decay", "rbf")  # the first unless the second is better
CUT = 3  # a curve is cut at its length divided by this. At a half both kernels predict about as well
FEWEST = 4  # curves that can be cut, below which they say nothing
MOST = 40  # curves, the longest, that are cut: an ask waits for two cold fits to them
POINTS = 3  # of a curve that are used, as in a search
LEAST = -10.0  # of a score, so that no curve decides alone
GROWTH = 1.5  # with so many times the steps it is chosen again
SEED = 0  # of the draws that tell whether the constraint helps: the choice must not depend on chance


@dataclass(frozen=True)
class Choice:
    """A kernel over time, whether its curves are made to fall, and the steps that all curves had when it was made."""

    kernel: TimeKernel = KERNELS[0]
    falling: bool = True
    at: int = 0

    def as_json(self) -> dict[str, Any]:
        return {"kernel": self.kernel, "falling": self.falling, "at": self.at}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Choice:
        return cls(stored["kernel"], stored["falling"], stored["at"])

    def is_old(self, steps: int) -> bool:
        """Whether it is to be made again when curves have so many steps."""
        return steps >= GROWTH * self.at


@dataclass(frozen=True, eq=False)
class CutCurves:
    """Curves of which the ends are held back."""

    R: Array
    curves: Sequence[Array]
    groups: Ints
    t_max: float
    lengths: Ints  # (m,)

    @classmethod
    def of(cls, R: Array, curves: Sequence[Array], groups: Sequence[int] | Ints, t_max: float) -> CutCurves | None:
        """From the longest of some curves; None if too few can be cut."""
        lengths = np.array([len(curve) for curve in curves], dtype=np.intp)
        rows = np.sort(np.argsort(-lengths, kind="stable")[:MOST])
        if np.count_nonzero(lengths[rows] >= CUT) < FEWEST:
            return None
        return cls(R[rows], [curves[i] for i in rows], np.asarray(groups, dtype=np.intp), t_max, lengths[rows])

    def fitted(self, kernel: TimeKernel) -> CurveGP:
        """The process without the constraint, fitted to what is left of the curves."""
        steps = [_halves(max(length // CUT, 1)) for length in self.lengths]
        y = np.concatenate([curve[t - 1] for curve, t in zip(self.curves, steps, strict=True)])
        X = np.repeat(self.R, [len(t) for t in steps], axis=0)
        return unconstrained.fit(X, np.concatenate(steps).astype(np.float64), y, self.groups, self.t_max, kernel)

    def scores(self, plain: CurveGP, falling: bool) -> Array:
        """Of the curves that can be cut, by a process with the constraint or without."""
        rows = np.flatnonzero(self.lengths >= CUT)
        ends = np.array([curve[-1] for curve in self.curves])[rows]
        paths = monotone.constrained(plain, SEED, falling=falling).paths
        found = log_density(paths.at(self.R[rows], self.lengths[rows].astype(np.float64)), ends, plain.noise)
        return np.maximum(found, LEAST)


def choose(
    R: Array, curves: Sequence[Array], groups: Sequence[int] | Ints, t_max: float, kernel: KernelOption,
    falling: bool | Auto,
) -> Choice:  # fmt: skip
    """What is "auto" is chosen, the rest is as given. The kernel is "decay", and curves are made to fall, unless the
    alternative predicts better.

    >>> R, t = np.linspace(0.0, 1.0, 12)[:, None], np.arange(1, 31)
    >>> fall_early = [t ** (-0.4 - 0.4 * r) for r in R[:, 0]]
    >>> fall_late = [1.0 / (1.0 + np.exp(0.7 * (t - 6.0 - 9.0 * r))) for r in R[:, 0]]
    >>> [choose(R, curves, [0], 30.0, "auto", True).kernel for curves in (fall_early, fall_late)]
    ['decay', 'rbf']
    """
    at = sum(map(len, curves))
    cut = CutCurves.of(R, curves, groups, t_max)
    if cut is None:
        return Choice(KERNELS[0] if kernel == "auto" else kernel, falling is True or falling == "auto", at)
    plain = cut.fitted(KERNELS[0] if kernel == "auto" else kernel)
    if kernel == "auto":
        other = cut.fitted(KERNELS[1])
        plain = other if _is_better(cut.scores(other, False), cut.scores(plain, False)) else plain
    if falling == "auto":
        falling = not _is_better(cut.scores(plain, False), cut.scores(plain, True))
    return Choice(plain.hyperparameters.kernel, falling, at)


def _is_better(scores: Array, others: Array) -> bool:
    """Whether scores of the same curves are higher on average, by more than the standard error of that."""
    gain = scores - others
    return bool(gain.mean() > gain.std(ddof=1) / np.sqrt(len(gain)))


def log_density(mixture: Mixture, y: Array, noise: float) -> Array:
    """log p(y) (p,) of a mixture with noise of some variance."""
    variance = mixture.variance + noise
    each = -0.5 * (np.square(y - mixture.means) / variance + np.log(2.0 * np.pi * variance))
    largest = each.max(axis=0)
    return np.asarray(largest + np.log(np.einsum("ij,ij->j", mixture.weights, np.exp(each - largest))))


def _halves(length: int) -> Ints:
    """Steps of a curve: the last one, that half-way to it, and half-way to that."""
    return np.unique([max(length >> i, 1) for i in range(POINTS)])
