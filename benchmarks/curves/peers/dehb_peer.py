"""DEHB as a child process of the benchmarks on learners that train in steps.

    python -m benchmarks.curves.peers.dehb_peer [PYTHON FOLDER] < tasks.jsonl

By its ask and tell, at its defaults: eta = 3, from 1 step on, so rungs at 2, 6, 17 and 52 of 52 steps. A promoted
configuration goes on and is charged its new steps. A training that fails has a very bad value; infinity would mean that
it was not evaluated. Nothing is saved to disk on the way.
"""

from __future__ import annotations

import tempfile
import warnings
from importlib.metadata import version

from ConfigSpace import ConfigurationSpace
from dehb import DEHB

from benchmarks.curves.peers.parameters import hyperparameter
from benchmarks.curves.peers.task import FIRST_RUNG, Record, Task, TrainingFailed, serve

VERSIONS = {name: version(name) for name in ("DEHB", "ConfigSpace", "numpy", "scipy")}
PENALTY = 1e6


def search(record: Record, task: Task) -> None:
    space = ConfigurationSpace(seed=task["seed"])
    space.add_hyperparameters([hyperparameter(one) for one in record.space])
    with tempfile.TemporaryDirectory() as folder:
        dehb = DEHB(
            cs=space,
            min_fidelity=FIRST_RUNG,
            max_fidelity=record.steps,
            seed=task["seed"],
            n_workers=1,
            save_freq="end",
            output_path=folder,
            log_level="CRITICAL",  # it writes to stdout, where the answers go
        )
        while record.is_open:
            job = dehb.ask()
            before = record.spent
            try:
                value = record.training(job["config_id"], dict(job["config"])).until(job["fidelity"])
            except TrainingFailed:
                value = PENALTY
            dehb.tell(job, {"fitness": value, "cost": record.spent - before})


if __name__ == "__main__":
    warnings.filterwarnings("ignore")
    serve(search, VERSIONS)
