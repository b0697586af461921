"""Requests to the process that runs a study, of somebody who looks at it: a mailbox beside the study's file.

    study.db.requests/                               a folder that only its owner can enter
      01763517123456789012-9f0c3a5e77d1b204.json     one request, named by when it was posted

Only the process that runs a study writes to its file. Whoever wants something of it posts a request; the run takes it
out, does what it asks for, or not, and records that as an event. With no run, requests wait for the next one.

What is in the folder is believed only if it can be nobody else's: the folder and the file belong to this user, nobody
else can write to them, and they are no links. All else is left as it is, and the logger `farthing` says so once.
"""

from __future__ import annotations

import json
import logging
import os
import re
import secrets
import stat
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from heapq import nsmallest
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import Any, NoReturn

from farthing.budget import Budget
from farthing.checks import refuse
from farthing.errors import InvalidArgument, StorageError
from farthing.record.paths import KINDS, MAGIC, OWNER_ONLY
from farthing.text.escaping import on_one_line
from farthing.text.plain import counted, cut_text, shown

logger = logging.getLogger("farthing")

PAUSE, RESUME, STOP, BUDGET, ENQUEUE = ACTIONS = ("pause", "resume", "stop", "budget", "enqueue")
MOST_WAITING = 100  # requests
MOST_LOOKED_AT = 1000  # files, of which the rest may be junk
MOST_BYTES = 64 * 1024  # of a request: a configuration of a thousand parameters has about 30 KB
LONGEST_BUDGET = 200  # characters
FOLDER_MODE = 0o700
OTHERS_CAN_WRITE = stat.S_IWGRP | stat.S_IWOTH

_NAME = re.compile(r"([0-9]{20}-[0-9a-f]{16})\.json")
_ID = re.compile(r"[0-9]{20}-[0-9a-f]{16}")
_OPEN = 0
for _flag in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY"):  # those that the system has
    _OPEN |= getattr(os, _flag, 0)

_said: set[str] = set()  # files that were not believed, of which that has been said


@dataclass(frozen=True)
class Request:
    """What somebody asks of the process that runs a study.

    >>> Request("budget", budget="20m")
    Request(action='budget', budget='20m', config=None)
    >>> Request("enqueue")
    Traceback (most recent call last):
    farthing.errors.InvalidArgument: enqueue: expected a configuration, such as {"x": 0.5}, got None
    """

    action: str
    budget: str | None = None  # the new total, for "budget"
    config: Mapping[str, Any] | None = None  # for "enqueue"

    def __post_init__(self) -> None:
        if self.action not in ACTIONS:
            refuse("request", f"one of {', '.join(ACTIONS)}", self.action)
        if (self.budget is None) == (self.action == BUDGET):
            self._refuse_argument("budget", BUDGET, 'text such as "20m"')
        if (self.config is None) == (self.action == ENQUEUE):
            self._refuse_argument("config", ENQUEUE, 'a configuration, such as {"x": 0.5}')
        if self.budget is not None:
            if not isinstance(self.budget, str) or len(self.budget) > LONGEST_BUDGET:
                refuse(BUDGET, 'short text such as "20m"', self.budget)
            Budget.of(self.budget)
        if self.config is not None and not _has_names(self.config):
            refuse(ENQUEUE, 'a configuration, such as {"x": 0.5}', self.config)

    def _refuse_argument(self, name: str, action: str, accepted: str) -> NoReturn:
        if self.action == action:
            refuse(action, accepted, getattr(self, name))
        raise InvalidArgument(f"{self.action}: a {name} goes only with {action!r}")

    def as_json(self) -> dict[str, Any]:
        given = {"action": self.action, "budget": self.budget, "config": self.config}
        return {name: value for name, value in given.items() if value is not None}

    @classmethod
    def from_json(cls, stored: Any) -> Request:
        """From JSON of any origin; an InvalidArgument says what is wrong with it."""
        if not isinstance(stored, dict) or not isinstance(stored.get("action"), str):
            refuse("request", 'an object with an "action"', stored)
        if unknown := sorted(stored.keys() - {"action", "budget", "config"}):
            raise InvalidArgument(f"request: {shown(unknown[0])} is unknown")
        return cls(**stored)


