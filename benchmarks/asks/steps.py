"""Time per ask and per report under policies for learners that train in steps, with many curves known.

A study is given its curves by `Prepared`: so many random configurations, of which some are trained a tenth, some a
fifth or a half and some to the end. From then on the policy that is timed proposes and decides.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

import farthing as ft
from farthing.history import TrackedTrial
from farthing.policies import Policy, decide
from farthing.policies.named import policy_of
from farthing.policies.sampling import Random

POLICIES = ("thaw", "bapi", "auto")
CURVES = (20, 60, 300, 1000)
DIMENSIONS, STEPS = 6, 50
SHARES = (0.1, 0.2, 0.1, 0.5, 0.2, 0.1, 0.1, 1.0)  # of a training that the curves have, in turn
TIMED = 15  # asks at most
ENOUGH_SECONDS = 60.0  # of asks and reports in one cell, after which no further run is begun
ONLY_ONE = 20.0  # seconds of the first ask, from which on no other is waited for


@dataclass(frozen=True)
class Prepared:
    """Trains `curves` random configurations for a while; then all is as `then` says."""

    name: ClassVar[str] = "prepared"
    needs_steps: ClassVar[bool] = True
    then: Policy
    curves: int

    def propose(self, space: Any, history: Any, ledger: Any, n: int, rng: np.random.Generator) -> list[ft.Proposal]:
        number = len(history.trials)
        if number >= self.curves:
            return self.then.propose(space, history, ledger, n, rng)
        config = Random().propose(space, history, ledger, 1, rng)[0].config
        until = max(round(SHARES[number % len(SHARES)] * STEPS), 1)
        return [ft.Proposal(number, config, until_step=until)]

    def decide(self, space: Any, history: Any, ledger: Any, trial: TrackedTrial, rng: np.random.Generator) -> Any:
        if trial.number < self.curves and trial.predicted_cost is None:  # as it was prepared
            return ft.Decision.CONTINUE
        return decide(self.then, space, history, ledger, trial, rng)


def trained(study: ft.Study, proposal: ft.Proposal, clock: Callable[[], float]) -> list[float]:
    """A made-up learner trains until it is paused or stopped; the seconds of each report."""
    x = np.array(list(proposal.config.values()))
    end, rate = float(((x - 0.4) ** 2).sum()), 2.0 + 10.0 * x[0]
    price = float(np.exp(x[1]))
    seconds, step, decision = [], proposal.start_step, ft.Decision.CONTINUE
    while decision is ft.Decision.CONTINUE:
        step += 1
        value = end + float(np.exp(-step / rate)) + 0.01 * float(np.sin(17.0 * step + 50.0 * x[2]))
        began = clock()
        decision = study.report(proposal, value, cost=price)
        seconds.append(clock() - began)
    return seconds


def prepared_study(policy: str | Policy, curves: int) -> ft.Study:
    """A study whose next ask is of a policy, with so many curves."""
    space = ft.Space({f"x{i}": ft.Real(0, 1) for i in range(DIMENSIONS)})
    prepared = Prepared(policy_of(policy), curves)
    study = ft.Study(space, ft.Budget(cost=1e9), policy=prepared, seed=0, max_steps=STEPS)
    for _ in range(curves):
        trained(study, study.ask(), time.process_time)
    return study


def times_of(policy: str, curves: int, most: int) -> dict[str, Any]:
    """Of one cell: median seconds of an ask, mean seconds of a report and of both per step, and from how many."""
    study, clock = prepared_study(policy, curves), time.process_time
    asks: list[float] = []
    reports: list[list[float]] = []
    reason, began = "", clock()
    while len(asks) <= most and clock() - began < ENOUGH_SECONDS:
        asked = clock()
        proposal = study.ask()
        asks.append(clock() - asked)
        reports.append(trained(study, proposal, clock))
        reason = proposal.reason
        if asks[0] > ONLY_ONE:
            break
    later = slice(1 if len(asks) > 1 else 0, None)  # the first ask fits from nothing
    each = [seconds for run in reports[later] for seconds in run]
    return {
        "ask": statistics.median(asks[later]), "asks": len(asks[later]), "first": asks[0],
        "report": statistics.fmean(each), "slowest_report": max(each), "reports": len(each),
        "per_step": (sum(asks[later]) + sum(each)) / len(each), "reason": reason,
    }  # fmt: skip


def step_times(most: int, curves: Sequence[int]) -> dict[str, dict[str, Any]]:
    """By the number of curves (as text, as in JSON) and policy."""
    found: dict[str, dict[str, Any]] = {}
    for count in curves:
        found[str(count)] = {}
        for policy in POLICIES:
            print(f"{policy}: {count} curves", flush=True)
            found[str(count)][policy] = times_of(policy, count, most)
    return found
