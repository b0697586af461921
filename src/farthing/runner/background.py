"""Threads beside a run: they never keep the program alive, and signals stay with the main thread."""

from __future__ import annotations

import signal
from collections.abc import Callable
from threading import Thread

from farthing.runner.forks import TERMINATIONS


def start_thread(name: str, action: Callable[[], None]) -> Thread:
    """Call `action` in a thread that ends with the program, whatever it is doing then."""

    def with_signals_blocked() -> None:
        if hasattr(signal, "pthread_sigmask"):  # a signal that arrives here would not wake the main thread
            signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT, *TERMINATIONS])
        action()

    thread = Thread(target=with_signals_blocked, name=name, daemon=True)
    thread.start()
    return thread