def _has_names(config: Any) -> bool:
    return isinstance(config, Mapping) and bool(config) and all(isinstance(name, str) for name in config)


def folder_of(path: str | PathLike[str]) -> Path:
    """Where the requests to a study are, next to the real file."""
    return Path(f"{os.path.realpath(path)}.requests")


def is_id(text: str) -> bool:
    """Whether a text is the id of a request."""
    return _ID.fullmatch(text) is not None


def posted_at(request_id: str) -> float:
    """When a request was posted, in seconds since 1970, by the clock of whoever did."""
    return int(request_id.partition("-")[0]) / 1e9


# -- posting ---------------------------------------------------------------------------------------------------------


def post(path: str | PathLike[str], request: Request) -> str:
    """Put a request into the mailbox of a study's file; returns its id. It is there whole or not at all."""
    _require_own_study(path)
    text, folder = _written(request), _opened_folder(path)
    if sum(1 for _ in islice(_names(folder), MOST_WAITING)) == MOST_WAITING:
        raise StorageError(f"{path}: {MOST_WAITING} requests wait in {folder.name} already; a run answers them")
    request_id = f"{time.time_ns():020d}-{secrets.token_hex(8)}"
    try:
        _write(folder, request_id, text)
    except OSError as error:
        raise StorageError(f"{path}: the request could not be written ({error.strerror})") from error
    return request_id


def _require_own_study(path: str | PathLike[str]) -> None:
    """A mailbox is beside a study, and made by its owner: nobody would read one that others have made."""
    if not Path(path).is_file():
        raise StorageError(f"{path}: there is no such study file")
    try:
        with open(path, "rb") as file:
            begins, owner = file.read(len(MAGIC)), os.fstat(file.fileno()).st_uid
    except OSError as error:
        raise StorageError(f"{path}: cannot be read ({error.strerror})") from error
    if begins != MAGIC:
        raise StorageError(f"{path}: is not a Farthing study")
    if hasattr(os, "geteuid") and owner != os.geteuid():
        raise StorageError(f"{path}: belongs to another user: only its owner can ask for something")


def _written(request: Request) -> bytes:
    try:
        text = json.dumps(request.as_json(), allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidArgument(f"{request.action}: cannot be written as JSON: {error}") from error
    if len(text) > MOST_BYTES:
        raise InvalidArgument(
            f"{request.action}: expected at most {MOST_BYTES // 1024} KB of JSON, got {len(text)} bytes"
        )
    return text


def _opened_folder(path: str | PathLike[str]) -> Path:
    """The folder of requests, made if it is not there; an error if it is not ours alone."""
    folder = folder_of(path)
    try:
        with suppress(FileExistsError):
            os.mkdir(folder, FOLDER_MODE)
        if wrong := _wrong_with_folder(os.lstat(folder)):
            raise StorageError(f"{path}: {folder.name} next to it {wrong}; no request is put there")
    except OSError as error:
        raise StorageError(f"{path}: {folder.name} next to it cannot be made ({error.strerror})") from error
    return folder


def _write(folder: Path, request_id: str, text: bytes) -> None:
    part, whole = folder / f".{request_id}.part", folder / f"{request_id}.json"
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _OPEN, OWNER_ONLY)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.rename(part, whole)
    except BaseException:
        with suppress(OSError):
            os.unlink(part)
        raise


def told(request: Request, runner: str | None) -> str:
    """What to say to whoever has posted a request, where `runner` is the process that runs the study, if there is one.

    >>> told(Request("budget", budget="20m"), None)
    'budget: nobody runs this study now; the request waits for the next run'
    """
    if runner is not None:
        return f"{request.action}: {on_one_line(runner)} runs this study; it was told"
    if request.action in (BUDGET, ENQUEUE):
        return f"{request.action}: nobody runs this study now; the request waits for the next run"
    return f"{request.action}: nobody runs this study now, and a run that begins later will ignore it"


