"""The runs of the benchmark on real learners: each is done once and kept."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import farthing as ft
from benchmarks.bopt_curves.learners import LEARNERS, SECONDS, SPACES, STEPS, Data, digits, mnist
from benchmarks.common.fingerprints import NOT_RUN, code_hash, farthing_code, module_file
from benchmarks.common.kept_runs import once
from farthing.policies import policy_as_json
from farthing.policies.bopt import BOPT

Curve = list[tuple[float, float]]  # seconds spent, best error by then

FIRST = 4
POLICIES: dict[str, ft.policies.Policy] = {
    "ei": ft.policies.EI(end="ignored"),  # blind to cost, also at the end of the budget
    "bopt": ft.policies.BOPT(),
}
OPTIONS: dict[str, ft.policies.Policy] = {  # of `bopt`, on the quickest learner only
    "as in the paper": BOPT.paper(),
    'surrogate="dgp"': ft.policies.BOPT(surrogate="dgp"),
    'bias="lognormal"': ft.policies.BOPT(bias="lognormal"),
    "rho=None": ft.policies.BOPT(rho=None),
    "per_cost=True": ft.policies.BOPT(per_cost=True),
    "joint=True": ft.policies.BOPT(joint=True),
}


def searched(
    learner: str, data: Data, policy: ft.policies.Policy, seed: int, steps: int, seconds: float
) -> Curve:  # fmt: skip
    """Seconds spent and the best error by then, for every step in the order in which they were trained."""
    space, seen, best = SPACES[learner], [], [0.0, np.inf]

    def train(config: dict[str, Any]) -> Iterator[dict[str, float]]:
        step = LEARNERS[learner](config, data)
        for _ in range(steps):
            began = time.process_time()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                error = 1.0 - float(step().score(*data[2:]))
            taken = time.process_time() - began
            best[0], best[1] = best[0] + taken, min(best[1], error)
            seen.append((best[0], best[1]))
            yield {"value": error, "cost": taken}

    start = ft.Study(space, ft.Budget(cost=1.0), policy="sobol", seed=seed).ask(FIRST)
    ft.tune(
        train, space, ft.Budget(cost=seconds), policy=policy, seed=seed, max_steps=steps,
        start=[proposal.config for proposal in start], progress=False,
    )  # fmt: skip
    return seen


def reached(curve: Curve, value: float) -> float:
    """Seconds after which an error as low was there."""
    return next((spent for spent, best in curve if best <= value), np.inf)


@dataclass(frozen=True)
class Task:
    data: str
    where: str  # of MNIST
    learner: str
    policy: str
    seed: int

    @property
    def place(self) -> tuple[str, str]:
        return self.data, self.learner

    @property
    def seconds(self) -> float:
        return SECONDS[self.data][self.learner]

    def __str__(self) -> str:
        return f"{self.learner} on {self.data}, {self.policy}, seed {self.seed}"


def run(task: Task) -> Curve:
    """The curve of a task, from the cache where it is."""
    policy = {**POLICIES, **OPTIONS}[task.policy]

    def trained() -> Curve:
        data = digits() if task.data == "digits" else mnist(task.where)
        return searched(task.learner, data, policy, task.seed, STEPS[task.data][task.learner], task.seconds)

    code = code_hash(map(module_file, ("bopt_curves.runs", "bopt_curves.learners"))) + farthing_code(NOT_RUN)
    key = [task.data, task.learner, policy_as_json(policy), task.seed, code]
    kept = once(f"bopt-curves-{task.data}-{task.learner}-{task.seed}", key, trained)
    return [(spent, best) for spent, best in kept]


def measured(tasks: list[Task]) -> dict[Task, Curve]:
    found = {}
    with ProcessPoolExecutor(2) as pool:
        for task, curve in zip(tasks, pool.map(run, tasks), strict=True):
            found[task] = curve
            print(f"{len(found)}/{len(tasks)} {task}: {curve[-1][1]:.4f}", flush=True)
    return found


def compared(curves: dict[Task, Curve], policy: str, blind: Task) -> tuple[float, float, float, float]:
    """Seconds to the best of `ei` over those it needed and over its budget; the errors at the end of both."""
    theirs, ours = curves[blind], curves[replace(blind, policy=policy)]
    value = theirs[-1][1]
    spent = min(reached(ours, value), blind.seconds)
    return spent / reached(theirs, value), spent / blind.seconds, value, ours[-1][1]
