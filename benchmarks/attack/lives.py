"""Lives of studies that are killed: in Python they are forks of a nursery, on the command line whole programs.

The six modes are named in MODES. A life is started, dies of SIGKILL or ends by itself, and is waited for.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from benchmarks.attack.logged import LOG, SPACE_FILE, STEPS, policy_of
from benchmarks.attack.processes import end_marked, environment, farthing, left_after, new_mark

IN_PYTHON = ("black box", "workers", "yielding")
CLI = ("CLI function", "CLI program", "CLI iterative")
MODES = IN_PYTHON + CLI

PROGRAM = Path(__file__).with_name("program.py")
SCRIPT = "from benchmarks.attack.logged import SPACE as space, objective\n"
GRACE_SECONDS = 3.0  # that workers of a killed run may take to end
ENDING_SECONDS = 300.0  # that a life without a kill may take


@dataclass(frozen=True)
class Home:
    """Where one study lives: its file, its side log, and what the command line needs."""

    folder: Path
    mode: str
    seed: int

    @property
    def path(self) -> Path:
        return self.folder / "study.db"

    @property
    def log(self) -> Path:
        return self.folder / "side.log"

    def furnished(self) -> Home:
        self.folder.mkdir(parents=True)
        (self.folder / "space.toml").write_text(SPACE_FILE)
        (self.folder / "script.py").write_text(SCRIPT)
        return self


@dataclass(frozen=True)
class Life:
    """A process that lives a study. `left` ends what survived it, and says how many that were."""

    pid: int
    wait: Callable[[], int]
    left: Callable[[], int]
    began: float

    def killed(self) -> float:
        """Kill it; returns the seconds that it lived."""
        with suppress(ProcessLookupError):  # it has ended by itself, and that is said by its status
            os.kill(self.pid, signal.SIGKILL)
        self.wait()
        return time.monotonic() - self.began

    def ended(self) -> int:
        return self.wait()


class Nursery:
    """The process that forks the lives in Python; see victims.py."""

    def __init__(self) -> None:
        self._mark = new_mark()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.attack.victims"],
            env=environment(self._mark),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        if self._answer() != "ready":
            raise RuntimeError("the nursery did not start")

    def _answer(self) -> str:
        return self._process.stdout.readline().strip()  # type: ignore[union-attr]

    def _say(self, line: str) -> str:
        self._process.stdin.write(line + "\n")  # type: ignore[union-attr]
        self._process.stdin.flush()  # type: ignore[union-attr]
        return self._answer()

    def start(self, home: Home, budget: str) -> Life:
        order = {"mode": home.mode, "path": str(home.path), "log": str(home.log), "seed": home.seed, "budget": budget}
        began = time.monotonic()
        return Life(int(self._say(json.dumps(order))), lambda: int(self._say("")), self._left, began)

    def _left(self) -> int:
        found = left_after(self._mark, GRACE_SECONDS, spared=self._process.pid)
        end_marked(self._mark, spared=self._process.pid)
        return len(found)

    def close(self) -> None:
        self._process.stdin.close()  # type: ignore[union-attr]
        self._process.wait()


def start_cli(home: Home, budget: str) -> Life:
    """`farthing run` with the study's file: one that exists is continued."""
    mark = new_mark()
    began = time.monotonic()
    with open(home.folder / "errors.txt", "ab") as errors:
        process = subprocess.Popen(
            list(map(str, farthing("run", *_what(home), *_how(home, budget)))),
            cwd=home.folder, env=environment(mark, **{LOG: str(home.log)}), stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=errors, start_new_session=True,
        )  # fmt: skip

    def left() -> int:
        found = left_after(mark, GRACE_SECONDS)
        end_marked(mark)
        return len(found)

    return Life(process.pid, lambda: process.wait(ENDING_SECONDS), left, began)


def _what(home: Home) -> Sequence[object]:
    program = shlex.join([sys.executable, "-S", "-E", str(PROGRAM)])
    unused = "{x} {depth} {kind} {rate}"  # named, so that nobody warns of parameters without a placeholder
    match home.mode:
        case "CLI function":
            return ["script.py:objective"]
        case "CLI program":
            return ["--command", f"{program} value {unused}"]
    return ["--command", f"{program} steps {unused}", "--iterative", "--max-steps", STEPS]


def _how(home: Home, budget: str) -> Sequence[object]:
    policy = policy_of(home.mode, home.seed)
    return [
        "--space", "space.toml", "--budget", budget, "--storage", home.path, "--seed", home.seed, "--policy", policy,
        "--quiet",
    ]  # fmt: skip
