"""Study files of many trials, made in a moment: their events are written at once, without proposing anything.

python -m tests.large_files FILE [TRIALS]    a file to measure reading with
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

import farthing as ft
from farthing.budget import ACCOUNT_OF, Charges, Ledger
from farthing.direction import Direction
from farthing.record.events import Asked, Ended, Reported
from farthing.record.state import Encoding, Event, write_event
from farthing.record.storage import SQLiteLog
from farthing.record.study_events import Budgeted, Charged, Opened
from farthing.trial import Outcome, Proposal, Report, Status

SPACE = ft.Space(
    eta=ft.Real(1e-4, 1.0, log=True),
    rows=ft.Real(0.3, 1.0),
    depth=ft.Integer(1, 16),
    batch=ft.Ordered([16, 32, 64, 128], log=True),
    booster=ft.Choice(["gbtree", "dart", "gblinear"]),
    drop=ft.Real(0.0, 0.5, when={"booster": "dart"}),
)
BEGAN = 1.7e9  # seconds since 1970


def large_file(
    path: Path, trials: int, *, steps: int = 0, fits: int = 0, maximize: bool = False, seed: int = 0
) -> Path:  # fmt: skip
    """A study file of so many trials: one in seven has failed, and the last is running.

    With `steps` each trial is an iterative learner with a curve of so many; with `fits` every so many-th ask stores
    hyperparameters, as a policy with models does.
    """
    settings = Opened(SPACE.as_json(), {"name": "carbo" if fits else "random"}, seed, maximize, max_steps=steps or None)
    encoding = Encoding(SPACE, Direction(maximize))
    happened: list[Event] = [settings, Budgeted(ft.Budget(cost=10.0 * trials * max(steps, 1), evaluations=2 * trials))]
    happened += _run(trials, steps, fits, seed)
    texts = [write_event(event, encoding) for event in happened]
    with closing(SQLiteLog(path)) as log:
        log._write([(i, BEGAN + 0.25 * i, *text) for i, text in enumerate(texts, 1)])
    return path


def _run(trials: int, steps: int, fits: int, seed: int) -> Iterator[Event]:
    """What happens to trials, one after the other, and the ledger that each of them saw."""
    rng = np.random.default_rng(seed)
    configs = SPACE.decode_many(rng.random((trials, len(SPACE))))
    numbers = rng.random((trials, 3)).tolist()
    ledger = Ledger(ft.Budget(cost=1.0))
    for trial, (config, (value, cost, predicted)) in enumerate(zip(configs, numbers, strict=True)):
        found = _fits(rng, trial) if fits and trial % fits == 0 else {}
        proposal = Proposal(trial, config, predicted, "largest expected improvement per cost^0.25", found)
        if steps:
            proposal = Proposal(trial, config, predicted, "a new curve", found, 0, steps)
        thought: Charges = {"optimiser": {"seconds": 0.01}}
        yield Asked(trial, proposal, ledger.as_json(), thought, objective="cpython-3.11:abc" if not trial else None)
        ledger = ledger.charged(thought)
        if trial == trials - 1:
            return
        for step in range(1, steps + 1):
            spent: Charges = {"evaluation": {"cost": cost, "seconds": 1.5 * cost}}
            yield Reported(trial, Report(value + 1.0 / step, cost, saved=step % 10 == 0), spent)
            ledger = ledger.charged(spent)
        status = Status.FAILED if trial % 7 == 3 else Status.COMPLETE
        charges = {
            ACCOUNT_OF[status]: {"cost": 0.0 if steps else cost, "seconds": 1.5 * cost, "evaluations": 1.0},
            "optimiser": {"seconds": 0.002},
        }
        attributes = {"accuracy": round(1.0 - value, 3), "epochs": trial % 20, "note": f"run {trial}"}
        error = "Traceback (most recent call last):\nValueError: diverged" if status is Status.FAILED else None
        result = None if status is Status.FAILED or steps else value
        yield Ended(trial, Outcome(status, result, None if steps else cost, error, attributes), charges)
        ledger = ledger.charged(charges)
        if trial % 1000 == 999:
            yield Charged({"start-up": {"seconds": 0.5}})
            ledger = ledger.charged({"start-up": {"seconds": 0.5}})


def _fits(rng: np.random.Generator, at: int) -> dict[str, Any]:
    """Hyperparameters as `carbo` stores them."""
    p = len(SPACE)

    def process(count: int = p) -> dict[str, Any]:
        return {"log_scales": rng.normal(size=count).tolist(), "log_noise": -11.5, "cold_at": at // 2, "at": at}

    processes = {
        "gp": {"hyperparameters": process(), "at": at, "selected": None},
        "gp-lv": {"hyperparameters": process(), "at": at, "selected": None},
        "gp-selected": {"hyperparameters": process(2), "at": at, "selected": [5, 3]},
    }
    scores = dict(zip(("linear", "linear-0", "gp", "gp-lv", "gp-selected"), rng.normal(size=5).tolist(), strict=True))
    cost = {
        "n": at, "leader": "gp", "contest_at": at, "scores": scores, "processes": processes,
        "weights": {"gp": 0.75, "gp-lv": 0.25}, "order": rng.permutation(p).tolist(),
    }  # fmt: skip
    return {"value": process(), "cost": cost}


if __name__ == "__main__":
    large_file(Path(sys.argv[1]), *map(int, sys.argv[2:]))
