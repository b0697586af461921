"""What the nodes of the cluster evaluate. They import this module; the tests read what it says."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import farthing as ft

Config = dict[str, Any]


def node() -> str:
    """Which node of the cluster this is: several may be on one machine."""
    return os.environ["RAY_RAYLET_PID"]


def value_of(config: Config) -> float:
    return float((config["x"] - 0.3) ** 2)


def nap(seconds: float, config: Config) -> dict[str, Any]:
    began = time.time()
    time.sleep(seconds)
    return {"value": value_of(config), "node": node(), "began": began, "ended": time.time()}


def is_first(folder: Path, what: str) -> bool:
    """Whether this happens for the first time, over all workers."""
    try:
        (folder / what).touch(exist_ok=False)
    except OSError:
        return False
    return True


def actor_of_this_worker() -> int:
    """Worker, supervisor, actor."""
    return int(Path(f"/proc/{os.getppid()}/stat").read_text().rpartition(")")[2].split()[1])


def with_accidents(folder: Path, config: Config) -> dict[str, Any]:
    """The worker of trial 1 is killed; the actor of trial 2 is killed the first time, beside a child of its worker."""
    trial = ft.current_run().trial
    if trial == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    if trial == 2 and is_first(folder, "killed"):
        subprocess.Popen(["sleep", "300"], start_new_session=True, env={"LEFT_BY": str(folder)})
        os.kill(actor_of_this_worker(), signal.SIGKILL)
        time.sleep(60)
    return nap(0.2, config)


def hanging(folder: Path, config: Config) -> dict[str, Any]:
    """Trial 1 hangs, deaf to SIGTERM, and so does a child of it in a session of its own."""
    if ft.current_run().trial == 1:
        subprocess.Popen(["sleep", "300"], start_new_session=True, env={"LEFT_BY": str(folder)})
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(300)
    return nap(0.1, config)


def large(config: Config) -> float:
    """Trial 1 holds 400 MB."""
    held = bytearray(b"x") * (400_000_000 if ft.current_run().trial == 1 else 1)
    time.sleep(1.0 if ft.current_run().trial == 1 else 0.0)
    return len(held) + value_of(config)


def busy(config: Config) -> float:
    """Half a second of processor time, in half a second or more."""
    end = time.process_time() + 0.5
    while time.process_time() < end:
        sum(range(1000))
    return value_of(config)


def training(config: Config, steps: int = 4) -> Iterator[dict[str, Any]]:
    """Writes a checkpoint before each step is reported, and needs that of the step it starts from."""
    run = ft.current_run()
    state = run.checkpoint_dir / "state"
    if run.step:
        assert int(state.read_text()) >= run.step, "a checkpoint of an earlier step"
    for step in range(run.step + 1, steps + 1):
        state.write_text(str(step))
        yield {"value": value_of(config) + 1.0 / step, f"node_{step}": node()}


def moving(folder: Path, config: Config) -> Iterator[dict[str, Any]]:
    """Whoever trains where trial 0 began waits until trial 0 has been trained elsewhere."""
    first, moved = folder / "first", folder / "moved"
    trial = ft.current_run().trial
    for step in training(config):
        if trial == 0:
            (first if ft.current_run().step == 0 else moved).write_text(node())
        elif first.exists() and first.read_text() == node():
            while not moved.exists():
                time.sleep(0.05)
        yield step


def forgetful(config: Config) -> Iterator[dict[str, float]]:
    """Writes no checkpoints."""
    for step in range(1, 4):
        time.sleep(0.05)
        yield {"value": value_of(config) + 1.0 / step, "cost": 1.0}
