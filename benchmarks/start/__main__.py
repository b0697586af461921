"""How much of a budget goes into starting processes: Farthing compared with Optuna in process.

    python -m benchmarks.start            about 20 minutes; writes docs/start.md and docs/data/start.json
    QUICK=1 python -m benchmarks.start    studies of 8 seconds, with one worker and XGBoost; prints only
    python -m benchmarks.start --page     the page again, from its data

Objectives import scikit-learn, XGBoost or PyTorch and train for half a second, at once or in five steps. Studies run
one after the other, each in a process of its own, with the environment as it is: no limits of threads are set.
"""

from __future__ import annotations

import json
import subprocess
from dataclasses import asdict
from statistics import median
from typing import Any

from benchmarks.common.command import parser
from benchmarks.common.documents import kept_data, machine, machine_text, publish, table, write_page
from benchmarks.common.environments import ROOT, ensure, module_command, quick
from benchmarks.start.task import EVALUATION_SECONDS, MODULES, STEPS, Study

SYSTEMS = {"farthing": "Farthing", "optuna": "Optuna"}
SECONDS, QUICK_SECONDS = 30.0, 8.0
LEAST_SHARE = 0.90  # what we promise

PAGE = """\
# What starting costs

Evaluations run in worker processes, which can be killed where a budget ends. A process that has to import scikit-learn,
XGBoost or PyTorch starts in seconds. Farthing imports what the objective needs once, in a process of its own (the
nursery), and forks workers from it. How much of a budget is left for evaluations?

Studies of {seconds:g} seconds. An evaluation trains small models of the library for {evaluation:g} s, at once
("returns") or in {steps} steps ("yields"). Optuna runs in the process that imported the library already, with `n_jobs`
threads. `random` is `RandomSampler` there, and `auto` is its default sampler with its default pruner.

Each cell: evaluations to their end, and the share of the workers' time that went into evaluations from the second one
on, by a clock that the objective reads. An evaluation that is paused, pruned or cut off by the budget counts with the
steps it made.

{table}

- With `random` the least share of Farthing is {least:.1%}{promise}.
- With `auto` it is {least_auto:.1%}, where a learner yields: the rest of the time goes into choosing what to do after
  each step, which Optuna's pruner does at once.
- The first evaluation begins {first:.2f} s after the call in the median, at most {latest:.2f} s:
  until then the nursery imports.
- In the ledger: start-up takes {startup:.1%} of the budget in the median, at most {most_startup:.1%}.

## A new worker

Where every evaluation gets a process of its own (`trial_memory` asks for that), the seconds from the end of one
evaluation to the beginning of the next, proposal and record included:

{fresh}

## An objective that raises

An objective that works for a millisecond and always raises an exception, in worker processes, `policy="random"` and
`max_failures=None`, in memory: {rate:.0f} trials a second.

{machine}

Reproduce with `make bench-start`. The numbers are in [data/start.json](data/start.json).
"""


def studies(seconds: float, whole: bool) -> list[Study]:
    libraries, workers = (list(MODULES), (1, 2)) if whole else (["XGBoost"], (1,))
    return [
        Study(library, steps, policy, count, seconds)
        for library in libraries
        for steps in (False, True)
        for policy in ("random", "auto")
        for count in workers
    ]


def answered(module: str, *arguments: object) -> dict[str, Any]:
    """What a peer prints."""
    done = subprocess.run(
        module_command("start", f"start.peers.{module}", arguments),
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{module} {arguments}: {done.stderr[-2000:]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def measure(seconds: float, whole: bool) -> dict[str, Any]:
    found = []
    for study in studies(seconds, whole):
        row: dict[str, Any] = asdict(study)
        for system in SYSTEMS:
            row[system] = answered(f"{system}_peer", json.dumps(asdict(study)))
            print(f"{study}: {SYSTEMS[system]} {cell(row[system])}", flush=True)
        found.append(row)
    libraries = dict.fromkeys(row["library"] for row in found)
    fresh = {library: answered("fresh_peer", library) for library in libraries}
    print(fresh, flush=True)
    return {"machine": machine(), "studies": found, "fresh": fresh, "raising": answered("raising_peer")}


def cell(seen: dict[str, Any]) -> str:
    return f"{seen['evaluations']} ({seen['share']:.1%})"


def document(data: dict[str, Any]) -> str:
    found = data["studies"]
    least = min(row["farthing"]["share"] for row in found if row["policy"] == "random")
    least_auto = min(row["farthing"]["share"] for row in found if row["policy"] == "auto")
    first = [row["farthing"]["first_seconds"] for row in found]
    startup = [row["farthing"]["ledger"].get("start-up", 0.0) for row in found]
    rows = [
        [row["library"], "yields" if row["steps"] else "returns", f"`{row['policy']}`", str(row["workers"])]
        + [cell(row[system]) for system in SYSTEMS]
        for row in found
    ]
    fresh = [
        [library, str(one["workers"]), f"{1000 * one['median']:.0f} ms", f"{1000 * one['p95']:.0f} ms"]
        for library, one in data["fresh"].items()
    ]
    versions = {library: row["farthing"]["versions"][library] for row in found for library in [row["library"]]}
    return PAGE.format(
        seconds=found[0]["seconds"], evaluation=EVALUATION_SECONDS, steps=STEPS,
        table=table(["library", "objective", "policy", "workers", *SYSTEMS.values()], rows),
        least=least, promise="" if least >= LEAST_SHARE else f", less than the {LEAST_SHARE:.0%} that we want",
        least_auto=least_auto,
        first=median(first), latest=max(first), startup=median(startup), most_startup=max(startup),
        fresh=table(["library", "new workers", "median", "95th percentile"], fresh),
        rate=data["raising"]["per_second"],
        machine=machine_text(data["machine"], {"both": versions, "optuna": {"optuna": found[0]["optuna"]["optuna"]}}),
    )  # fmt: skip


def main() -> None:
    if parser(__doc__, has_page=True).parse_args().page:
        data = kept_data("start")
        write_page("start", document(data), data)
        return
    ensure("start")
    data = measure(QUICK_SECONDS if quick() else SECONDS, whole=not quick())
    publish("start", document(data), data, is_whole=not quick())


if __name__ == "__main__":
    main()
