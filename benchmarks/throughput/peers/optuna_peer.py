"""Optuna's RandomSampler with RDBStorage in an SQLite file, as a child process of benchmarks/throughput.

python -m benchmarks.throughput.peers.optuna_peer FILE TRIALS
"""

from __future__ import annotations

import sqlite3
import sys

import optuna
from optuna.samplers import RandomSampler

from benchmarks.throughput.peers.task import WARM_UP_TRIALS, Turns, objective

VERSIONS = {"optuna": optuna.__version__, "sqlite": sqlite3.sqlite_version}


def evaluate(trial: optuna.Trial) -> float:
    return objective(
        x=trial.suggest_float("x", -5.0, 10.0),
        y=trial.suggest_float("y", 0.0, 15.0),
        rate=trial.suggest_float("rate", 1e-4, 1.0, log=True),
        depth=trial.suggest_int("depth", 1, 16),
        kind=trial.suggest_categorical("kind", ["a", "b", "c"]),
    )


def main(path: str, trials: int) -> None:
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    optuna.create_study(sampler=RandomSampler(seed=1)).optimize(evaluate, n_trials=WARM_UP_TRIALS)
    study = optuna.create_study(storage=f"sqlite:///{path}", sampler=RandomSampler(seed=0))
    turns = Turns(VERSIONS)

    def ended(study: optuna.Study, trial: optuna.trial.FrozenTrial) -> None:
        if not turns.go_on():
            study.stop()

    if turns.begin():
        study.optimize(evaluate, n_trials=trials, callbacks=[ended])


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
