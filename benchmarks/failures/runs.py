"""The runs of the benchmark of failures: who searches, on which problem, with crashes or without, with which seed.

Finished runs lie in benchmarks/cache, see common/kept_runs.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

from benchmarks.common.fingerprints import fingerprint
from benchmarks.common.kept_runs import Files, Runner
from benchmarks.failures.peers.task import PROBLEMS

EVALUATIONS = 60


@dataclass(frozen=True)
class Method:
    """A row of the tables: the system that runs it, and its name there."""

    name: str
    title: str
    system: str

    @property
    def module(self) -> str:
        return f"failures.peers.{self.system}_peer"


POLICIES = tuple(Method(n, f"`{n}`", "farthing") for n in ("ei", "ei_alpha", "eipu", "ei_cool", "cei", "carbo"))
PEERS = (Method("tpe", "Optuna TPE", "optuna"), Method("gpsampler", "Optuna GPSampler", "optuna"))
METHODS = (*POLICIES, *PEERS)


@dataclass(frozen=True)
class Run:
    """One method on one problem with one seed, with crashes or without."""

    problem: str
    method: Method
    failing: bool
    seed: int

    @property
    def task(self) -> dict[str, Any]:
        return {
            "problem": self.problem, "failing": self.failing, "method": self.method.name,
            "evaluations": EVALUATIONS, "seed": self.seed,
        }  # fmt: skip

    def __str__(self) -> str:
        crashes = "with crashes" if self.failing else "without"
        return f"{self.problem} {self.method.name} seed {self.seed}, {crashes}"


Answers = dict[Run, dict[str, Any]]


def _code(run: Run) -> str:
    return fingerprint(run.method.system, (run.method.module, "failures.peers.task"))


FILES = Files(lambda run: f"failures-{run.method.name}", _code, lambda _, answer: answer)


def measure(seeds: int) -> Answers:
    """Every run; seeds outermost, so that a part is a fair part."""
    runs = [Run(*run) for seed in range(seeds) for run in product(PROBLEMS, METHODS, (True, False), (seed,))]
    return Runner(FILES, lambda run, answer: f"{answer['seconds']:.1f} s").measure_all(runs, workers=1)
