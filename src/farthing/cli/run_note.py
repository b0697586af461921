"""The note that `farthing run` leaves in a study's file, from which `farthing resume` knows what to run, and how.

Paths are relative to the folder in which the study was started, and that folder is relative to the one of the study's
file: a folder that is moved with everything in it can still be resumed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from farthing.errors import InvalidArgument, StudyMismatch

NAME = "cli"  # of the note in a study's file


@dataclass(frozen=True)
class RunNote:
    """What is run and how."""

    objective: str | None = None  # script.py:name; either this or a command
    command: str | None = None
    iterative: bool = False
    pause: str = "stop"
    steps: int | None = None  # of a complete training
    space: str | None = None  # script.py:name, if the space comes from a script
    folder: str = "."  # where it is run, relative to the folder of the study's file
    workers: int = 1
    trial_seconds: str | None = None
    trial_memory: str | None = None

    def __post_init__(self) -> None:
        if (self.objective is None) == (self.command is None):
            raise InvalidArgument("expected either an objective, as in `farthing run train.py:objective`, or --command")
        if self.command is None and (self.iterative or self.pause != "stop"):
            raise InvalidArgument(
                "--iterative and --pause are only for --command: a Python function that yields is iterative anyway"
            )
        if self.pause != "stop" and not self.iterative:
            raise InvalidArgument("--pause is only for --iterative: a program that prints one value cannot be paused")

    def as_json(self) -> dict[str, Any]:
        return {key: value for key, value in asdict(self).items() if value is not None}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> RunNote:
        """From a file. Fields that newer versions may add are ignored."""
        return cls(**{field.name: stored[field.name] for field in fields(cls) if field.name in stored})

    def require_same(self, found: RunNote, name: str) -> None:
        """Refuse to continue an existing file with another objective."""
        for key in ("objective", "command", "iterative", "steps"):
            here, there = getattr(self, key), getattr(found, key)
            if here != there:
                raise StudyMismatch(
                    f"{name}: {key} is {there!r} in the file and {here!r} here; "
                    f"to change it, use farthing resume {name}"
                )
