"""Hostile objectives that yield."""

from __future__ import annotations

import ctypes
import os
import signal
import time
from collections.abc import Iterator

from benchmarks.attack.objectives.registry import Config, hostile

LONG = 60.0


@hostile(workers=(1, 2))
def yields_for_ever(config: Config) -> Iterator[float]:
    while True:
        yield config["x"]


@hostile(workers=(1, 2))
def yields_and_hangs(config: Config) -> Iterator[float]:
    yield config["x"]
    time.sleep(LONG)


@hostile()
def hangs_before_it_yields(config: Config) -> Iterator[float]:
    time.sleep(LONG)
    yield config["x"]


@hostile()
def hangs_when_it_is_closed(config: Config) -> Iterator[float]:
    try:
        while True:
            time.sleep(0.1)
            yield config["x"]
    except GeneratorExit:
        time.sleep(LONG)
        raise


@hostile()
def hangs_in_finally_of_a_training(config: Config) -> Iterator[float]:
    try:
        for _ in range(1000):
            time.sleep(0.1)
            yield config["x"]
    finally:
        time.sleep(LONG)


@hostile()
def does_not_want_to_be_closed(config: Config) -> Iterator[float]:
    while True:
        try:
            time.sleep(0.05)
            yield config["x"]
        except GeneratorExit:
            continue


@hostile()
def holds_the_gil_between_steps(config: Config) -> Iterator[float]:
    yield config["x"]
    ctypes.PyDLL(None).sleep(int(LONG))
    yield config["x"]


@hostile()
def stops_itself_between_steps(config: Config) -> Iterator[float]:
    yield config["x"]
    os.kill(os.getpid(), signal.SIGSTOP)
    yield config["x"]


@hostile()
def dies_between_steps(config: Config) -> Iterator[float]:
    yield config["x"]
    os._exit(1)


@hostile()
def catches_everything_between_steps(config: Config) -> Iterator[float]:
    yield config["x"]
    while True:
        try:
            time.sleep(LONG)
        except BaseException:
            continue


@hostile()
def leaves_a_daemon_between_steps(config: Config) -> Iterator[float]:
    for _ in range(3):
        yield config["x"]
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                time.sleep(LONG)
            os._exit(0)
        os.wait()


@hostile()
def yields_nonsense(config: Config) -> Iterator[object]:
    yield {"step": 1}
    yield float("nan")


@hostile()
def yields_a_note_of_20_megabytes(config: Config) -> Iterator[object]:
    for _ in range(3):
        yield {"value": config["x"], "note": "x" * 20_000_000}
