"""Objectives that start processes and leave them, or end in odd ways."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import resource
import signal
import subprocess
import time

from benchmarks.attack.objectives.registry import Config, hostile

LONG = 60.0


def _sleep_for_long(deaf: bool = False) -> None:
    """As a fork, which never returns."""
    if deaf:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(LONG)
    os._exit(0)


@hostile(workers=(1, 2))
def leaves_a_fork(config: Config) -> float:
    if os.fork() == 0:
        _sleep_for_long()
    return config["x"]


@hostile()
def leaves_twenty_deaf_forks(config: Config) -> float:
    for _ in range(20):
        if os.fork() == 0:
            _sleep_for_long(deaf=True)
    time.sleep(LONG)
    return config["x"]


@hostile(workers=(1, 2))
def leaves_a_daemon(config: Config) -> float:
    """Forked twice, in a session of its own, so that it has no parent that we know."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            _sleep_for_long(deaf=True)
        os._exit(0)
    os.wait()
    time.sleep(0.2)
    return config["x"]


@hostile()
def leaves_a_daemon_and_dies(config: Config) -> float:
    leaves_a_daemon(config)
    os._exit(3)


@hostile()
def leaves_a_program(config: Config) -> float:
    subprocess.Popen(["sh", "-c", "trap '' TERM HUP INT; sleep 60 & sleep 60"])
    return config["x"]


@hostile(workers=(1, 2))
def leaves_a_program_in_its_own_session(config: Config) -> float:
    subprocess.Popen(["sh", "-c", "trap '' TERM; sleep 60; sleep 60"], start_new_session=True)
    time.sleep(LONG)
    return config["x"]


@hostile()
def leaves_stopped_children(config: Config) -> float:
    for _ in range(3):
        if (child := os.fork()) == 0:
            _sleep_for_long()
        os.kill(child, signal.SIGSTOP)
    return config["x"]


@hostile()
def leaves_zombies(config: Config) -> float:
    for _ in range(50):
        if os.fork() == 0:
            os._exit(0)
    time.sleep(0.1)
    return config["x"]


@hostile()
def leaves_a_pool_open(config: Config) -> float:
    pool = multiprocessing.get_context("fork").Pool(3)
    pool.map_async(time.sleep, [LONG] * 6)
    time.sleep(0.2)
    return config["x"]


@hostile()
def leaves_a_process_of_multiprocessing(config: Config) -> float:
    multiprocessing.get_context("spawn").Process(target=time.sleep, args=(LONG,), daemon=False).start()
    time.sleep(0.2)
    return config["x"]


@hostile()
def forks_and_both_return(config: Config) -> float:
    os.fork()
    return config["x"]


@hostile()
def waits_for_a_deaf_program(config: Config) -> float:
    subprocess.run(["sh", "-c", "trap '' TERM INT; while :; do sleep 1; done"])
    return config["x"]


@hostile(peers=True)
def ends_its_process(config: Config) -> float:
    os._exit(0)


@hostile(peers=True)
def is_killed(config: Config) -> float:
    os.kill(os.getpid(), signal.SIGKILL)
    return config["x"]


@hostile()
def kills_its_group(config: Config) -> float:
    os.killpg(0, signal.SIGKILL)
    return config["x"]


@hostile(peers=True)
def crashes(config: Config) -> float:
    return float(ctypes.string_at(0)[0])


@hostile()
def becomes_another_program(config: Config) -> float:
    os.execvp("sleep", ["sleep", "60"])


@hostile()
def leaves_its_group(config: Config) -> float:
    if os.fork() == 0:
        os.setsid()
        _sleep_for_long(deaf=True)
    time.sleep(LONG)
    return config["x"]


@hostile()
def forgets_who_its_parent_is(config: Config) -> float:
    """Undoes what would end it with its parent, and keeps its children from knowing."""
    set_death_signal, set_subreaper = 1, 36
    libc = ctypes.CDLL(None)
    libc.prctl(set_death_signal, 0)
    libc.prctl(set_subreaper, 0)
    return leaves_a_daemon(config)


@hostile()
def becomes_nice(config: Config) -> float:
    os.nice(19)
    time.sleep(LONG)
    return config["x"]


@hostile()
def may_open_no_files(config: Config) -> float:
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))
    return config["x"]


@hostile()
def may_use_one_second_of_cpu(config: Config) -> float:
    resource.setrlimit(resource.RLIMIT_CPU, (1, 1))
    while True:
        pass


@hostile()
def may_use_no_memory(config: Config) -> float:
    resource.setrlimit(resource.RLIMIT_AS, (1 << 20, 1 << 20))
    return float(len(bytes(1 << 26)))


@hostile()
def shares_much_memory_with_forks(config: Config) -> float:
    held = os.urandom(1 << 20) * 100
    for _ in range(4):
        if os.fork() == 0:
            _sleep_for_long()
    time.sleep(1.0)
    return config["x"] + 0 * len(held)
