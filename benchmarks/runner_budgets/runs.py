"""Studies with a budget of seconds, and studies with several workers: how they are run and measured."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from benchmarks.common.children import Child

NAMES = {"farthing": "Farthing", "optuna": "Optuna", "flaml": "FLAML"}
ENVIRONMENTS = {"farthing": "farthing", "optuna": "runner_budgets", "flaml": "runner_budgets"}
WORKERS, TRIAL_SECONDS = 4, 0.5
ANSWER_SECONDS = 300.0


class Given(NamedTuple):
    """Seconds of the budget and of one trial, and its steps; no steps: a plain function."""

    budget: float
    trial: float
    steps: int = 0


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
            child = Child(environment, f"runner_budgets.peers.{system}_peer", given, ANSWER_SECONDS)
            children[system] = stack.enter_context(child)
            ready[system] = child.answer()
            results.versions[system] = ready[system]["ready"]
        results.loads.append(os.getloadavg()[0])
        pool = stack.enter_context(ThreadPoolExecutor(len(children)))
        asked = {system: pool.submit(child.ask, "go") for system, child in children.items()}
        answers = {system: future.result() for system, future in asked.items()}
    return {system: Ran(import_seconds=ready[system]["import_seconds"], **answers[system]) for system in NAMES}


def watch(workers: int, setting: Setting) -> Watched:
    """A study with some workers."""
    arguments = [workers, f"{setting.window + setting.allowance:g}", TRIAL_SECONDS]
    with Child("farthing", "runner_budgets.peers.workers_peer", arguments, ANSWER_SECONDS) as child:
        child.answer()
        answer = child.ask("go")
    (began, ended), trials = answer["call"], sorted(answer["trials"])
    since = all_at_work(trials, workers)
    if since + setting.window > ended:
        raise RuntimeError(f"{workers} workers took {since - began:.1f} s to start: too long for the allowance")
    inside = [trial for trial in trials if since <= trial[0] and trial[1] <= since + setting.window]
    return Watched(len(inside), since - began, len(trials), ended - began)


def all_at_work(trials: Sequence[Sequence[float]], workers: int) -> float:
    """When as many trials as workers were under way for the first time; trials are [begin, end], by their beginning."""
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
