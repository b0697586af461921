"""Peers as child processes: one JSON line in, one JSON line out."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any

from benchmarks.common.environments import ROOT, child_environment, module_command


class ChildStopped(RuntimeError):
    """A child ended, or was killed because it took too long, before it answered."""


class Child:
    """The module `benchmarks.<module>`, run in the environment of `system` with one thread.

    A child that takes longer than `limit_seconds` over one answer is killed.
    """

    def __init__(
        self, system: str, module: str, arguments: Sequence[object] = (), limit_seconds: float = 600.0
    ) -> None:
        self.system = system
        self._limit_seconds = limit_seconds
        self._process = subprocess.Popen(
            module_command(system, module, arguments),
            cwd=ROOT,
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
                f"{self.system} stopped with status {code} (the limit is {self._limit_seconds:.0f} s per answer)"
            )
        answer: dict[str, Any] = json.loads(line)
        return answer

    def ask(self, message: object) -> dict[str, Any]:
        """Send one line and wait for the answer."""
        with suppress(BrokenPipeError):  # the reading notices a child that has ended
            self._process.stdin.write(json.dumps(message) + "\n")  # type: ignore[union-attr]
            self._process.stdin.flush()  # type: ignore[union-attr]
        return self.answer()

    def close(self) -> None:
        """Let the child end by itself, and kill it if it does not."""
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
