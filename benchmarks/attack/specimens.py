"""Study files to be damaged or altered: closed ones, and ones whose process was killed.

python -m benchmarks.attack.specimens KIND PATH     makes one; those of killed processes end by SIGKILL
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import farthing as ft
from benchmarks.attack.logged import SPACE, STEPS, InTurns, value_of
from benchmarks.attack.processes import python, run

SUFFIXES = ("", "-wal", "-shm")


def plain(config: dict[str, Any]) -> dict[str, Any]:
    """With notes."""
    return {"value": value_of(config), "cost": 0.5, "accuracy": config["x"] / 10, "tag": f"depth {config['depth']}"}


def training(config: dict[str, Any]) -> Any:
    for step in range(1, STEPS + 1):
        yield {"value": value_of(config, step), "cost": 0.25 * step}


def stop_after(trials: int, how: Callable[[ft.Study], None], study: ft.Study, trial: ft.Trial) -> None:
    if trial.number + 1 >= trials:
        how(study)


def die(study: ft.Study) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def lived(path: Path, trials: int, how: Callable[[ft.Study], None], **options: Any) -> None:
    """A study in this process until so many trials have ended."""
    objective = training if "max_steps" in options else plain
    with ft.Study(SPACE, ft.Budget(cost=10_000, evaluations=5_000), seed=4, storage=path, **options) as study:
        study.note(command="train {x}", about={"rows": 1000, "names": ["a", "b"]})
        study.run(objective, isolate=False, progress=False, callbacks=[partial(stop_after, trials, how)])


def closed(path: Path) -> None:
    lived(path, 14, ft.Study.stop, policy="sobol")


def closed_model(path: Path) -> None:
    lived(path, 10, ft.Study.stop, policy="ei", maximize=True)


def closed_training(path: Path) -> None:
    lived(path, 7, ft.Study.stop, policy=InTurns(), max_steps=STEPS)


def closed_long(path: Path) -> None:
    lived(path, 150, ft.Study.stop, policy="random")


def killed(path: Path) -> None:
    lived(path, 14, die, policy="sobol")


def killed_model(path: Path) -> None:
    lived(path, 10, die, policy="ei")


def killed_again(path: Path) -> None:
    """Half of it was closed, and the rest is in its log."""
    lived(path, 12, ft.Study.stop, policy="random")
    lived(path, 24, die, policy="random")


def killed_training(path: Path) -> None:
    lived(path, 7, die, policy=InTurns(), max_steps=STEPS)


CLOSED = {
    "closed": closed, "closed, with models": closed_model, "closed, trainings": closed_training,
    "closed, 150 trials": closed_long,
}  # fmt: skip
KILLED = {
    "killed": killed, "killed, with models": killed_model, "killed, half in its log": killed_again,
    "killed, trainings": killed_training,
}  # fmt: skip
KINDS = CLOSED | KILLED


@dataclass(frozen=True)
class Specimen:
    """The bytes of a study file, of its log and of the log's index, by suffix."""

    name: str
    files: dict[str, bytes]

    @classmethod
    def made(cls, name: str, folder: Path) -> Specimen:
        path = folder / "study.db"
        ended = run(python("-m", "benchmarks.attack.specimens", name, path))
        expected = -signal.SIGKILL if name in KILLED else 0
        if ended.status != expected:
            raise RuntimeError(f"specimen {name!r} ended with {ended.status}: {ended.errors[-500:]}")
        found = {suffix: path.with_name(path.name + suffix) for suffix in SUFFIXES}
        return cls(name, {suffix: file.read_bytes() for suffix, file in found.items() if file.exists()})

    def put(self, path: Path) -> None:
        """Write its files, and remove those that it does not have."""
        for suffix in SUFFIXES:
            file = path.with_name(path.name + suffix)
            if suffix in self.files:
                file.write_bytes(self.files[suffix])
            else:
                file.unlink(missing_ok=True)

    @property
    def has_own_policy(self) -> bool:
        return "trainings" in self.name


if __name__ == "__main__":
    KINDS[sys.argv[1]](Path(sys.argv[2]))
