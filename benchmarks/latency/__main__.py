"""Seconds per suggestion of Farthing, Optuna's GPSampler and BoTorch after n trials in 7 dimensions.

    python -m benchmarks.latency            minutes; writes docs/latency.md and docs/data/latency.json
    QUICK=1 python -m benchmarks.latency    under 2 minutes, prints only
    python -m benchmarks.latency --page     the page again, from its data

For every n and repetition each system gets a process of its own, one thread, the same n noisy trials and a
warm-up on another study. Then they take turns, one suggestion each, until everyone had its rounds: what
disturbs the machine disturbs them all. A sample is one suggestion together with the telling of its value, so
that no work can hide between two suggestions; the first of each process is a cold start and counts like the
others.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from benchmarks.common.children import Child, ChildStopped
from benchmarks.common.command import parser
from benchmarks.common.documents import kept_data, machine, machine_text, publish, table, write_page
from benchmarks.common.environments import ensure, quick
from benchmarks.common.statistics import percent

NAMES = {"farthing": "Farthing", "optuna": "Optuna GPSampler", "botorch": "BoTorch"}
BOTORCH_UP_TO = 500
ANSWER_SECONDS = 120.0


@dataclass(frozen=True)
class Setting:
    """How many repetitions, and for which n how many rounds each."""

    repetitions: int
    rounds: dict[int, int]


FULL = Setting(3, {50: 15, 100: 15, 200: 15, 500: 8, 1000: 4})
SHORT = Setting(1, {50: 5, 100: 8, 500: 4})


@dataclass
class Results:
    """Seconds of every sample by (system, n), versions by system, and why anything is missing.

    `cpu_share` is CPU time over wall time per sample: well below 1, the machine was busy with something else.
    """

    repetitions: int
    seconds: dict[tuple[str, int], list[float]] = field(default_factory=dict)
    cpu_share: list[float] = field(default_factory=list)
    versions: dict[str, dict[str, str]] = field(default_factory=dict)
    missing: dict[tuple[str, int], str] = field(default_factory=dict)

    def add(self, system: str, n: int, sample: dict[str, float]) -> None:
        self.seconds.setdefault((system, n), []).append(sample["seconds"])
        self.cpu_share.append(sample["cpu_seconds"] / sample["seconds"])

    def drop(self, system: str, n: int, why: str) -> None:
        """Forget a system's samples at n: a part of them would flatter it."""
        self.seconds.pop((system, n), None)
        self.missing[system, n] = why

    @property
    def counts(self) -> dict[int, int]:
        """How many samples of Farthing there are, by n."""
        return {n: len(samples) for (system, n), samples in self.seconds.items() if system == "farthing"}

    def percentile(self, system: str, n: int, q: float) -> float:
        return float(np.percentile(self.seconds[system, n], q))

    def ratio(self, peer: str, n: int) -> float | None:
        """How many times Farthing's median a peer's is, None if either is missing."""
        if not {(peer, n), ("farthing", n)} <= self.seconds.keys():
            return None
        return self.percentile(peer, n, 50) / self.percentile("farthing", n, 50)


def take_turns(n: int, rounds: int, seed: int, results: Results) -> None:
    """One repetition at n: every system in a child, one round each in turn."""
    arguments = ["--n", n, "--rounds", rounds, "--seed", seed, "--lockstep"]
    with ExitStack() as stack:
        children = {
            system: stack.enter_context(Child(system, f"latency.peers.{system}_peer", arguments, ANSWER_SECONDS))
            for system in NAMES
            if (system, n) not in results.missing
        }
        for system, answer in _answers(children, n, results, start=True):
            results.versions[system] = answer["ready"]
        for _ in range(rounds):
            for system, answer in _answers(children, n, results, start=False):
                results.add(system, n, answer)


def _answers(
    children: dict[str, Child], n: int, results: Results, *, start: bool
) -> Iterable[tuple[str, dict[str, Any]]]:
    """One answer of every child that still runs, one child after the other."""
    for system, child in list(children.items()):
        try:
            yield system, child.answer() if start else child.ask("next")
        except ChildStopped as stopped:
            del children[system]
            results.drop(system, n, str(stopped))


def measure(setting: Setting) -> Results:
    """All repetitions for all n."""
    results = Results(setting.repetitions)
    for n in setting.rounds:
        if n > BOTORCH_UP_TO:
            results.missing["botorch", n] = f"not run above n = {BOTORCH_UP_TO} to keep the benchmark short"
    for repetition in range(setting.repetitions):
        for n, rounds in setting.rounds.items():
            take_turns(n, rounds, repetition, results)
            shown = (f"{NAMES[system]} {_cell(results, system, n)}" for system in NAMES)
            print(f"repetition {repetition + 1}/{setting.repetitions}, n = {n}: {'; '.join(shown)}", flush=True)
    return results


