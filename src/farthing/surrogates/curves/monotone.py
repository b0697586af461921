"""A Gaussian process over training curves that only fall (Agrell 2019; BAPI, section 3.3 and appendix A).

`unconstrained` is the process over configurations and time, and `paths` draws slopes that are at most 0. This module
chooses which slopes of the observed runs must be held there, because the data alone leave them in doubt, fits and
predicts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from farthing.numerics.arrays import Array, Ints
from farthing.numerics.late_scipy import ndtr
from farthing.surrogates.curves import time_kernels, unconstrained
from farthing.surrogates.curves.paths import Paths, draw
from farthing.surrogates.curves.time_kernels import TimeKernel
from farthing.surrogates.curves.unconstrained import CurveGP, Hyperparameters, Probes

CARRIED = 24  # most slopes of observed runs that are held: with the curves asked for, MOST_VIRTUAL of `paths`
DOUBT = 0.01  # a slope less likely than this to have the wrong sign needs no constraint
CONSIDERED = 4  # times as many doubtful slopes are compared with each other as are carried
ALIKE = 0.98  # correlation given the observations from which one of two slopes is left out


def doubtful(gp: CurveGP, most: int = CARRIED) -> Probes:
    """The slopes of runs that may have the wrong sign without the constraint, the most doubtful first.

    Agrell adds them one by one where the constraint most likely fails. Here all are judged at once. A slope that a more
    doubtful one nearly determines is left out: it would add little and make the draws harder.
    """
    slopes = Probes.slopes(gp.runs[0], time_kernels.virtual_times(gp.hyperparameters.kernel, gp.phi))
    mean, variance = gp.moments(slopes)
    wrong = ndtr(mean / np.sqrt(variance))
    worst = np.argsort(-wrong, kind="stable")[: CONSIDERED * most]
    considered = slopes[worst[wrong[worst] > DOUBT]]
    V = gp.whitened(considered)[1]
    K = gp.prior(considered, considered) - V.T @ V
    K /= np.sqrt(np.outer(np.diag(K), np.diag(K)))
    chosen: list[int] = []
    for i in range(len(considered)):
        if len(chosen) < most and np.all(K[i, chosen] < ALIKE):
            chosen.append(i)
    return considered[np.array(chosen, dtype=np.intp)]


SAMPLES = 256  # joint draws of the slopes: predictions average over them


@dataclass(frozen=True, eq=False)
class Curves:
    """Fitted curves that fall. `plain` is the same process without that constraint."""

    plain: CurveGP
    paths: Paths

    @property
    def hyperparameters(self) -> Hyperparameters:
        return self.plain.hyperparameters

    def predict(self, X: Array, t: Array) -> tuple[Array, Array]:
        """Mean (p,) and variance (p,) of the values at X (p, f) after t (p,) steps."""
        return self.paths.at(X, t).moments()

    def sample(self, X: Array, t: Array, count: int, rng: np.random.Generator) -> Array:
        """Joint draws (count, p) of the values at X (p, f) after t (p,) steps."""
        return self.paths.sample(X, t, count, rng)

    def condition(self, X: Array, t: Array, y: Array) -> Curves:
        """The same with more observations: hyperparameters stay, virtual places and draws are made again."""
        return constrained(self.plain.condition(X, t, y), self.paths.seed, len(self.paths.E), self.paths.falling)


def fit(
    X: Array, t: Array, y: Array, groups: Sequence[int] | Ints | None = None, *, t_max: float,
    kernel: TimeKernel = "decay", warm: Hyperparameters | None = None, rng: np.random.Generator, samples: int = SAMPLES,
    falling: bool = True,
) -> Curves:  # fmt: skip
    """Curves through values y (n,) at X (n, f) after t (n,) steps of t_max; y is standardised inside.

    With `falling=False` there is no constraint: the process alone, in the same form.

    >>> X, t = np.repeat([[0.0], [1.0]], 3, axis=0), np.array([1.0, 4.0, 9.0, 1.0, 3.0, 5.0])
    >>> curves = fit(X, t, 0.2 + 0.1 * X[:, 0] + 1.0 / (1.0 + t), t_max=30, rng=np.random.default_rng(0))
    >>> mean, _ = curves.predict(np.ones((3, 1)), np.array([5.0, 10.0, 30.0]))
    >>> bool(mean[0] > mean[1] > mean[2])
    True
    """
    plain = unconstrained.fit(X, np.asarray(t, dtype=np.float64), y, groups, t_max, kernel, warm)
    return constrained(plain, int(rng.integers(2**62)), samples, falling)


def constrained(plain: CurveGP, seed: int, samples: int = SAMPLES, falling: bool = True) -> Curves:
    """A fitted process, made to fall at the runs where it might not."""
    return Curves(plain, draw(plain, doubtful(plain)[: None if falling else 0], seed, samples, falling))
