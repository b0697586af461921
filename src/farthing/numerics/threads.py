"""One BLAS thread for small matrices: with more, they mostly wait for each other."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any

# environment variables
THREAD_LIMITS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")

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
