"""Ctrl-C that waits for a safe point.

Python raises KeyboardInterrupt between any two instructions, also between writing an event and knowing of it. While a
study runs, Ctrl-C is raised at once only inside the objective; elsewhere it is noted, and raised when the run asks.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Self


class Interrupts:
    """The signal handler of a run in the main thread; a handler of the program's own is left alone."""

    def __init__(self) -> None:
        self._installed = self._noted = self._inside = False

    def __enter__(self) -> Self:
        main = threading.current_thread() is threading.main_thread()
        if main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, self._handle)
            self._installed = True
        return self

    def __exit__(self, *exception: object) -> None:
        if self._installed:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self._inside:
            raise KeyboardInterrupt
        self._noted = True

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """Inside, Ctrl-C interrupts immediately, also one that was noted before."""
        self._inside = True
        try:
            self.raise_if_any()
            yield
        finally:
            self._inside = False

    def raise_if_any(self) -> None:
        """Raise KeyboardInterrupt if Ctrl-C was pressed."""
        if self._noted:
            self._noted = False
            raise KeyboardInterrupt
