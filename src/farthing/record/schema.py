"""The format of a study file: one table, its version, and how an older version becomes the newest.

A file is data that anyone may have written. It is accepted only if its schema holds our table as we make it, and
nothing else: no view can stand in for the table, and no trigger, index or generated column can run an expression.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from farthing.errors import StorageError

SCHEMA_VERSION = 1
APPLICATION_ID = 0x46544847  # "FTHG" in ASCII, so that `file` and we know our own

TABLE = """
CREATE TABLE events (
    number INTEGER PRIMARY KEY,
    time   REAL NOT NULL,
    kind   TEXT NOT NULL,
    body   TEXT NOT NULL
) STRICT
"""

Migration = Callable[[sqlite3.Connection], None]


@dataclass(frozen=True)
class Format:
    """What this Farthing writes, and what it can bring up to that.

    `tables` holds the statement that makes the table of each version. `migrations` holds, for each version but the
    newest, the function that turns a file of it into one of the next; it runs inside a transaction, and must not end it
    (`executescript` would).
    """

    version: int
    tables: Mapping[int, str]
    migrations: Mapping[int, Migration]


CURRENT = Format(SCHEMA_VERSION, {1: TABLE}, {})


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
        connection.execute(form.tables[form.version])
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
    _require_only_our_table(connection, form.tables[version], name)
    return version


def _require_only_our_table(connection: sqlite3.Connection, table: str, name: str) -> None:
    found = connection.execute("SELECT type, name, sql FROM sqlite_master ORDER BY name <> 'events', rowid").fetchall()
    if not found:
        raise StorageError(f"{name}: is a Farthing study without its table of events")
    for kind, called, statement in found:
        if (kind, called) != ("table", "events"):
            raise StorageError(f"{name}: holds a {kind} {called!r}, which no Farthing study does; it is not used")
        if _words(statement) != _words(table):
            raise StorageError(f"{name}: its table of events is not the one Farthing makes; it is not used")


def _words(statement: object) -> list[str]:
    return str(statement).split()


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
