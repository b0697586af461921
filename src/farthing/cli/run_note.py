"""The note that `farthing run` leaves in a study's file, from which `farthing resume` knows what to run, and how.

Paths are relative to the folder in which the study was started, and that folder is relative to the one of the study's
file: a folder that is moved with everything in it can still be resumed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, NoReturn

from farthing.errors import InvalidArgument, StudyMismatch

NAME = "cli"  # of the note in a study's file
PAUSES = ("stop", "checkpoint")
METERS = ("cpu", "energy", "rapl", "nvidia")
ISOLATES = ("yes", "no", "spawn")
NO_LIMIT = "none"  # of failures
KEPT = ("best", "all")  # checkpoints
RAY = ("ray", "ray_cpus", "ray_gpus", "ray_usd_per_hour", "ray_checkpoints")  # the cluster, and what it is told
KIND_NAMES = {str: "text", int: "a whole number of at least 1", bool: "true or false"}
KIND_OF = {
    **dict.fromkeys(["objective", "command", "pause", "space", "folder", "trial_seconds", "trial_memory"], str),
    **dict.fromkeys(["meter", "max_failures", "keep_checkpoints", "isolate", *RAY], str),
    **dict.fromkeys(["steps", "workers"], int),
    "iterative": bool,
}  # fmt: skip


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
    meter: str | None = None
    max_failures: str | None = None  # a number, or NO_LIMIT
    keep_checkpoints: str | None = None  # a number, or one of KEPT
    isolate: str | None = None
    ray: str | None = None  # the address of a cluster; what follows is only for that
    ray_cpus: str | None = None
    ray_gpus: str | None = None
    ray_usd_per_hour: str | None = None
    ray_checkpoints: str | None = None

    def __post_init__(self) -> None:
        if (self.objective is None) == (self.command is None):
            raise InvalidArgument("expected either an objective, as in `farthing run train.py:objective`, or --command")
        if self.command is None and (self.iterative or self.pause != "stop"):
            raise InvalidArgument(
                "--iterative and --pause are only for --command: a Python function that yields is iterative anyway"
            )
        if self.command is not None and self.isolate is not None:
            raise InvalidArgument("--isolate is only for Python functions: a program always runs in its own process")
        for name, accepted in (("pause", PAUSES), ("meter", (None, *METERS)), ("isolate", (None, *ISOLATES))):
            if getattr(self, name) not in accepted:
                _refuse(name, f"one of {', '.join(filter(None, accepted))}", getattr(self, name))
        for name, words in (("max_failures", (NO_LIMIT,)), ("keep_checkpoints", KEPT)):
            given = getattr(self, name)
            if given not in (None, *words) and not re.fullmatch("[1-9][0-9]{0,17}", str(given)):
                _refuse(name, f"a whole number of at least 1, or {' or '.join(words)}", given)
        if self.ray is None and (lone := [name for name in RAY if getattr(self, name) is not None]):
            raise InvalidArgument(f"--{lone[0].replace('_', '-')} is only for --ray")
        if self.pause != "stop" and not self.iterative:
            raise InvalidArgument("--pause is only for --iterative: a program that prints one value cannot be paused")

    def as_json(self) -> dict[str, Any]:
        return {key: value for key, value in asdict(self).items() if value is not None}

    @classmethod
    def from_json(cls, stored: Any, name: str, **given: Any) -> RunNote:
        """From a file, which may be a stranger's. Fields that newer versions may add are ignored.

        name   of the file, for messages
        given  what the user says instead
        """
        if not isinstance(stored, Mapping):
            _refuse(f"{name}: the note {NAME!r}", "names and values", stored)
        found: dict[str, Any] = {
            field.name: stored[field.name] for field in fields(cls) if stored.get(field.name) is not None
        }
        for key, value in found.items():
            _check_field(f"{name}: {key} in the note {NAME!r}", KIND_OF[key], value)
        return cls(**{**found, **given})

    def require_same(self, found: RunNote, name: str) -> None:
        """Refuse to continue an existing file with another objective."""
        for key in ("objective", "command", "iterative", "steps"):
            here, there = getattr(self, key), getattr(found, key)
            if here != there:
                raise StudyMismatch(
                    f"{name}: {key} is {there!r} in the file and {here!r} here; "
                    f"to change it, use farthing resume {name}"
                )


def _check_field(name: str, kind: type, value: Any) -> None:
    right = isinstance(value, kind) and (kind is bool or not isinstance(value, bool))
    if not right or (kind is int and value < 1):
        _refuse(name, KIND_NAMES[kind], value)
    if kind is str and not _can_be_an_argument(value):
        _refuse(name, "text that a path or an argument can hold", value)


def _can_be_an_argument(text: str) -> bool:
    try:
        return b"\0" not in os.fsencode(text)
    except UnicodeEncodeError:  # a lone surrogate
        return False


def _refuse(name: str, accepted: str, given: object) -> NoReturn:
    from farthing.checks import refuse  # here, because it imports NumPy, and this module is imported for every --help

    refuse(name, accepted, given)
