"""Some of many observations: what a model knows where there are more than it can take in.

What a Gaussian process takes grows with the cube of the observations. Up to EXACT of them it knows all. Beyond, it
knows the best, where the search goes on, and others that are evenly spread in time; its hyperparameters are found from
fewer still. Neighbours of the best, the most recent and points far from each other were tried in their place and did
no better (docs/scale.md).
"""

from __future__ import annotations

import numpy as np

from farthing.numerics.arrays import Array, Ints

EXACT = 1_000  # observations up to which all are known, and hyperparameters are found from all
MOST_KNOWN = 1_500  # that a process knows: predictions take most of an ask, which takes half a second
MOST_PENDING = 1_000  # running evaluations that a process is conditioned on: those that were begun last
MOST_FITTED = 500  # that hyperparameters are found from where there are more than EXACT


def few_rows(n: int, values: Array | None, most: int) -> Ints:
    """At most `most` of n rows, ascending. Where there are values (n,), half of them are those of least value; the
    others are evenly spread, and tell where was looked before.

    >>> few_rows(6, np.array([5.0, 4.0, 3.0, 2.0, 1.0, 0.0]), most=4).tolist()
    [0, 3, 4, 5]
    """
    if n <= most:
        return np.arange(n)
    best = np.argsort(values, kind="stable")[: most // 2] if values is not None else np.empty(0, dtype=np.intp)
    others = np.setdiff1d(np.arange(n), best)
    spread = others[np.linspace(0, len(others) - 1, most - len(best)).round().astype(np.intp)]
    return np.sort(np.concatenate([best, spread]))


def fitted_rows(n: int, values: Array | None = None) -> Ints:
    """The rows that hyperparameters are found from: all, up to EXACT."""
    return few_rows(n, values, EXACT if n <= EXACT else MOST_FITTED)
