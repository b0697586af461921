"""Log costs of which some are only bounds, each bound raised to what the other evaluations make of it.

Symbols and shapes
    Z        (n, f)  features in the unit cube, sizes as logs;  groups (f,) the parameter each column belongs to
    b        (n,)    log costs;  bound (n,) true where an evaluation was cut short, so that its log cost is at least b
    t        (n,)    log costs as the models will see them: b where it is complete, at least b where it is a bound
    m, s             the line through t and the standard deviation around it

A bound is replaced by what is expected above it, and the line follows (Buckley and James 1979, "Linear regression with
censored data", with normal errors, for which this is the EM algorithm of Tobin's model):

    t_i = E[b_i | b_i >= bound_i],   b_i ~ N(m(z_i), s^2),      s^2 = s_line^2 + sum_i Var[b_i | b_i >= bound_i] / nu

The line is the low-variance one of `lines`, with its selection of parameters and its nu degrees of freedom. To
put expected values in the place of bounds makes residuals too small: the second term of s^2 gives back what is missing.
Where nothing is complete there is no scale to learn, and any level above the bounds is as likely: what lasted so long
is then expected to last as long again; with a prior, what that expects above the bound.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from farthing.numerics.arrays import Array, Ints, Mask
from farthing.numerics.truncated import interval_moments
from farthing.surrogates.cost import lines
from farthing.surrogates.cost.residuals import NOISE_PRIOR

AS_LONG_AGAIN = float(np.log(2.0))
ITERATIONS, TOLERANCE = 20, 0.01  # of log cost: far below what a line knows


def raised(
    Z: Array, b: Array, bound: Mask, groups: Sequence[int] | Ints | None = None, level_strength: float = 0.0
) -> Array:
    """t (n,); b itself where nothing is a bound. A level of 0 counts as `level_strength` observations.

    >>> Z = np.linspace(0.0, 1.0, 11)[:, None]
    >>> b = np.minimum(4.0 * Z[:, 0], 3.0)  # cut short at 3
    >>> raised(Z, b, b >= 3.0).round(1).tolist()
    [0.0, 0.4, 0.8, 1.2, 1.6, 2.0, 2.4, 2.8, 3.3, 3.6, 3.9]
    """
    if not bound.any():
        return b
    if bound.all():
        return _unlearned(b, level_strength)
    t, hidden = b, 0.0
    for _ in range(ITERATIONS):
        line = _line(Z, t, groups, level_strength)
        spread = line.scale**2 + hidden / line.freedom
        above = interval_moments(line.mean_at(Z[bound]), np.full(int(bound.sum()), spread), b[bound], np.inf)
        before, t, hidden = t, _with(b, bound, above.mean), float(above.variance.sum())
        if np.abs(t - before).max() <= TOLERANCE:
            break
    return t


def _unlearned(b: Array, level_strength: float) -> Array:
    if level_strength == 0.0:
        return np.asarray(b + AS_LONG_AGAIN)
    spread = np.full(len(b), NOISE_PRIOR**2 * (1.0 + 1.0 / level_strength))
    return interval_moments(np.zeros(len(b)), spread, b, np.inf).mean


def _line(Z: Array, t: Array, groups: Sequence[int] | Ints | None, level_strength: float) -> lines.LinearCost:
    """The line whose number of parameters predicts each log cost best from the others."""
    if level_strength == 0.0:
        return lines.fit(Z, t, groups)
    models = lines.fit_sizes(Z, t, groups, (0, *lines.SIZES), level_strength)
    return max(models.values(), key=lambda model: float(model.log_densities().sum()) if len(t) > 1 else 0.0)


def _with(b: Array, bound: Mask, above: Array) -> Array:
    t = b.copy()
    t[bound] = above
    return t
