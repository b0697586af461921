"""What workers import when they evaluate, told to the nursery that forked them: so that the next ones have it already.

Only modules of the standard library and of installed packages are told, by their names. What a user's own modules do
when they are imported, such as reading data or opening files, happens where the objective does it.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import warnings
from collections.abc import Iterable
from contextlib import suppress
from importlib import import_module
from types import ModuleType

AT_ONCE = 400  # names in one message: some ten kB
MESSAGE_BYTES = 1 << 20  # more than a socket takes at once
STANDARD_LIBRARY = os.path.dirname(os.__file__) + os.sep
INSTALLED = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")


class Lessons:
    """Both sides have one: a fork inherits it."""

    def __init__(self) -> None:
        self._read, self._write = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        for end in (self._read, self._write):
            end.setblocking(False)
        self._known: set[str] = set()

    def taken(self) -> list[str]:
        """In the nursery: names of modules that workers have imported and that are not here."""
        names: dict[str, None] = {}
        with suppress(OSError, ValueError, LookupError, TypeError):  # no more, or nothing that a worker says
            while message := self._read.recv(MESSAGE_BYTES):
                names.update((name, None) for name in json.loads(message)["modules"])
        self._known = set(sys.modules)
        return [name for name in names if name not in self._known]

    def learn(self, names: Iterable[str]) -> None:
        """In the nursery: import them. One that cannot be imported is left to the objective, which can say so."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the objective's process has said it
            for name in names:
                if name not in sys.modules:
                    with suppress(Exception):
                        import_module(name)
        self._known = set(sys.modules)

    def teach(self) -> None:
        """In a worker: tell what was imported since it was forked, or since it was last told."""
        if len(sys.modules) == len(self._known):
            return
        new = [name for name in sys.modules.copy() if name not in self._known]
        self._known.update(new)
        names = [name for name in new if is_of_a_library(name, sys.modules.get(name))]
        with suppress(OSError):  # the nursery is gone, or has not listened for long
            for first in range(0, len(names), AT_ONCE):
                self._write.send(json.dumps({"modules": names[first : first + AT_ONCE]}).encode())


def is_of_a_library(name: str, module: ModuleType | None) -> bool:
    """Whether a module can be imported by that name, from the standard library or an installed package.

    >>> is_of_a_library("json", json), is_of_a_library("__main__", sys.modules["__main__"])
    (True, False)
    """
    try:
        found = getattr(module, "__spec__", None)
        known, origin = getattr(found, "name", None), getattr(found, "origin", None)
    except Exception:  # anything may stand in the place of a module, and do anything when it is asked
        return False
    if known != name or not isinstance(origin, str) or name == "__main__":
        return False
    return origin.startswith(STANDARD_LIBRARY) or any(folder in origin for folder in INSTALLED)
