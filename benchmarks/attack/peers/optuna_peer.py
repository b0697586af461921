"""One hostile objective under a timeout, by Optuna; it continues after exceptions, as it can be told to.

    python -m benchmarks.attack.peers.optuna_peer NAME SECONDS STUDY RESULT

It writes {"seconds", "error", "trials"} to the file RESULT; STUDY is its SQLite file.
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from pathlib import Path

import optuna

from benchmarks.attack.objectives import ALL


def main() -> None:
    name, seconds, path, result = sys.argv[1:]
    attack, error = ALL[name], ""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0), storage=f"sqlite:///{path}")
    began = time.perf_counter()
    try:
        study.optimize(
            lambda trial: attack.objective({"x": trial.suggest_float("x", -5.0, 5.0)}), timeout=float(seconds),
            catch=(Exception,),
        )  # fmt: skip
    except BaseException as raised:
        error = type(raised).__name__
    took = time.perf_counter() - began
    trials = Counter(trial.state.name.lower() for trial in study.trials)
    Path(result).write_text(json.dumps({"seconds": took, "error": error, "trials": trials}))


if __name__ == "__main__":
    main()
