"""The format of a study file: its tables, its version, and how an older version becomes the newest.

A file is data that anyone may have written. It is accepted only if its schema holds our tables as we make them, and
nothing else: no view can stand in for a table, and no trigger, index or generated column can run an expression.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from farthing.errors import StorageError
from farthing.record.checksums import chained

SCHEMA_VERSION = 2
APPLICATION_ID = 0x46544847  # "FTHG" in ASCII, so that `file` and we know our own

EVENTS_1 = """
CREATE TABLE events (
    number INTEGER PRIMARY KEY,
    time   REAL NOT NULL,
    kind   TEXT NOT NULL,
    body   TEXT NOT NULL
) STRICT
"""

CHECKED = """
CREATE TABLE {name} (
    number   INTEGER PRIMARY KEY,
    time     REAL NOT NULL,
    kind     TEXT NOT NULL,
    body     TEXT NOT NULL,
    checksum INTEGER NOT NULL
) STRICT
"""

INSERT = "INSERT INTO events (number, time, kind, body, checksum) VALUES (?, ?, ?, ?, ?)"
MOST_LOOKED_AT = 16  # objects of a schema, and times the length of our longest statement: enough to say what is wrong

Tables = Mapping[str, str]  # name -> the statement that makes it
Migration = Callable[[sqlite3.Connection], None]


@dataclass(frozen=True)
class Format:
    """What this Farthing writes, and what it can bring up to that.

    `tables` holds the statements that make the tables of each version. `migrations` holds, for each version but the
    newest, the function that turns a file of it into one of the next; it runs inside a transaction, and must not end it
    (`executescript` would).
    """

    version: int
    tables: Mapping[int, Tables]
    migrations: Mapping[int, Migration]


def with_checksums(connection: sqlite3.Connection) -> None:
    """Version 1 to 2. The table is made anew, not altered: SQLite would keep a statement that is not ours."""
    rows = connection.execute("SELECT number, time, kind, body FROM events ORDER BY number").fetchall()
    connection.execute("DROP TABLE events")
    for statement in VERSION_2.values():
        connection.execute(statement)
    connection.executemany(INSERT, chained(rows))


VERSION_1: Tables = {"events": EVENTS_1}
VERSION_2: Tables = {name: CHECKED.format(name=name) for name in ("events", "marks")}

CURRENT = Format(SCHEMA_VERSION, {1: VERSION_1, 2: VERSION_2}, {1: with_checksums})


def harden(connection: sqlite3.Connection) -> None:
    """Nothing in the schema of a file may call functions, and no page is trusted to be whole."""
    connection.execute("PRAGMA trusted_schema=OFF")
    connection.execute("PRAGMA cell_size_check=ON")


def number_of(connection: sqlite3.Connection, pragma: str) -> int:
    """A setting of the file that is a whole number."""
    found: int = connection.execute(f"PRAGMA {pragma}").fetchone()[0]
    return found


def is_blank(connection: sqlite3.Connection) -> bool:
    """Whether nobody has made anything of this file yet."""
    (objects,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    return objects == 0 and number_of(connection, "application_id") == 0


def create(connection: sqlite3.Connection, form: Format) -> None:
    """One transaction, so that a file is either whole or empty; a rival that was faster is fine."""
    connection.execute("BEGIN IMMEDIATE")
    if is_blank(connection):
        for statement in form.tables[form.version].values():
            connection.execute(statement)
        connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version={form.version}")
    connection.execute("COMMIT")


def version_in(connection: sqlite3.Connection, form: Format, name: str) -> int:
    """The version of a file that is a study, and as it should be; else an error that says what it is instead."""
    if number_of(connection, "application_id") != APPLICATION_ID:
        raise StorageError(f"{name}: is an SQLite file, but not a Farthing study")
    version = number_of(connection, "user_version")
    if version not in form.tables:
        raise StorageError(
            f"{name}: has schema version {version}, this Farthing reads version {form.version}; "
            "use the Farthing that wrote it or a newer one"
        )
    _require_only(connection, form.tables[version], name)
    return version


def _require_only(connection: sqlite3.Connection, tables: Tables, name: str) -> None:
    """Our tables and nothing else. Read as bytes: the text of a foreign schema may be anything, of any length."""
    longest = MOST_LOOKED_AT * max(map(len, tables.values()))
    found = connection.execute(
        "SELECT CAST(type AS BLOB), CAST(name AS BLOB), substr(CAST(sql AS BLOB), 1, ?) FROM sqlite_master "
        "ORDER BY name <> 'events', rowid LIMIT ?", (longest, MOST_LOOKED_AT),
    ).fetchall()  # fmt: skip
    if not found:
        raise StorageError(f"{name}: is a Farthing study without its table of events")
    missing = dict(tables)
    for kind, called, statement in ((_text(kind), _text(called), _text(sql)) for kind, called, sql in found):
        if kind != "table" or called not in missing:
            raise StorageError(f"{name}: holds a {kind:.80} {called[:80]!r}, which no study does; it is not used")
        if statement.split() != missing.pop(called).split():
            raise StorageError(f"{name}: its table of {called} is not the one Farthing makes; it is not used")
    if missing:
        raise StorageError(f"{name}: is a Farthing study without its table of {', '.join(missing)}")


def _text(stored: object) -> str:
    return stored.decode(errors="backslashreplace") if isinstance(stored, bytes) else repr(stored)


def migrate(connection: sqlite3.Connection, form: Format, name: str) -> None:
    """Bring a file to the newest version, in one transaction: all the way or not at all."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        for version in range(version_in(connection, form, name), form.version):  # a rival may have been faster
            form.migrations[version](connection)
            connection.execute(f"PRAGMA user_version={version + 1}")
        version_in(connection, form, name)
        connection.execute("COMMIT")
    except BaseException as error:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise StorageError(
            f"{name}: could not be brought to schema version {form.version} ({error}); it is as it was"
        ) from error
