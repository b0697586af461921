"""One of several processes that share a study: python optuna_worker.py STORAGE BUDGET [SEED]."""

import sys
import time

import optuna
from optuna.storages import JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend

import farthing as ft
from farthing.adapters.optuna import FarthingSampler

STUDY = "shared"
SIDE = 6  # of the grid of configurations: few enough that processes which do not see each other would meet


def storage_of(path):
    if path.endswith(".journal"):
        return JournalStorage(JournalFileBackend(path))
    return RDBStorage(f"sqlite:///{path}", engine_kwargs={"connect_args": {"timeout": 60}})


def objective(trial):
    x, y = (trial.suggest_int(name, 0, SIDE - 1) for name in "xy")
    trial.set_user_attr("asked", time.time())
    trial.set_user_attr("spent", 1.0 + 0.2 * x)
    time.sleep(0.02)
    return (x - 2) ** 2 + (y - 3) ** 2


if __name__ == "__main__":
    path, cost = sys.argv[1], float(sys.argv[2])
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    sampler = FarthingSampler(ft.Budget(cost=cost), cost="spent", seed=0)
    optuna.load_study(study_name=STUDY, storage=storage_of(path), sampler=sampler).optimize(objective)
