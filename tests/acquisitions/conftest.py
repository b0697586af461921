"""Small matrices are fastest on one BLAS thread; the policies see to that, and here this does."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from farthing.numerics.threads import one_blas_thread


@pytest.fixture(scope="module", autouse=True)
def _one_blas_thread() -> Iterator[None]:
    with one_blas_thread():
        yield
