"""How far studies go past a budget of seconds: Farthing beside Optuna and FLAML; and what parallel workers gain.

    python -m benchmarks.runner_budgets            minutes; writes docs/runner-budgets.md and its data
    QUICK=1 python -m benchmarks.runner_budgets    about two minutes, prints only

Every study is the first of a fresh process, once for each system. The processes load their libraries one after the
other; then all are told to begin at the same moment, so that what disturbs the machine disturbs them all. Trials sleep:
they leave the machine to the others. With workers there are two studies, one after the other.
"""

from __future__ import annotations

from statistics import mean
from typing import Any

from benchmarks.common.documents import machine, machine_text, table, verdict, write
from benchmarks.common.environments import ensure, quick
from benchmarks.runner_budgets.runs import (
    ENVIRONMENTS,
    FULL,
    NAMES,
    SHORT,
    TRIAL_SECONDS,
    WORKERS,
    Results,
    Setting,
    measure,
)

SHARE, LEAST = 0.02, 0.5  # what a study may overrun: this share of its budget, or so many seconds if that is more
TIMES = 3.8

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
