"""What all tests share. This file also puts `tests/` on the path, for `strategies`, `oracles` and `called`."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from called import SPACE, Folder
from farthing.numerics.threads import one_blas_thread


@pytest.fixture(scope="session", autouse=True)
def _one_blas_thread() -> Iterator[None]:
    """As in a study: on small matrices more threads only wait for each other, ten times as long."""
    with one_blas_thread():
        yield


@pytest.fixture(scope="session", autouse=True)
def _ctrl_c_is_heard() -> None:
    """A shell that starts the tests in the background lets them ignore Ctrl-C, and so would every child of theirs."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Folder]:
    """In which the program `farthing` is called; see called.py."""
    folder = Folder(tmp_path)
    folder.write("space.toml", SPACE)
    yield folder
    folder.end()
