"""Studies of thousands of observations: time and memory per suggestion, compared with Optuna, and what is lost.

    python -m benchmarks.scale                      half an hour; writes docs/scale.md and docs/data/scale.json
    python -m benchmarks.scale --part pending       one part again: sizes, regret, pending or files
    QUICK=1 python -m benchmarks.scale              small sizes; prints only
    python -m benchmarks.scale --page               the page again, from its data

One thread and processor time throughout. Each system and size has a process of its own, whose peak of memory counts.
"""

from __future__ import annotations

import os

from benchmarks.common.environments import THREAD_LIMITS, child_environment, ensure, module_command, quick

os.environ.update(dict.fromkeys(THREAD_LIMITS, "1"))  # before NumPy is imported

import json
import signal
import statistics
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from benchmarks.common.command import parser
from benchmarks.common.documents import kept_data, machine, publish, write_page
from benchmarks.common.environments import ROOT
from benchmarks.scale.files import file_times
from benchmarks.scale.functions import HELD_OUT
from benchmarks.scale.pending import pending_times
from benchmarks.scale.regret import regrets
from benchmarks.scale.text import document

DIMENSIONS = (5, 20)
SYSTEMS = {"farthing": ("farthing", ""), "tpe": ("optuna", "tpe"), "gp": ("optuna", "gp")}
POLICIES = ("ei", "cei", "auto")
PENDING = 64
TOO_SLOW = 2.0  # seconds of a suggestion, from which on a system is not asked at a larger n
LIMIT = 120  # seconds of processor time of a process, after which it is given up


@dataclass(frozen=True)
class Setting:
    """How much is measured."""

    sizes: tuple[int, ...]
    asks: int
    observations: int  # at which studies go on
    evaluations: int
    repetitions: int
    pending_at: tuple[int, ...]
    pending_asks: int
    trials: tuple[int, ...]  # of files


FULL = Setting((100, 1_000, 3_000, 10_000), 5, 2_000, 10, 3, (100, 1_000), 21, (10_000, 50_000))
SHORT = Setting((100, 1_500), 3, 1_200, 2, 1, (100,), 5, (1_000, 2_000))


def cell(system: str, n: int, dimensions: int, asks: int) -> dict[str, Any]:
    """What one process answers; why it gave none, if it was ended at the limit."""
    where, which = SYSTEMS[system]
    arguments = ["--n", n, "--dimensions", dimensions, "--asks", asks, "--limit", LIMIT, "--system", which]
    command = module_command(where, f"scale.peers.{where}_peer", arguments)
    ran = subprocess.run(command, cwd=ROOT, env=child_environment(), stdout=subprocess.PIPE, text=True, check=False)
    if ran.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        return {"given_up": f"{LIMIT} s were not enough for {asks + 1} suggestions"}
    ran.check_returncode()
    answer: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    return answer


def sizes(setting: Setting) -> dict[str, Any]:
    """By system, dimensions and n. A system that is too slow is given up at the next larger n."""
    found: dict[str, Any] = {}
    for system in SYSTEMS:
        ensure(SYSTEMS[system][0])
        for dimensions in DIMENSIONS:
            cells = found.setdefault(system, {}).setdefault(str(dimensions), {})
            for n in setting.sizes:
                cells[str(n)] = found_cell = _cell_after(cells, system, n, dimensions, setting.asks)
                print(system, dimensions, n, found_cell, flush=True)
                if "given_up" in found_cell:
                    break
    return found


def _cell_after(cells: dict[str, Any], system: str, n: int, dimensions: int, asks: int) -> dict[str, Any]:
    """The cell at n, unless a suggestion took too long at the n before."""
    for smaller, one in cells.items():
        taken = statistics.median(one["later"])
        if taken > TOO_SLOW:
            return {"given_up": f"with {int(smaller):,} a suggestion took {taken:.1f} s"}
    return cell(system, n, dimensions, asks)


def pending(setting: Setting) -> dict[str, Any]:
    """By n and policy."""
    return {
        str(n): {policy: pending_times(policy, n, PENDING, setting.pending_asks) for policy in POLICIES}
        for n in setting.pending_at
    }


def regret(setting: Setting) -> dict[str, Any]:
    found = regrets(HELD_OUT, setting.observations, setting.evaluations, setting.repetitions)
    return {"observations": setting.observations, "evaluations": setting.evaluations, "tasks": found}


def files(setting: Setting) -> dict[str, Any]:
    """By the number of trials."""
    return {str(trials): file_times(trials) for trials in setting.trials}


PARTS: dict[str, Callable[[Setting], dict[str, Any]]] = {
    "sizes": sizes, "regret": regret, "pending": pending, "files": files,
}  # fmt: skip


def main() -> None:
    arguments = parser(__doc__, has_page=True)
    arguments.add_argument("--part", choices=PARTS, help="measure one part again; the others are kept")
    given = arguments.parse_args()
    if given.page:
        data = kept_data("scale")
        write_page("scale", document(data), data)
        return
    data = kept_data("scale") if given.part else {}
    setting = SHORT if quick() else FULL
    for name in [given.part] if given.part else PARTS:
        data[name] = PARTS[name](setting)
    data |= {"machine": machine(), "running": PENDING}
    publish("scale", document(data), data, is_whole=not quick())


if __name__ == "__main__":
    main()
