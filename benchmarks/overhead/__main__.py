"""How much of the time a worker computes, compared with Optuna and FLAML; and what prepared asks are worth.

    python -m benchmarks.overhead            about 40 minutes; writes docs/overhead.md and docs/data/overhead.json
    QUICK=1 python -m benchmarks.overhead    studies of 5 seconds, two tables and one seed; prints only
    python -m benchmarks.overhead --page     the page again, from its data

Evaluations of 5 to 1,000 milliseconds keep one processor busy. Studies run one after the other, each in a process of
its own.
"""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import asdict
from typing import Any

import numpy as np

from benchmarks.blackbox.regret import ratio
from benchmarks.common.command import parser
from benchmarks.common.documents import kept_data, listed, machine, machine_text, publish, table, write_page
from benchmarks.common.environments import ROOT, child_environment, ensure, module_command, quick
from benchmarks.common.tables import TABLES, tables_folder
from benchmarks.overhead.task import Given

SYSTEMS = {  # title, environment
    "farthing": ("Farthing", "farthing"),
    "in_turn": ("Farthing, asks in turn", "farthing"),
    "optuna": ("Optuna (TPE)", "runner_budgets"),
    "flaml": ("FLAML", "runner_budgets"),
}
SECONDS, QUICK_SECONDS = 30.0, 5.0
EVALUATIONS = (0.005, 0.02, 0.1, 1.0)  # seconds
COMPARED = {"in_turn": "asks in turn", "optuna": "Optuna's TPE"}
SEEDS, MOST = 3, 50
INITIAL = 5  # trials that both have in common

PAGE = """\
# Thinking while training

Under a budget of time, Farthing prepares the next proposal in the background while an evaluation runs, and finishes it
when the outcome is known. How much of the time does the worker compute?

Studies of {seconds:g} seconds with one worker and the default policy. An evaluation keeps one processor busy for a
given time; three real parameters. The share is that of the time from the beginning of the first evaluation to the end
of the last one. In brackets: the median time from the end of one evaluation to the beginning of the next. Optuna and
FLAML call the objective in their own process; Farthing calls it in a worker process, which it can kill. "Asks in turn"
is Farthing with `isolate=False`: in its own process, with nothing in the background.

{table}

{gained}

## The choices

A prepared proposal knows less: its models were fitted before the last outcome was known. On {tables} tables of real
trainings (those of the [comparison of policies](blackbox.md)) with {seeds} seeds each, the mean normalised regret over
the trials {first} to {most} is {ahead:.4f} with prepared asks and {in_turn:.4f} with asks made in turn: {ratio:.3f}
times as much (95 % interval {low:.3f} to {high:.3f}). Every ask was prepared while the trial before it ran, and none
was made again after a surprise, as if evaluations were short.

{rows}

{machine} The load average was {load:.1f} when the studies began and {load_after:.1f} when they had ended. One study
adds about 2 to it; beyond that, other programs shared the processors, and all systems waited for them.

Reproduce with `make bench-overhead`. The numbers are in [data/overhead.json](data/overhead.json).
"""


def answered(environment: str, module: str, *arguments: object) -> dict[str, Any]:
    """What a child process prints last."""
    command = module_command(environment, f"overhead.{module}", arguments)
    done = subprocess.run(command, cwd=ROOT, env=child_environment(), capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{module} {arguments}: {done.stderr[-2000:]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def studies(seconds: float) -> list[dict[str, Any]]:
    found = []
    for evaluation in EVALUATIONS:
        given = Given(seconds, evaluation)
        row: dict[str, Any] = asdict(given)
        for system, (title, environment) in SYSTEMS.items():
            row[system] = answered(environment, f"peers.{system}_peer", json.dumps(asdict(given)))
            print(f"{1000 * evaluation:g} ms: {title} {cell(row[system])}", flush=True)
        found.append(row)
    return found


def choices(names: tuple[str, ...], seeds: int) -> dict[str, list[list[list[float]]]]:
    """Regrets by way of asking: tables, seeds, trials."""
    tables_folder()
    found: dict[str, list[list[list[float]]]] = {"ahead": [], "in turn": []}
    for name in names:
        runs = [answered("farthing", "choices", name, seed, MOST) for seed in range(seeds)]
        for way, regrets in found.items():
            regrets.append([run[way] for run in runs])
        print(f"{name}: {mean_regret(found['ahead'][-1]):.4f} and {mean_regret(found['in turn'][-1]):.4f}", flush=True)
    return found


def mean_regret(runs: list[list[float]]) -> float:
    return float(np.mean(np.array(runs)[:, INITIAL:]))


def cell(seen: dict[str, Any]) -> str:
    return f"{seen['share']:.1%} ({1000 * seen['wait']:.1f} ms)"


def gained(found: list[dict[str, Any]]) -> str:
    """How many times as much of the time the worker computes as it does with others."""
    lines = []
    for rival, title in COMPARED.items():
        times = [
            f"{row['farthing']['share'] / row[rival]['share']:.2f} ({1000 * row['evaluation']:g} ms)" for row in found
        ]
        lines.append(f"- Compared with {title}, the worker computes {listed(times)} times as much of the time.")
    return "\n".join(lines)


def document(data: dict[str, Any]) -> str:
    found, regrets = data["studies"], data["regrets"]
    ahead, in_turn = (np.array(regrets[way])[:, :, INITIAL:].mean(axis=2) for way in ("ahead", "in turn"))
    compared = ratio(ahead, in_turn)
    shares = [
        [f"{1000 * row['evaluation']:g} ms", *(cell(row[system]) for system in SYSTEMS)] for row in found
    ]  # fmt: skip
    regret_rows = [
        [f"`{name}`", f"{a:.4f}", f"{b:.4f}"]
        for name, a, b in zip(data["tables"], ahead.mean(axis=1), in_turn.mean(axis=1), strict=True)
    ]
    versions = {system: found[0][system]["versions"] for system in ("farthing", "optuna", "flaml")}
    return PAGE.format(
        seconds=found[0]["budget"],
        table=table(["an evaluation takes", *(title for title, _ in SYSTEMS.values())], shares),
        gained=gained(found), tables=len(data["tables"]), seeds=ahead.shape[1], first=INITIAL + 1, most=MOST,
        ahead=ahead.mean(), in_turn=in_turn.mean(), ratio=compared.value, low=compared.low, high=compared.high,
        rows=table(["table", "prepared", "in turn"], regret_rows),
        machine=machine_text(data["machine"], versions), load=data["load"][0], load_after=data["load"][1],
    )  # fmt: skip


def main() -> None:
    if parser(__doc__, has_page=True).parse_args().page:
        data = kept_data("overhead")
        write_page("overhead", document(data), data)
        return
    for environment in ("farthing", "runner_budgets"):
        ensure(environment)
    before = os.getloadavg()[0]
    found = studies(QUICK_SECONDS if quick() else SECONDS)
    loads = [before, os.getloadavg()[0]]
    names = TABLES[::7] if quick() else TABLES
    data = {
        "machine": machine(), "load": loads, "studies": found, "tables": list(names),
        "regrets": choices(names, 1 if quick() else SEEDS),
    }  # fmt: skip
    publish("overhead", document(data), data, is_whole=not quick())


if __name__ == "__main__":
    main()
