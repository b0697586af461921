"""What one more evaluation does to expected improvement: a part by the value to beat, a part by the model.

Symbols: t counts evaluations; y_t the least value seen, mu_t and s_t the posterior mean and standard deviation at x;
EI_t(x) = E_t[max(0, y_t - f(x))] (CEI, appendix B). As printed, with the max left out on the right:

    EI_t+1(x) - EI_t(x)  ~  y_t+1 - y_t                          constant and global
                          + (E_t+1 - E_t)[y_t - f(x)]            local: mu_t(x) - mu_t+1(x)

That is close where f(x) is almost sure to be below y_t, and wrong elsewhere: EI falls by less than the value to beat
does where improvement is unlikely. The same two causes also split the change without an error:

    by the value to beat:   E_t+1[max(0, y_t+1 - f(x))] - E_t+1[max(0, y_t - f(x))]
    by the model:           E_t+1[max(0, y_t - f(x))]   - E_t[max(0, y_t - f(x))]
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from farthing.numerics.arrays import Array
from farthing.numerics.normal import log_h


@dataclass(frozen=True)
class Beliefs:
    """What is believed of some points: mean and standard deviation (m,), and the least value seen so far."""

    mean: Array
    sd: Array
    least: float

    def improvement(self, target: float) -> Array:
        """Expected improvement (m,) below a target."""
        return np.asarray(np.exp(np.log(self.sd) + log_h((target - self.mean) / self.sd)[0]))


@dataclass(frozen=True)
class EIChange:
    """How EI at m points has changed, in the units of the objective: the larger, the more improvement is expected.

    `total` is `by_target` and `by_model` together. `printed_global` and `printed_local` are those of the paper, whose
    sum is near `total` only where improvement is almost sure.
    """

    total: Array  # (m,)
    by_target: Array  # (m,), at most 0: the value to beat has fallen, or stayed
    by_model: Array  # (m,)
    printed_global: float  # at most 0, the same everywhere
    printed_local: Array  # (m,)


def ei_change(before: Beliefs, now: Beliefs) -> EIChange:
    """From the beliefs after t evaluations to those after more.

    >>> one, other = Beliefs(np.zeros(1), np.ones(1), 5.0), Beliefs(np.array([0.5]), np.ones(1), 4.0)
    >>> change = ei_change(one, other)
    >>> change.printed_global, change.printed_local, change.total.round(3)  # -1 and -0.5: improvement is almost sure
    (-1.0, array([-0.5]), array([-1.5]))
    """
    old_target = now.improvement(before.least)
    by_target, by_model = now.improvement(now.least) - old_target, old_target - before.improvement(before.least)
    return EIChange(by_target + by_model, by_target, by_model, now.least - before.least, before.mean - now.mean)
