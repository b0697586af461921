"""What all tests share. This file also puts `tests/` on the path, for what stands there beside the tests."""

from __future__ import annotations

import logging
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from called import SPACE, Folder
from fake_time import FakeTime
from farthing.numerics.threads import one_blas_thread

MEMORY = Path("/dev/shm")


def pytest_configure() -> None:
    """Put `tmp_path` in memory where there is room: a study file is synchronised at every event, 5 ms each on a disk.

    What a kill leaves behind is the same there. Tests that need a disk's slowness ask for `disk_path`.
    """
    with suppress(ImportError):  # the environment of tests/libraries does without
        from hypothesis import settings

        settings.register_profile("unhurried", deadline=None)  # a busy machine is no failure
        settings.load_profile("unhurried")
    if usable_memory():
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))


def usable_memory() -> bool:
    """Whether a file system in memory has space, and lets programs run."""
    return (
        os.access(MEMORY, os.W_OK)
        and shutil.disk_usage(MEMORY).free > 2**30
        and not os.statvfs(MEMORY).f_flag & os.ST_NOEXEC
    )


@pytest.fixture
def disk_path() -> Iterator[Path]:
    """A folder like `tmp_path` on a disk: half of the time of a short trial is spent in writes there."""
    with tempfile.TemporaryDirectory() as made:
        yield Path(made)


@pytest.fixture(scope="session", autouse=True)
def _one_blas_thread() -> Iterator[None]:
    """As in a study: with small matrices, several threads mostly wait for each other and take ten times as long."""
    import scipy.linalg  # noqa: F401 - its BLAS must be loaded to be limited

    with one_blas_thread():
        yield


@pytest.fixture(scope="session", autouse=True)
def _ctrl_c_is_heard() -> None:
    """A shell that starts the tests in the background makes them, and their children, ignore Ctrl-C: undo that."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def _signals_are_handled_as_before() -> Iterator[None]:
    """Some libraries leave handlers of their own, which swallow the Ctrl-C of tests that come later."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        if handler is not None and signal.getsignal(number) is not handler:
            signal.signal(number, handler)


@pytest.fixture(scope="session", autouse=True)
def _config_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A config folder for the tests: they leave no key in that of whoever runs them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("config")))
        yield


@pytest.fixture
def fake_time(monkeypatch: pytest.MonkeyPatch) -> FakeTime:
    """Makes `time.sleep` take no time, and the clock pass by exactly as much; for runs in this process."""
    return FakeTime(monkeypatch)


@pytest.fixture
def logged(caplog: pytest.LogCaptureFixture) -> None:
    """Keep what Farthing logs from INFO on, to be shown if the test fails: failures of trials are expected there."""
    caplog.set_level(logging.INFO, logger="farthing")


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Folder]:
    """A folder in which the program `farthing` is called; see called.py."""
    folder = Folder(tmp_path)
    folder.write("space.toml", SPACE)
    yield folder
    folder.end()
