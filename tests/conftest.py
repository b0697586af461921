"""What all tests share. This file also puts `tests/` on the path, for `strategies` and `oracles`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from farthing.numerics.threads import one_blas_thread


@pytest.fixture(scope="session", autouse=True)
def _one_blas_thread() -> Iterator[None]:
    """As in a study: on small matrices more threads only wait for each other, ten times as long."""
    with one_blas_thread():
        yield
