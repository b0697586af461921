"""Threads beside a run. Signals stay with the main thread."""

from __future__ import annotations

import signal
from collections.abc import Callable
from threading import Thread

from farthing.runner.forks import TERMINATIONS


def start_thread(name: str, action: Callable[[], None], *, daemon: bool = True) -> Thread:
    """Call `action` in a thread that ends with the program, whatever it is doing then; or that the program waits for,
    if it is not a daemon."""

    def with_signals_blocked() -> None:
        if hasattr(signal, "pthread_sigmask"):  # a signal that arrives here would not wake the main thread
            signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT, *TERMINATIONS])
        action()

    thread = Thread(target=with_signals_blocked, name=name, daemon=daemon)
    thread.start()
    return thread
