"""What SIGTERM and SIGHUP do in the processes that the objective forks: they end them, whatever handler we have set.

Pools of processes end their children with SIGTERM. A child would inherit a handler written in Python. Also, a signal in
the first moments of the child would be lost, because Python then forgets the signals it has noted, and the pool would
wait forever. So both are blocked during the fork, until the child has the default handler again.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from typing import Any, TypeVar

TERMINATIONS = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]  # Windows has one

Handler = TypeVar("Handler", bound=Callable[..., Any])

_before_fork = threading.local()  # the signals that this thread blocked already


def reset_in_forks(handler: Handler) -> Handler:
    """Mark a handler of TERMINATIONS that forked children replace by the default."""
    handler.reset_in_forks = True  # type: ignore[attr-defined]
    return handler


def _block() -> None:
    _before_fork.mask = signal.pthread_sigmask(signal.SIG_BLOCK, TERMINATIONS)


def _unblock() -> None:
    signal.pthread_sigmask(signal.SIG_SETMASK, _before_fork.mask)


def _reset_and_unblock() -> None:
    for number in TERMINATIONS:
        if getattr(signal.getsignal(number), "reset_in_forks", False):
            signal.signal(number, signal.SIG_DFL)
    _unblock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_block, after_in_parent=_unblock, after_in_child=_reset_and_unblock)
