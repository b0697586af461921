"""Threads of BLAS: one for small matrices, because more mostly wait for each other; and how many forks use.

OpenMP starts threads when they are needed, as many as its environment variable says. OpenBLAS starts them when it is
loaded, and a process with several threads must not fork. So a process that will fork loads it with one, and its forks
say how many they want: as many as the variables say that OpenBLAS reads.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from typing import Any

OPENMP, OPENBLAS = "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"
THREAD_LIMITS = (OPENMP, OPENBLAS, "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")  # environment variables
READ_BY_OPENBLAS = (OPENBLAS, "GOTO_NUM_THREADS", OPENMP)  # the first that is set

_outermost: ContextVar[ExitStack | None] = ContextVar("farthing_one_blas_thread", default=None)


@cache
def _controller() -> Any:
    from threadpoolctl import ThreadpoolController  # looks at every loaded library: once is enough until one is added

    return ThreadpoolController()


def _limit() -> Any:
    return _controller().limit(limits=1, user_api="blas")


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """A context in which the BLAS of NumPy and SciPy uses one thread."""
    if _outermost.get() is not None:
        with _limit():
            yield
        return
    with ExitStack() as limits:
        limits.enter_context(_limit())
        token = _outermost.set(limits)
        try:
            yield
        finally:
            _outermost.reset(token)


def limit_what_was_loaded() -> None:
    """Let `one_blas_thread` know of a library that was just imported, also the one that we are inside of."""
    _controller.cache_clear()
    if (limits := _outermost.get()) is not None:
        limits.enter_context(_limit())


def with_thread_limits(environment: Mapping[str, str], threads: int) -> dict[str, str]:
    """An environment in which libraries use so many threads, unless it says something else already. The variable of
    OpenMP speaks for all of them.

    >>> with_thread_limits({"OPENBLAS_NUM_THREADS": "4"}, 2)["OPENBLAS_NUM_THREADS"]
    '4'
    >>> with_thread_limits({"OMP_NUM_THREADS": "4"}, 2)
    {'OMP_NUM_THREADS': '4'}
    """
    return dict(environment) if OPENMP in environment else {**dict.fromkeys(THREAD_LIMITS, str(threads)), **environment}


@dataclass(frozen=True)
class OpenBlas:
    """Each copy of it that is loaded here: NumPy and SciPy have their own."""

    copies: tuple[Any, ...] = ()
    threads: int = 1

    @classmethod
    def loaded(cls, environment: Mapping[str, str]) -> OpenBlas:
        """The copies that are here now, for as many threads as an environment says."""
        wanted = next((environment[name] for name in READ_BY_OPENBLAS if environment.get(name)), "")
        threads = int(wanted) if wanted.isdecimal() else os.cpu_count() or 1
        if threads == 1 or "numpy" not in sys.modules:
            return cls()
        from threadpoolctl import ThreadpoolController

        with suppress(Exception):  # it looks into libraries that it knows only by their names
            found = ThreadpoolController().lib_controllers
            return cls(tuple(library for library in found if library.internal_api == "openblas"), threads)
        return cls()

    def use_all_threads(self) -> None:
        """In a fork, which has one."""
        for library in self.copies:
            with suppress(Exception):
                library.set_num_threads(self.threads)
