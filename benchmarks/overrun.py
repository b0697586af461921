"""How far studies go past a budget of seconds: Farthing beside Optuna and FLAML; and what parallel workers gain.

    python benchmarks/overrun.py            minutes; writes docs/runner-budgets.md and docs/data/runner-budgets.json
    QUICK=1 python benchmarks/overrun.py    about two minutes, prints only

Every study is the first of a fresh process, once for each system. The processes load their libraries one after the
other; then all are told to begin at the same moment, so that what disturbs the machine disturbs them all. Trials sleep:
they leave the machine to the others. With workers there are two studies, one after the other.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from statistics import mean
from typing import Any, NamedTuple

from children import Child
from documents import machine, machine_text, table, verdict, write
from environments import ensure, quick

NAMES = {"farthing": "Farthing", "optuna": "Optuna", "flaml": "FLAML"}
ENVIRONMENTS = {"farthing": "farthing", "optuna": "overrun", "flaml": "overrun"}
SHARE, LEAST = 0.02, 0.5  # what a study may overrun: this share of its budget, or so many seconds if that is more
WORKERS, TRIAL_SECONDS, TIMES = 4, 0.5, 3.8
ANSWER_SECONDS = 300.0


class Given(NamedTuple):
    """Seconds of the budget and of one trial, and its steps; no steps: a plain function."""

    budget: float
    trial: float
    steps: int = 0

    @property
    def allowed(self) -> float:
        return max(SHARE * self.budget, LEAST)


STUDIES = (
    Given(1, 0.1), Given(1, 3, 6), Given(1, 30), Given(2, 0.7), Given(2, 8),
    Given(3, 0.25), Given(3, 1.3, 5), Given(4, 12, 24), Given(5, 0.4, 4), Given(5, 2.2),
    Given(5, 20), Given(6, 5), Given(8, 1.7, 10), Given(8, 15), Given(10, 0.15),
    Given(10, 4, 8), Given(12, 9), Given(15, 6.5), Given(20, 2.7, 9), Given(20, 30, 60),
)  # fmt: skip


@dataclass(frozen=True)
class Setting:
    """Which studies, how long workers are watched, and how much longer they run, so that they may start meanwhile."""

    studies: Sequence[Given]
    window: float
    allowance: float


FULL = Setting(STUDIES, 60.0, 10.0)
SHORT = Setting([STUDIES[i] for i in (0, 1, 4, 6, 9)], 15.0, 10.0)


@dataclass(frozen=True)
class Ran:
    """One study of one system: seconds of the call and of loading the library, trials that ran to their end, whether
    it has a best value."""

    seconds: float
    import_seconds: float
    trials: int
    found: bool


@dataclass(frozen=True)
class Watched:
    """Trials of some workers in a window that begins when all of them are at work for the first time."""

    trials: int
    startup_seconds: float  # from the call to the window
    all_trials: int  # of the call, from its beginning to its end
    call_seconds: float


@dataclass
class Results:
    """What ran, by study and system; workers; versions; and the load of the machine when each study began."""

    studies: dict[Given, dict[str, Ran]] = field(default_factory=dict)
    workers: dict[int, Watched] = field(default_factory=dict)
    versions: dict[str, dict[str, str]] = field(default_factory=dict)
    loads: list[float] = field(default_factory=list)

    def overruns(self, system: str) -> list[float]:
        return [ran[system].seconds - given.budget for given, ran in self.studies.items()]

    def with_import(self, system: str) -> list[float]:
        return [ran[system].seconds + ran[system].import_seconds - given.budget for given, ran in self.studies.items()]

    def passed(self, system: str) -> int:
        """In how many studies the overrun was allowed."""
        return sum(over <= given.allowed for given, over in zip(self.studies, self.overruns(system), strict=True))

    @property
    def times(self) -> float:
        """Trials of all workers over those of one."""
        return self.workers[WORKERS].trials / self.workers[1].trials


# -- measuring ---------------------------------------------------------------------------------------------------------


def study(given: Given, results: Results) -> dict[str, Ran]:
    """One study of every system, all at the same time."""
    children: dict[str, Child] = {}
    ready: dict[str, dict[str, Any]] = {}
    with ExitStack() as stack:
        for system, environment in ENVIRONMENTS.items():
            child = Child(environment, [str(part) for part in given], ANSWER_SECONDS, f"overrun_{system}_peer.py")
            children[system] = stack.enter_context(child)
            ready[system] = child.answer()
            results.versions[system] = ready[system]["ready"]
        results.loads.append(os.getloadavg()[0])
        pool = stack.enter_context(ThreadPoolExecutor(len(children)))
        asked = {system: pool.submit(child.ask, "go") for system, child in children.items()}
        answers = {system: future.result() for system, future in asked.items()}
    return {system: Ran(import_seconds=ready[system]["import_seconds"], **answers[system]) for system in NAMES}


def watch(workers: int, setting: Setting) -> Watched:
    """A study with so many workers."""
    arguments = [str(workers), f"{setting.window + setting.allowance:g}", str(TRIAL_SECONDS)]
    with Child("farthing", arguments, ANSWER_SECONDS, "overrun_workers_peer.py") as child:
        child.answer()
        answer = child.ask("go")
    (began, ended), trials = answer["call"], sorted(answer["trials"])
    since = all_at_work(trials, workers)
    if since + setting.window > ended:
        raise RuntimeError(f"{workers} workers took {since - began:.1f} s to start: too long for the allowance")
    inside = [trial for trial in trials if since <= trial[0] and trial[1] <= since + setting.window]
    return Watched(len(inside), since - began, len(trials), ended - began)


def all_at_work(trials: Sequence[Sequence[float]], workers: int) -> float:
    """When so many trials were under way for the first time; trials are [begin, end], by their beginning."""
    for begin, _ in trials:
        if sum(other[0] <= begin < other[1] for other in trials) >= workers:
            return begin
    raise RuntimeError(f"{workers} workers were never at work at the same time")


def measure(setting: Setting) -> Results:
    """All studies, then workers."""
    results = Results()
    for number, given in enumerate(setting.studies, 1):
        results.studies[given] = study(given, results)
        shown = (
            f"{NAMES[system]} {ran.seconds - given.budget:+.2f} s" for system, ran in results.studies[given].items()
        )
        about = f"{given.budget:g} s, trials of {given.trial:g} s"
        print(f"study {number}/{len(setting.studies)}, {about}: {'; '.join(shown)}", flush=True)
    for workers in (1, WORKERS):
        results.workers[workers] = watch(workers, setting)
        print(f"workers {workers}: {results.workers[workers].trials} trials in {setting.window:g} s", flush=True)
    return results


# -- telling -----------------------------------------------------------------------------------------------------------


PAGE = """\
# Budgets of seconds, and workers

