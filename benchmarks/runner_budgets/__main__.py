"""How far studies go past a budget of seconds: Farthing compared with Optuna and FLAML; and what workers gain.

    python -m benchmarks.runner_budgets            minutes; writes docs/runner-budgets.md and its data
    QUICK=1 python -m benchmarks.runner_budgets    about two minutes, prints only
    python -m benchmarks.runner_budgets --page     the page again, from its data

Every study is the first of a fresh process, once for each system. The processes load their libraries one after the
other; then all are told to begin at the same moment, so that what disturbs the machine disturbs them all. Trials sleep:
they leave the machine to the others. With workers there are two studies, one after the other.
"""

from __future__ import annotations

from statistics import mean
from typing import Any

from benchmarks.common.command import parser
from benchmarks.common.documents import kept_data, listed, machine, machine_text, publish, table, write_page
from benchmarks.common.environments import ensure, quick
from benchmarks.runner_budgets.runs import (
    ENVIRONMENTS,
    FULL,
    NAMES,
    SHORT,
    TRIAL_SECONDS,
    WORKERS,
    Given,
    Ran,
    Results,
    Setting,
    Watched,
    measure,
)

PAGE = """\
# How budgets of seconds are kept, and what workers gain

## How far a study goes past its budget

{count} studies with budgets of {least:g} to {most:g} seconds and trials of {shortest:g} to {longest:g} seconds, each
run by Farthing (`ft.tune(objective, space, "5s", policy="random")`), by Optuna (`study.optimize(objective, timeout=5)`
with its `RandomSampler`) and by FLAML (`flaml.tune.run(objective, time_budget_s=5, num_samples=-1)` with its default
search). Trials sleep, and all trials of a study take the same time. Where the table names steps, the objective is
iterative: it yields its value to Farthing after each step, and reports it to Optuna (which may prune there) and to
FLAML.

The overrun is the wall-clock time of the call minus the budget.

{overruns}
{empty}

Why: Farthing runs the objective in a worker process, tells it to end when the budget is spent, and kills it a moment
later if it has not ended. Trials that sleep, like these, end as soon as they are told. Optuna and FLAML look at the
clock between trials, so they wait for a trial that has begun. Both ways have a price:

- A plain function that is stopped has no value. Where one trial takes longer than the budget, Farthing ends in time but
  without a result; the others end late, with one. An iterative objective keeps the values of the steps it made.
- Starting a worker process takes part of the budget. Where trials are short, Farthing completes fewer of them than
  Optuna within the budget: {fewer}.

Every call is the first of a fresh process, so it includes what a user pays at the first call, such as the start of
worker processes. It does not include loading the library before the call; the second table shows that. The three
systems run each study at the same time. In brackets: how many trials ran to their end.

{table}

{summary}

## Workers

Farthing with 1 and with {workers} workers on trials that sleep {trial_seconds:g} s, one study after the other.
{workers} workers complete {ratio:.2f} times the trials of one.

{workers_table}

Trials are counted in a window of {window:g} s that begins when, for the first time, as many trials are under way as
there are workers; a study has {allowance:g} s more than that. A trial counts if it began and ended within the window,
by a clock that all processes share, read inside the objective. One that was under way at the beginning or at the end of
the window does not count.

{machine} The mean load average when studies began was {load:.1f}; trials that sleep add next to nothing to it.

Reproduce with `make bench-runner`. The numbers are in [data/runner-budgets.json](data/runner-budgets.json).
"""


def overrun_line(results: Results, system: str) -> str:
    overruns = results.overruns(system)
    return f"- {NAMES[system]}: {mean(overruns):.2f} s on average, at most {max(overruns):.2f} s."


def empty_line(results: Results) -> str:
    """What the budgets cost: studies that ended without any value."""
    empty = {system: sum(not ran[system].found for ran in results.studies.values()) for system in NAMES}
    theirs = listed([f"{NAMES[system]} in {empty[system]}" for system in NAMES if system != "farthing"])
    return (
        f"- Studies that ended without any value: Farthing in {empty['farthing']} of {len(results.studies)}, {theirs}."
    )


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
    """Where Farthing completed fewer trials than Optuna did within the budget."""
    found = []
    for given, ran in results.studies.items():
        ours, theirs = ran["farthing"].trials, min(ran["optuna"].trials, int(given.budget / given.trial + 1e-9))
        if ours < theirs:
            found.append(f"{ours} instead of {theirs} in {given.budget:g} s with trials of {given.trial:g} s")
    return "; ".join(found) or "in no study here"


def document(setting: Setting, results: Results, facts: dict[str, Any]) -> str:
    """The page: tables, and what it costs."""
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
        overruns="\n".join(overrun_line(results, system) for system in NAMES),
        empty=empty_line(results),
        fewer=fewer(results),
        workers=WORKERS,
        trial_seconds=TRIAL_SECONDS,
        allowance=setting.allowance,
        window=setting.window,
        workers_table=table(workers_header, workers_rows(results, setting)),
        ratio=results.times,
        machine=machine_text(facts, results.versions),
        load=mean(results.loads),
    )


def data_of(results: Results, facts: dict[str, Any]) -> dict[str, Any]:
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


def results_of(data: dict[str, Any]) -> Results:
    """Back from the data of the page."""
    studies = {
        Given(one["budget"], one["trial"], one["steps"]): {system: Ran(**one[system]) for system in NAMES}
        for one in data["studies"]
    }
    workers = {int(count): Watched(**one) for count, one in data["workers"].items()}
    return Results(studies, workers, data["versions"], data["load_averages"])


def main() -> None:
    if parser(__doc__, has_page=True).parse_args().page:
        data = kept_data("runner-budgets")
        write_page("runner-budgets", document(FULL, results_of(data), data["machine"]), data)
        return
    setting = SHORT if quick() else FULL
    for environment in dict.fromkeys(ENVIRONMENTS.values()):
        ensure(environment)
    results = measure(setting)
    data = data_of(results, machine())
    text = document(setting, results, data["machine"])
    publish("runner-budgets", text, data, is_whole=not quick())


if __name__ == "__main__":
    main()