# -- reading ---------------------------------------------------------------------------------------------------------


def waiting(path: str | PathLike[str]) -> list[tuple[str, Request]]:
    """The requests that wait, with their ids, in the order in which they were posted: at most MOST_WAITING.

    What is in the folder and is no request of this user is left as it is.
    """
    folder = folder_of(path)
    try:
        wrong = _wrong_with_folder(os.lstat(folder))
    except FileNotFoundError:
        return []
    except OSError as error:
        wrong = f"cannot be looked at ({error.strerror})"
    if wrong:
        _say_once(folder, [("", f"it {wrong}")])
        return []
    found, refused = list[tuple[str, Request]](), list[tuple[str, str]]()
    for name in nsmallest(MOST_LOOKED_AT, _names(folder)):
        if len(found) == MOST_WAITING:
            break
        try:
            found.append((name.removesuffix(".json"), Request.from_json(_read(folder / name))))
        except FileNotFoundError:  # somebody has just taken it
            continue
        except (InvalidArgument, ValueError, RecursionError) as error:  # FarthingErrors of budgets are ValueErrors
            refused.append((name, str(error)))
        except OSError as error:
            refused.append((name, f"it cannot be read ({error.strerror})"))
    _say_once(folder, refused)
    return found


def take(path: str | PathLike[str], request_id: str) -> None:
    """Take a request out of the mailbox: it is done with. One that is gone already is fine."""
    if not is_id(request_id):
        refuse("request", "the id of a request", request_id)
    with suppress(FileNotFoundError):
        os.unlink(folder_of(path) / f"{request_id}.json")


def _names(folder: Path) -> Iterator[str]:
    """Of files that may be requests; those half written, and whatever has another name, are nobody's business."""
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if _NAME.fullmatch(entry.name):
                yield entry.name


def _read(file: Path) -> Any:
    _require_ours(os.lstat(file))
    descriptor = os.open(file, os.O_RDONLY | _OPEN)
    with os.fdopen(descriptor, "rb") as opened:
        _require_ours(os.fstat(descriptor))  # it may be another file by now
        text = opened.read(MOST_BYTES + 1)
    if len(text) > MOST_BYTES:
        raise ValueError(f"it has more than {MOST_BYTES // 1024} KB")
    return json.loads(text, parse_constant=_refuse_constant)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def _wrong_with_folder(found: os.stat_result) -> str:
    if not stat.S_ISDIR(found.st_mode):
        return f"is {KINDS.get(stat.S_IFMT(found.st_mode), 'an ordinary file')} and no folder"
    return _not_ours_alone(found)


def _require_ours(found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise ValueError(f"it is {KINDS.get(stat.S_IFMT(found.st_mode), 'no ordinary file')}")
    if wrong := "has several names (hard links)" if found.st_nlink > 1 else _not_ours_alone(found):
        raise ValueError(f"it {wrong}")


def _not_ours_alone(found: os.stat_result) -> str:
    """What lets others write there, "" if nothing does; where there are no users to tell apart nothing is known."""
    if not hasattr(os, "geteuid"):
        return ""
    if found.st_uid != os.geteuid():
        return "belongs to another user"
    return "can be written by others" if found.st_mode & OTHERS_CAN_WRITE else ""


def _say_once(folder: Path, refused: list[tuple[str, str]]) -> None:
    """One line, however many files there are."""
    new = [(name, why) for name, why in refused if str(folder / name) not in _said]
    if not new:
        return
    _said.update(str(folder / name) for name, _ in new)
    name, why = new[0]
    others = f", and {counted(len(new) - 1, 'other file')} there" if len(new) > 1 else ""
    which = f"{folder.name}/{name}" if name else folder.name
    logger.warning("%s is no request, and is left%s: %s", on_one_line(which), others, on_one_line(cut_text(why, 200)))
