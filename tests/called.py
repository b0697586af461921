"""The installed program `farthing`, in a folder of its own, and what processes it leaves."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

FARTHING = Path(sys.executable).with_name("farthing")

SPACE = """
[x]
type = "integer"
low = 0
high = 100
"""


class Folder:
    """An empty folder in which `farthing` is called."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._started: list[subprocess.Popen[str]] = []

    def write(self, name: str, text: str, *, executable: bool = False) -> Path:
        path = self.path / name
        path.write_text(text)
        if executable:
            path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return path

    def script(self, name: str, *lines: str) -> Path:
        """A bash script."""
        return self.write(name, "\n".join(["#!/bin/bash", *lines, ""]), executable=True)

    def read(self, name: str) -> str:
        return (self.path / name).read_text()

    def call(self, *arguments: str, status: int | None = 0, **options: object) -> subprocess.CompletedProcess[str]:
        ended = subprocess.run(
            [str(FARTHING), *arguments], cwd=self.path, capture_output=True, text=True, timeout=60, **options
        )  # fmt: skip
        assert status is None or ended.returncode == status, (ended.returncode, ended.stdout, ended.stderr)
        return ended

    def error(self, *arguments: str, status: int = 2) -> str:
        """The error of a call that must fail: one line, no traceback."""
        ended = self.call(*arguments, status=status)
        lines = ended.stderr.strip().splitlines()
        assert lines[-1].startswith("farthing: error: "), ended.stderr
        assert "Traceback" not in ended.stderr
        return lines[-1].removeprefix("farthing: error: ")

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [str(FARTHING), *arguments], cwd=self.path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )  # fmt: skip
        self._started.append(process)
        return process

    def end(self) -> None:
        for process in self._started:
            with suppress(OSError):
                process.kill()
            process.communicate()


def until(condition: Callable[[], object], seconds: float = 20.0) -> None:
    """Wait for something to become true; more time where the machine is busy."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not come to that"
        time.sleep(0.01)


def state_of(pid: int) -> str | None:
    """The letter that the kernel has for a process, None if it is gone or only waits for its parent."""
    with suppress(OSError):
        letter = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        return None if letter in "ZX" else letter
    return None


def pids_in(path: Path) -> list[int]:
    return [int(line) for line in path.read_text().split()] if path.exists() else []


def require_gone(path: Path) -> None:
    """All processes whose numbers are in a file have ended."""
    pids = pids_in(path)
    assert pids
    until(lambda: not any(state_of(pid) for pid in pids if pid != os.getpid()))
