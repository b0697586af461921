"""Values as users write them: when two are the same, and what counts as a number."""

from __future__ import annotations

import math
from numbers import Real as AnyReal

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


def is_number(value: object) -> bool:
    """Whether a value counts as a number here: NumPy scalars do, booleans do not.

    >>> is_number(np.float32(1)), is_number(True), is_number("1")
    (True, False, False)
    """
    return isinstance(value, AnyReal) and not isinstance(value, bool)


def finite(value: object) -> float | None:
    """The value as a finite float, or None when it is not one.

    >>> finite(np.int64(3)), finite(float("inf")), finite("3")
    (3.0, None, None)
    """
    if not is_number(value):
        return None
    try:
        number = float(value)  # type: ignore[arg-type]  # is_number has seen to it
    except OverflowError:
        return None
    return number + 0.0 if math.isfinite(number) else None  # -0.0 becomes 0.0


def whole(value: object) -> int | None:
    """The value as an int, or None when it is not a whole number.

    >>> whole(3.0), whole(3.5), whole(True)
    (3, None, None)
    """
    number = finite(value)
    if number is None or number != math.floor(number):
        return None
    return int(value)  # type: ignore[call-overload, no-any-return]  # exact, where the float may not be
