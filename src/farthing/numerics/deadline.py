"""A time by which a computation has to be ready. Long loops ask whether it has passed, and are given up if it has.

A computation is never cut short with what it has: it ends with its own result or with none. So results do not depend on
the speed of a machine, and whoever set the deadline can take a cheaper way, which is as repeatable.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_end: ContextVar[float] = ContextVar("_end", default=math.inf)  # as time.perf_counter() counts


class OutOfTime(Exception):
    """A computation was given up at its deadline."""


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """What is computed inside raises OutOfTime at the first `keep_to_deadline` after these seconds.

    >>> with within(0.0):
    ...     keep_to_deadline()
    Traceback (most recent call last):
    farthing.numerics.deadline.OutOfTime
    """
    token = _end.set(time.perf_counter() + seconds)
    try:
        yield
    finally:
        _end.reset(token)


def keep_to_deadline() -> None:
    """Go on, unless the time is over. Called before every piece of work that grows with the data."""
    end = _end.get()
    if end < math.inf and time.perf_counter() >= end:
        raise OutOfTime
