"""SIGTERM in what a process forks while a handler of ours is installed: there it does what it does by default.

Pools of processes end their children with it. A handler in Python would be inherited, and a signal that comes in the
first moments of a fork, when Python forgets what was noted before, would be lost, and waited for in vain. So it is held
back by the system until the handler is gone.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from typing import Any, TypeVar

Handler = TypeVar("Handler", bound=Callable[..., Any])

_before = threading.local()  # what was held back in this thread before the fork


def only_here(handler: Handler) -> Handler:
    """Mark a handler of SIGTERM as one that forks do not inherit."""
    handler.only_here = True  # type: ignore[attr-defined]
    return handler


def _hold_back() -> None:
    _before.mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})


def _let_go() -> None:
    signal.pthread_sigmask(signal.SIG_SETMASK, _before.mask)


def _let_go_in_a_fork() -> None:
    if getattr(signal.getsignal(signal.SIGTERM), "only_here", False):
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
    _let_go()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_hold_back, after_in_parent=_let_go, after_in_child=_let_go_in_a_fork)
