"""Optuna in process, with `n_jobs` threads, for benchmarks/start: python -m benchmarks.start.peers.optuna_peer STUDY"""

from __future__ import annotations

from typing import Any

import optuna

from benchmarks.start.task import Objective, Study, serve

SAMPLERS = {"random": optuna.samplers.RandomSampler, "auto": optuna.samplers.TPESampler}


def run(study: Study, objective: Objective) -> dict[str, Any]:
    def plain(trial: optuna.Trial) -> float:
        return objective({"x": trial.suggest_float("x", -3.0, 0.0)})

    def in_steps(trial: optuna.Trial) -> float:
        value = float("inf")
        for step, value in enumerate(objective.in_steps({"x": trial.suggest_float("x", -3.0, 0.0)}), 1):
            trial.report(value, step)
            if study.policy != "random" and trial.should_prune():
                raise optuna.TrialPruned
        return value

    made = optuna.create_study(sampler=SAMPLERS[study.policy](seed=0))
    made.optimize(in_steps if study.steps else plain, timeout=study.seconds, n_jobs=study.workers)
    return {"optuna": optuna.__version__}


if __name__ == "__main__":
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    serve(run)
