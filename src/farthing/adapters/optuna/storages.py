"""Optuna's storages by their address: a database URL, or the path of a journal file.

Optuna makes files and tables where it finds none, and appends to any file. So what is there is looked at first: nothing
is made by reading, and nothing is written into a file that is not Optuna's.
"""

from __future__ import annotations

import json
import os
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import quote

import optuna
from optuna.storages import BaseStorage, InMemoryStorage, JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend, JournalRedisBackend

from farthing.checks import refuse
from farthing.errors import FarthingError, InvalidArgument, StorageError
from farthing.record.schema import APPLICATION_ID
from farthing.text.plain import readable, shown

ACCEPTED = "a database URL such as sqlite:///optuna.db, the path of a journal file, or an Optuna storage"
SQLITE_MAGIC = b"SQLite format 3\0"
APPLICATION_AT = slice(68, 72)  # in the header of an SQLite file
LONGEST_CAUSE = 300  # characters of what Optuna or a database says is wrong
LONGEST_FIRST_LINE = 1_000_000  # bytes of a journal: it says that a study was made
NOTHING_KEPT = ("", ":memory:")


def storage_to_write(given: object) -> BaseStorage:
    """The storage itself, or the one of that address, which is made if it is not there; None is one in memory."""
    return InMemoryStorage() if given is None else _opened(given, new=True)


def storage_to_read(given: object) -> BaseStorage:
    """The storage itself, or the one of that address, which must be there."""
    return _opened(given, new=False)


def address(given: object) -> str:
    """A storage in a message: its address without a password.

    >>> address("postgresql://me:secret@host/studies")
    'postgresql://me:***@host/studies'
    """
    if not isinstance(given, str | os.PathLike):
        return f"the {type(given).__name__}"
    return readable(re.sub(r"(://[^:/@]*:)[^@]*@", r"\1***@", str(os.fspath(given))))


@contextmanager
def naming(where: object) -> Iterator[None]:
    """Turn whatever Optuna, its database or a damaged file raises into a StorageError that names the storage."""
    try:
        yield
    except (FarthingError, ImportError):
        raise
    except Exception as error:
        cause = shown(str(error).strip().partition("\n")[0][:LONGEST_CAUSE]).strip("'\"") or type(error).__name__
        raise StorageError(f"{address(where)}: {cause}") from error


def study_named(storage: BaseStorage, name: str | None, where: object) -> optuna.Study:
    """A study of a storage by its name, or the only one."""
    with naming(where):
        names = optuna.get_all_study_names(storage)
        if name is None and len(names) == 1:
            name = names[0]
        if name not in names:
            held = ", ".join(map(shown, names[:10])) + ", ..." * (len(names) > 10) if names else "none"
            if name is None:
                raise InvalidArgument(
                    f"study_name: {address(where)} holds {len(names)} studies; expected one of {held}"
                )
            raise InvalidArgument(f"study_name: {address(where)} holds no study {shown(name)}; it holds {held}")
        return optuna.load_study(study_name=name, storage=storage)


def _opened(given: object, *, new: bool) -> BaseStorage:
    if isinstance(given, BaseStorage):
        return given
    if not isinstance(given, str | os.PathLike) or not os.fspath(given):
        refuse("storage", ACCEPTED, given)
    text = os.fspath(given)
    if not isinstance(text, str) or "\0" in text:
        refuse("storage", ACCEPTED, given)
    with naming(text):
        if text.startswith(("redis://", "rediss://")):
            return JournalStorage(JournalRedisBackend(text))
        return _database(text, new) if "://" in text else _journal(text, new)


def _database(url: str, new: bool) -> BaseStorage:
    import sqlalchemy

    try:
        parsed = sqlalchemy.engine.make_url(url)
        parsed.get_dialect()
    except sqlalchemy.exc.ArgumentError as error:
        raise InvalidArgument(f"storage: expected {ACCEPTED}, got {shown(address(url))}") from error
    if parsed.drivername.partition("+")[0] == "sqlite":
        path = parsed.database or ""
        if path in NOTHING_KEPT or path.startswith("file:"):
            raise InvalidArgument(f"storage: expected the path of a file, as sqlite:///optuna.db, got {shown(url)}")
        _require_file(path, new)
        _require_optuna_tables(path, new)
    return RDBStorage(url)


def _require_file(path: str, new: bool) -> None:
    """A file that can be read or made."""
    if not os.path.exists(path):
        folder = Path(path).absolute().parent
        if new and not folder.is_dir():
            raise StorageError(f"{path}: the folder {folder} does not exist")
        if not new:
            raise StorageError(f"{path}: there is no such file")
    elif not os.path.isfile(path):
        raise StorageError(f"{path}: is not an ordinary file")


def _require_optuna_tables(path: str, new: bool) -> None:
    """An SQLite file with Optuna's tables, or one that has none at all and may get them."""
    if not os.path.exists(path) or (os.path.getsize(path) == 0 and new):
        return
    if _begins_with(path) != SQLITE_MAGIC:
        raise StorageError(f"{path}: is not an SQLite database")
    if is_study_file(path):
        raise StorageError(f"{path}: is a Farthing study; expected an Optuna storage, which is another file")
    with closing(sqlite3.connect(f"file:{quote(os.path.abspath(path))}?mode=ro", uri=True)) as connection:
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if "studies" not in tables and (tables or not new):
        raise StorageError(f"{path}: is not an Optuna storage: it has no table of studies")


def is_study_file(path: str) -> bool:
    """Whether a Farthing study is in that file, by the number that SQLite keeps in its header for the application."""
    with open(path, "rb") as file:
        header = file.read(APPLICATION_AT.stop)
    return int.from_bytes(header[APPLICATION_AT], "big") == APPLICATION_ID


def _journal(path: str, new: bool) -> BaseStorage:
    _require_file(path, new)
    if os.path.exists(path) and os.path.getsize(path):
        if _begins_with(path) == SQLITE_MAGIC:
            raise InvalidArgument(f"storage: {path} is an SQLite file; write sqlite:///{path}")
        if not _is_journal(path):
            raise StorageError(f"{path}: is not an Optuna journal: its first line is not an operation")
    return JournalStorage(JournalFileBackend(path))


def _begins_with(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read(len(SQLITE_MAGIC))


def _is_journal(path: str) -> bool:
    with open(path, "rb") as file:
        line = file.readline(LONGEST_FIRST_LINE)
    try:
        first = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(first, dict) and "op_code" in first
