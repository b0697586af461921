"""What can be stored and shown of any object: as JSON, or as text. Nothing that an object's methods raise gets out, and
nothing becomes larger than a study file should hold.
"""

from __future__ import annotations

import json
import logging
import math
import re
import sys
import warnings
from collections.abc import Mapping
from contextlib import suppress
from contextvars import copy_context
from threading import Thread
from typing import Any

logger = logging.getLogger("farthing")

SHOWN = 200  # characters of a wrong value in a message
NESTED = 100  # containers inside each other that are kept of an attribute: JSON readers fail at about a thousand
LONGEST_WHOLE = 1000  # bits of a whole number that is kept: a float holds those of up to 1024
LONGEST_SHOWN = 2000  # bits of one that is shown: Python may refuse to write more than 640 digits
ATTRIBUTES = 10_000_000  # characters of JSON that are kept of the attributes of one report or trial
ERROR_TEXT = 100_000  # characters that are kept of an error: more than a screen, less than a file should hold per trial
LONGEST_NAME = 1000  # characters of an attribute's name
CONTAINER = 30  # characters as which a list or dict counts: many are slow to read, however little is in them
SAYING_SECONDS = 0.1  # that a warning may take: a terminal that is read takes microseconds
_EXCEPTION = re.compile(r"((?:\w+\.)*[A-Z]\w*)(?::|$)")  # at the beginning of a line, as tracebacks show it
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")
_NUMBER = re.compile(r"\d+(?:\.\d+)?(?:e[+-]?\d+)?")
LEFT_OUT = "left out: it is too large to keep"


def shown(given: object) -> str:
    """A value in a message: its repr, cut if it is long.

    >>> len(shown(list(range(1000)))), shown(10**5000)
    (203, 'a whole number of about 5001 digits')
    """
    text = _described(given[: SHOWN + 1] if type(given) in (str, bytes, bytearray) else given)  # type: ignore[index]
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."


def _described(given: object) -> str:
    """Its repr, or its kind if that cannot be had: an object of the user's own may raise anything."""
    if isinstance(given, int) and int.bit_length(given) > LONGEST_SHOWN:
        return f"a whole number of about {math.ceil(int.bit_length(given) * math.log10(2))} digits"
    try:
        return readable(repr(given))
    except Exception:
        return f"a {type(given).__name__}"


def readable(text: str) -> str:
    r"""Text that every file and terminal can hold: halves of characters, which no encoding knows, are written out.

    >>> print(readable("caf\u00e9 \ud800"))
    café \ud800
    """
    return text.encode("utf-8", "backslashreplace").decode()


def text_of(error: object) -> str:
    """What an exception says, also if it cannot say it."""
    try:
        return cut_text(str(error))
    except Exception:
        return f"a {type(error).__name__}"


def cut_text(text: str, most: int = ERROR_TEXT) -> str:
    """Readable text of about `most` characters, with its beginning and its end.

    >>> cut_text("0123456789" * 10, 10).splitlines()
    ['01234', '... (90 characters left out) ...', '56789']
    """
    if len(text) > most:
        half = most // 2
        text = f"{text[:half]}\n... ({len(text) - 2 * half} characters left out) ...\n{text[-half:]}"
    return readable(text)


def warn(text: str) -> None:
    """Say something that users should know, as a Python warning at the line that called this package. Where warnings
    are errors it is logged instead: what a study has to do must not end in the middle. It is said by a thread, which is
    waited for only a moment: nobody may be reading what goes to standard error."""
    frame = sys._getframe(0)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("farthing."):
        frame = frame.f_back
    registry = frame.f_globals.setdefault("__warningregistry__", {})
    module, place = frame.f_globals.get("__name__", "<unknown>"), (frame.f_code.co_filename, frame.f_lineno)

    def say() -> None:
        try:
            warnings.warn_explicit(text, RuntimeWarning, *place, module, registry)
        except Exception:  # warnings are errors, or standard error was closed
            logger.warning(text)

    thread = Thread(target=copy_context().run, args=(say,), name="farthing-warning", daemon=True)
    thread.start()
    thread.join(SAYING_SECONDS)


def plain(value: Any) -> Any:
    """A JSON value as near as possible: NumPy numbers become Python's, what has no JSON form its repr.

    >>> import numpy as np
    >>> plain({"a": np.float32(0.5), 2: (1, None)})
    {'a': 0.5, '2': [1, None]}
    """
    return _Plain(math.inf).of(value)


def kept_attributes(given: Mapping[Any, Any]) -> dict[str, Any]:
    """Attributes as JSON. Of one that is too large to keep only a text says that it was there.

    >>> kept_attributes({"epochs": 3, "note": "x" * 10**8})
    {'epochs': 3, 'note': 'left out: it is too large to keep'}
    """
    kept: dict[str, Any] = {}
    left = ATTRIBUTES
    for name, value in given.items():
        text = _Plain(math.inf).key(name)[:LONGEST_NAME]
        item, size = _within(value, left)
        left -= len(text) + size
        if left < 0:  # there are too many
            kept["..."] = LEFT_OUT
            break
        kept[text] = item
    return kept


