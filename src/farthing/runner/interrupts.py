"""Ctrl-C, SIGTERM and SIGHUP that wait for a safe point.

Python raises KeyboardInterrupt between any two instructions, even between writing an event to the study file and
applying it in memory. So while a study runs, signals are only noted. What happens then depends on where evaluations
run. In this process, a signal is raised at once if it arrives inside the objective. With worker processes, the first
Ctrl-C lets running evaluations finish and the second kills them. SIGTERM, which clusters send before they take a
machine away, leaves them only a few seconds: enforcement.py ends them, and loop.py ends the run. SIGHUP, which comes
when the terminal is closed, is handled as SIGTERM is; under `nohup` it stays ignored.
"""

from __future__ import annotations

import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, Self

from farthing.runner.forks import TERMINATIONS, reset_in_forks

MOMENT = 0.1  # seconds within which a signal to all processes of a job arrives
DRAINED_BYTES = 4096  # read at once from the wake-up socket; a signal is one byte


def is_interactive() -> bool:
    """Whether this is a session at a prompt, of Python, IPython or a notebook: all of them set `sys.ps1`."""
    return hasattr(sys, "ps1")


class Terminated(BaseException):
    """SIGTERM or SIGHUP arrived inside the objective."""


class Interrupts:
    """The signal handlers of a run in the main thread. Handlers that the program has set itself are left alone."""

    def __init__(self) -> None:
        self._before: dict[int, Any] = {}
        self._raises = False  # whether a signal is raised at once
        self._wakeup: tuple[socket.socket, socket.socket] | None = None
        self._old_wakeup = -1
        self.interrupted = 0  # how many times Ctrl-C was pressed
        self.terminated_by: signal.Signals | None = None  # the first of TERMINATIONS that came

    def __enter__(self) -> Self:
        if threading.current_thread() is not threading.main_thread():
            return self
        defaults = {signal.SIGINT: signal.default_int_handler, **dict.fromkeys(TERMINATIONS, signal.SIG_DFL)}
        for number, default in defaults.items():
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

    @reset_in_forks
    def _handle(self, number: int, frame: FrameType | None) -> None:
        if number == signal.SIGINT:
            self.interrupted += 1
        else:
            self.terminated_by = self.terminated_by or signal.Signals(number)
        if self._raises:
            self.raise_if_any()

    @property
    def terminated(self) -> bool:
        """Whether SIGTERM or SIGHUP came."""
        return self.terminated_by is not None

    @property
    def is_preempted(self) -> bool:
        """Whether whoever sent a worker SIGTERM or SIGHUP signals the run too: schedulers of clusters signal all
        processes of a job, in any order."""
        if not self.terminated:
            time.sleep(MOMENT)
        return self.terminated

    @property
    def how_terminated(self) -> str:
        """As the error of a trial says it."""
        return "interrupted" if self.terminated_by is None else f"interrupted by {self.terminated_by.name}"

    @property
    def any(self) -> bool:
        """Whether a signal was noted."""
        return self.interrupted > 0 or self.terminated

    @property
    def wakeups(self) -> list[socket.socket]:
        """Sockets that become readable when a signal arrives."""
        return [] if self._wakeup is None else [self._wakeup[0]]

    def clear_wakeups(self) -> None:
        """Make `wakeups` wait for the next signal again; the signals so far stay noted."""
        for end in self.wakeups:
            with suppress(BlockingIOError):
                while end.recv(DRAINED_BYTES):
                    pass

    @contextmanager
    def raised_at_once(self) -> Iterator[None]:
        """Inside, a signal is raised as soon as it arrives, and so is one noted before."""
        self._raises = True
        try:
            self.raise_if_any()
            yield
        finally:
            self._raises = False

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Within `raised_at_once`: inside, signals wait again, and are raised at the end."""
        self._raises = False
        try:
            yield
        finally:
            self._raises = True
        self.raise_if_any()

    def raise_if_any(self) -> None:
        """Raise the signal that was noted, if there is one."""
        if self.terminated:
            raise Terminated
        if self.interrupted:
            raise KeyboardInterrupt
