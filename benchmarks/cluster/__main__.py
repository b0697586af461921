"""Studies on a simulated cluster of up to 10,000 workers: decisions per second, exactness of the ledger, memory.

    python -m benchmarks.cluster              10 minutes; writes docs/cluster-scale.md and docs/data/cluster-scale.json
    python -m benchmarks.cluster --part runs  one part again: runs or pending
    QUICK=1 python -m benchmarks.cluster      small sizes; prints only
    python -m benchmarks.cluster --page       the page again, from its data

One thread and processor time throughout: what Farthing takes, and not what is simulated. Each run has a process of its
own, whose peak of memory counts.
"""

from __future__ import annotations

import os

from benchmarks.common.environments import THREAD_LIMITS, child_environment, quick

os.environ.update(dict.fromkeys(THREAD_LIMITS, "1"))  # before NumPy is imported

import json
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from benchmarks.cluster.pending import STEPS, pending_seconds
from benchmarks.cluster.text import document
from benchmarks.common.command import parser
from benchmarks.common.documents import kept_data, machine, publish, write_page
from benchmarks.common.environments import ROOT, module_command

LEARNERS = ("thaw", "bapi")  # policies for learners that yield


@dataclass(frozen=True)
class Run:
    """One simulated study: its policy, how many workers it has, for about how many evaluations its budget is, and the
    steps of a training (0: black boxes)."""

    policy: str
    workers: int
    trials: int
    steps: int = 0


@dataclass(frozen=True)
class Setting:
    """How much is measured."""

    runs: tuple[Run, ...]
    running: tuple[int, ...]
    known: dict[str, int]  # results, by policy
    repetitions: int


FULL = Setting(
    (
        Run("random", 10, 2_000), Run("random", 100, 2_000), Run("random", 1_000, 4_000), Run("random", 10_000, 1_000),
        Run("carbo", 10, 200), Run("carbo", 100, 200), Run("carbo", 1_000, 150),
        Run("thaw", 10, 4, STEPS), Run("thaw", 100, 6, STEPS), Run("thaw", 1_000, 20, STEPS),
        Run("bapi", 10, 10, STEPS), Run("bapi", 100, 15, STEPS),
    ),
    (0, 64, 1_000), {"ei": 300, "carbo": 300, "thaw": 300, "bapi": 100}, 5,
)  # fmt: skip
SHORT = Setting(
    (Run("random", 10, 100), Run("random", 100, 100), Run("carbo", 100, 20), Run("thaw", 10, 1, STEPS)),
    (0, 16), {"ei": 40, "thaw": 20}, 2,
)  # fmt: skip


def runs(setting: Setting) -> list[dict[str, Any]]:
    return [answer(run) for run in setting.runs]


def answer(run: Run) -> dict[str, Any]:
    """What the process of a run answers."""
    options = {"policy": run.policy, "workers": run.workers, "trials": run.trials, "steps": run.steps}
    arguments = [text for name, value in options.items() for text in (f"--{name}", value)]
    command = module_command("farthing", "cluster.runs", arguments)
    ran = subprocess.run(command, cwd=ROOT, env=child_environment(), stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    print(run, f"{found['seconds']:.1f} s, faults: {found['faults']}", flush=True)
    return found


def pending(setting: Setting) -> dict[str, dict[str, float]]:
    """By policy."""
    steps = {policy: STEPS if policy in LEARNERS else 0 for policy in setting.known}
    return {
        policy: pending_seconds(policy, known, setting.running, steps[policy], setting.repetitions)
        for policy, known in setting.known.items()
    }


PARTS: dict[str, Callable[[Setting], Any]] = {"runs": runs, "pending": pending}


def main() -> None:
    arguments = parser(__doc__, has_page=True)
    arguments.add_argument("--part", choices=PARTS, help="measure one part again; the other is kept")
    given = arguments.parse_args()
    if given.page:
        data = kept_data("cluster-scale")
        write_page("cluster-scale", document(data), data)
        return
    data = kept_data("cluster-scale") if given.part else {}
    setting = SHORT if quick() else FULL
    for name in [given.part] if given.part else PARTS:
        data[name] = PARTS[name](setting)
    data |= {"machine": machine(), "known": setting.known}
    publish("cluster-scale", document(data), data, is_whole=not quick())


if __name__ == "__main__":
    main()