def _within(value: Any, most: int) -> tuple[Any, int]:
    """A value as JSON and how many characters that has; if these are more than `most`, what is kept instead."""
    try:
        item = _Plain(most).of(value)
        size = len(json.dumps(item))
    except _TooLarge:
        size = most + 1
    return (item, size) if size <= most else (LEFT_OUT, len(LEFT_OUT))


def stored_attributes(given: Mapping[Any, Any]) -> dict[str, Any]:
    """Kept attributes, with a warning if one was left out."""
    kept = kept_attributes(given)
    missing = [name for name, item in kept.items() if item == LEFT_OUT]
    if missing:
        names = ", ".join(missing[:3]) + ", ..." * (len(missing) > 3)
        most = f"{ATTRIBUTES // 1_000_000} MB of attributes are kept per report"
        warn(f"left out, because at most {most}: {names}")
    return kept


class _TooLarge(Exception):
    """There is more than may be kept."""


_AS_IT_IS = (bool, float, type(None))


class _Plain:
    """Makes JSON values of at most about `most` characters, from anything."""

    def __init__(self, most: float) -> None:
        self._left = most
        self._around: list[int] = []  # the containers around what is being read, by their id

    def of(self, value: Any) -> Any:
        try:
            if type(value) in _AS_IT_IS:
                self._take(2)
                return value
            return self._of(value)
        except _TooLarge:
            raise
        except Exception:  # of the methods of an object of the user's own
            return f"a {type(value).__name__}"

    def key(self, name: Any) -> str:
        """The name of an entry."""
        try:
            text = str.__str__(name) if isinstance(name, str) else str(name)
        except Exception:
            text = _described(name)
        return self._text(text)

    def _of(self, value: Any) -> Any:
        match value:
            case str():
                return self._text(str.__str__(value))
            case float():
                return self.of(float.__float__(value))
            case int():
                self._take(2)
                return _described(value) if int.bit_length(value) > LONGEST_WHOLE else int.__int__(value)
        if id(value) in self._around:
            return f"the {type(value).__name__} around it"
        if len(self._around) >= NESTED:
            return f"a {type(value).__name__} inside {NESTED} others"
        self._take(CONTAINER)
        self._around.append(id(value))
        try:
            return self._container(value)
        finally:
            self._around.pop()

    def _container(self, value: Any) -> Any:
        self._refuse_large(value)
        if isinstance(value, Mapping):
            return {self.key(key): self.of(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.of(item) for item in value]
        if hasattr(value, "tolist") and not isinstance(value, type):  # NumPy scalars and arrays
            return self.of(value.tolist())
        return self._text(_described(value))

    def _refuse_large(self, value: Any) -> None:
        """Before anything is made of what is too large anyway: an array, a tensor, any container."""
        counts: list[object] = []
        for count in (lambda: value.size, lambda: value.numel(), lambda: len(value)):
            with suppress(Exception):
                counts.append(count())
        if any(isinstance(count, int) and count > self._left for count in counts):
            raise _TooLarge

    def _text(self, text: str) -> str:
        self._take(len(text))
        return text

    def _take(self, characters: int) -> None:
        self._left -= characters
        if self._left < 0:
            raise _TooLarge


def headline(error: str) -> str:
    r"""The line of an error's text that says most: of a traceback the one that names the exception, else the last one.

    >>> headline('Traceback (most recent call last):\n  File "a.py", line 1, in f\n    x()\nValueError: one\ntwo')
    'ValueError: one'
    >>> headline("killed: the budget is spent")
    'killed: the budget is spent'
    """
    lines = error.strip().splitlines() or [""]
    frames = [i for i, line in enumerate(lines) if line.startswith('  File "')]
    after = lines[frames[-1] + 1 :] if frames else []
    return next((line for line in after if not line.startswith(" ")), lines[-1])


def error_kind(error: str) -> str:
    """What errors of one kind share: the type of an exception, or a sentence without its numbers and what it quotes.

    >>> error_kind("ValueError: no 5"), error_kind("killed: it took longer than 5s, the limit of a trial")
    ('ValueError', 'killed: it took longer than #s, the limit of a trial')
    """
    line = headline(error)
    if named := _EXCEPTION.match(line):
        return named[1]
    return _NUMBER.sub("#", _QUOTED.sub("...", line.partition(", got ")[0]))


def counted(count: int, noun: str) -> str:
    """A number of things, in words.

    >>> counted(1, "trial"), counted(2, "trial")
    ('1 trial', '2 trials')
    """
    return f"{count} {noun}{'' if count == 1 else 's'}"
