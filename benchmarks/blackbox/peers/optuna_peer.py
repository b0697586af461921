"""Optuna's samplers as a child process of the black-box benchmark: random search, TPE and GPSampler.

    python -m benchmarks.blackbox.peers.optuna_peer FOLDER < tasks.jsonl

All at their defaults, in-memory storage. Ordered parameters are whole numbers, their levels (so that a geometric grid
is even), and the others are categorical. The first configurations are enqueued; they count among the 10 random trials
that TPE and GPSampler begin with by default.
"""

from __future__ import annotations

import warnings
from importlib.metadata import version

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, IntDistribution
from optuna.samplers import BaseSampler, GPSampler, RandomSampler, TPESampler

from benchmarks.blackbox.peers.task import Task, serve
from benchmarks.common.tables import Parameter, Table

VERSIONS = {name: version(name) for name in ("optuna", "torch", "numpy", "scipy")}
SAMPLERS: dict[str, type[BaseSampler]] = {"random": RandomSampler, "tpe": TPESampler, "gpsampler": GPSampler}


def distribution(parameter: Parameter) -> BaseDistribution:
    """The levels of a parameter as Optuna sees them."""
    levels = len(parameter.values)
    return IntDistribution(0, levels - 1) if parameter.ordered else CategoricalDistribution(list(range(levels)))


class Optuna:
    """`study.ask` and `study.tell`."""

    def __init__(self, table: Table, task: Task) -> None:
        self._space = {parameter.name: distribution(parameter) for parameter in table.parameters}
        self._study = optuna.create_study(sampler=SAMPLERS[task["method"]](seed=task["seed"]))
        for levels in task["start"]:
            self._study.enqueue_trial(dict(zip(self._space, levels, strict=True)))

    def ask(self, n: int) -> list[list[int]]:
        self._trials = [self._study.ask(self._space) for _ in range(n)]
        return [[trial.params[name] for name in self._space] for trial in self._trials]

    def tell(self, values: list[float], costs: list[float]) -> None:
        for trial, value in zip(self._trials, values, strict=True):
            self._study.tell(trial, value)


if __name__ == "__main__":
    import torch

    torch.set_num_threads(1)
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.filterwarnings("ignore", category=optuna.exceptions.ExperimentalWarning)
    serve(Optuna, VERSIONS)
