"""Whatever becomes of standard error, a run goes on, keeps its budget, records its trials and ends well."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import signal
import subprocess
import sys
import termios
import textwrap
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import farthing as ft
from warm_python import Script, WarmPython

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="pipes and terminals as Linux has them")

PYTHON = WarmPython()
BUDGET = 2.0  # seconds
LATE = 1.0  # seconds after the budget, on a busy machine
HANGS = 20.0  # seconds after which a run is taken to hang

SCRIPT = """
    import json, os, sys, threading, time
    import farthing as ft
    {before}

    def objective(config):
        time.sleep(0.01)
        return config["x"]

    with ft.Study(ft.Space(x=ft.Real(0, 1)), "2s", policy="random", seed=0, storage=sys.argv[1]) as study:
        began = time.perf_counter()
        study.run(objective)
        os.write(1, json.dumps([time.perf_counter() - began, len(study.trials)]).encode())
    """


class Failing:
    """Stands in for `sys.stderr`; the text of a class that scripts define."""

    RAISES = """
    class Stream:
        def write(self, text): raise RuntimeError("no")
        def flush(self): pass
        def isatty(self): raise RuntimeError("no")
    sys.stderr = Stream()
    """
    BLOCKS = """
    class Stream:
        def write(self, text): threading.Event().wait()
        def flush(self): pass
        def isatty(self): return False
    sys.stderr = Stream()
    """


@pytest.fixture(scope="module", autouse=True)
def _close() -> Iterator[None]:
    yield
    PYTHON.close()


@dataclass(frozen=True)
class Ended:
    """How a run ended: its status, and what it said of itself."""

    status: int
    said: bytes

    @property
    def seconds(self) -> float:
        return float(json.loads(self.said)[0]) if self.said else float("inf")

    @property
    def trials(self) -> int:
        return int(json.loads(self.said)[1]) if self.said else 0


def start(path: Path, stderr: int, before: str = "", script: str = SCRIPT) -> tuple[Script, int]:
    """A script that runs, and the pipe that its standard output can be read from."""
    output, stdout = os.pipe()
    text = textwrap.dedent(script).replace("{before}", textwrap.dedent(before))
    environment = {**os.environ, "TERM": "xterm-256color"}
    with open(os.devnull) as nothing:
        running = PYTHON.start(
            text, str(path), stdin=nothing.fileno(), stdout=stdout, stderr=stderr, environment=environment
        )
    os.close(stdout)
    return running, output


def end_of(running: Script, output: int) -> Ended:
    """Of a script, which is killed if it hangs."""
    running.connection.settimeout(HANGS)
    try:
        status = running.wait()
    except TimeoutError:
        os.kill(running.pid, signal.SIGKILL)
        status = running.wait()
    with open(output, "rb") as said:
        return Ended(status, said.read())


def requires_a_good_end(ended: Ended, path: Path) -> None:
    assert ended.status == 0, "the run was aborted, or hung and was killed (-9)"
    assert BUDGET - 0.5 < ended.seconds < BUDGET + LATE
    with ft.Study.resume(path) as study:
        assert study.count() == ended.trials > 10
        assert study.count(ft.Status.COMPLETE) >= ended.trials - 1
        assert study.ledger.total("seconds") == pytest.approx(ended.seconds, abs=LATE)


def full() -> tuple[int, list[int]]:
    return os.open("/dev/full", os.O_WRONLY), []


def broken_pipe() -> tuple[int, list[int]]:
    reader, writer = os.pipe()
    os.close(reader)
    return writer, []


def unread_pipe() -> tuple[int, list[int]]:
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
    os.write(writer, b"." * 3900)  # there is room for two lines more
    return writer, [reader]


def stopped_terminal() -> tuple[int, list[int]]:
    """As after Ctrl-S."""
    master, terminal = pty.openpty()
    termios.tcflow(terminal, termios.TCOOFF)
    return terminal, [master]


@pytest.mark.parametrize("made", [full, broken_pipe, unread_pipe, stopped_terminal])
def test_a_stream_that_takes_nothing_ends_and_delays_nothing(made: Callable[[], tuple[int, list[int]]], tmp_path):
    stderr, kept = made()
    running, output = start(tmp_path / "study.db", stderr)
    os.close(stderr)
    ended = end_of(running, output)
    for descriptor in kept:
        os.close(descriptor)
    requires_a_good_end(ended, tmp_path / "study.db")


@pytest.mark.parametrize(
    "before", ["sys.stderr = None", "sys.stderr.close()", Failing.RAISES, Failing.BLOCKS],
    ids=["none", "closed", "raises", "blocks"],
)  # fmt: skip
def test_what_a_program_puts_in_place_of_standard_error_ends_and_delays_nothing(before, tmp_path):
    stderr = os.open(os.devnull, os.O_WRONLY)
    running, output = start(tmp_path / "study.db", stderr, before)
    os.close(stderr)
    requires_a_good_end(end_of(running, output), tmp_path / "study.db")


def test_without_standard_error_the_channel_to_a_worker_does_not_take_its_place(tmp_path):
    """`2>&-`: what an objective writes to descriptor 2 would go into whatever file or socket has that number."""
    script = textwrap.dedent(SCRIPT).replace("{before}", "").replace("time.sleep(0.01)", "os.write(2, b'hello' * 99)")
    path = tmp_path / "study.db"
    shell = ["sh", "-c", 'exec "$@" 2>&-', "sh", sys.executable, "-c", script, str(path)]
    try:
        done = subprocess.run(shell, stdout=subprocess.PIPE, timeout=HANGS)
        ended = Ended(done.returncode, done.stdout)
    except subprocess.TimeoutExpired:
        ended = Ended(-signal.SIGKILL, b"")
    requires_a_good_end(ended, path)


HUNG_UP = """
    import fcntl, os, signal, sys, termios, time
    import farthing as ft

    os.setsid()
    fcntl.ioctl(2, termios.TIOCSCTTY, 0)
    {before}

    def objective(config):
        os.write(1, b".")
        time.sleep(0.3 if ft.current_run().trial < 8 else 60.0)
        return config["x"]

    with ft.Study(ft.Space(x=ft.Real(0, 1)), EVALUATIONS, policy="random", seed=0, storage=sys.argv[1]) as study:
        study.run(objective, isolate=True)
    """


@pytest.mark.parametrize(
    ("evaluations", "before", "status"),
    [
        (20, "signal.signal(signal.SIGHUP, signal.SIG_DFL)", 129),
        (8, "signal.signal(signal.SIGHUP, signal.SIG_IGN)", 0),
    ],
    ids=["hangup", "nohup"],
)  # fmt: skip
def test_a_terminal_that_is_closed_ends_the_run_in_order_unless_it_was_told_not_to_care(
    evaluations, before, status, tmp_path
):
    master, terminal = pty.openpty()
    path, script = tmp_path / "study.db", HUNG_UP.replace("EVALUATIONS", f"'{evaluations} evaluations, 60s'")
    running, output = start(path, terminal, before, script)
    os.close(terminal)
    os.read(output, 1)
    time.sleep(0.5)
    os.close(master)
    ended = end_of(running, output)
    assert ended.status == status, "of a program that a signal ended it is 128 and the signal's number"
    with ft.Study.resume(path) as study:
        found = [trial.status.value for trial in study.trials]
        if status == 0:
            assert found == ["complete"] * 8
        else:
            assert found[-1] == "interrupted"
            assert study.ledger.account("interrupted", "compute_seconds") > 0.0
