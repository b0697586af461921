"""Log costs of which some are only lower or upper bounds, each replaced by what the other evaluations suggest.

Symbols and shapes
    Z        (n, f)  features in the unit cube, sizes as logs;  groups (f,) the parameter each column belongs to
    b        (n,)    log costs;  bound (n,) true where an evaluation was cut short, so that its log cost is at least b
    t        (n,)    log costs as the models will see them: b where it is complete, at least b where it is a bound
    m, s             the line through t and the standard deviation around it

A bound is replaced by the expected cost above it, and the line is fitted again (Buckley and James 1979, "Linear
regression with censored data", with normal errors, for which this is the EM algorithm of Tobin's model):

    t_i = E[b_i | b_i >= bound_i],   b_i ~ N(m(z_i), s^2),      s^2 = s_line^2 + sum_i Var[b_i | b_i >= bound_i] / nu

The line is the low-variance one of `lines`, with its selection of parameters and its nu degrees of freedom. Replacing
bounds by expected values makes residuals too small; the second term of s^2 corrects for it. If no evaluation is
complete there is no scale to learn, and any intercept above the bounds is as likely as another: the cost is then taken
to be twice the bound. With a prior, it is what the prior expects above the bound.

The first evaluation of a run may be an upper bound: it pays for what is done once, such as imports, reading data and
compiling. No line goes through it, since a line with a parameter that only it has would believe it: it is replaced by
what the line through the others expects below it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from farthing.numerics.arrays import Array, Ints, Mask
from farthing.numerics.truncated import interval_moments
from farthing.surrogates.cost import lines
from farthing.surrogates.cost.lines import NOISE_PRIOR

AS_LONG_AGAIN = float(np.log(2.0))  # an evaluation cut short with nothing to compare it with takes twice as long
ITERATIONS, TOLERANCE = 20, 0.01  # of log cost: far below the accuracy of a line


def imputed(
    Z: Array, b: Array, bound: Mask, groups: Sequence[int] | Ints | None = None, intercept_strength: float = 0.0
) -> Array:
    """t (n,); b itself if nothing is a bound. An intercept of 0 counts as `intercept_strength` observations.

    >>> Z = np.linspace(0.0, 1.0, 11)[:, None]
    >>> b = np.minimum(4.0 * Z[:, 0], 3.0)  # cut short at 3
    >>> imputed(Z, b, b >= 3.0).round(1).tolist()
    [0.0, 0.4, 0.8, 1.2, 1.6, 2.0, 2.4, 2.8, 3.3, 3.6, 3.9]
    """
    if not bound.any():
        return b
    if bound.all():
        return _unlearned(b, intercept_strength)
    t, hidden = b, 0.0
    for _ in range(ITERATIONS):
        line = _line(Z, t, groups, intercept_strength)
        spread = line.scale**2 + hidden / line.freedom
        above = interval_moments(line.mean_at(Z[bound]), np.full(int(bound.sum()), spread), b[bound], np.inf)
        before, t, hidden = t, _with(b, bound, above.mean), float(above.variance.sum())
        if np.abs(t - before).max() <= TOLERANCE:
            break
    return t


def warmed(
    Z: Array, b: Array, cold: Mask, groups: Sequence[int] | Ints | None = None, intercept_strength: float = 0.0
) -> Array:
    """t (n,) where the log costs of cold evaluations are upper bounds; b itself if none is, and if most are: then the
    others say less than they do.

    >>> Z = np.linspace(0.0, 1.0, 5)[:, None]
    >>> b = np.array([4.0, 1.0, 2.0, 3.0, 4.0])  # the first would have cost about 0
    >>> warmed(Z, b, np.arange(5) == 0).round(1).tolist()
    [0.4, 1.0, 2.0, 3.0, 4.0]
    """
    if not cold.any() or 2 * cold.sum() > len(cold):
        return b
    line = _line(Z[~cold], b[~cold], groups, intercept_strength)
    spread = np.full(int(cold.sum()), line.scale**2)
    return _with(b, cold, interval_moments(line.mean_at(Z[cold]), spread, -np.inf, b[cold]).mean)


def _unlearned(b: Array, intercept_strength: float) -> Array:
    if intercept_strength == 0.0:
        return np.asarray(b + AS_LONG_AGAIN)
    spread = np.full(len(b), NOISE_PRIOR**2 * (1.0 + 1.0 / intercept_strength))
    return interval_moments(np.zeros(len(b)), spread, b, np.inf).mean


def _line(Z: Array, t: Array, groups: Sequence[int] | Ints | None, intercept_strength: float) -> lines.LinearCost:
    """The line whose number of parameters predicts each log cost best from the others."""
    if intercept_strength == 0.0:
        return lines.fit(Z, t, groups)
    models = lines.fit_sizes(Z, t, groups, (0, *lines.SIZES), intercept_strength)
    return max(models.values(), key=lambda model: float(model.log_densities().sum()) if len(t) > 1 else 0.0)


def _with(b: Array, bound: Mask, above: Array) -> Array:
    t = b.copy()
    t[bound] = above
    return t
