"""Optuna's samplers as a child process of the benchmark of asks, at their defaults, with storage in memory.

One JSON line in, one out. {"begin": sampler, "space": name, "trials": [[config, value], ...]} starts a study with known
trials. {"ask": sampler, "value": v} tells the value of its last ask, if there was one, then asks and answers with the
processor seconds that the ask took and its configuration. Telling is not timed.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from typing import Any

import numpy as np
import optuna
import torch
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.samplers import BaseSampler, GPSampler, TPESampler

from benchmarks.asks.spaces import SPACES, Number, Options, Parameters, is_active

VERSIONS = {"optuna": optuna.__version__, "torch": torch.__version__, "numpy": np.__version__}
SAMPLERS: dict[str, type[BaseSampler]] = {"TPE": TPESampler, "GPSampler": GPSampler}


def distribution(parameter: Number | Options) -> BaseDistribution:
    if isinstance(parameter, Options):
        return CategoricalDistribution(parameter.options)
    if parameter.whole:
        return IntDistribution(int(parameter.low), int(parameter.high), log=parameter.log)
    return FloatDistribution(parameter.low, parameter.high, log=parameter.log)


def suggested(trial: optuna.Trial, parameters: Parameters) -> dict[str, Any]:
    """A configuration, each parameter where it is active."""
    config: dict[str, Any] = {}
    for name, parameter in parameters.items():
        if is_active(parameter, config):
            config[name] = _suggested_one(trial, name, parameter)
    return config


def _suggested_one(trial: optuna.Trial, name: str, parameter: Number | Options) -> Any:
    if isinstance(parameter, Options):
        return trial.suggest_categorical(name, parameter.options)
    if parameter.whole:
        return trial.suggest_int(name, int(parameter.low), int(parameter.high), log=parameter.log)
    return trial.suggest_float(name, parameter.low, parameter.high, log=parameter.log)


class Asked:
    """A study of one sampler and its last trial."""

    def __init__(self, sampler: str, space: str, trials: list[tuple[dict[str, Any], float]]) -> None:
        self._parameters = SPACES[space]
        self._study = optuna.create_study(sampler=SAMPLERS[sampler](seed=0))  # type: ignore[call-arg]
        distributions = {name: distribution(parameter) for name, parameter in self._parameters.items()}
        self._study.add_trials(
            [
                optuna.create_trial(params=config, distributions={k: distributions[k] for k in config}, value=value)
                for config, value in trials
            ]
        )
        self._trial: optuna.Trial | None = None

    def ask(self, value: float | None) -> dict[str, Any]:
        if self._trial is not None:
            self._study.tell(self._trial, value)
        began = time.process_time()
        self._trial = self._study.ask()
        config = suggested(self._trial, self._parameters)
        return {"seconds": time.process_time() - began, "config": config}


def main() -> None:
    torch.set_num_threads(1)
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.simplefilter("ignore")
    studies: dict[str, Asked] = {}
    for line in sys.stdin:
        message = json.loads(line)
        if sampler := message.get("begin"):
            studies[sampler] = Asked(sampler, message["space"], message["trials"])
            answer: dict[str, Any] = {"ready": VERSIONS}
        else:
            answer = studies[message["ask"]].ask(message["value"])
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
