"""A time by which a computation has to be ready. Long loops ask whether it has passed, and are given up if it has.
A computation in the background also asks whether it is in the way, and waits.

A computation is never cut short with what it has: it ends with its own result or with none. So results do not depend on
the speed of a machine, and whoever set the deadline can take a cheaper way, which is as repeatable.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Event

_end: ContextVar[float] = ContextVar("_end", default=math.inf)  # as time.perf_counter() counts
_given_up: ContextVar[Event | None] = ContextVar("_given_up", default=None)
_clear: ContextVar[Event | None] = ContextVar("_clear", default=None)

LONGEST_PAUSE = 0.05  # seconds: whoever is in a hurry for longer is not in a hurry


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


@contextmanager
def in_background(given_up: Event, clear: Event) -> Iterator[None]:
    """What is computed inside raises OutOfTime at the first `keep_to_deadline` after the event `given_up` was set, by
    another thread; and pauses there while `clear` is not set, so that the other thread has the interpreter's lock to
    itself."""
    tokens = _given_up.set(given_up), _clear.set(clear)
    try:
        yield
    finally:
        _given_up.reset(tokens[0])
        _clear.reset(tokens[1])


def keep_to_deadline() -> None:
    """Go on, unless the time is over. Called before every piece of work that grows with the data."""
    clear = _clear.get()
    if clear is not None and not clear.is_set():
        clear.wait(LONGEST_PAUSE)
    given_up = _given_up.get()
    if given_up is not None and given_up.is_set():
        raise OutOfTime
    end = _end.get()
    if end < math.inf and time.perf_counter() >= end:
        raise OutOfTime
