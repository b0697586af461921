"""Where checkpoints are: one folder per trial, and beside it a copy of the checkpoint of its best step.

    study.db.checkpoints/
      trial-7/                what the learner writes, usually one file again and again: the state after the last step
      trial-7.best/step-12/   a copy from before step 13, if step 12 was the best and its trial the best of the study

A copy has its name only once it is whole. Which step a folder is of, the study's record knows. Links are never
followed: what they lead to is somebody else's.
"""

from __future__ import annotations

import os
import re
import shutil
import uuid
import weakref
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from farthing.errors import StorageError
from farthing.history.history import TrackedTrial
from farthing.record.record import Record
from farthing.runner.checkpoints import Checkpoints
from farthing.runner.temporary import subfolder_of_process
from farthing.session import Session
from farthing.trial import Trial

WHOLE, PART = re.compile(r"step-([0-9]+)"), ".part"

# The folder of a study in memory lives as long as its record, which the study holds, and so does each of its sessions.
_elsewhere: weakref.WeakKeyDictionary[Record, Path] = weakref.WeakKeyDictionary()
_temporary: weakref.WeakKeyDictionary[Record, Path] = weakref.WeakKeyDictionary()


def checkpoint_root(session: Session) -> Path:
    """Where a study's checkpoints are: next to its file; of one in memory, in a temporary folder."""
    root = _known_root(session)
    if root is None:
        root = subfolder_of_process()
        weakref.finalize(session.record, shutil.rmtree, root, ignore_errors=True)
        _temporary[session.record] = root
    elif root.is_symlink():
        raise StorageError(
            f"{session.storage}: {root.name} next to it is a symbolic link, which a run does not follow; "
            "put the study's file where its checkpoints are to be"
        )
    return root


def keep_elsewhere(session: Session, folder: Path) -> None:
    """From here on checkpoints of this study are in a folder of that one, which other machines see too."""
    name = uuid.uuid4().hex if session.storage is None else Path(session.storage).name
    known = _elsewhere.get(session.record)
    if known is None or known.parent != folder:
        _elsewhere[session.record] = folder / f"{name}.checkpoints"


def _known_root(session: Session) -> Path | None:
    if session.record in _elsewhere:
        return _elsewhere[session.record]
    if session.storage is not None:
        return Path(f"{session.storage}.checkpoints")  # absolute, next to the real file
    return _temporary.get(session.record)


def folder_of(root: Path, number: int) -> Path:
    """What the learner of a trial writes to."""
    return root / f"trial-{number}"


def copies_of(root: Path, number: int) -> Path:
    """The folder of the copies for a trial: of one best step, or of two for a moment."""
    return root / f"trial-{number}.best"


def best_step(trial: TrackedTrial) -> int | None:
    """The first step with the least value, None of a trial without steps."""
    values = trial.curve.values
    return None if not values else values.index(min(values)) + 1


def with_checkpoint_dir(session: Session, *shown: Trial) -> list[Trial]:
    """Trials as users see them, with the folders that hold the checkpoints of their best steps."""
    root = _known_root(session)
    if root is None or root.is_symlink():
        return list(shown)
    return [
        replace(trial, checkpoint_dir=_found(root, session.history.trials[trial.number]))
        if os.path.lexists(folder_of(root, trial.number)) else trial  # a quick trial that writes nothing stays quick
        for trial in shown
    ]  # fmt: skip


def _found(root: Path, trial: TrackedTrial) -> Path | None:
    """The folder whose state has the best value, of those that are there."""
    folder, values = folder_of(root, trial.number), trial.curve.values
    of_step = {step: path for step, path in copied_steps(root, trial.number) if step <= len(values)}
    if Checkpoints.are_in(folder) and (not of_step or trial.saved_step > 0):
        of_step.setdefault(trial.saved_step, folder)
    if not of_step:
        return None
    return of_step[min(of_step, key=lambda step: values[step - 1] if step else float("inf"))]


def copied_steps(root: Path, number: int) -> Iterator[tuple[int, Path]]:
    """The steps of which there is a whole copy, and where."""
    copies = copies_of(root, number)
    if copies.is_symlink():
        return
    with suppress(OSError), os.scandir(copies) as entries:
        for entry in entries:
            named = WHOLE.fullmatch(entry.name)
            if named is not None and entry.is_dir(follow_symlinks=False):
                yield int(named[1]), Path(entry.path)


def whole_copy(root: Path, number: int, step: int) -> Path:
    """Where the copy of a step is, once it is whole."""
    return copies_of(root, number) / f"step-{step}"


def remove_half_copies(root: Path) -> None:
    """Remove what runs that were killed had begun to copy."""
    for part in root.glob(f"trial-*.best/*{PART}"):
        if not part.parent.is_symlink():
            remove_folder(part)


def remove(root: Path, number: int) -> None:
    """Remove all checkpoints of a trial. Of a link the link itself is removed, and inside a folder none is followed."""
    for path in (folder_of(root, number), copies_of(root, number)):
        remove_folder(path)


def remove_folder(path: Path) -> None:
    if not os.path.lexists(path):
        return
    if path.is_symlink():
        path.unlink()
    else:
        shutil.rmtree(path)
