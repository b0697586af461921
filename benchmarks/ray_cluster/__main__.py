"""What workers on a Ray cluster gain: trials per second with 1, 2, 4 and 8 actors, on trials that sleep.

    python -m benchmarks.ray_cluster              about five minutes; writes docs/ray-bench.md and its data
    python -m benchmarks.ray_cluster --workers 4  only these, and the others as they were measured before
    QUICK=1 python -m benchmarks.ray_cluster      1 and 2 workers and few trials, prints only
    python -m benchmarks.ray_cluster --page       the page again, from its data

Each study has a Ray of its own on this machine, in a process of its own, one after the other. Trials sleep: more of
them than there are processors can do so at the same time.
"""

from __future__ import annotations

import json
import os
import subprocess
from typing import Any

from benchmarks.common.command import parser
from benchmarks.common.documents import kept_data, machine, machine_text, publish, table, write_page
from benchmarks.common.environments import ROOT, child_environment, ensure, module_command, quick

COUNTS = (1, 2, 4, 8)
POLICIES = {"random": "random proposals", "auto": "the default policy"}
TRIAL_SECONDS = 2.0
WAVES, QUICK_WAVES = 7, 3
WANTED = 0.9  # of the trials that a worker could do if it never waited

PAGE = """\
# What workers on a Ray cluster gain

Trials that sleep for {seconds:g} seconds, on 1 to {most} Ray actors (`workers=ft.Ray(n=...)`), {waves} trials for each
worker. Time counts from the end of the first wave: when as many trials have ended as there are workers. Efficiency is
the time that trials slept after that, divided by the time that passed and the number of workers: 1 means that no worker
ever waits. The last column is how long the first trial took to begin from the call of `ft.tune`, with Ray running
already: actors are started, and load the objective.

{table}

{wanted}

With random proposals what is lost is the way to the actor and back, and the event that is written for each trial. With
the default policy workers also wait while it chooses: {most} workers ask {asks:.0f} times a second, one ask after the
other, and each ask computes on this machine beside the actors.

{machine} All nodes of the cluster were this machine, so the network was not measured. The load average was {load:.1f}
when studies began (the mean).

Reproduce with `make bench-ray`. The numbers are in [data/ray-bench.json](data/ray-bench.json).
"""


def measure(counts: tuple[int, ...], waves: int, before: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A row for each number of workers and policy; those of other numbers stay as they are."""
    rows = [row for row in before if row["workers"] not in counts]
    for workers in counts:
        for policy in POLICIES:
            command = module_command("ray", "ray_cluster.study", (workers, policy, waves, TRIAL_SECONDS))
            load = os.getloadavg()[0]
            done = subprocess.run(command, cwd=ROOT, env=child_environment(), capture_output=True, text=True)
            if done.returncode:
                raise RuntimeError(f"{workers} workers, {policy}: {done.stderr[-2000:]}")
            row = {"workers": workers, "policy": policy, "load": load, **json.loads(done.stdout.splitlines()[-1])}
            print(f"{workers} workers, {policy}: {efficiency(row):.3f}", flush=True)
            rows.append(row)
    return sorted(rows, key=lambda row: (row["workers"], list(POLICIES).index(row["policy"])))


def efficiency(row: dict[str, Any]) -> float:
    """Seconds slept after the first wave, of those that workers had."""
    ends, workers = sorted(end for _, end in row["trials"]), row["workers"]
    return TRIAL_SECONDS * (len(ends) - workers) / (workers * (ends[-1] - ends[workers - 1]))


def cells(row: dict[str, Any]) -> list[str]:
    ends, workers = sorted(end for _, end in row["trials"]), row["workers"]
    per_second = (len(ends) - workers) / (ends[-1] - ends[workers - 1])
    first = min(begin for begin, _ in row["trials"]) - row["called"]
    return [
        str(workers), POLICIES[row["policy"]], f"{per_second:.2f}", f"{workers / TRIAL_SECONDS:.2f}",
        f"{efficiency(row):.3f}", f"{first:.1f} s",
    ]  # fmt: skip


def wanted(rows: list[dict[str, Any]]) -> str:
    """Whether every number of workers is used as well as wanted."""
    lines = []
    for policy, title in POLICIES.items():
        least = min((row for row in rows if row["policy"] == policy), key=efficiency)
        as_wanted = "as wanted" if efficiency(least) >= WANTED else "less than wanted"
        lines.append(
            f"- With {title} the least efficiency is {efficiency(least):.3f}, where n is {least['workers']}: "
            f"{as_wanted} (at least {WANTED:g})."
        )
    return "\n".join(lines)


def document(data: dict[str, Any]) -> str:
    rows = data["runs"]
    most = max(row["workers"] for row in rows)
    header = ["workers", "proposals", "trials per second", "without any overhead", "efficiency", "until the first"]
    return PAGE.format(
        seconds=TRIAL_SECONDS, most=most, waves=data["waves"], table=table(header, [cells(row) for row in rows]),
        wanted=wanted(rows), asks=most / TRIAL_SECONDS, machine=machine_text(data["machine"], data["versions"]),
        load=sum(row["load"] for row in rows) / len(rows),
    )  # fmt: skip


def main() -> None:
    arguments = parser(__doc__, has_page=True)
    arguments.add_argument("--workers", type=int, choices=COUNTS, help="measure only this number of workers")
    given = arguments.parse_args()
    if given.page:
        data = kept_data("ray-bench")
        write_page("ray-bench", document(data), data)
        return
    ensure("ray")
    counts = (given.workers,) if given.workers else COUNTS[:2] if quick() else COUNTS
    before = kept_data("ray-bench")["runs"] if given.workers and given.workers != COUNTS[0] else []
    waves = QUICK_WAVES if quick() else WAVES
    rows = measure(counts, waves, before)
    data = {"machine": machine(), "versions": {"Ray": {"ray": rows[0]["version"]}}, "waves": waves, "runs": rows}
    publish("ray-bench", document(data), data, is_whole=not quick())


if __name__ == "__main__":
    main()