## How far a study goes past its budget

{count} studies with budgets of {least:g} to {most:g} seconds over trials of {shortest:g} to {longest:g} seconds, each
run by Farthing (`ft.tune(objective, space, "5s", policy="random")`), by Optuna
(`study.optimize(objective, timeout=5)` with its `RandomSampler`) and by FLAML
(`flaml.tune.run(objective, time_budget_s=5, num_samples=-1)` with its default search). Trials sleep, and all trials of
a study take the same time. Where steps are named the objective is iterative: it yields its value to Farthing after each
step, and reports it to Optuna (which may prune there) and to FLAML.

The overrun is the wall-clock time of the call minus the budget. Every call is the first of a fresh process, so that
what a user pays for at the first call, such as the start of worker processes, is in it. What comes before the call,
loading the library, is not; it is shown below. The three systems run each study at the same time. In brackets: how many
trials ran to their end.

{table}

{summary}

The bar, for Farthing in each study: at most {share:.0%} of the budget or {least_seconds:g} s, whichever is larger:
{passed} of {count}, {verdict}. Optuna and FLAML would pass in {optuna} and {flaml} of {count}.

What that takes: Farthing runs the objective in a worker process, tells it to end when the budget is spent, and kills it
a moment later if it has not. Trials that sleep, like these, end as soon as they are told. Optuna and FLAML look at the
clock between trials, so a trial that has begun is waited for. Each way has its price:

- A plain function that is stopped has no value. Where one trial takes longer than the budget, Farthing ends in time and
  without a result ({empty} of {count} studies here); the others end late, with one. An iterative objective keeps the
  values of the steps it made.
- Starting a worker process takes part of the budget: where trials are short, Farthing completes fewer of them
  ({fewer}).

## Workers

Farthing with 1 and with {workers} workers on trials that sleep {trial_seconds:g} s, one study after the other. Workers
are to be at work already, so a study is given {allowance:g} s more than the {window:g} s that are looked at. These
begin when, for the first time, as many trials are under way as there are workers. Counted are the trials that began and
ended within them, by a clock that all processes share, read inside the objective: one that was under way at the
beginning or at the end of the {window:g} s does not count.

