"""A TOML file that a user wrote, and errors that name the file, the line and the key."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from os import PathLike
from pathlib import Path as FilePath
from typing import Any

from farthing.cli.toml_lines import Path, key_lines
from farthing.errors import FarthingError, InvalidArgument

LISTED = 12  # names in a message: all types and keys, and enough parameters to see what is meant
SHOWN = 80  # characters of a wrong value in a message: the rest of it fits on the line too


@dataclass(frozen=True)
class TomlFile:
    """What a file holds, and the kind of its errors."""

    name: str
    document: Mapping[str, Any]
    text: str
    error: type[FarthingError] = InvalidArgument

    @classmethod
    def read(cls, path: str | PathLike[str], error: type[FarthingError] = InvalidArgument) -> TomlFile:
        name = str(path)
        try:
            text = FilePath(path).read_text(encoding="utf-8-sig")
        except OSError as why:
            raise error(f"{name}: cannot be read: {why.strerror}") from why
        except UnicodeDecodeError as why:
            raise error(f"{name}: is not a text in UTF-8 ({why})") from why
        try:
            return cls(name, tomllib.loads(text), text, error)
        except tomllib.TOMLDecodeError as why:
            raise error(_syntax_error(name, text, str(why))) from why
        except RecursionError as why:
            raise error(f"{name}: arrays or tables are nested too deeply") from why
        except ValueError as why:  # a number of more digits than Python reads
            raise error(f"{name}: cannot be read: {why}") from why

    @cached_property
    def _lines(self) -> Mapping[Path, int]:
        return key_lines(self.text)  # only for an error: it takes as long as reading the file

    def refusal(self, path: Path, why: str) -> FarthingError:
        """The error of a key, at the line of it or of what is around it."""
        known = next((path[:n] for n in range(len(path), 0, -1) if path[:n] in self._lines), None)
        line = f":{self._lines[known]}" if known else ""
        return self.error(f"{self.name}{line}: {dotted(path)}: {why}" if path else f"{self.name}{line}: {why}")


def _syntax_error(name: str, text: str, message: str) -> str:
    what, _, where = message.rpartition(" (at ")
    if found := re.fullmatch(r"line (\d+), column (\d+)\)", where):
        return f"{name}:{found[1]}: column {found[2]}: {what}"
    return f"{name}:{len(text.splitlines()) or 1}: {what or message} at the end of the file"


def dotted(path: Path) -> str:
    """A path as a TOML file would write it.

    >>> print(dotted(("model.depth", "when", "kind")), dotted(("forbid", 0)))
    "model.depth".when.kind forbid[0]
    """
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            bare = re.fullmatch(r"[A-Za-z0-9_-]+", part)
            text += ("." if text else "") + (part if bare else json.dumps(part, ensure_ascii=False))
    return text


def shown(value: Any) -> str:
    """A value, nearly as a TOML file would write it."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]} ..."


def quoted(names: Iterable[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


def nearest(given: str, names: Iterable[str], meant: Mapping[str, str] | None = None) -> str:
    """What was probably meant, or all that is accepted.

    >>> nearest("hihg", ["low", "high"]), nearest("x", ["low", "high"])
    ('did you mean "high"?', 'accepted: "low", "high"')
    """
    listed = list(names)
    close = (meant or {}).get(given.lower()) or next(iter(get_close_matches(given, listed, 1)), None)
    if close:
        return f'did you mean "{close}"?'
    more = f" and {len(listed) - LISTED} more" if len(listed) > LISTED else ""
    return f"accepted: {quoted(listed[:LISTED])}{more}"
