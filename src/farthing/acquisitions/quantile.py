"""Expected improvement of a quantile by one more run, in logarithms (EQI; Picheny et al. 2013).

Symbols at a point x, of the level of training that counts:
    m, s2      mean and variance now;   v the variance that will be left after one more run at x
    q          Phi^-1(a), of the quantile a
    q_min      the least m + q s at points that were evaluated
After the run its quantile is m' + q sqrt(v), where m' is normal around m with variance s2 - v. So it is normal too:
    m_Q = m + q sqrt(v),   s_Q^2 = s2 - v,   and   EQI = E[max(q_min - Q, 0)] = s_Q h(z),   z = (q_min - m_Q) / s_Q
where h(z) = z Phi(z) + phi(z). A run that leaves nothing to learn (v = 0) gives expected improvement.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from farthing.numerics.arrays import Array
from farthing.numerics.normal import log_h
from farthing.surrogates.two_fidelity.outlook import Outlook

LEAST_GAIN = 1e-24  # of variance, where values have variance 1: keeps z finite where nothing can be learned


class OneMoreRun(Protocol):
    """A model that knows what one more run at x would teach."""

    def predict(self, X: Array) -> Outlook: ...
    def predict_with_gradient(self, X: Array) -> tuple[Outlook, Outlook]: ...


@dataclass(frozen=True)
class LogEQI:
    """log of the expected quantile improvement."""

    run: OneMoreRun
    least: float  # q_min
    q: float

    def __call__(self, X: Array) -> Array:
        """Values (m,)."""
        s_Q, z = self._standardised(self.run.predict(X))
        return np.asarray(np.log(s_Q) + log_h(z)[0])

    def with_gradient(self, X: Array) -> tuple[Array, Array]:
        """Values (m,) and gradients (m, f): d log EQI = (1 - z r) d log s_Q - r dm_Q / s_Q, with r = h' / h."""
        at, slope = self.run.predict_with_gradient(X)
        s_Q, z = self._standardised(at)
        log_gain, ratio = log_h(z)
        root = np.sqrt(at.left)
        by_left = np.where(root > 0.0, 0.5 * self.q / np.maximum(root, LEAST_GAIN), 0.0)
        mean_slope = slope.mean + by_left[:, None] * slope.left
        log_slope = 0.5 * (slope.variance - slope.left) / s_Q[:, None] ** 2
        along = (1.0 - z * ratio)[:, None] * log_slope - (ratio / s_Q)[:, None] * mean_slope
        return np.log(s_Q) + log_gain, along

    def _standardised(self, at: Outlook) -> tuple[Array, Array]:
        """s_Q (m,) and z (m,)."""
        s_Q = np.sqrt(np.maximum(at.variance - at.left, LEAST_GAIN))
        return s_Q, (self.least - at.mean - self.q * np.sqrt(at.left)) / s_Q