{workers_table}

The bar: {workers} workers complete at least {times:g} times the trials of one: {ratio:.2f}, {times_verdict}.

{machine} The load average when studies began was {load:.1f} in the mean; trials that sleep add next to nothing to it.

Reproduce with `make bench-runner`. The numbers are in [data/runner-budgets.json](data/runner-budgets.json).
"""


def study_rows(results: Results) -> list[list[str]]:
    return [
        [
            f"{given.budget:g} s",
            f"{given.trial:g} s" + (f" in {given.steps} steps" if given.steps else ""),
            *(f"{ran[system].seconds - given.budget:.2f} s ({ran[system].trials})" for system in NAMES),
        ]
        for given, ran in results.studies.items()
    ]


def summary_rows(results: Results) -> list[list[str]]:
    return [
        [
            name,
            f"{max(results.overruns(system)):.2f} s",
            f"{mean(results.overruns(system)):.2f} s",
            f"{max(results.with_import(system)):.2f} s",
            f"{mean(ran[system].import_seconds for ran in results.studies.values()):.2f} s",
            f"{sum(ran[system].found for ran in results.studies.values())} of {len(results.studies)}",
        ]
        for system, name in NAMES.items()
    ]


def workers_rows(results: Results, setting: Setting) -> list[list[str]]:
    return [
        [
            str(workers),
            str(watched.trials),
            f"{workers * setting.window / TRIAL_SECONDS:.0f}",
            f"{watched.startup_seconds:.2f} s",
            f"{watched.all_trials} in {watched.call_seconds:.2f} s",
        ]
        for workers, watched in results.workers.items()
    ]


def fewer(results: Results) -> str:
    """Where Farthing completed at least one whole trial, but fewer than another did within the budget."""
    found = []
    for given, ran in results.studies.items():
        ours, theirs = ran["farthing"].trials, min(ran["optuna"].trials, int(given.budget / given.trial + 1e-9))
        if ours < theirs:
            found.append(f"{ours} instead of {theirs} with {given.budget:g} s for trials of {given.trial:g} s")
    return "; ".join(found) or "in no study here"


def document(setting: Setting, results: Results, facts: dict[str, Any]) -> str:
    """The page: tables, bars, what it costs."""
    header = ["budget", "one trial", *NAMES.values()]
    summary_header = [
        "", "worst overrun", "mean overrun", "worst, loading the library counted", "loading, mean",
        "studies with a best value",
    ]  # fmt: skip
    workers_header = ["workers", "trials counted", "without any overhead", "until all are at work", "the whole call"]
    count = len(results.studies)
    return PAGE.format(
        count=count,
        least=min(given.budget for given in results.studies),
        most=max(given.budget for given in results.studies),
        shortest=min(given.trial for given in results.studies),
        longest=max(given.trial for given in results.studies),
        table=table(header, study_rows(results)),
        summary=table(summary_header, summary_rows(results)),
        share=SHARE,
        least_seconds=LEAST,
        passed=results.passed("farthing"),
        verdict=verdict(results.passed("farthing") == count),
        optuna=results.passed("optuna"),
        flaml=results.passed("flaml"),
        empty=sum(not ran["farthing"].found for ran in results.studies.values()),
        fewer=fewer(results),
        workers=WORKERS,
        trial_seconds=TRIAL_SECONDS,
        allowance=setting.allowance,
        window=setting.window,
        workers_table=table(workers_header, workers_rows(results, setting)),
        times=TIMES,
        ratio=results.times,
        times_verdict=verdict(results.times >= TIMES),
        machine=machine_text(facts, results.versions),
        load=mean(results.loads),
    )


def data(results: Results, facts: dict[str, Any]) -> dict[str, Any]:
    """Every study."""
    return {
        "machine": facts,
        "versions": results.versions,
        "load_averages": results.loads,
        "studies": [
            {**given._asdict(), **{system: vars(found) for system, found in ran.items()}}
            for given, ran in results.studies.items()
        ],
        "workers": {workers: vars(watched) for workers, watched in results.workers.items()},
    }


def main() -> None:
    setting = SHORT if quick() else FULL
    for environment in dict.fromkeys(ENVIRONMENTS.values()):
        ensure(environment)
    results, facts = measure(setting), machine()
    text = document(setting, results, facts)
    if quick():
        print("\n" + text)
    else:
        write("runner-budgets", text, data(results, facts))


if __name__ == "__main__":
    main()
