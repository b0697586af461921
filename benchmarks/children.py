"""Peers as child processes: one JSON line in, one JSON line out."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any

from environments import BENCHMARKS, child_environment, ensure


class ChildStopped(RuntimeError):
    """A child ended, or was ended for taking too long, before it answered."""


class Child:
    """A peer that runs in its own environment, with one thread.

    `limit_seconds` is what one answer may take; a child that takes longer is ended. `script` is the peer's file,
    where a system has several.
    """

    def __init__(
        self, system: str, arguments: Sequence[str], limit_seconds: float = 600.0, script: str | None = None
    ) -> None:
        path = BENCHMARKS / "peers" / (script or f"{system}_peer.py")
        self.system = system
        self._limit_seconds = limit_seconds
        self._process = subprocess.Popen(
            [str(ensure(system)), str(path), *arguments],
            env=child_environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def answer(self) -> dict[str, Any]:
        """The next line the child writes."""
        watchdog = threading.Timer(self._limit_seconds, self._process.kill)
        watchdog.start()
        try:
            line = self._process.stdout.readline()  # type: ignore[union-attr]
        finally:
            watchdog.cancel()
        if not line:
            code = self._process.wait()
            raise ChildStopped(
                f"{self.system} stopped with status {code} (answers may take {self._limit_seconds:.0f} s)"
            )
        answer: dict[str, Any] = json.loads(line)
        return answer

    def ask(self, message: object) -> dict[str, Any]:
        """Send one line and wait for the answer."""
        with suppress(BrokenPipeError):  # a child that has ended is noticed by the reading
            self._process.stdin.write(json.dumps(message) + "\n")  # type: ignore[union-attr]
            self._process.stdin.flush()  # type: ignore[union-attr]
        return self.answer()

    def close(self) -> None:
        """Let the child end by itself, and end it if it does not."""
        with suppress(BrokenPipeError):
            self._process.stdin.close()  # type: ignore[union-attr]
        try:
            self._process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def __enter__(self) -> Child:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