def _duration(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 1.0 else f"{1000 * seconds:.{1 if seconds < 0.1 else 0}f} ms"


def _cell(results: Results, system: str, n: int) -> str:
    if (system, n) not in results.seconds:
        return "-"
    median, high = (results.percentile(system, n, q) for q in (50, 95))
    return f"{_duration(median)} ({_duration(high)})"


def _ratio(results: Results, peer: str, n: int) -> str:
    found = results.ratio(peer, n)
    return "-" if found is None else f"{found:.1f}x"


def _span(numbers: Sequence[float]) -> str:
    low, high = f"{min(numbers):.0f}", f"{max(numbers):.0f}"
    return low if low == high else f"{low} to {high}"


def comparison(results: Results, peer: str) -> str:
    """How many times faster than a peer, in one line."""
    ratios = {n: ratio for n in results.counts if (ratio := results.ratio(peer, n)) is not None}
    if not ratios:
        return f"- {NAMES[peer]}: not measured."
    first, last = min(ratios), max(ratios)
    return (
        f"- {NAMES[peer]}: {_span(list(ratios.values()))} times faster ({ratios[first]:.1f} times after {first} "
        f"trials, {ratios[last]:.1f} times after {last})."
    )


def spread(results: Results) -> str:
    """How much the times vary, after as many trials as two systems have."""
    n = max(n for n in results.counts if results.ratio("optuna", n) is not None)
    ours, theirs = (results.percentile(s, n, 95) / results.percentile(s, n, 50) for s in ("farthing", "optuna"))
    return (
        f"After {n} trials Farthing's 95th percentile is {ours:.1f} times its median, GPSampler's {theirs:.1f} times. "
        "The slow suggestions are the first ones of a study, which have no earlier fit to start from."
    )


PAGE = """\
# Time per suggestion

How long does it take to suggest a configuration after n trials, and to take in its value? Farthing's policy `ei`,
compared with Optuna's GPSampler and BoTorch. The objective's own time is left out.

Farthing's median, compared with

{comparisons}

{spread}

Median time, with the 95th percentile in brackets:

{table}

Seven continuous parameters, a smooth function with noise, one thread. Farthing searches for the hyperparameters of the
model again when there are 2 % more trials: up to 50 trials at every suggestion, then less often; the others at every
suggestion. {repetitions} fresh studies per system and n; the first suggestion of each has no earlier fit to start from
and counts like the others. Samples: {counts}. The systems took turns, one suggestion each.

Settings: Farthing's policy `ei` and Optuna's GPSampler are at their defaults, with storage in memory. Both start a fit
from the last one. Farthing's fit then takes at most 12 iterations, and starts again from three points when the data has
grown by 30 %. BoTorch is used as in its documentation: `SingleTaskGP` with its default priors and outcome transform,
fitted from scratch, `LogExpectedImprovement`, `optimize_acqf` with 10 restarts and 512 raw samples, in double
precision.

{machine} CPU time was {cpu_share} of wall time in the median sample; well below 100 % would mean that other work
disturbed the measurement.

{missing}Reproduce with `make bench-latency`. Every sample is in [data/latency.json](data/latency.json).
"""


def document(results: Results, facts: dict[str, Any]) -> str:
    """The page: what was done, the table, what is missing."""
    notes = [f"- {NAMES[system]} at n = {n}: {why}" for (system, n), why in results.missing.items()]
    counts = results.counts
    return PAGE.format(
        comparisons="\n".join(comparison(results, peer) for peer in NAMES if peer != "farthing"),
        spread=spread(results),
        repetitions=results.repetitions,
        counts=", ".join(f"{count} at n = {n}" for n, count in counts.items()),
        table=_table(results),
        machine=machine_text(facts, results.versions),
        cpu_share=percent(float(np.median(results.cpu_share))),
        missing="\n".join(["Not measured:", "", *notes, "", ""]) if notes else "",
    )


def _table(results: Results) -> str:
    peers = [system for system in NAMES if system != "farthing"]
    rows = [
        [
            str(n),
            *(_cell(results, system, n) for system in NAMES),
            *(_ratio(results, peer, n) for peer in peers),
        ]
        for n in results.counts
    ]
    return table(["n", *NAMES.values(), *(f"{NAMES[peer]} / Farthing" for peer in peers)], rows)


def data_of(results: Results, facts: dict[str, Any]) -> dict[str, Any]:
    """Every sample, rounded to the microsecond."""
    seconds: dict[str, dict[str, list[float]]] = {}
    for (system, n), samples in results.seconds.items():
        seconds.setdefault(system, {})[str(n)] = [round(sample, 6) for sample in samples]
    return {
        "machine": facts,
        "versions": results.versions,
        "repetitions": results.repetitions,
        "cpu_share": round(float(np.median(results.cpu_share)), 3),
        "missing": [[system, n, why] for (system, n), why in results.missing.items()],
        "seconds": seconds,
    }


def results_of(data: dict[str, Any]) -> Results:
    """Back from the data of the page."""
    seconds = {(system, int(n)): samples for system, by in data["seconds"].items() for n, samples in by.items()}
    missing = {(system, n): why for system, n, why in data["missing"]}
    return Results(data["repetitions"], seconds, [data["cpu_share"]], data["versions"], missing)


def main() -> None:
    if parser(__doc__, has_page=True).parse_args().page:
        data = kept_data("latency")
        write_page("latency", document(results_of(data), data["machine"]), data)
        return
    for system in NAMES:
        ensure(system)
    results = measure(SHORT if quick() else FULL)
    data = data_of(results, machine())
    text = document(results, data["machine"])
    publish("latency", text, data, is_whole=not quick())


if __name__ == "__main__":
    main()
