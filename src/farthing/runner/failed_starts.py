"""Worker processes that could not be started: when to try again, and when to give up.

A machine may be short of processes or memory for a moment. So starts are tried again, after pauses that grow. What
would fail every time is not.
"""

from __future__ import annotations

import errno
import time

from farthing.runner.worker_process import CannotIsolate
from farthing.text.plain import warn

MOMENTARY = {
    errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.EINTR,
    errno.ECONNRESET,  # the supervisor died
}  # fmt: skip
FIRST_PAUSE, LONGEST_PAUSE = 0.05, 2.0  # seconds; each is twice the one before
PATIENCE = 30.0  # seconds of failures in a row: by then other jobs have given back what was missing, or never will
SAID_AFTER = 3  # failures in a row: fewer are nobody's concern
MOST_LOADING = 3  # processes in a row that die while they load the objective: then the objective is the reason


class FailedStarts:
    """Those in a row."""

    def __init__(self) -> None:
        self._count, self._loading = 0, 0
        self._hopeless: str | None = None  # why nobody need try again
        self._first = self._next = 0.0  # the time of the first, and of the next try

    @property
    def pause_left(self) -> float:
        """Seconds until the next try; none if nothing failed."""
        return max(self._next - time.monotonic(), 0.0) if self._count else 0.0

    def raise_if_hopeless(self) -> None:
        """CannotIsolate, if there is no point in trying again."""
        if self._hopeless is not None:
            raise CannotIsolate(self._hopeless)

    def note_error(self, error: OSError) -> None:
        """No process could be started."""
        self._note(f"no process can be started ({error})", error.errno not in MOMENTARY)

    def note_death(self, reason: str, was_loading: bool) -> None:
        """A process ended before it was ready."""
        self._loading += was_loading
        self._note(f"a worker process did not start: it {reason}", self._loading >= MOST_LOADING)

    def note_refusal(self, reason: str) -> None:
        """A process cannot load the objective; every other would refuse it too, unless memory was short."""
        self._loading += 1
        is_short = reason.startswith(("MemoryError", "BlockingIOError")) and self._loading < MOST_LOADING
        self._note(f"a worker process cannot load it ({reason})", not is_short)

    def _note(self, why: str, is_hopeless: bool) -> None:
        now = time.monotonic()
        self._first = self._first or now
        if is_hopeless or now - self._first >= PATIENCE:
            self._hopeless = why if is_hopeless else f"{why}, for {PATIENCE:.0f} seconds"
            return
        self._next = now + min(FIRST_PAUSE * 2**self._count, LONGEST_PAUSE)
        self._count += 1
        if self._count == SAID_AFTER:
            warn(f"{why}; trying again for up to {PATIENCE:.0f} seconds")
