"""Text for a stream that may be slow, full, broken or gone, and must not hold up a run.

A thread of its own writes it. Whoever has something to say waits until that is written, so that everything appears in
order, but only for a moment: a stream that nobody reads is not waited for again, and what it cannot take is dropped.
"""

from __future__ import annotations

import io
import os
import select
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple, Self

from farthing.runner.background import start_thread
from farthing.text.plain import counted

ONE_WAIT = 0.05  # seconds for one text to be written: a pipe or terminal that is read takes microseconds
ALL_WAITS = 0.2  # seconds of a whole run that are waited in vain: budgets are kept to half a second
LAST_WAIT = 0.3  # seconds at the end, for what was not written yet ...
STILL_WAIT = 0.1  # ... but no longer than this while nothing is written
LARGEST_BACKLOG = 2**20  # characters: ten thousand lines, for a terminal that is stopped for a while


class _Waiting(NamedTuple):
    """A text that is to be written, and how many lines before it were dropped."""

    text: str
    dropped: int


class Outlet:
    """Looks like a text stream; `write` returns at once, or soon, and never raises.

    says_dropped  whether a line says how many were dropped
    """

    def __init__(self, stream: Any, says_dropped: bool = True) -> None:
        self.encoding: str = getattr(stream, "encoding", None) or "utf-8"
        self._is_terminal = is_terminal(stream)
        self._write_now = _writer(stream)
        self._says_dropped = says_dropped
        self._process = os.getpid()
        self._changed = threading.Condition()
        self._waiting: deque[_Waiting] = deque()
        self._backlog = self._dropped = self._given = self._done = 0
        self._patience = ALL_WAITS
        self._open, self._started = True, False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def isatty(self) -> bool:
        return self._is_terminal

    def flush(self) -> None:
        """Every text is flushed when it is written."""

    def write(self, text: str) -> int:
        """Have a text written, and wait for that a moment."""
        if os.getpid() != self._process:  # in a fork, which does not have the thread
            with suppress(Exception):
                self._write_now(text)
            return len(text)
        with self._changed:
            if self._backlog + len(text) > LARGEST_BACKLOG:
                self._dropped += text.count("\n")
                return len(text)
            self._put(text)
            wait = min(ONE_WAIT, self._patience)
            number = self._given
            if wait > 0.0 and not self._changed.wait_for(lambda: self._done >= number, wait):
                self._patience -= wait
        return len(text)

    def close(self) -> None:
        """Wait a moment for what was not written yet; the thread goes on with it while the program lives."""
        deadline = time.monotonic() + LAST_WAIT
        with self._changed:
            if self._dropped:
                self._put("")
            self._open = False
            self._changed.notify_all()
            while self._done < self._given and (left := deadline - time.monotonic()) > 0.0:
                if not self._changed.wait(min(left, STILL_WAIT)):
                    return

    def _put(self, text: str) -> None:
        if not self._started:
            self._started = True
            start_thread("farthing-output", self._write_all)
        self._waiting.append(_Waiting(text, self._dropped))
        self._backlog, self._dropped, self._given = self._backlog + len(text), 0, self._given + 1
        self._changed.notify_all()

    def _write_all(self) -> None:
        lost = 0  # lines that could not be written
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or not self._open)
                if not self._waiting:
                    return
                text, dropped = self._waiting.popleft()
            lost += dropped
            try:
                self._write_now(self._note(lost) + text)
                lost = 0
            except Exception:  # whatever the streams of a program raise
                lost += text.count("\n")
            with self._changed:
                self._backlog, self._done = self._backlog - len(text), self._done + 1
                self._changed.notify_all()

    def _note(self, lost: int) -> str:
        return f"({counted(lost, 'line')} could not be written here)\n" if lost and self._says_dropped else ""


def is_terminal(stream: Any) -> bool:
    """False also for a stream that is closed, missing, or any other object."""
    try:
        return bool(stream.isatty())
    except Exception:
        return False


def _writer(stream: Any) -> Callable[[str], None]:
    """What writes a text to a stream and flushes it.

    The program's own streams are written below Python's buffers: a thread that is stuck in these holds their lock, and
    without it Python cannot exit; and what they could not write they try to write again at exit, which would fail then.
    """
    if type(stream) is not io.TextIOWrapper or os.name != "posix" or not _has_descriptor(stream):
        return lambda text: _write_and_flush(stream, text)
    encoding, errors = stream.encoding, stream.errors or "backslashreplace"

    def write(text: str) -> None:
        with suppress(Exception):  # what others wrote, and may not be writable
            stream.flush()
        _write_bytes(stream, text.encode(encoding, errors))

    return write


def _has_descriptor(stream: io.TextIOWrapper) -> bool:
    try:
        stream.fileno()
    except (OSError, ValueError):  # made of bytes in memory, or closed
        return False
    return True


def _write_and_flush(stream: Any, text: str) -> None:
    stream.write(text)
    stream.flush()


def _write_bytes(stream: io.TextIOWrapper, data: bytes) -> None:
    """Ask for the descriptor each time: after the stream was closed its number is another file's."""
    while data:
        try:
            data = data[os.write(stream.fileno(), data) :]
        except BlockingIOError:  # somebody made the terminal non-blocking
            select.select([], [stream.fileno()], [])
