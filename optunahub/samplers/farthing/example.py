from __future__ import annotations

import optuna
import optunahub
from farthing import Budget


def objective(trial: optuna.Trial) -> float:
    rate = trial.suggest_float("rate", 1e-4, 1.0, log=True)
    depth = trial.suggest_int("depth", 1, 12)
    trial.set_user_attr("gpu_hours", 0.1 * depth)
    return abs(rate - 0.1) + abs(depth - 5)


if __name__ == "__main__":
    module = optunahub.load_module("samplers/farthing")
    sampler = module.FarthingSampler(Budget(cost=12.0), cost="gpu_hours", seed=0)
    study = optuna.create_study(sampler=sampler)
    study.optimize(objective)
    print(study.best_params, sampler.ledger(study))
