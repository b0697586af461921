"""The installed program `farthing`, called in a folder of its own, and the processes it leaves behind."""

from __future__ import annotations

import io
import os
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import chdir, redirect_stderr, redirect_stdout, suppress
from pathlib import Path

from farthing.cli import main

FARTHING = Path(sys.executable).with_name("farthing")
PATIENCE = 120.0  # seconds to wait for what must happen: more than it takes on a machine with other things to do

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
            [str(FARTHING), *arguments], cwd=self.path, capture_output=True, text=True, timeout=PATIENCE, **options
        )  # fmt: skip
        assert status is None or ended.returncode == status, (ended.returncode, ended.stdout, ended.stderr)
        return ended

    def answer(self, *arguments: str) -> str:
        """What a command that only reads prints, called in this process: starting another takes a second."""
        with chdir(self.path), redirect_stdout(io.StringIO()) as out:
            assert main(arguments) == 0
        return out.getvalue()

    def error(self, *arguments: str, status: int = 2) -> str:
        """The error of a call that must fail: one line, no traceback. Commands that only read are called here."""
        if arguments[0] in ("run", "resume"):
            told = self.call(*arguments, status=status).stderr
        else:
            with chdir(self.path), redirect_stderr(io.StringIO()) as written:
                assert main(arguments) == status
            told = written.getvalue()
        lines = told.strip().splitlines()
        assert lines[-1].startswith("farthing: error: "), told
        assert "Traceback" not in told
        return lines[-1].removeprefix("farthing: error: ")

    def start(self, *arguments: str, **options: object) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [str(FARTHING), *arguments], cwd=self.path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            **options,
        )  # fmt: skip
        self._started.append(process)
        return process

    def end(self) -> None:
        for process in self._started:
            with suppress(OSError):
                process.kill()
            process.communicate()


def until(condition: Callable[[], object], seconds: float = PATIENCE) -> None:
    """Wait for something to become true."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.01)


def is_there(pid: int) -> bool:
    """Whether a process has not ended."""
    return state_of(pid) is not None


def wait_until(true: Callable[[], bool], seconds: float) -> bool:
    """Whether it has become true within so many seconds."""
    deadline = time.monotonic() + seconds
    while not (found := true()) and time.monotonic() < deadline:
        time.sleep(0.02)
    return found


def state_of(pid: int) -> str | None:
    """The kernel's letter for the state of a process, None if it is gone or a zombie."""
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
