"""One BLAS thread for small matrices: more only wait for each other."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache
from typing import Any


@cache
def _controller() -> Any:
    from threadpoolctl import ThreadpoolController  # looks at every loaded library: once is enough

    return ThreadpoolController()


def one_blas_thread() -> AbstractContextManager[Any]:
    """A context in which the BLAS of NumPy and SciPy uses one thread."""
    context: AbstractContextManager[Any] = _controller().limit(limits=1, user_api="blas")
    return context
