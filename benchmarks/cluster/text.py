"""What the numbers say: the page of simulated clusters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.cluster.workload import FAILING, LOST, SECONDS
from benchmarks.common.documents import machine_text, table

PAGE = """\
# A thousand workers

How many evaluations side by side Farthing can direct, measured on a simulated cluster.

{headline}

The run is the real one: the same loop, policies, ledger, limits and study file as with worker processes. Only the
evaluations are simulated. They take time of a clock of their own, so hours pass in seconds, and what is measured is
what Farthing takes itself. An evaluation takes about {minutes:.0f} minutes, up to three times as long or as short
depending on its configuration and again as much by chance, and one in twenty far longer (a Pareto tail). {lost:.0%}
of evaluations lose their worker and run again, {failing:.0%} raise an error. Nodes have two or eight places; each
leaves after two hours on average, with all that is evaluated there, and another one joins minutes later. Learners
train in 20 steps and write a checkpoint every five. The budget is in computing time, and hard: at its end whatever
still runs is told to end, and a third of it does not and is killed.

## Decisions per second

Processor time of one thread. A trial is proposed, begun, recorded twice and charged; the parts say which share of the
time the policy took, the study file, and the rest: the loop with its limits and ledger. The first proposals, one for
each worker, are made before anything is known, and hardly take time. So the last two columns are about the last tenth
of the proposals: milliseconds of a proposal with all that follows from it, and how long an evaluation (of a learner,
a stretch of its training) has to take so that no worker waits for the run: workers times those milliseconds. With
1,000 workers the last proposals of `carbo` know few results; the next section has more.

{runs}

{exactness}

{memory}

## Many evaluations running

A proposal takes into account all that runs. Processor milliseconds of one suggestion, medians, with results of
{known}:

{pending}

{pending_findings}

## What breaks first at 10,000

{breaks}

- The **policy** comes first. One process proposes, and one proposal is made after the other. With 10,000 workers and
  evaluations of ten minutes a worker becomes free every 0.06 seconds, and with 1,000 running a suggestion of most
  policies takes longer than that (second table). Workers then wait for proposals, and what helps is longer
  evaluations, a policy without a model for a part of the workers, or several studies. Under a budget of time Farthing
  chooses a quicker way of thinking by itself only when time gets short, not when workers wait.
- **Suggestions are less well spread.** A Gaussian process expects the 1,000 evaluations that were begun last, `thaw`
  300 and `bapi` 64. With 10,000 running, the others are unknown until they end; exact repetitions are still excluded.
- The **disk** is next. Every proposal and every result is on disk before the run goes on: two commits for an
  evaluation. The study file lay in memory here. A disk that takes 0.5 milliseconds for a commit allows 1,000
  evaluations per second, one that takes 5 milliseconds 100, and starting 10,000 workers takes 50 seconds there.
- The **heartbeat** writes what each running evaluation has spent, twice a second. {heartbeat}
- Connections to 10,000 workers, and what they do to the operating system or to Ray, are not simulated.

{machine}

Reproduce with `make bench-cluster`. The numbers are in [data/cluster-scale.json](data/cluster-scale.json).
"""

Found = Mapping[str, Any]


def per_trial(run: Found) -> float:
    """Processor seconds of a proposal with all that follows from it, without the simulation itself."""
    return (run["seconds"] - run["parts"]["simulation"]) / run["asks"]


def policy_seconds(run: Found) -> float:
    return sum(run["parts"].get(part, 0.0) for part in ("proposals", "decisions"))


def shares(run: Found) -> tuple[float, float, float]:
    """Of policy, file and loop, of the time of the run's own thread."""
    own = run["seconds"] - run["parts"]["simulation"]
    policy, file = policy_seconds(run) / own, run["parts"]["file"] / own
    return policy, file, 1.0 - policy - file


def late(run: Found) -> float:
    """The same of the last tenth: with results and while others run, policies take longer than in the beginning."""
    return per_trial(run) - run["parts"]["proposals"] / run["asks"] + run["ask"]


def busy_from(run: Found) -> float:
    """Seconds of an evaluation (of a stretch of training) from which on the run keeps up with its workers."""
    return run["workers"] * late(run)


def run_table(runs: Sequence[Found]) -> str:
    header = [
        "policy",
        "workers",
        "proposals",
        "proposals per second",
        "policy",
        "file",
        "loop",
        "late, ms",
        "keeps up from",
    ]
    rows = []
    for run in runs:
        kind = " (learners)" if run["steps"] else ""
        seconds = busy_from(run)
        rows.append([
            f"`{run['policy']}`{kind}", f"{run['workers']:,}", f"{run['asks']:,}", f"{1.0 / per_trial(run):,.0f}",
            *(f"{share:.0%}" for share in shares(run)), f"{1e3 * late(run):.1f}",
            f"{seconds:.2g} s" if seconds < 10.0 else f"{seconds:,.0f} s",
        ])  # fmt: skip
    return table(header, rows)


