"""Objectives that take memory, or write where and as much as they like."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.attack.objectives.registry import Config, hostile

MEGABYTE = 1 << 20
LIMIT = "500MB"


@hostile(trial_memory=LIMIT, workers=(1, 2))
def takes_memory(config: Config) -> float:
    held = [b"x" * (50 * MEGABYTE) for _ in range(40)]
    time.sleep(60)
    return float(len(held))


@hostile(trial_memory=LIMIT)
def takes_memory_in_children(config: Config) -> float:
    for _ in range(4):
        if os.fork() == 0:
            takes_memory(config)
            os._exit(0)
    time.sleep(60)
    return config["x"]


@hostile(trial_memory=LIMIT)
def takes_memory_slowly(config: Config) -> float:
    held = []
    while len(held) < 2000:
        held.append(b"x" * MEGABYTE)
        time.sleep(0.002)
    return float(len(held))


@hostile()
def fills_shared_memory(config: Config) -> float:
    """A hundred megabytes; the file is named after the attack, which removes it."""
    path = Path(f"/dev/shm/attack-{os.environ.get('FARTHING_ATTACK', 'none')}")
    path.write_bytes(bytes(100 * MEGABYTE))
    time.sleep(60)
    return config["x"]


@hostile(peers=True)
def writes_a_lot(config: Config) -> float:
    for _ in range(50):
        sys.stdout.write("x" * MEGABYTE + "\n")
        sys.stderr.write("y" * MEGABYTE + "\n")
    return config["x"]


@hostile(workers=(1, 2))
def writes_for_ever(config: Config) -> float:
    while True:
        os.write(1, b"x" * 65536)
        os.write(2, b"y" * 65536)


@hostile()
def writes_escape_codes(config: Config) -> float:
    os.write(2, b"\x1b[2J\x1b]0;owned\x07\x1b[?1049h")
    raise ValueError("\x1b[2Jgone\x07")


@hostile()
def closes_its_standard_files(config: Config) -> float:
    for number in (0, 1, 2):
        os.close(number)
    return config["x"]


@hostile()
def closes_all_files(config: Config) -> float:
    os.closerange(0, 1024)
    return config["x"]


@hostile()
def writes_into_every_file(config: Config) -> float:
    for name in os.listdir("/proc/self/fd"):
        try:
            os.write(int(name), b"hello " * 1000)
        except OSError:
            continue
    return config["x"]


@hostile()
def redirects_every_file(config: Config) -> float:
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in range(64):
        if number != nothing:
            os.dup2(nothing, number)
    time.sleep(60)
    return config["x"]


@hostile()
def removes_its_folder(config: Config) -> float:
    folder = tempfile.mkdtemp()
    os.chdir(folder)
    shutil.rmtree(folder)
    return config["x"]


@hostile()
def makes_all_files_unreadable(config: Config) -> float:
    os.umask(0o777)
    return config["x"]
