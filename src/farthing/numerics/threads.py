"""One BLAS thread for small matrices: with more, they mostly wait for each other."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache
from typing import Any

# environment variables
THREAD_LIMITS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


@cache
def _controller() -> Any:
    from threadpoolctl import ThreadpoolController  # looks at every loaded library: once is enough

    return ThreadpoolController()


def one_blas_thread() -> AbstractContextManager[Any]:
    """A context in which the BLAS of NumPy and SciPy uses one thread."""
    context: AbstractContextManager[Any] = _controller().limit(limits=1, user_api="blas")
    return context
