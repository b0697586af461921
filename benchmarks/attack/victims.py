"""The nursery of the studies that are killed: it forks a process for each, which starts without importing anything.

It reads lines of JSON, {"mode", "path", "log", "seed", "budget"}, and answers each with the number of the process that
lives this study. A further line, empty, means that this process is to be waited for; the answer is its exit status.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import traceback

import farthing as ft
from benchmarks.attack.logged import SPACE, live, value_of


def born(order: dict[str, object]) -> int:
    if child := os.fork():
        return child
    status = 1
    try:
        os.setsid()
        live(**order)  # type: ignore[arg-type]
        status = 0
    except BaseException:
        traceback.print_exc()
    os._exit(status)


def main() -> None:
    import cloudpickle  # noqa: F401  # what is imported late is imported now

    for policy in ("sobol", "ei"):
        ft.tune(value_of, SPACE, "8 evaluations", policy=policy, seed=0, progress=False)
    print("ready", flush=True)
    child = 0
    for line in sys.stdin:
        if line.strip():
            child = born(json.loads(line))
            print(child, flush=True)
        else:
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            child = 0
            print(status, flush=True)
    if child:  # whoever attacks has gone: an endless study must not outlive it
        os.kill(child, signal.SIGKILL)


if __name__ == "__main__":
    main()
