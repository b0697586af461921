"""What is left of a run that was killed; and memory as the kernel shares it."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

from benchmarks.attack.items.registry import Answer, error_of, item, program, said, script
from benchmarks.attack.processes import end_marked, environment, farthing, left_after, new_mark, python

GRACE_SECONDS = 5.0

RUN = """
import ctypes
def objective(config):
    open("begun", "w").write(str(os.getpid()))
    WORK
    time.sleep(60)
    return 1.0
tune(objective, space, "60s", policy="random", storage="study.db", progress=False)
"""
DAEMON = """
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            time.sleep(60)
            os._exit(0)
        os._exit(0)
    os.wait()
"""


def left_of_a_killed_run(work: str, folder: Path) -> Answer:
    """The run is killed once its objective works; whatever is alive five seconds later is an orphan."""
    mark, began = new_mark(), folder / "begun"
    process = subprocess.Popen(
        list(map(str, python(script(folder, RUN.replace("    WORK\n", work))))), cwd=folder, env=environment(mark),
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    deadline = time.monotonic() + 30.0
    while not began.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.7)
    process.kill()
    process.wait()
    killed = time.monotonic()
    left = left_after(mark, GRACE_SECONDS)
    seconds = time.monotonic() - killed
    end_marked(mark)
    return Answer(not left and began.exists(), f"{len(left)} processes left", {"seconds": seconds})


@item("orphans", "a worker that sleeps ends with its run")
def sleeping(folder: Path) -> Answer:
    return left_of_a_killed_run("    pass\n", folder)


@item("orphans", "a worker that holds the GIL in C ends with its run")
def holding_the_gil(folder: Path) -> Answer:
    return left_of_a_killed_run("    ctypes.PyDLL(None).sleep(60)\n", folder)


@item("orphans", "a worker that is stopped ends with its run")
def stopped(folder: Path) -> Answer:
    return left_of_a_killed_run("    os.kill(os.getpid(), signal.SIGSTOP)\n", folder)


@item("orphans", "a daemon of an objective ends with its run")
def daemonised(folder: Path) -> Answer:
    return left_of_a_killed_run(DAEMON, folder)


@item("orphans", "a daemon and a worker that holds the GIL end with their run")
def daemonised_with_gil(folder: Path) -> Answer:
    return left_of_a_killed_run(DAEMON + "    ctypes.PyDLL(None).sleep(60)\n", folder)


@item("orphans", "a daemon ends with the trial that started it")
def daemon_of_a_trial(folder: Path) -> Answer:
    code = """
    def objective(config):
DAEMON
        return 1.0
    tune(objective, space, "30s, 1 evaluation", policy="random", progress=False)
    """.replace("DAEMON", DAEMON.replace("\n", "\n    "))
    mark = new_mark()
    ended = program(folder, code, mark=mark)
    left = left_after(mark, 2.0)
    end_marked(mark)
    return Answer(ended.status == 0 and not left, f"{len(left)} processes left")


@item("orphans", "folders of killed `--command` runs are removed by the next run")
def temporary_folders(folder: Path) -> Answer:
    temporary = folder / "tmp"
    temporary.mkdir()
    (folder / "space.toml").write_text('x = {type = "real", low = 0.0, high = 1.0}\n')
    command = ["--command", "sh -c 'echo x > begun; sleep 0.3; echo {x}'", "--space", "space.toml", "--quiet"]
    for _ in range(3):
        mark = new_mark()
        (folder / "begun").unlink(missing_ok=True)
        process = subprocess.Popen(
            list(map(str, farthing("run", *command, "--budget", "60s"))), cwd=folder, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment(mark, TMPDIR=str(temporary)),
        )  # fmt: skip
        deadline = time.monotonic() + 20.0
        while not (folder / "begun").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        with suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL)
        process.wait()
        left_after(mark, GRACE_SECONDS)
        end_marked(mark)
    before = len(list(temporary.iterdir()))
    last = farthing("run", *command, "--budget", "1 evaluation")
    subprocess.run(
        list(map(str, last)), cwd=folder, env=environment(new_mark(), TMPDIR=str(temporary)), check=False,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    after = len(list(temporary.iterdir()))
    return Answer(after == 0, f"{before} after three kills, {after} after the next run")


@item("memory", "forks that share memory are not killed for it")
def shared_memory(folder: Path) -> Answer:
    code = """
    def objective(config):
        held = os.urandom(1 << 20) * 200
        children = []
        for _ in range(4):
            if (child := os.fork()) == 0:
                time.sleep(1.5)
                os._exit(len(held) % 2)
            children.append(child)
        for child in children:
            os.waitpid(child, 0)
        return 1.0
    study = tune(objective, space, "60s, 1 evaluation", policy="random", trial_memory="500MB", progress=False)
    say(status=study.trials[0].status.value)
    """
    found = said(ended := program(folder, code))
    return Answer(found.get("status") == "complete", f"{found.get('status')} {error_of(ended)}")


IN_SHARED_MEMORY = """
import mmap
def objective(config):
    name = f"/dev/shm/attack-{os.getpid()}"
    file = os.open(name, os.O_RDWR | os.O_CREAT, 0o600)
    os.unlink(name)
    os.truncate(file, 600 << 20)
    held = mmap.mmap(file, 600 << 20) if sys.argv[1] == "mapped" else None
    for start in range(0, 600 << 20, 1 << 20):
        if held is None:
            os.pwrite(file, b"x" * (1 << 20), start)
        else:
            held[start : start + (1 << 20)] = b"x" * (1 << 20)
    time.sleep(3)
    return 1.0
study = tune(objective, space, "30s, 1 evaluation", policy="random", trial_memory="300MB", progress=False)
say(status=study.trials[0].status.value)
"""


@item("memory", "shared memory that a trial has mapped counts as its memory")
def mapped_shared_memory(folder: Path) -> Answer:
    found = said(ended := program(folder, IN_SHARED_MEMORY, "mapped"))
    return Answer(found.get("status") == "killed", f"{found.get('status')} {error_of(ended)}")


@item("memory", "a file in /dev/shm that a trial has open counts as its memory")
def open_shared_memory(folder: Path) -> Answer:
    found = said(ended := program(folder, IN_SHARED_MEMORY, "open"))
    return Answer(found.get("status") == "killed", f"{found.get('status')} {error_of(ended)}")
