"""Time per suggestion under each policy, as ratios within one run: machines differ, and one machine varies.

    python -m benchmarks.asks               writes docs/asks.md and docs/data/asks.json; some 20 minutes
    QUICK=1 python -m benchmarks.asks       fewer repetitions, results and curves; prints only
    python -m benchmarks.asks --page        the page again, from its data

One thread, processor time, median and mean over the rounds. Black-box policies and Optuna's samplers in turn, and
batches: see turns.py. `bopt`: 60 runs trained to the end of their fast period and 30 completed, in 6 dimensions.
Policies for learners that train in steps: see steps.py. The wheel is built with the network of training curves and
without it: see wheels.py.
"""

from __future__ import annotations

import os
import statistics
from collections.abc import Sequence
from typing import Any

from benchmarks.common.environments import THREAD_LIMITS, quick

os.environ.update(dict.fromkeys(THREAD_LIMITS, "1"))  # before NumPy is imported

import numpy as np

import farthing as ft
from benchmarks.asks.steps import CURVES, SHARES, STEPS, TIMED, step_times
from benchmarks.asks.steps import DIMENSIONS as STEP_DIMENSIONS
from benchmarks.asks.text import (
    auto_text,
    batch_findings,
    batch_table,
    cell_findings,
    cell_table,
    searched_text,
    step_findings,
    step_table,
)
from benchmarks.asks.turns import BATCH, BATCH_KNOWN, KNOWN, batch_turns, timed, turns
from benchmarks.asks.wheels import wheel_bytes
from benchmarks.common.command import parser
from benchmarks.common.documents import kept_data, machine, machine_text, publish, write_page
from farthing.policies.bopt.stopping import Share

ROUNDS = 30  # at 100 results an ask in two searches for hyperparameters, one in ten holds a contest of cost models

PAGE = """\
# Time per suggestion, by policy

How long one call of `study.ask()` takes, compared with Optuna's TPE and GPSampler: processor milliseconds of one
thread, the mean of {rounds} successive asks, or of fewer where they are slow. Everyone had the same known results, with
their costs, and was then told the value of each of its own proposals. All took turns, one ask each. Each fit starts
from the last one, as in a study; the first ask of each is not counted. [Time per suggestion](latency.md) compares `ei`
with other libraries by the clock.

{means}

Asks differ. Farthing searches for the hyperparameters of the model of values when there are 2 % more values than at the
last search: at every ask up to 50 values, then less often. Of the asks in this table, so many searched: {searched}. The
others take new values in and keep the hyperparameters. The cost models are chosen anew when there are 10 % more costs.
So the median of the same asks is less than their mean:

{cells}

"13 mixed" are parameters of XGBoost, 7 of which are active with some boosters only. There GPSampler models those that
are always active, and draws the others at random. TPE models each parameter alone everywhere.

{findings}

## Batches

A batch of {batch}, `ask({batch})`, compared with one suggestion. Two studies had the same {batch_known} results at the
start. One was asked for one suggestion, the other for a batch, and both were given all results of both.

{batches}

{batch_findings}

## Two levels of training

`bopt` takes {bopt:.0f} ms per suggestion with 60 runs at the end of their fast period and 30 completed runs, in 6
parameters.

## Learners that train in steps

The policies for [objectives that yield](guide.md) predict training curves: `bapi` by a Gaussian process that it fits,
[`thaw`](curve-network.md) by a network that was trained in advance. `auto` took {auto} here. So many curves were known,
in {step_dimensions} parameters, {tenths} of them with a tenth of the {steps} steps of a training, the others with a
fifth, a half or all. Then the policies proposed and decided. An ask is the median, after a first one that fits from
nothing; a report the mean over all steps (`bapi` decides at some of them whether a run goes on, `thaw` at none). The
last column is what both take for each step that is trained, since some policies ask more often than others.

{step_table}

{step_findings}

## Size of the wheel

With the network the wheel has {wheel_with:.2f} MB, without its weights {wheel_without:.2f} MB: they are
{wheel_share:.0f} % of it.

{machine}

Reproduce with `make bench-asks`. The numbers are in [data/asks.json](data/asks.json).
"""


def bopt(rounds: int) -> float:
    """Median seconds of an ask of `bopt`."""
    space = ft.Space({f"x{i}": ft.Real(0, 1) for i in range(6)})
    policy = ft.policies.BOPT(initial=30, s=2, fast_ends=Share(share=0.2))
    study = ft.Study(space, ft.Budget(cost=1e9), policy=policy, seed=0, max_steps=5)

    def trained(proposal: ft.Proposal) -> None:
        value = sum((coordinate - 0.4) ** 2 for coordinate in proposal.config.values())
        step, decision = proposal.start_step, ft.Decision.CONTINUE
        while decision is ft.Decision.CONTINUE:
            step += 1
            decision = study.report(proposal, value + 1.0 / step, cost=1.0)

    while study.count(ft.Status.COMPLETE, ft.Status.STOPPED) < 30:
        trained(study.ask())
    seconds = []
    for _ in range(rounds):
        taken, proposal = timed(study.ask)
        seconds.append(taken)
        trained(proposal)
    return statistics.median(seconds)


def document(data: dict[str, Any]) -> str:
    """The page."""
    wheel = data["wheel"]
    return PAGE.format(
        rounds=data["rounds"], means=cell_table(data["means"]), searched=searched_text(data["searched"]),
        cells=cell_table(data["cells"]), findings=cell_findings(data["means"]), batch=BATCH,
        batch_known=BATCH_KNOWN, batches=batch_table(data["batches"]), batch_findings=batch_findings(data["batches"]),
        bopt=1e3 * data["bopt"], auto=auto_text(data["steps"]), step_dimensions=STEP_DIMENSIONS, steps=STEPS,
        tenths=f"{100 * SHARES.count(min(SHARES)) / len(SHARES):.0f} %", step_table=step_table(data["steps"]),
        step_findings=step_findings(data["steps"]), wheel_with=wheel["with"] / 1e6,
        wheel_without=wheel["without"] / 1e6, wheel_share=100 * (1 - wheel["without"] / wheel["with"]),
        machine=machine_text(data["machine"], data["versions"]),
    )  # fmt: skip


def measure(rounds: int, known: Sequence[int], curves: Sequence[int]) -> dict[str, Any]:
    found = turns(rounds, known)
    return {
        "machine": machine(),
        "versions": {"farthing": {"numpy": np.__version__}, "Optuna": found.versions},
        "rounds": rounds,
        "cells": found.medians,
        "means": found.means,
        "searched": found.searched,
        "batches": batch_turns(max(rounds // 2, 2)),
        "bopt": bopt(rounds),
        "steps": step_times(min(rounds, TIMED), curves),
        "wheel": wheel_bytes(),
    }


def main() -> None:
    if parser(__doc__, has_page=True).parse_args().page:
        data = kept_data("asks")
        write_page("asks", document(data), data)
        return
    data = measure(5, KNOWN[:2], CURVES[:2]) if quick() else measure(ROUNDS, KNOWN, CURVES)
    publish("asks", document(data), data, is_whole=not quick())


if __name__ == "__main__":
    main()
