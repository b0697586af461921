"""Objectives that change the interpreter they run in."""

from __future__ import annotations

import builtins
import faulthandler
import gc
import os
import sys
import threading
import time
import warnings

from benchmarks.attack.objectives.registry import Config, hostile


@hostile()
def traces_every_line(config: Config) -> float:
    def trace(*_: object) -> object:
        return trace

    sys.settrace(trace)  # type: ignore[arg-type]
    return float(sum(range(1000)))


@hostile()
def is_ended_by_faulthandler(config: Config) -> float:
    faulthandler.dump_traceback_later(0.5, exit=True)
    time.sleep(60)
    return config["x"]


@hostile()
def stops_the_clocks(config: Config) -> float:
    for name in ("time", "monotonic", "perf_counter", "process_time"):
        setattr(time, name, lambda: 0.0)
    return config["x"]


@hostile()
def turns_the_clocks_back(config: Config) -> float:
    real = time.monotonic
    time.monotonic = time.perf_counter = lambda: -real()
    time.sleep(0.1)
    return config["x"]


@hostile()
def clears_its_environment(config: Config) -> float:
    os.environ.clear()
    sys.path.clear()
    return config["x"]


@hostile()
def forgets_all_modules(config: Config) -> float:
    sys.modules.clear()
    return config["x"]


@hostile()
def breaks_the_builtins(config: Config) -> float:
    builtins.open = None  # type: ignore[assignment]
    builtins.print = None  # type: ignore[assignment]
    sys.stdout = sys.stderr = None
    return config["x"]


@hostile()
def breaks_the_system_calls(config: Config) -> float:
    for name in ("read", "write", "kill", "fork", "getpid", "waitpid"):
        setattr(os, name, None)
    return config["x"]


@hostile()
def keeps_the_interpreter_to_itself(config: Config) -> float:
    sys.setswitchinterval(1000.0)
    while True:
        pass


@hostile()
def recurses_without_a_limit(config: Config) -> float:
    """Deeper than the stack: the process dies."""
    sys.setrecursionlimit(10**9)
    threading.stack_size(1 << 20)

    def deeper(n: int) -> int:
        return max([n], key=lambda _: deeper(n + 1))

    return float(deeper(0))


@hostile()
def makes_warnings_errors(config: Config) -> float:
    warnings.simplefilter("error")
    gc.disable()
    return config["x"]


@hostile()
def replaces_import(config: Config) -> float:
    def refuse(*_: object, **__: object) -> None:
        raise ImportError("no more imports")

    builtins.__import__ = refuse  # type: ignore[assignment]
    return config["x"]
