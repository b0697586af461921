"""A study file to look at: neither its objective nor its policy is needed, and whoever runs it is not disturbed.

Options that a file cannot hold, because they are objects of the user's program, are shown as they were described.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

from farthing.errors import StorageError
from farthing.history.cost_knowledge import CostKnowledge
from farthing.record.lock import runner_of
from farthing.record.record import Record, Results, Rows, settings_in
from farthing.record.storage import SQLiteLog, open_log
from farthing.space import Space

FUNCTIONS = {"known": "known_cost", "features": "cost_features"}  # of cost knowledge, as stored and as arguments


class StudyFile(Results):
    """What a study file holds.

    `runner` is the process that writes to it now, as text, None if there is none; `left_out` says which parts of the
    study the file cannot hold.
    """

    def __init__(self, path: str, record: Record, rows: Rows, left_out: tuple[str, ...]) -> None:
        super().__init__(record)
        self.path, self.left_out, self.runner = path, left_out, runner_of(path)
        self._written = record.after(record.state, rows[1:], record.log.times[1:], 1)
        self._show()

    def refresh(self) -> None:
        """Read what was written since it was read last."""
        log = self.record.log
        assert isinstance(log, SQLiteLog)
        runner, known = runner_of(self.path), log.count
        if log.is_as_it_was and runner == self.runner:
            return
        rows = list(log.read_on())
        self._written = self.record.after(self._written, rows, log.times, known)
        self.runner = runner
        self._show()

    def _show(self) -> None:
        """A trial that is running here is shown as running while somebody writes to the file, else as interrupted, and
        the study as paused only then; what was spent since the last event is in the heartbeat."""
        written, live = self._written, self.runner is not None
        due = self.record.spent_since(written, live=live)
        state = written if live else replace(written.interrupted(), requests=written.requests.begun_anew())
        self.record.state = state.charged(due) if due else state


def read_study(path: str | PathLike[str]) -> StudyFile:
    """Read a study file.

    >>> import tempfile, farthing as ft
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     study = ft.Study(ft.Space(x=ft.Real(0, 1)), "8 evaluations", storage=f"{folder}/s.db")
    ...     _ = study.tell(study.ask(), value=0.5)
    ...     read_study(f"{folder}/s.db").best.value
    0.5
    """
    if not Path(path).is_file():
        raise StorageError(f"{path}: there is no such study file")
    log = open_log(path)
    rows = list(log.read())
    settings = settings_in(rows, log.name)
    try:
        space, left_out = as_described(settings.space)
        knowledge = CostKnowledge().with_stored(settings.cost)
    except Exception as error:  # whatever a file of unknown origin holds
        raise StorageError(f"{path}: event 1 cannot be read ({error!r:.200})") from error
    left_out += tuple(name for key, name in FUNCTIONS.items() if settings.cost.get(key))
    return StudyFile(str(path), Record(log, settings, space, knowledge), rows, left_out)


class OptionPlaceholder:
    """Stands for an option that a file can only describe."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text


def as_described(description: Mapping[str, Any]) -> tuple[Space, tuple[str, ...]]:
    """The space of a file as far as the file can hold it, and what else there was."""
    copy = deepcopy(dict(description))
    left_out: tuple[str, ...] = ()
    if isinstance(copy.get("forbid"), Mapping):
        left_out, copy["forbid"] = (f"forbid ({copy['forbid'].get('function')})",), None
    for entry in copy["parameters"]:
        for field in ("options", "values"):
            if isinstance(entry, dict) and field in entry:
                entry[field] = _with_stand_ins(entry[field])
    return Space.from_json(copy), left_out


def _with_stand_ins(stored: Any) -> Any:
    if isinstance(stored, list):
        return [_with_stand_ins(item) for item in stored]
    if not isinstance(stored, dict):
        return stored
    if "repr" in stored:
        return OptionPlaceholder(str(stored["repr"]))
    return {kind: _with_stand_ins(content) for kind, content in stored.items()}
