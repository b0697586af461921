"""The process to be killed: it runs a study with a file and announces each trial once it is told.

As a script it reads lines of "path policy milliseconds". For each it forks a child that runs the study, kills it with
SIGKILL after that time (0: at once), waits for it and writes "ended <status>". Forks start without importing anything,
so that kills come at every moment of a study's life from its first system call on. With two arguments it runs that
study in its own process.
"""

from __future__ import annotations

import os
import signal
import sys
import time
import traceback
from typing import Any

import farthing as ft

SPACE = ft.Space(
    x=ft.Real(-5, 10),
    depth=ft.Integer(1, 16),
    kind=ft.Choice(["a", "b", "c"]),
    rate=ft.Real(1e-3, 1.0, log=True, when={"kind": "b"}),
)
BUDGET = "100000 evaluations"
SEED = 5


def value_of(config: dict[str, Any]) -> float:
    return (config["x"] - 2.0) ** 2 + 0.1 * config["depth"] + config.get("rate", 0.5)


def objective(config: dict[str, Any]) -> float:
    """Takes 3 to 10 milliseconds, and fails for deep trees of kind c."""
    time.sleep(0.003 + 0.007 * config["depth"] / 16)
    if config["kind"] == "c" and config["depth"] > 12:
        raise ValueError("too deep")
    return value_of(config)


def announce(study: ft.Study, trial: ft.Trial) -> None:
    """One write, so that a line is whole or not there."""
    os.write(1, f"told {trial.number} {trial.value!r}\n".encode())


def live(path: str, policy: str) -> None:
    ft.Study(SPACE, BUDGET, policy=policy, seed=SEED, storage=path).run(objective, progress=False, callbacks=[announce])


def nurse() -> None:
    for policy in ("random", "sobol", "ei"):  # what is imported late is imported now
        ft.tune(value_of, SPACE, "8 evaluations", policy=policy, seed=0, progress=False)
    os.write(1, b"ready\n")
    for line in sys.stdin:
        path, policy, milliseconds = line.rstrip("\n").split("\t")
        child = os.fork()
        if child == 0:
            try:
                live(path, policy)
            except BaseException:
                traceback.print_exc()
            os._exit(1)
        time.sleep(float(milliseconds) / 1000)
        os.kill(child, signal.SIGKILL)  # not waited for yet, so the number is still the child's
        _, status = os.waitpid(child, 0)
        os.write(1, f"ended {os.waitstatus_to_exitcode(status)}\n".encode())


if __name__ == "__main__":
    if len(sys.argv) > 1:
        live(*sys.argv[1:])
    else:
        nurse()
