"""An experiment of Ray Tune in a process of its own, to be killed: `tune_driver.py FOLDER STORAGE [restore]`."""

from __future__ import annotations

import sys
from pathlib import Path

import ray
import tune_training
from ray import cloudpickle, tune

import farthing as ft
from farthing.adapters.ray import FarthingScheduler, FarthingSearch
from farthing.adapters.ray.tune_saving import copied

cloudpickle.register_pickle_by_value(tune_training)
SPACE = {
    "optimizer": {"rate": tune.loguniform(1e-3, 1.0)},
    "seconds": 0.2,
}


def tuner(folder: Path, storage: str | None) -> tune.Tuner:
    search = FarthingSearch(
        budget=ft.Budget(cost=24), cost="energy", policy="thaw", max_steps=tune_training.STEPS, seed=1,
        points_to_evaluate=[{"optimizer": {"rate": rate}} for rate in (0.9, 0.5)],
        storage=storage,
    )  # fmt: skip
    return tune.Tuner(
        tune_training.train,
        param_space=SPACE,
        tune_config=tune.TuneConfig(
            metric="loss", mode="min", num_samples=-1, max_concurrent_trials=2, reuse_actors=True,
            search_alg=search, scheduler=FarthingScheduler(search),
        ),
        run_config=tune.RunConfig(name="killed", storage_path=str(folder), verbose=0),
    )  # fmt: skip


def main(folder: Path, storage: str | None, restore: bool) -> None:
    ray.init(
        "local", num_cpus=2, include_dashboard=False, object_store_memory=100 * 2**20, log_to_driver=False,
        logging_level="ERROR",
    )  # fmt: skip
    experiment = tune.Tuner.restore(str(folder / "killed"), tune_training.train) if restore else tuner(folder, storage)
    results = experiment.fit()
    search = experiment._local_tuner._tune_config.search_alg
    trials = results._experiment_analysis.trials  # also those that never reported, of which `results` have no config
    rates = [trial.config["optimizer"]["rate"] for trial in trials]
    seen = [trial.run_metadata.last_result.get("seen", 0) for trial in trials]
    (folder / "results.txt").write_text(repr(dict(zip(rates, seen, strict=True))))
    if storage is None:
        (folder / "study.db").write_bytes(copied(search.study.storage))
    search.study.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]), None if sys.argv[2] == "none" else sys.argv[2], len(sys.argv) > 3)
