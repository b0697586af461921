"""What an ask takes under each policy, as ratios within one run: machines differ, and so does one machine from itself.

    python -m benchmarks.asks               writes docs/asks.md and docs/data/asks.json; a minute or two
    QUICK=1 python -m benchmarks.asks       fewer repetitions; prints only

One thread, processor time, the policies in turn, the median over the repetitions. Black-box policies: 200
observations in 7 dimensions, each ask told before the next. Batches: `ask(16)` beside `ask()` on one study, in turn.
`bopt`: 60 runs trained to the end of their fast period and 30 completed, in 6 dimensions.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable

from benchmarks.common.environments import THREAD_LIMITS, quick

os.environ.update(dict.fromkeys(THREAD_LIMITS, "1"))  # before NumPy is imported

import numpy as np

import farthing as ft
from benchmarks.common.documents import machine, machine_text, table, verdict, write
from farthing.policies.bopt.levels import Share

OBSERVATIONS, DIMENSIONS = 200, 7
POLICIES = ("ei", "eipu", "ei_cool", "cei", "carbo")
BATCH = 16
CEI_BAR, BATCH_BAR, BOPT_BAR = 2.5, 10.0, 0.150
REPETITIONS = 25

PAGE = """\
# What an ask takes

Processor milliseconds of one `ask` with {observations} observations in {dimensions} dimensions, their costs modelled
too; median of {repetitions}, the policies in turn, hyperparameters warm-started as in a study.

{asks}

- `cei` takes {cei:.2f} times an ask of `ei`; the bar is {cei_bar}: {cei_verdict}

Batches, `ask({batch})` beside `ask()` on the same study:

{batches}

- below {batch_bar:.0f} times: {batch_verdict}

`bopt` with 60 runs at the end of their fast period and 30 completed, in 6 dimensions: {bopt:.0f} ms; the bar is
{bopt_bar:.0f} ms: {bopt_verdict}

{machine}

Reproduce with `make bench-asks`.
"""


def told(study: ft.Study, proposal: ft.Proposal) -> None:
    x = np.array(list(proposal.config.values()))
    value = float(((x - 0.4) ** 2).sum() + 0.05 * np.sin(20.0 * x[0]))
    study.tell(proposal, value=value, cost=float(np.exp(3.0 * x[0] + x[1] * x[2])))


def studied(policy: str) -> ft.Study:
    """A study that has asked with models once."""
    space = ft.Space({f"x{i}": ft.Real(0, 1) for i in range(DIMENSIONS)})
    rows = np.random.default_rng(0).random((OBSERVATIONS, DIMENSIONS))
    study = ft.Study(space, ft.Budget(cost=1e5), policy=policy, seed=0, start=[space.decode(row) for row in rows])
    for _ in range(OBSERVATIONS + 1):
        told(study, study.ask())
    return study


def timed(action: Callable[[], object]) -> tuple[float, object]:
    began = time.process_time()
    result = action()
    return time.process_time() - began, result


def asks(repetitions: int) -> dict[str, float]:
    """Median seconds by policy."""
    studies = {policy: studied(policy) for policy in POLICIES}
    seconds: dict[str, list[float]] = {policy: [] for policy in POLICIES}
    for _ in range(repetitions):
        for policy, study in studies.items():
            taken, proposal = timed(study.ask)
            seconds[policy].append(taken)
            told(study, proposal)  # type: ignore[arg-type]
    return {policy: statistics.median(taken) for policy, taken in seconds.items()}


def batches(repetitions: int) -> dict[str, tuple[float, float]]:
    """Median seconds of one ask and of a batch, by policy."""
    found = {}
    for policy in ("ei", "cei"):
        study, one, many = studied(policy), [], []
        for _ in range(repetitions):
            taken, proposal = timed(study.ask)
            one.append(taken)
            told(study, proposal)  # type: ignore[arg-type]
            taken, proposals = timed(lambda study=study: study.ask(BATCH))  # type: ignore[misc]
            many.append(taken)
            for proposal in proposals:  # type: ignore[attr-defined]
                told(study, proposal)
        found[policy] = (statistics.median(one), statistics.median(many))
    return found


def bopt(repetitions: int) -> float:
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
    for _ in range(repetitions):
        taken, proposal = timed(study.ask)
        seconds.append(taken)
        trained(proposal)  # type: ignore[arg-type]
    return statistics.median(seconds)


def main() -> None:
    repetitions = 5 if quick() else REPETITIONS
    seconds, many, of_bopt, facts = asks(repetitions), batches(max(repetitions // 5, 2)), bopt(repetitions), machine()
    ratios = {policy: taken / seconds["ei"] for policy, taken in seconds.items()}
    rows = [[f"`{policy}`", f"{1e3 * taken:.1f}", f"{ratios[policy]:.2f}"] for policy, taken in seconds.items()]
    of_batches = {policy: batch / one for policy, (one, batch) in many.items()}
    batch_rows = [
        [f"`{policy}`", f"{1e3 * one:.0f}", f"{1e3 * batch:.0f}", f"{of_batches[policy]:.1f}"]
        for policy, (one, batch) in many.items()
    ]
    text = PAGE.format(
        observations=OBSERVATIONS, dimensions=DIMENSIONS, repetitions=repetitions, batch=BATCH,
        asks=table(["policy", "ms", "to `ei`"], rows), cei=ratios["cei"], cei_bar=CEI_BAR,
        cei_verdict=verdict(ratios["cei"] <= CEI_BAR),
        batches=table(["policy", "ms of one", f"ms of {BATCH}", "ratio"], batch_rows), batch_bar=BATCH_BAR,
        batch_verdict=verdict(max(of_batches.values()) < BATCH_BAR),
        bopt=1e3 * of_bopt, bopt_bar=1e3 * BOPT_BAR, bopt_verdict=verdict(of_bopt < BOPT_BAR),
        machine=machine_text(facts, {"farthing": {"numpy": np.__version__}}),
    )  # fmt: skip
    if quick():
        print(text)
        return
    write("asks", text, {"machine": facts, "asks": seconds, "batches": many, "bopt": of_bopt})


if __name__ == "__main__":
    main()
