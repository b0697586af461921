"""The connection of this process to a cluster. What was started here is ended here, and nothing else."""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

from farthing.errors import InvalidArgument

LOCAL = "local"  # the address that stands for a new cluster on this machine
NO_STATISTICS = "RAY_USAGE_STATS_ENABLED"


def connected(address: str | None, runtime_env: Mapping[str, Any] | None) -> tuple[ExitStack, dict[str, Any]]:
    """What ends the connection, and what actors need of the runtime environment: a program that has connected to Ray
    before has chosen one for its job, and keeps its connection."""
    ray = imported_ray()
    end = ExitStack()
    environment = dict(runtime_env or {})
    if ray.is_initialized():
        return end, environment
    options: dict[str, Any] = {"runtime_env": environment} if environment else {}
    if address == LOCAL:
        options["include_dashboard"] = False
    try:
        with _own_signals(), _no_statistics():
            ray.init(address, logging_level=logging.WARNING, **options)
    except (ConnectionError, RuntimeError, ValueError, OSError) as error:
        raise InvalidArgument(f"Ray: no connection to {address or 'a cluster'}: {error}") from error
    end.callback(ray.shutdown)
    return end, {}


def imported_ray() -> Any:
    try:
        import ray
    except ImportError as error:
        raise ImportError("ft.Ray needs Ray: pip install 'farthing[ray]'") from error
    return ray


@contextmanager
def _own_signals() -> Iterator[None]:
    """Ray replaces the handler of SIGTERM, which is the run's or the program's."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _no_statistics() -> Iterator[None]:
    """A cluster that is started here tells nobody of its use, unless the user has said so."""
    if NO_STATISTICS in os.environ:
        yield
        return
    os.environ[NO_STATISTICS] = "0"
    try:
        yield
    finally:
        del os.environ[NO_STATISTICS]
