"""Processes of an attack: each is started with a mark in its environment, which all its descendants keep.

So those that were left behind are found wherever they went, and ended by their numbers.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO
from uuid import uuid4

from benchmarks.common.environments import ROOT, child_environment
from benchmarks.common.kept_runs import CACHE

MARK = "FARTHING_ATTACK"
CONFIG = CACHE / "attack-config"  # where a user's key would be: attacks leave that of whoever runs them alone
LOOK_SECONDS = 0.05


_marks: list[str] = []


def new_mark() -> str:
    _marks.append(uuid4().hex)
    return _marks[-1]


def end_with_all(number: int, frame: object) -> None:
    """A handler of signals: whoever interrupts the attacks is left with none of their processes."""
    for mark in _marks:
        end_marked(mark)
    os._exit(128 + number)


def environment(mark: str, **more: str) -> dict[str, str]:
    """That of a child: marked, able to import the benchmarks from any folder, with a config folder of its own."""
    path = os.pathsep.join(part for part in (os.environ.get("PYTHONPATH"), str(ROOT)) if part)
    return {**child_environment(), "PYTHONPATH": path, "XDG_CONFIG_HOME": str(CONFIG), MARK: mark, **more}


def marked(mark: str) -> list[int]:
    """The processes with this mark that are alive."""
    wanted = f"{MARK}={mark}".encode()
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        with suppress(OSError):
            if wanted in Path(f"/proc/{entry}/environ").read_bytes().split(b"\0") and _state(int(entry)) not in "ZX":
                found.append(int(entry))
    return found


def _state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def left_after(mark: str, seconds: float, spared: int = 0) -> list[int]:
    """The processes that are still there after so long; returns as soon as there are none but the spared one."""
    deadline = time.monotonic() + seconds
    while (found := [pid for pid in marked(mark) if pid != spared]) and time.monotonic() < deadline:
        time.sleep(LOOK_SECONDS)
    return found


def end_marked(mark: str, spared: int = 0) -> int:
    """Kill what is left, again and again, because it may fork meanwhile; returns how many there were at first."""
    first = [pid for pid in marked(mark) if pid != spared]
    for _ in range(100):
        if not (found := [pid for pid in marked(mark) if pid != spared]):
            break
        for pid in found:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(LOOK_SECONDS)
    return len(first)


@dataclass(frozen=True)
class Ended:
    """How a program ended: None as its status means that it had to be killed."""

    status: int | None
    output: str
    errors: str
    seconds: float


def run(
    command: Sequence[object], *, limit: float = 60.0, cwd: Path | None = None, mark: str | None = None,
    more: Mapping[str, str] | None = None,
) -> Ended:  # fmt: skip
    """Run a program to its end, or to the limit in seconds; nothing of it is left afterwards."""
    own, began = mark or new_mark(), time.monotonic()
    # Files, not pipes: a process that was left behind would hold a pipe open.
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            list(map(str, command)), cwd=cwd, env=environment(own, **(more or {})), stdin=subprocess.DEVNULL,
            stdout=output, stderr=errors,
        )  # fmt: skip
        status: int | None
        try:
            status = process.wait(limit)
        except subprocess.TimeoutExpired:
            status = None
        seconds = time.monotonic() - began
        if status is None:
            process.kill()
            process.wait()
        if mark is None or status is None:
            end_marked(own)
        return Ended(status, _content(output), _content(errors), seconds)


def _content(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode(errors="replace")


def python(*arguments: object) -> list[object]:
    return [sys.executable, *arguments]


def farthing(*arguments: object) -> list[object]:
    """The command line, as the installed program does it."""
    return python("-m", "farthing", *arguments)
