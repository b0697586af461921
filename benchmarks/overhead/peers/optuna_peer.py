"""Optuna's TPE, for benchmarks/overhead: python -m benchmarks.overhead.peers.optuna_peer STUDY (as JSON)"""

from __future__ import annotations

import optuna

from benchmarks.overhead.task import BOUNDS, Given, Objective, serve


def study(given: Given, objective: Objective) -> dict[str, str]:
    def value(trial: optuna.Trial) -> float:
        return objective({name: trial.suggest_float(name, *bounds) for name, bounds in BOUNDS.items()})

    optuna.create_study(sampler=optuna.samplers.TPESampler(seed=0)).optimize(value, timeout=given.budget)
    return {"optuna": optuna.__version__}


if __name__ == "__main__":
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    serve(study)
