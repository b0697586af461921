"""Ctrl-C and SIGTERM that wait for a safe point.

Python raises KeyboardInterrupt between any two instructions, also between writing an event and knowing of it. While a
study runs, signals are noted; what becomes of them depends on where evaluations happen. In this process they are raised
at once inside the objective. With worker processes the first Ctrl-C lets what is running come to its end, the second
kills; SIGTERM, which a machine sends before it is taken away, leaves no time for either.
"""

from __future__ import annotations

import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, Self

from farthing.runner.forks import only_here

TERMINATED = 128 + signal.SIGTERM  # exit code


class Terminated(BaseException):
    """SIGTERM arrived inside the objective."""


class Interrupts:
    """The signal handlers of a run in the main thread; handlers of the program's own are left alone."""

    def __init__(self) -> None:
        self._before: dict[int, Any] = {}
        self._inside = False
        self._wakeup: tuple[socket.socket, socket.socket] | None = None
        self._old_wakeup = -1
        self.interrupted = 0  # how often Ctrl-C was pressed
        self.terminated = False

    def __enter__(self) -> Self:
        if threading.current_thread() is not threading.main_thread():
            return self
        for number, default in ((signal.SIGINT, signal.default_int_handler), (signal.SIGTERM, signal.SIG_DFL)):
            if signal.getsignal(number) is default:
                self._before[number] = signal.signal(number, self._handle)
        if self._before:
            self._wakeup = socket.socketpair()
            for end in self._wakeup:
                end.setblocking(False)
            self._old_wakeup = signal.set_wakeup_fd(self._wakeup[1].fileno(), warn_on_full_buffer=False)
        return self

    def __exit__(self, *exception: object) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)
        if self._wakeup is not None:
            signal.set_wakeup_fd(self._old_wakeup)
            for end in self._wakeup:
                end.close()
        self._before, self._wakeup = {}, None

    @only_here
    def _handle(self, number: int, frame: FrameType | None) -> None:
        if number == signal.SIGTERM:
            self.terminated = True
        else:
            self.interrupted += 1
        if self._inside:
            self.raise_if_any()

    @property
    def any(self) -> bool:
        """Whether a signal was noted."""
        return self.interrupted > 0 or self.terminated

    @property
    def wakes(self) -> list[socket.socket]:
        """What becomes readable when a signal arrives."""
        return [] if self._wakeup is None else [self._wakeup[0]]

    def heard(self) -> None:
        """The signals that woke somebody up are known."""
        for end in self.wakes:
            with suppress(BlockingIOError):
                while end.recv(4096):
                    pass

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """Inside, a signal interrupts immediately, also one that was noted before."""
        self._inside = True
        try:
            self.raise_if_any()
            yield
        finally:
            self._inside = False

    def raise_if_any(self) -> None:
        """Raise what was noted."""
        if self.terminated:
            raise Terminated
        if self.interrupted:
            raise KeyboardInterrupt
