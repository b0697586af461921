"""Text of unknown origin, made safe to show.

Names, options, errors and commands may come from anyone's file. On a terminal, control codes in them could move the
cursor, set the title or hide a line, and marks that reverse the direction of writing could show a command that is not
the one that runs. All of these are shown as Python writes them: `\\x1b`, `\\u202e`.
"""

from __future__ import annotations

import re

CONTROLS = (
    "\x00-\x1f\x7f-\x9f"  # C0, DEL and C1
    "\u2028\u2029"  # separators of lines and paragraphs
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # direction of writing
    "\ud800-\udfff"  # lone surrogates, which no encoding can write
)
_UNSAFE = re.compile(f"[{CONTROLS}]")
_UNSAFE_IN_LINES = re.compile(f"(?![\t\n])[{CONTROLS}]")


def on_one_line(text: str) -> str:
    r"""The text without control codes, on one line.

    >>> print(on_one_line("a\nb \x1b[2J\u202e \ud800 ü"))
    a\nb \x1b[2J\u202e \ud800 ü
    """
    return _UNSAFE.sub(_escaped, text)


def on_lines(text: str) -> str:
    r"""The text without control codes but tabs and ends of lines.

    >>> print(on_lines("a\r\nb \x07"))
    a\r
    b \x07
    """
    return _UNSAFE_IN_LINES.sub(_escaped, text)


def in_json(written: str) -> str:
    r"""JSON text with every unsafe character of its strings as \uXXXX: the same value, safe to show, and in UTF-8.

    >>> import json
    >>> print(in_json(json.dumps(["\x9b \ud800"], ensure_ascii=False)))
    ["\u009b \ud800"]
    """
    return _UNSAFE_IN_LINES.sub(lambda found: f"\\u{ord(found[0]):04x}", written)


def _escaped(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode("ascii")
