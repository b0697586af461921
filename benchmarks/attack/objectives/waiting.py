"""Objectives that do not end when they should."""

from __future__ import annotations

import asyncio
import ctypes
import os
import re
import select
import signal
import sys
import threading
import time

from benchmarks.attack.objectives.registry import Config, hostile

LONG = 60.0


@hostile(peers=True, workers=(1, 2))
def sleeps(config: Config) -> float:
    time.sleep(LONG)
    return config["x"]


@hostile(peers=True)
def sleeps_a_little(config: Config) -> float:
    time.sleep(0.3)
    return config["x"]


@hostile(peers=True, workers=(1, 2))
def ignores_sigterm(config: Config) -> float:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(LONG)
    return config["x"]


@hostile()
def ignores_every_signal(config: Config) -> float:
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        try:
            signal.signal(number, signal.SIG_IGN)
        except OSError:
            continue
    time.sleep(LONG)
    return config["x"]


@hostile()
def blocks_every_signal(config: Config) -> float:
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    time.sleep(LONG)
    return config["x"]


@hostile(peers=True)
def catches_everything(config: Config) -> float:
    while True:
        try:
            time.sleep(LONG)
        except BaseException:
            continue


@hostile(peers=True, workers=(1, 2))
def loops(config: Config) -> float:
    while True:
        pass


@hostile(peers=True, workers=(1, 2))
def holds_the_gil_asleep(config: Config) -> float:
    ctypes.PyDLL(None).sleep(int(LONG))
    return config["x"]


@hostile(peers=True)
def holds_the_gil_counting(config: Config) -> float:
    return float(str(7 ** (7**9)) > "")


@hostile(peers=True)
def holds_the_gil_matching(config: Config) -> float:
    return float(re.match(r"(a+)+$", "a" * 60 + "b") is None)


@hostile(peers=True)
def waits_for_a_lock_for_ever(config: Config) -> float:
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()
    return config["x"]


@hostile()
def waits_in_finally(config: Config) -> float:
    try:
        time.sleep(LONG)
    finally:
        time.sleep(LONG)
    return config["x"]


@hostile()
def handles_sigterm_slowly(config: Config) -> float:
    signal.signal(signal.SIGTERM, lambda *_: time.sleep(LONG))
    time.sleep(LONG)
    return config["x"]


@hostile()
def is_showered_with_alarms(config: Config) -> float:
    signal.signal(signal.SIGALRM, lambda *_: None)
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
    time.sleep(LONG)
    return config["x"]


@hostile(peers=True)
def reads_standard_input(config: Config) -> float:
    return float(len(sys.stdin.read()) + len(os.read(0, 1)))


@hostile()
def reads_a_pipe_that_nobody_writes(config: Config) -> float:
    reading, _ = os.pipe()
    select.select([reading], [], [])
    return config["x"]


@hostile(peers=True)
def runs_an_event_loop_for_ever(config: Config) -> float:
    async def work() -> None:
        while True:
            await asyncio.sleep(0.1)

    asyncio.run(work())
    return config["x"]


@hostile()
def stops_itself(config: Config) -> float:
    os.kill(os.getpid(), signal.SIGSTOP)
    return config["x"]


class _SlowToGo:
    def __del__(self) -> None:
        time.sleep(LONG)


@hostile()
def waits_in_a_destructor(config: Config) -> float:
    gone = _SlowToGo()
    del gone
    return config["x"]


@hostile()
def leaves_threads_running(config: Config) -> float:
    for _ in range(20):
        threading.Thread(target=time.sleep, args=(LONG,)).start()
    return config["x"]


@hostile()
def leaves_busy_threads_running(config: Config) -> float:
    def spin() -> None:
        while True:
            pass

    for _ in range(4):
        threading.Thread(target=spin, daemon=True).start()
    time.sleep(0.5)
    return config["x"]


@hostile()
def waits_at_exit(config: Config) -> float:
    import atexit

    atexit.register(time.sleep, LONG)
    raise SystemExit(0)
