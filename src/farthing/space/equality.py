"""When two values that users write are the same."""

from __future__ import annotations

import numpy as np


def same(a: object, b: object) -> bool:
    """Whether two objects have one type and are equal, arrays and containers of arrays included.

    >>> same(1, 1), same(1, True), same([np.ones(2)], [np.ones(2)])
    (True, False, True)
    """
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return a.dtype == b.dtype and bool(np.array_equal(a, b))
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    return _equal(a, b)


def _equal(a: object, b: object) -> bool:
    try:
        return bool(a == b) or (a != a and b != b and isinstance(a, float))
    except Exception:  # an object whose == is not a yes or no is only the same as itself
        return False