def exactness(runs: Sequence[Found]) -> str:
    lost, killed = sum(run["lost"] for run in runs), sum(run["killed"] + run["late"] for run in runs)
    left, trials = sum(run["nodes"].get("left", 0) for run in runs), sum(run["trials"] for run in runs)
    faulty = [fault for run in runs for fault in run["faults"]]
    told = (
        f"In these runs {trials:,} trials were evaluated, {lost:,} times an evaluation lost its worker or its node, "
        f"{left:,} nodes left the cluster, and {killed:,} evaluations were ended at a limit, most of them "
        "at the end of the budget."
    )
    if faulty:
        return f"{told} **Not exact**: {'; '.join(faulty[:5])}."
    return (
        f"{told} The cluster keeps books of its own: in every run the ledger agrees with them to 1e-9 of each sum, "
        "each trial has the status and cost that it should have, none was evaluated twice at the same time, and the "
        "file, read again, says the same."
    )


def memory(runs: Sequence[Found]) -> str:
    least, most = (by(runs, key=lambda run: run["peak_mb"]) for by in (min, max))
    largest = max(runs, key=lambda run: run["workers"])
    return (
        f"The process takes {least['peak_mb']:.0f} to {most['peak_mb']:.0f} MB at its peak: "
        f"{largest['peak_mb']:.0f} MB with {largest['workers']:,} workers, whose file has {largest['file_mb']:.1f} MB."
    )


def pending_table(found: Mapping[str, Mapping[str, float]]) -> str:
    counts = list(next(iter(found.values())))
    header = ["policy", *(f"{int(count):,} running" if int(count) else "none running" for count in counts), "ratio"]
    rows = [
        [f"`{policy}`", *(f"{1e3 * one[count]:.0f}" for count in counts), f"{one[counts[-1]] / one[counts[0]]:.1f}"]
        for policy, one in found.items()
    ]
    return table(header, rows)


def pending_findings(found: Mapping[str, Mapping[str, float]]) -> str:
    counts = list(next(iter(found.values())))
    worst = [max(one[count] / one[counts[0]] for one in found.values()) for count in counts[1:]]
    said = [f"{ratio:.1f} times with {int(count):,}" for count, ratio in zip(counts[1:], worst, strict=True)]
    return f"At most a suggestion takes {' and '.join(said)} running what it takes with none."


def breaks(runs: Sequence[Found]) -> str:
    largest = max(runs, key=lambda run: run["workers"])
    return (
        f"Measured with {largest['workers']:,} workers under policy `{largest['policy']}`: "
        f"{1.0 / per_trial(largest):,.0f} proposals per second. As the first table shows, what the loop takes for one "
        "hardly depends on how many run. For the rest it is an estimate, from the numbers above:"
    )


def heartbeat(runs: Sequence[Found]) -> str:
    """The other threads of the process: hardly more than the heartbeat's."""
    largest = max(runs, key=lambda run: run["workers"])
    return (
        f"In the run with {largest['workers']:,} workers its thread used {largest['heartbeat'] / largest['wall']:.0%} "
        "of a processor, and Python lets only one thread compute at a time."
    )


def headline(runs: Sequence[Found], pending: Mapping[str, Mapping[str, float]]) -> str:
    most = list(next(iter(pending.values())))[-1]
    quick = next((run for run in runs if run["policy"] == "random" and run["workers"] == int(most)), runs[-1])
    took = [1e3 * one[most] for one in pending.values()]
    return (
        f"With {quick['workers']:,} workers the run itself allows {1.0 / late(quick):,.0f} proposals per second. A "
        f"suggestion by a model takes {min(took):.0f} to {max(took):.0f} milliseconds with {int(most):,} evaluations "
        "running, so policies that use models set the pace."
    )


def document(data: Mapping[str, Any]) -> str:
    """The page."""
    runs, known = data["runs"], data["known"]
    return PAGE.format(
        headline=headline(runs, data["pending"]), minutes=SECONDS / 60.0, lost=LOST, failing=FAILING,
        runs=run_table(runs),
        exactness=exactness(runs), memory=memory(runs),
        known=", ".join(f"{count} evaluations (`{policy}`)" for policy, count in known.items()),
        pending=pending_table(data["pending"]), pending_findings=pending_findings(data["pending"]), breaks=breaks(runs),
        heartbeat=heartbeat(runs),
        machine=machine_text(data["machine"], {"Farthing": runs[0]["versions"]}),
    )  # fmt: skip
