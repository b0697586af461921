"""Progress is best effort: it never stops work, and is never on the path of a budget."""

from __future__ import annotations

import fcntl
import os
import pty
import signal
import subprocess
import time
from contextlib import closing, suppress
from pathlib import Path

from benchmarks.attack.items.registry import Answer, item, script
from benchmarks.attack.processes import end_marked, environment, farthing, new_mark, python
from farthing.errors import FarthingError
from farthing.record.reader import read_study

EVALUATIONS = 20
IN_PYTHON = f"""
def objective(config):
    time.sleep(0.05)
    return config["x"]
tune(objective, space, "{EVALUATIONS} evaluations", policy="random", storage="study.db", progress=True)
"""
ON_THE_COMMAND_LINE = """
def objective(config):
    time.sleep(0.05)
    return config["x"]
"""
LIMIT_SECONDS = 40.0


def commands(folder: Path) -> dict[str, list[object]]:
    """The same study by the API and by the command line; their folders are made."""
    for name in ("api", "cli"):
        (folder / name).mkdir()
    script(folder / "cli", ON_THE_COMMAND_LINE, "train.py")
    options = ["--budget", f"{EVALUATIONS} evaluations", "--policy", "random", "--storage", "study.db"]
    return {
        "api": python(script(folder / "api", IN_PYTHON)),
        "cli": farthing("run", "train.py:objective", *options),
    }


def answered(folder: Path, statuses: dict[str, int | None]) -> Answer:
    """Held if both came to their end with all evaluations."""
    done = {name: _trials(folder / name / "study.db") for name in statuses}
    holds = all(statuses[name] == 0 and done[name] == EVALUATIONS for name in statuses)
    seen = "; ".join(f"{name}: {done[name]} of {EVALUATIONS} trials, status {statuses[name]}" for name in statuses)
    return Answer(holds, seen)


def _trials(path: Path) -> int:
    with suppress(FarthingError):
        return len(read_study(path).trials)
    return 0


def ended(command: list[object], folder: Path, stderr: int) -> int | None:
    mark = new_mark()
    process = subprocess.Popen(
        list(map(str, command)), cwd=folder, env=environment(mark), stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, stderr=stderr, start_new_session=True,
    )  # fmt: skip
    return waited(process, mark)


def waited(process: subprocess.Popen[bytes], mark: str, limit: float = LIMIT_SECONDS) -> int | None:
    """Its exit status, None if it had to be killed; nothing of it is left."""
    try:
        return process.wait(limit)
    except subprocess.TimeoutExpired:
        return None
    finally:
        process.kill()
        end_marked(mark)
        process.wait()


@item("progress", "a run goes on when standard error is closed")
def stderr_closed(folder: Path) -> Answer:
    found = {}
    for name, command in commands(folder).items():
        found[name] = ended(["sh", "-c", 'exec "$@" 2>&-', "sh", *command], folder / name, subprocess.DEVNULL)
    return answered(folder, found)


@item("progress", "a run goes on when standard error is full (/dev/full)")
def stderr_full(folder: Path) -> Answer:
    with open("/dev/full", "wb") as full:
        found = {name: ended(command, folder / name, full.fileno()) for name, command in commands(folder).items()}
    return answered(folder, found)


@item("progress", "a run goes on when nobody reads its pipe any more (broken pipe)")
def stderr_broken(folder: Path) -> Answer:
    found = {}
    for name, command in commands(folder).items():
        reading, writing = os.pipe()
        os.close(reading)
        found[name] = ended(command, folder / name, writing)
        os.close(writing)
    return answered(folder, found)


@item("progress", "a run goes on when its terminal goes away")
def terminal_gone(folder: Path) -> Answer:
    found = {}
    for name, command in commands(folder).items():
        mark, (ours, theirs) = new_mark(), pty.openpty()
        process = subprocess.Popen(
            list(map(str, command)), cwd=folder / name, env=environment(mark), stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=theirs, start_new_session=True,
        )  # fmt: skip
        os.close(theirs)
        os.read(ours, 1)  # it has written something
        os.close(ours)
        found[name] = waited(process, mark)
    return answered(folder, found)


@item("progress", "a pipe that nobody reads does not suspend a budget of 3 s", alone=True)
def unread_pipe(folder: Path) -> Answer:
    code = """
    def objective(config):
        time.sleep(0.2)
        return config["x"]
    began = time.perf_counter()
    tune(objective, space, "3s", policy="random", progress=True)
    open("seconds", "w").write(str(time.perf_counter() - began))
    """
    reading, writing = os.pipe()
    with closing(os.fdopen(reading, "rb")), closing(os.fdopen(writing, "wb", buffering=0)) as stderr:
        fill(stderr.fileno())
        began = time.monotonic()
        status = ended(python(script(folder, code)), folder, stderr.fileno())
        whole = time.monotonic() - began
    found = folder / "seconds"
    seconds = float(found.read_text()) if found.exists() else whole
    return Answer(status == 0 and seconds <= 3.5, f"status {status}", {"seconds": seconds})


def fill(pipe: int) -> None:
    """Until not one byte more goes in."""
    flags = fcntl.fcntl(pipe, fcntl.F_GETFL)
    fcntl.fcntl(pipe, fcntl.F_SETFL, flags | os.O_NONBLOCK)
    with suppress(BlockingIOError):
        while True:
            os.write(pipe, b"x")
    fcntl.fcntl(pipe, fcntl.F_SETFL, flags)


@item("progress", "SIGHUP ends a run in order, as SIGTERM does")
def hangup(folder: Path) -> Answer:
    script(folder, "def objective(config):\n    time.sleep(60)\n", "train.py")
    mark = new_mark()
    process = subprocess.Popen(
        list(map(str, farthing("run", "train.py:objective", "--budget", "60s", "--storage", "study.db", "--quiet"))),
        cwd=folder, env=environment(mark), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    deadline = time.monotonic() + 30.0
    while not _trials(folder / "study.db") and time.monotonic() < deadline:
        time.sleep(0.1)
    time.sleep(1.0)
    process.send_signal(signal.SIGHUP)
    status = waited(process, mark, 15.0)
    statuses = [trial.status.value for trial in read_study(folder / "study.db").trials]
    return Answer(status in (129, 143) and statuses == ["interrupted"], f"status {status}, trials {statuses}")
