"""One hostile objective under a budget of seconds, by `ft.tune`.

    python -m benchmarks.attack.peers.farthing_peer NAME SECONDS STUDY RESULT

It writes {"seconds", "error", "trials"} to the file RESULT: standard output may not survive the objective.
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from pathlib import Path

import farthing as ft
from benchmarks.attack.objectives import ALL


def main() -> None:
    name, seconds, path, result = sys.argv[1:]
    attack, error, trials = ALL[name], "", {}
    space = ft.Space(x=ft.Real(-5, 5))
    tune = ft.tune  # looked up here: that loads the library
    began = time.perf_counter()
    try:
        study = tune(
            attack.objective, space, f"{seconds}s", policy="random", seed=0, storage=path, progress=False,
            **attack.options,
        )  # fmt: skip
    except BaseException as raised:
        error = type(raised).__name__
    took = time.perf_counter() - began
    if not error:
        trials = Counter(trial.status.value for trial in study.trials)
    Path(result).write_text(json.dumps({"seconds": took, "error": error, "trials": trials}))


if __name__ == "__main__":
    main()
