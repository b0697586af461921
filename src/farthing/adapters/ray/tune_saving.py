"""A study file as bytes, for the checkpoints of an experiment of Ray Tune."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from farthing.errors import StudyMismatch
from farthing.record.storage import open_log


def copied(path: str) -> bytes:
    """A complete copy of a study file that may be in use."""
    with closing(sqlite3.connect(f"{Path(path).absolute().as_uri()}?mode=ro", uri=True)) as file:
        return file.serialize()


def put_back(copy: bytes, path: Path, folder: Path) -> None:
    """The file of a copy, unless it is there: it may know more by now, but must hold all that the copy holds."""
    if not path.exists():
        path.write_bytes(copy)
        path.chmod(0o600)
        return
    (beside := folder / "copy.db").write_bytes(copy)
    with closing(open_log(beside)) as log, closing(open_log(path)) as newer:
        known = list(log.read())
        if list(newer.read())[: len(known)] != known:
            raise StudyMismatch(f"{path}: the file holds another study than the checkpoint of this experiment")
    beside.unlink()
