"""How well the ends of training curves are predicted, by Gaussian processes and by the network; whether the curves of
the process fall, and how long it takes.

    python -m benchmarks.extrapolation --data FOLDER    all of it (ten minutes): docs/extrapolation.md and its data
    QUICK=1 python -m benchmarks.extrapolation          few curves and few states; prints only

FOLDER holds the surrogate of LCBench, see common/lcbench.py; the page is written only with it. One thread. Results are
kept task by task, so that an interrupted benchmark continues; other weights of the network ask only the network again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.common.command import parser
from benchmarks.common.documents import machine, machine_text, write
from benchmarks.common.environments import quick
from benchmarks.curves.sets import set_named
from benchmarks.extrapolation import page, properties
from benchmarks.extrapolation.comparison import comparison_text, loss_table, measure_table, rows_of, shown_table
from benchmarks.extrapolation.mlp_curves import DATA_SETS
from benchmarks.extrapolation.page import LCBENCH, LIVE, PAGE, RANDOM
from benchmarks.extrapolation.scenes import NEW
from benchmarks.extrapolation.scores import COVERAGE, DENSITY, ERROR, LEAST_DENSITY, MORE, SHARES, Group, scores_of
from benchmarks.extrapolation.tasks import (
    DRAWN,
    LCBENCH_TASKS,
    Task,
    lcbench_tasks,
    live_tasks,
    random_tasks,
    recorded_tasks,
)
from benchmarks.extrapolation.tasks import LIVE as LIVE_CONFIGURATIONS
from benchmarks.extrapolation.tasks import RANDOM as RANDOM_CONFIGURATIONS
from farthing.numerics.threads import one_blas_thread
from farthing.policies.bapi import BAPI
from farthing.surrogates.curves import network

SEEDS, MORE_SEEDS, QUICK_SEEDS = 5, 10, 2  # more where there are few tasks
STATES, QUICK_STATES = 1000, 30
REPEATS, QUICK_REPEATS = 9, 3
ALL_SETTINGS = tuple(dict.fromkeys((*SHARES.values(), *MORE)))


def groups_of(folder: Path | None, recorded: Mapping[str, Sequence[Task]]) -> list[Group]:
    """All that is there."""
    found = [] if folder is None else [Group(LCBENCH, lcbench_tasks(folder), SEEDS, ALL_SETTINGS)]
    found.append(Group(LIVE, live_tasks(LIVE_CONFIGURATIONS), MORE_SEEDS, ALL_SETTINGS))
    found.append(Group(RANDOM, random_tasks(), SEEDS))
    return found + [Group(kind, tasks, MORE_SEEDS) for kind, tasks in recorded.items()]


def quick_groups(recorded: Mapping[str, Sequence[Task]]) -> list[Group]:
    """What needs no training: some random curves, and one recorded set of each of two kinds."""
    few = [Group(kind, tasks[:1], QUICK_SEEDS) for kind, tasks in list(recorded.items())[:2]]
    return [Group(RANDOM, random_tasks()[::4], QUICK_SEEDS), *few]


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--data", type=Path, help="folder of the LCBench surrogate; without it, prints only")
    folder, short = options.parse_args().data, quick()
    recorded = recorded_tasks()
    states, repeats = (QUICK_STATES, QUICK_REPEATS) if short else (STATES, REPEATS)
    with one_blas_thread():
        chosen = quick_groups(recorded) if short else groups_of(folder, recorded)
        groups = {group.title: {setting: scores_of(group, setting) for setting in group.settings} for group in chosen}
        rises, draws = properties.kept(states)
        taken, asked = properties.timings(repeats), properties.network_timings(repeats)
    rows = rows_of(groups)
    parts = {
        "shown": shown_table(rows),
        "comparison": comparison_text(rows),
        "densities": measure_table(rows, DENSITY),
        "errors": measure_table(rows, ERROR),
        "coverages": measure_table(rows, COVERAGE),
        "density_losses": loss_table(rows, DENSITY),
        "error_losses": loss_table(rows, ERROR),
        "summary": page.summary_table(groups),
        "rises": page.rises_table(rises),
        "draws": page.draws_text(draws),
        "timings": page.timing_table(taken),
        "network_time": page.network_text(asked),
    }
    if short or folder is None:
        print("\n\n".join(parts.values()))
        return
    facts, checksum = machine(), network.weights().checksum
    text = PAGE.format(
        **parts,
        **described(groups, chosen, recorded),
        states=f"{states:,}",
        weights=f"`{checksum[:12]}`",
        machine=machine_text(facts, {"farthing": page.versions()}),
    )
    times = {"timings": taken, "network_timings": asked}
    data = {"machine": facts, "versions": page.versions(), "weights": checksum, **times}
    write("extrapolation", text, {**data, **page.data_of(groups, rises, draws)})


def described(groups: Any, chosen: Sequence[Group], recorded: Mapping[str, Sequence[Task]]) -> dict[str, Any]:
    """What else the whole page says."""
    lcbench, live, policy = groups[LCBENCH], groups[LIVE], BAPI()
    tasks = {group.title: group.tasks for group in chosen}
    every = sum(len(set_named(task.title).configs) for found in recorded.values() for task in found)
    return {
        "findings": page.findings(lcbench, live, tasks[LIVE]),
        "lcbench_errors": page.score_table(lcbench),
        "lcbench_coverage": page.coverage_table(lcbench),
        "live_errors": page.score_table(live),
        "live_coverage": page.coverage_table(live),
        "new": NEW,
        "kernel": f"`{policy.kernel}`",
        "falling": f"`{policy.monotone}`",
        "least": LEAST_DENSITY,
        "drawn": DRAWN,
        "tasks": len(LCBENCH_TASKS),
        "task_list": ", ".join(map(str, LCBENCH_TASKS)),
        "live": LIVE_CONFIGURATIONS,
        "data_sets": ", ".join(DATA_SETS),
        "random": len(tasks[RANDOM]),
        "random_count": RANDOM_CONFIGURATIONS,
        "failed": page.failures(recorded, every),
        "recorded": page.recorded_text(recorded),
        "seeds": f"{SEEDS} (LCBench, random curves) or {MORE_SEEDS} (the others)",
    }


if __name__ == "__main__":
    main()
