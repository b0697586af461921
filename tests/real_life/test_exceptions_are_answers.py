"""An objective that raises has answered: its worker goes on."""

from __future__ import annotations

import asyncio
import math
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import farthing as ft
from learners import LINE

pytestmark = [
    pytest.mark.skipif(os.name != "posix", reason="worker processes need POSIX"),
    pytest.mark.usefixtures("logged"),
]


def run(objective: Any, budget: str, **options: Any) -> ft.Study:
    study = ft.Study(LINE, budget, policy="random", seed=0)
    options = {"max_failures": None, **options} if takes_max_failures() else options
    return study.run(objective, isolate=True, progress=False, **options)


def takes_max_failures() -> bool:
    import inspect

    return "max_failures" in inspect.signature(ft.Study.run).parameters


def test_one_that_raises_does_about_as_many_trials_as_one_that_returns():
    def returns(config: dict[str, Any]) -> float:
        time.sleep(0.001)
        return config["x"]

    def raises(config: dict[str, Any]) -> float:
        time.sleep(0.001)
        raise ValueError("as always")

    counts = [len(run(objective, "2s").trials) for objective in (returns, raises)]
    assert counts[1] > 0.4 * counts[0], counts


class Raises:
    """Writes down its process, then does something in every trial but the last."""

    def __init__(self, note: Path, does: Any) -> None:
        self.note, self.does = note, does

    def __call__(self, config: dict[str, Any]) -> Any:
        with self.note.open("a") as file:
            file.write(f"{os.getpid()}\n")
        return 1.0 if ft.current_run().trial == 3 else self.does()

    @property
    def pids(self) -> list[int]:
        return [int(line) for line in self.note.read_text().split()]


def raising(error: BaseException) -> Any:
    def raises() -> None:
        raise error

    return raises


def fails_in_its_second_step() -> Iterator[float]:
    yield 1.0
    raise RuntimeError("diverged")


@pytest.mark.parametrize(
    "does",
    [
        raising(ValueError("no")), raising(SystemExit(3)), raising(asyncio.CancelledError()), lambda: math.nan,
        lambda: "text", lambda: {"cost": 1.0}, fails_in_its_second_step,
    ],
    ids=["ValueError", "SystemExit", "CancelledError", "nan", "text", "no value", "second step"],
)  # fmt: skip
def test_whatever_it_raises_or_returns_its_process_is_used_again(tmp_path, does):
    objective = Raises(tmp_path / "pids", does)
    study = run(objective, "4 evaluations")
    assert [trial.status.value for trial in study.trials] == [*["failed"] * 3, "complete"]
    assert len(objective.pids) == 4
    assert len(set(objective.pids)) == 1


def crash() -> None:
    os.abort()


@pytest.mark.parametrize(
    "does",
    [raising(MemoryError()), crash, raising(RuntimeError("CUDA error: device-side assert triggered"))],
    ids=["MemoryError", "crash", "CUDA"],
)
def test_a_crash_and_what_suggests_harm_end_it(tmp_path, does):
    """On the commit before every failure did; so this also asks that one that only raises goes on."""
    objective, harmless = Raises(tmp_path / "pids", does), Raises(tmp_path / "others", raising(ValueError("no")))
    assert [trial.status.value for trial in run(objective, "4 evaluations").trials] == [*["failed"] * 3, "complete"]
    assert len(set(objective.pids)) == 4
    run(harmless, "4 evaluations")
    assert len(set(harmless.pids)) == 1


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_what_it_held_is_freed(tmp_path):
    """40 MB in each of 20 frames that raise; the traceback that is kept is text."""
    note = tmp_path / "resident"

    def objective(config: dict[str, Any]) -> float:
        held = bytearray(b"x") * 40_000_000
        with note.open("a") as file:
            file.write(f"{os.getpid()} {Path('/proc/self/statm').read_text().split()[1]}\n")
        raise ValueError(len(held))

    run(objective, "20 evaluations")
    pids, pages = zip(*(map(int, line.split()) for line in note.read_text().splitlines()), strict=True)
    assert len(set(pids)) == 1
    assert (max(pages) - pages[0]) * os.sysconf("SC_PAGE_SIZE") < 2 * 40_000_000
