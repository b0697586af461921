"""On which line of a TOML file each key is: `tomllib` does not say.

A path is a tuple of keys and, inside arrays, indices: `("learning_rate", "low")`, `("forbid", 0, "depth")`. The text
has already been accepted by `tomllib`, so the scanner does not check it.
"""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_right
from collections.abc import Mapping

Path = tuple[str | int, ...]

_BLANK = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_SPACES = re.compile(r"[ \t]*")
_STRING = re.compile(
    r'"""(?:[^\\]|\\.)*?"{3,5}' r"|'''.*?'{3,5}" r'|"(?:[^"\\]|\\.)*"' r"|'[^']*'",
    re.DOTALL,
)
_OTHER = re.compile(r"[^,\]}#\n]*")


def key_lines(text: str) -> Mapping[Path, int]:
    """The line of every key and every element, counted from 1.

    >>> key_lines('[eta]\\nlow = 0\\n\\n[kind]\\noptions = ["a",\\n  "b"]')[("kind", "options", 1)]
    6
    """
    return _Scanner(text).scanned()


class _Scanner:
    """A position in the text, and the keys found before it."""

    def __init__(self, text: str) -> None:
        self._text, self._at = text, 0
        self._starts = [0, *(match.end() for match in re.finditer("\n", text))]
        self._lines: dict[Path, int] = {}
        self._tables: dict[Path, int] = {}  # arrays of tables, and the index of their last

    def scanned(self) -> Mapping[Path, int]:
        table: Path = ()
        self._skip(_BLANK)
        while self._at < len(self._text):
            if self._text[self._at] == "[":
                table = self._header()
            else:
                self._pair(table)
            self._skip(_BLANK)
        return self._lines

    def _skip(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self._text, self._at)
        assert match is not None
        self._at = match.end()
        return match[0]

    def _note(self, path: Path) -> None:
        self._lines.setdefault(path, bisect_right(self._starts, self._at))

    def _header(self) -> Path:
        """`[a.b]` or `[[a.b]]`; inside the last of an array of tables, its index is part of the path."""
        double = self._text.startswith("[[", self._at)
        start = self._at
        self._at += 1 + double
        path: Path = ()
        keys = self._key()
        for i, key in enumerate(keys):
            path = (*path, key)
            last = i == len(keys) - 1
            if path in self._tables and not (last and double):
                path = (*path, self._tables[path])
        self._at = self._text.index("]", self._at) + 1 + double
        after, self._at = self._at, start
        if double:
            self._tables[path] = self._tables.get(path, -1) + 1
            self._note(path)
            path = (*path, self._tables[path])
        for length in range(1, len(path) + 1):
            self._note(path[:length])
        self._at = after
        return path

    def _key(self) -> list[str]:
        """A key, perhaps dotted, and the blanks after it."""
        parts = []
        while True:
            self._skip(_SPACES)
            if self._text[self._at] in "\"'":
                parts.append(str(tomllib.loads(f"key = {self._skip(_STRING)}")["key"]))
            else:
                parts.append(self._skip(_BARE_KEY))
            self._skip(_SPACES)
            if not self._text.startswith(".", self._at):
                return parts
            self._at += 1

    def _pair(self, table: Path) -> None:
        """`key = value`."""
        start = self._at
        keys = self._key()
        after, self._at = self._at, start
        for length in range(1, len(keys) + 1):
            self._note((*table, *keys[:length]))
        self._at = self._text.index("=", after) + 1
        self._skip(_SPACES)
        self._value((*table, *keys))

    def _value(self, path: Path) -> None:
        match self._text[self._at]:
            case '"' | "'":
                self._skip(_STRING)
            case "[":
                self._elements(path)
            case "{":
                self._inline(path)
            case _:
                self._skip(_OTHER)

    def _elements(self, path: Path) -> None:
        index = 0
        while self._more("]"):
            self._note((*path, index))
            self._value((*path, index))
            index += 1

    def _inline(self, path: Path) -> None:
        while self._more("}"):
            self._pair(path)

    def _more(self, end: str) -> bool:
        """Skip the opening bracket or the comma. Whether an element follows; if not, the closing bracket is skipped."""
        self._skip(_BLANK)
        if self._text[self._at] in "[{,":
            self._at += 1
            self._skip(_BLANK)
        if self._text[self._at] != end:
            return True
        self._at += 1
        return False
