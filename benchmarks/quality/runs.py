"""The runs of the benchmark of quality: who searches, on which problem, with which seed.

Finished runs lie in benchmarks/cache, see common/kept_runs.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from scipy.stats import qmc

from benchmarks.common.fingerprints import SOURCE, code_hash, fingerprint
from benchmarks.common.kept_runs import Files, Runner
from farthing.problems.functions import FUNCTIONS

INITIAL = 8
EVALUATIONS = 60
WORKERS = 2


@dataclass(frozen=True)
class Method:
    """A column of the table: the system that runs it, and what is added to its tasks."""

    name: str
    title: str
    system: str
    options: tuple[tuple[str, Any], ...] = ()

    @property
    def module(self) -> str:
        return f"quality.peers.{self.system}_peer"


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

    def __str__(self) -> str:
        return f"{self.problem} {self.method.name} seed {self.seed}"


@dataclass(frozen=True)
class Result:
    """What a run found: its least value above the optimum, and the method's own seconds."""

    regret: float
    seconds: float
    versions: dict[str, str]

    @classmethod
    def of(cls, run: Run, answer: dict[str, Any]) -> Result:
        regret = max(0.0, FUNCTIONS[run.problem].regret(min(answer["values"])))
        return cls(regret, answer["seconds"], answer["versions"])


def initial_configs(problem: str, seed: int) -> list[dict[str, Any]]:
    """The configurations that every method starts from with this seed."""
    space = FUNCTIONS[problem].space
    sobol = qmc.Sobol(d=len(space), scramble=True, rng=np.random.default_rng([seed, len(space)]))
    return space.decode_many(sobol.random(INITIAL))


def _name(run: Run) -> str:
    return f"quality-{run.problem}-{run.method.name}-{run.seed}-{EVALUATIONS}"


def _code(run: Run) -> str:
    problems = code_hash([SOURCE / "problems" / "functions.py"])
    return problems + fingerprint(run.method.system, (run.method.module, "quality.peers.task"))


FILES = Files(_name, _code, Result.of)


def measure(problems: Sequence[str], seeds: int) -> dict[Run, Result]:
    """Every method on every problem with every seed; seeds outermost, so that a part is a fair part."""
    runs = [Run(p, method, seed) for seed, p, method in product(range(seeds), problems, METHODS)]
    shown = lambda run, result: f"regret {result.regret:.3g} in {result.seconds:.1f} s"  # noqa: E731
    return Runner(FILES, shown).measure_all(runs, WORKERS)
