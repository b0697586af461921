"""Study files to be attacked, made through the public API alone, so that any version of Farthing can be attacked."""

from __future__ import annotations

import os
import shutil
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import farthing as ft
from farthing.errors import FarthingError
from farthing.record.reader import read_study

SPACE = ft.Space(x=ft.Real(0, 1))
VALUES = [1.0 / (number + 1) for number in range(10)]

LOOKS: dict[str, Callable[[Path], list[float | None]]] = {
    "read_study": lambda path: [trial.value for trial in read_study(path).trials],
    "Study.resume": lambda path: resumed(path),
}


def resumed(path: Path) -> list[float | None]:
    with ft.Study.resume(path) as study:
        return [trial.value for trial in study.trials]


def study_in(path: Path, **options: object) -> ft.Study:
    return ft.Study(SPACE, "100 evaluations", policy="random", seed=0, storage=path, **options)


def closed_study(path: Path) -> Path:
    """A file with ten trials."""
    with study_in(path) as study:
        for value in VALUES:
            study.tell(study.ask(), value=value)
    return path


def killed_study(folder: Path, suffixes: tuple[str, ...] = ("", "-wal", "-shm")) -> Path:
    """What a process leaves that is killed after ten trials, of which all but the first are in the log alone."""
    folder.mkdir(exist_ok=True)
    live, left = folder / "live.db", folder / "study.db"
    with study_in(live) as study:
        study.tell(study.ask(), value=VALUES[0])
    with study_in(live) as study:
        for value in VALUES[1:]:
            study.tell(study.ask(), value=value)
        for suffix in suffixes:
            shutil.copyfile(f"{live}{suffix}", f"{left}{suffix}")
    live.unlink()
    return left


def contents(folder: Path) -> dict[str, bytes]:
    """What lies in a folder: links and pipes by what they are."""
    return {
        entry.name: entry.read_bytes() if entry.is_file() and not entry.is_symlink() else b"odd"
        for entry in sorted(folder.iterdir())
    }


def answer(use: Callable[[], object], seconds: float = 20.0) -> object:
    """What a call returns, or the exception it raises, or "hangs"; what hangs is left behind."""
    found: list[object] = ["hangs"]

    def call() -> None:
        try:
            found[0] = use()
        except BaseException as error:
            found[0] = error

    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    thread.join(seconds)
    return found[0]


def refused(given: object, text: str = "") -> bool:
    """Whether an answer is an error of ours that says that."""
    return isinstance(given, FarthingError) and text in str(given)


def environment() -> dict[str, str]:
    """For a child process: the Farthing that is attacked here."""
    source = str(Path(sys.modules["farthing"].__file__ or "").parent.parent)
    return {**os.environ, "PYTHONPATH": source}
