"""The mark that `farthing run` puts on its note in a study's file: this user has run exactly this.

It is an HMAC over everything that decides what is executed: the note, the folder and the scripts by their full paths,
and the space, whose values are filled into the command. Whoever has not got the user's key cannot make one, and a mark
is worth nothing for another command, folder, script or space. What a script holds is not part of it: users edit their
scripts.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Mapping
from typing import Any

from farthing.cli.own_key import KeyUnusable, own_key
from farthing.cli.run_note import RunNote
from farthing.cli.script import script_of
from farthing.cli.streams import warn

FIELD = "mark"  # of the note
PURPOSE = b"farthing run note, form 1\n"  # so that a mark is never valid for anything else made with the key


def mark_of(key: bytes, note: RunNote, place: str, space: Mapping[str, Any]) -> str:
    """The mark of a note that is run in a folder.

    >>> note = RunNote(command="train {x}")
    >>> mark_of(b"k" * 32, note, "/a", {}) == mark_of(b"k" * 32, note, "/b", {})
    False
    """
    fields = {name: value for name, value in note.as_json().items() if name != "folder"}
    scripts = [script_of(address, place) for address in (note.objective, note.space) if address is not None]
    covered = json.dumps({"note": fields, "folder": place, "scripts": scripts, "space": space}, sort_keys=True)
    return hmac.new(key, PURPOSE + covered.encode(), "sha256").hexdigest()


def marked(note: RunNote, place: str, space: Mapping[str, Any]) -> dict[str, Any]:
    """The note as it is stored, with its mark; without one if there is no key, which is said."""
    stored = note.as_json()
    try:
        key = own_key(make=True)
    except KeyUnusable as error:
        warn(f"the study is stored without your mark, so `farthing resume` will ask for --yes: {error}")
        return stored
    return stored if key is None else {**stored, FIELD: mark_of(key, note, place, space)}


def is_marked(stored: Mapping[str, Any], note: RunNote, place: str, space: Mapping[str, Any]) -> bool:
    """Whether this user's `farthing run` has written a note, in this folder."""
    mark = stored.get(FIELD)
    if not isinstance(mark, str):
        return False
    try:
        key = own_key()
    except KeyUnusable as error:
        warn(f"the mark of the file cannot be checked: {error}")
        return False
    return key is not None and hmac.compare_digest(
        mark.encode(errors="replace"), mark_of(key, note, place, space).encode()
    )
