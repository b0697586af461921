"""Before `farthing resume` runs what a file says: show it, and ask.

A study's file may be a stranger's, and it names a command or a script and a folder to run it in. Unless it carries this
user's mark, all of it is shown, and runs only with `--yes` or an answer at the terminal. Code outside of the current
folder and what is below it needs `--outside` too: that folder is the one place the user has chosen and no file can.
"""

from __future__ import annotations

import os
import shlex
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass, field

from farthing.cli.run_note import RunNote
from farthing.cli.script import script_of
from farthing.cli.streams import say
from farthing.errors import InvalidArgument
from farthing.space.command_template import CommandTemplate
from farthing.text.escaping import on_one_line


class NotAllowed(InvalidArgument):
    """What a file says was not run, because nobody has allowed it."""


@dataclass(frozen=True)
class Permission:
    """What the user allows, and the words in which it was said."""

    yes: bool = False
    outside: bool = False
    arguments: tuple[str, ...] = ()  # of this call of `farthing`
    began: float = field(default_factory=time.perf_counter)  # when this call did

    def again(self, *flags: str) -> str:
        """The same call with more flags, to be pasted into a shell.

        >>> Permission(arguments=("--debug", "resume", "my s.db")).again("--yes")
        "farthing --debug resume --yes 'my s.db'"
        """
        words = [*self.arguments]
        at = words.index("resume") + 1 if "resume" in words else len(words)
        return shlex.join(["farthing", *words[:at], *(flag for flag in flags if flag not in words), *words[at:]])


@dataclass(frozen=True)
class Wanted:
    """What a file wants to run: its description, and the places of all code that can be known without running it."""

    lines: tuple[tuple[str, str], ...]
    places: tuple[str, ...]

    @classmethod
    def by(cls, note: RunNote, place: str, *, objective: bool, space: bool) -> Wanted:
        """What a note says of the objective and its folder, and of a script that defines the space."""
        addresses = [note.objective] * objective + [note.space] * space
        code = [script_of(address, place) or "an installed module" for address in addresses if address is not None]
        if objective and note.command is not None:
            code += _program_of(note.command, place)
        lines = [("command", note.command)] * objective + [("function", note.objective)] * objective
        lines += [("space", note.space)] * space + [("folder", place), ("workers", str(note.workers))] * objective
        lines += [("cluster", note.ray)] * objective
        return cls(tuple((name, text) for name, text in lines if text is not None), (place, *code))

    def outside(self, folder: str) -> list[str]:
        """The places that are not in a folder."""
        return [place for place in dict.fromkeys(self.places) if not _is_within(place, folder)]


def _program_of(command: str, place: str) -> list[str]:
    """The program of a command if it is given as a path; others are found as in a shell."""
    program = CommandTemplate.of(command).program
    return [] if program is None or os.sep not in program else [os.path.realpath(os.path.join(place, program))]


def _is_within(place: str, folder: str) -> bool:
    root = os.path.join(os.path.realpath(folder), "")
    return os.path.isabs(place) and os.path.join(place, "").startswith(root)


def require_consent(name: str, wanted: Wanted, permission: Permission) -> float:
    """The seconds that the user took to allow it, or an error with the command that would."""
    outside = [] if permission.outside else wanted.outside(os.getcwd())
    if permission.yes and not outside:
        return 0.0
    said = [f"farthing: {on_one_line(name)} does not carry your mark, and would run:", *_shown(wanted.lines, outside)]
    say("\n".join(said))
    if outside:
        flags = ["--yes", "--outside"] if not _can_ask() else ["--outside"]
        raise NotAllowed(
            f"{name}: not run, because it is not in the current folder; to allow it: {permission.again(*flags)}"
        )
    if not _can_ask():
        raise NotAllowed(f"{name}: not run, because nobody has allowed it; to do so: {permission.again('--yes')}")
    asked = time.perf_counter()
    if not _agreed():
        raise NotAllowed(f"{name}: not run")
    return time.perf_counter() - asked


def _shown(lines: Iterable[tuple[str, str]], outside: Iterable[str]) -> list[str]:
    described = [*lines, *(("outside", f"{place} is not in the current folder") for place in outside)]
    return [f"  {name:<10}{on_one_line(text)}" for name, text in described]


def _can_ask() -> bool:
    try:
        return sys.stdin.isatty() and sys.stderr.isatty()
    except (AttributeError, ValueError):  # closed, or replaced by something else
        return False


def _agreed() -> bool:
    sys.stderr.write("Run this? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")
