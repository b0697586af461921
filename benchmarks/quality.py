"""Simple regret of Farthing's policy `ei` after 60 evaluations, beside Optuna's GPSampler.

    python benchmarks/quality.py            20 seeds; writes docs/quality.md and docs/data/quality.json
    QUICK=1 python benchmarks/quality.py    3 seeds, prints only
    python benchmarks/quality.py --seeds 10 --problems branin mixed6

Five functions with known optimum, noise-free. With the same seed every method starts from the same 8
configurations, a scrambled Sobol design drawn here, so that runs are paired. Two runs at a time, one thread
each. Finished runs are kept in benchmarks/cache under a hash of the task and of the code that did it, so a
benchmark that was interrupted continues, and one whose code changed starts anew.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import qmc

from children import Child
from documents import machine, machine_text, table, verdict, write
from environments import BENCHMARKS, ROOT, digest, ensure, quick, requirements
from farthing.problems.functions import FUNCTIONS

CACHE = BENCHMARKS / "cache"
INITIAL = 8
EVALUATIONS = 60
SEEDS = 20
WORKERS = 2
RESAMPLES = 10_000
ENOUGH = 4  # of the five problems

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Method:
    """A column of the table: the system that runs it, and what is added to its tasks."""

    name: str
    title: str
    system: str
    options: tuple[tuple[str, Any], ...] = ()


FARTHING = Method("farthing", "Farthing `ei`", "farthing")
GPSAMPLER = Method("gpsampler", "GPSampler", "optuna", (("deterministic", False),))
GPSAMPLER_EXACT = Method("gpsampler_deterministic", "GPSampler, deterministic", "optuna", (("deterministic", True),))
METHODS = (FARTHING, GPSAMPLER, GPSAMPLER_EXACT)
PEERS = (GPSAMPLER, GPSAMPLER_EXACT)


@dataclass(frozen=True)
class Run:
    """One method on one problem with one seed."""

    problem: str
    method: Method
    seed: int

    @property
    def task(self) -> dict[str, Any]:
        return {
            "problem": self.problem,
            "seed": self.seed,
            "evaluations": EVALUATIONS,
            "start": initial_configs(self.problem, self.seed),
            **dict(self.method.options),
        }


@dataclass(frozen=True)
class Result:
    """What a run found: its least value above the optimum, and the method's own seconds."""

    regret: float
    seconds: float
    versions: dict[str, str]


def initial_configs(problem: str, seed: int) -> list[dict[str, Any]]:
    """The configurations that every method starts from with this seed."""
    space = FUNCTIONS[problem].space
    sobol = qmc.Sobol(d=len(space), scramble=True, rng=np.random.default_rng([seed, len(space)]))
    return space.decode_many(sobol.random(INITIAL))


def fingerprint(system: str) -> str:
    """A hash of what a system's results depend on: the library's own code, or a peer's pinned versions."""
    peers = BENCHMARKS / "peers"
    problems = ROOT / "src" / "farthing" / "problems" / "functions.py"
    sources = [requirements(system), peers / f"{system}_peer.py", peers / "quality_task.py", problems]
    if system == "farthing":
        sources += sorted((ROOT / "src" / "farthing").rglob("*.py"))
    return digest(*sources)


class Cache:
    """Finished runs, one small file each."""

    def __init__(self) -> None:
        self._code = {system: fingerprint(system) for system in {method.system for method in METHODS}}
        CACHE.mkdir(exist_ok=True)

    def _path(self, run: Run) -> Any:
        key = json.dumps([run.task, self._code[run.method.system]], sort_keys=True)
        short = hashlib.sha256(key.encode()).hexdigest()[:16]
        return CACHE / f"{run.problem}-{run.method.name}-{run.seed}-{EVALUATIONS}-{short}.json"

    def read(self, run: Run) -> dict[str, Any] | None:
        path = self._path(run)
        return json.loads(path.read_text()) if path.exists() else None

    def keep(self, run: Run, answer: dict[str, Any]) -> None:
        path = self._path(run)
        partial = path.with_suffix(".partial")
        partial.write_text(json.dumps(answer))
        partial.replace(path)


class Runner:
    """Does runs that are not cached; each worker thread keeps one child per system."""

    def __init__(self, cache: Cache, total: int) -> None:
        self._cache, self._total, self._done = cache, total, 0
        self._lock, self._mine = threading.Lock(), threading.local()
        self._children: list[Child] = []

    def _child(self, system: str) -> Child:
        mine: dict[str, Child] = self._mine.__dict__
        if system not in mine:
            mine[system] = Child(system, ["quality"])
            with self._lock:
                self._children.append(mine[system])
        return mine[system]

    def __call__(self, run: Run) -> Result:
        answer = self._cache.read(run)
        cached = answer is not None
        if answer is None:
            answer = self._child(run.method.system).ask(run.task)
            self._cache.keep(run, answer)
        regret = max(0.0, FUNCTIONS[run.problem].regret(min(answer["values"])))
        self._progress(run, regret, answer["seconds"], cached)
        return Result(regret, answer["seconds"], answer["versions"])

    def _progress(self, run: Run, regret: float, seconds: float, cached: bool) -> None:
        with self._lock:
            self._done += 1
            note = " (cached)" if cached else ""
            print(
                f"{self._done}/{self._total} {run.problem} {run.method.name} seed {run.seed}: "
                f"regret {regret:.3g} in {seconds:.1f} s{note}",
                flush=True,
            )

    def close(self) -> None:
        for child in self._children:
            child.close()


