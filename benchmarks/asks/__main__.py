"""Time per suggestion under each policy, as ratios within one run: machines differ, and one machine varies.

    python -m benchmarks.asks               writes docs/asks.md and docs/data/asks.json; some minutes
    QUICK=1 python -m benchmarks.asks       fewer repetitions, 20 and 60 curves; prints only
    python -m benchmarks.asks --page        the page again, from its data

One thread, processor time, the policies in turn, the median over the repetitions. Black-box policies: 200
observations in 7 dimensions, each ask told before the next. Batches: `ask(16)` and `ask()` on one study, in turn.
`bopt`: 60 runs trained to the end of their fast period and 30 completed, in 6 dimensions. Policies for learners that
train in steps: see steps.py. The wheel is built with the network of training curves and without it: see wheels.py.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

from benchmarks.common.environments import THREAD_LIMITS, quick

os.environ.update(dict.fromkeys(THREAD_LIMITS, "1"))  # before NumPy is imported

import numpy as np

import farthing as ft
from benchmarks.asks.steps import CURVES, SHARES, STEPS, TIMED, step_times
from benchmarks.asks.steps import DIMENSIONS as STEP_DIMENSIONS
from benchmarks.asks.text import auto_text, step_findings, step_table
from benchmarks.asks.wheels import wheel_bytes
from benchmarks.common.command import parser
from benchmarks.common.documents import kept_data, machine, machine_text, publish, table, write_page
from farthing.policies.bopt.stopping import Share

OBSERVATIONS, DIMENSIONS = 200, 7
POLICIES = ("ei", "eipu", "ei_cool", "cei", "carbo")
BATCH = 16
REPETITIONS = 25

PAGE = """\
# Time per suggestion, by policy

How long one call of `study.ask()` takes with {observations} finished evaluations in {dimensions} parameters, whose
costs are modelled too. Processor milliseconds of one thread, median of {repetitions}. The policies took turns. Each fit
starts from the last one, as in a study. [Time per suggestion](latency.md) compares `ei` with other libraries.

{asks}

The slowest is {slowest}, which takes {slowest_ratio:.1f} times as long as `ei`. The fastest is {fastest}.

A batch of {batch}, `ask({batch})`, compared with one suggestion on the same study:

{batches}

A batch of {batch} takes {batch_ratios} times as long as one suggestion, so a suggestion in a batch takes
{in_batch} % of the time of a single one.

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


def document(data: dict[str, Any]) -> str:
    """The page."""
    seconds, many, wheel = data["asks"], data["batches"], data["wheel"]
    rows = [[f"`{policy}`", f"{1e3 * s:.1f}", f"{s / seconds['ei']:.2f}"] for policy, s in seconds.items()]
    ratios = {policy: batch / one for policy, (one, batch) in many.items()}
    batch_rows = [
        [f"`{policy}`", f"{1e3 * one:.0f}", f"{1e3 * batch:.0f}", f"{ratios[policy]:.1f}"]
        for policy, (one, batch) in many.items()
    ]
    slowest, fastest = (chosen(seconds, key=seconds.get) for chosen in (max, min))
    low, high = min(ratios.values()), max(ratios.values())
    return PAGE.format(
        observations=OBSERVATIONS, dimensions=DIMENSIONS, repetitions=data["repetitions"], batch=BATCH,
        asks=table(["policy", "ms", "time of `ei` = 1"], rows),
        slowest=f"`{slowest}`", slowest_ratio=seconds[slowest] / seconds["ei"], fastest=f"`{fastest}`",
        batches=table(["policy", "ms of one", f"ms of {BATCH}", "ratio"], batch_rows),
        batch_ratios=f"{low:.1f} to {high:.1f}", in_batch=f"{100 * low / BATCH:.0f} to {100 * high / BATCH:.0f}",
        bopt=1e3 * data["bopt"], auto=auto_text(data["steps"]), step_dimensions=STEP_DIMENSIONS, steps=STEPS,
        tenths=f"{100 * SHARES.count(min(SHARES)) / len(SHARES):.0f} %", step_table=step_table(data["steps"]),
        step_findings=step_findings(data["steps"]), wheel_with=wheel["with"] / 1e6,
        wheel_without=wheel["without"] / 1e6, wheel_share=100 * (1 - wheel["without"] / wheel["with"]),
        machine=machine_text(data["machine"], data["versions"]),
    )  # fmt: skip


def measure(repetitions: int, curves: Sequence[int]) -> dict[str, Any]:
    return {
        "machine": machine(),
        "versions": {"farthing": {"numpy": np.__version__}},
        "repetitions": repetitions,
        "asks": asks(repetitions),
        "batches": batches(max(repetitions // 5, 2)),
        "bopt": bopt(repetitions),
        "steps": step_times(min(repetitions, TIMED), curves),
        "wheel": wheel_bytes(),
    }


def main() -> None:
    if parser(__doc__, has_page=True).parse_args().page:
        data = kept_data("asks")
        write_page("asks", document(data), data)
        return
    data = measure(5, CURVES[:2]) if quick() else measure(REPETITIONS, CURVES)
    publish("asks", document(data), data, is_whole=not quick())


if __name__ == "__main__":
    main()