def measure(problems: Sequence[str], seeds: int) -> dict[Run, Result]:
    """Every method on every problem with every seed; seeds outermost, so that a part is a fair part."""
    runs = [Run(p, method, seed) for seed, p, method in product(range(seeds), problems, METHODS)]
    runner = Runner(Cache(), len(runs))
    try:
        with ThreadPoolExecutor(WORKERS) as pool:
            return dict(zip(runs, pool.map(runner, runs), strict=True))
    finally:
        runner.close()


class Table:
    """Results as arrays over seeds."""

    def __init__(self, results: dict[Run, Result], problems: Sequence[str], seeds: int) -> None:
        self._results, self.problems, self.seeds = results, problems, seeds

    def _column(self, problem: str, method: Method) -> list[Result]:
        return [self._results[Run(problem, method, seed)] for seed in range(self.seeds)]

    def regrets(self, problem: str, method: Method) -> Array:  # (seeds,)
        return np.array([result.regret for result in self._column(problem, method)])

    def versions(self) -> dict[str, dict[str, str]]:
        return {run.method.system: result.versions for run, result in self._results.items()}

    def not_worse(self, peer: Method) -> list[str]:
        """Problems on which Farthing's median regret is at most the peer's."""
        return [
            problem
            for problem in self.problems
            if np.median(self.regrets(problem, FARTHING)) <= np.median(self.regrets(problem, peer))
        ]


def interval(regrets: Array) -> tuple[float, float]:
    """The bootstrap 95 % interval of the median."""
    rng = np.random.default_rng(0)
    draws = rng.choice(regrets, size=(RESAMPLES, len(regrets)))
    low, high = np.percentile(np.median(draws, axis=1), [2.5, 97.5])
    return float(low), float(high)


def _regret_cell(regrets: Array) -> str:
    low, high = interval(regrets)
    return f"{np.median(regrets):.2e} [{low:.1e}, {high:.1e}]"


def _wins_cell(ours: Array, theirs: Array) -> str:
    return f"{np.sum(ours < theirs)} / {np.sum(ours == theirs)} / {np.sum(ours > theirs)}"


def regret_table(found: Table) -> str:
    """Median regret with its interval, per problem and method."""
    rows = [
        [problem, *(_regret_cell(found.regrets(problem, method)) for method in METHODS)] for problem in found.problems
    ]
    return table(["problem", *(method.title for method in METHODS)], rows)


def wins_table(found: Table) -> str:
    """Paired wins, ties and losses of Farthing, per problem and peer."""
    rows = [
        [problem, *(_wins_cell(found.regrets(problem, FARTHING), found.regrets(problem, p)) for p in PEERS)]
        for problem in found.problems
    ]
    return table(["problem", *(f"against {peer.title}" for peer in PEERS)], rows)


def bar_lines(found: Table) -> list[str]:
    """The bar against GPSampler at its defaults, and the same count against its other setting."""
    lines = []
    for peer in PEERS:
        good = found.not_worse(peer)
        outcome = verdict(len(good) >= ENOUGH) if len(found.problems) == len(FUNCTIONS) else "not all measured"
        counted = f"median not worse on {len(good)} of {len(found.problems)} problems"
        lines.append(f"- against {peer.title}: {counted} ({', '.join(good) or 'none'}), {outcome}")
    return lines


PAGE = """\
# Regret after {evaluations} evaluations

How far the best of {evaluations} evaluations is above the known optimum (simple regret; less is better):
median and bootstrap 95 % interval, number of seeds: {seeds}. With the same seed every method starts from the
same {initial} configurations, a scrambled Sobol design. The functions are noise-free.

{regrets}

Seeds on which Farthing is better / equal / worse:

{wins}

The bar: Farthing's median not worse than GPSampler's at its defaults on at least {enough} of the five
problems. GPSampler's defaults allow for noise; `deterministic_objective=True` tells it that there is none,
which Farthing is not told. The second line counts against that setting, with the same bar.

{bars}

{machine}

Reproduce with `make bench-quality`. Every run is in [data/quality.json](data/quality.json).
"""


def document(found: Table, facts: dict[str, Any]) -> str:
    """The page."""
    return PAGE.format(
        evaluations=EVALUATIONS,
        initial=INITIAL,
        seeds=found.seeds,
        enough=ENOUGH,
        regrets=regret_table(found),
        wins=wins_table(found),
        bars="\n".join(bar_lines(found)),
        machine=machine_text(facts, found.versions()),
    )


def data(found: Table, facts: dict[str, Any]) -> dict[str, Any]:
    """Regret per problem, method and seed."""
    return {
        "machine": facts,
        "versions": found.versions(),
        "evaluations": EVALUATIONS,
        "initial": INITIAL,
        "regret": _per_method(found, found.regrets, "{:.5g}"),
    }


def _per_method(found: Table, column: Any, digits: str) -> dict[str, dict[str, list[float]]]:
    return {
        problem: {
            method.name: [float(digits.format(number)) for number in column(problem, method)] for method in METHODS
        }
        for problem in found.problems
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3 if quick() else SEEDS)
    parser.add_argument("--problems", nargs="+", choices=list(FUNCTIONS), default=list(FUNCTIONS))
    arguments = parser.parse_args()
    for system in sorted({method.system for method in METHODS}):
        ensure(system)
    found = Table(measure(arguments.problems, arguments.seeds), arguments.problems, arguments.seeds)
    facts = machine()
    text = document(found, facts)
    if arguments.seeds == SEEDS and len(arguments.problems) == len(FUNCTIONS):
        write("quality", text, data(found, facts))
    else:
        print("\n" + text)


if __name__ == "__main__":
    main()
