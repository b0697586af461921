"""Standard input, output and error of the processes that a run starts, where the program has none itself.

With `2>&-` descriptor 2 is free, and the next file or socket that is opened gets it. A child would inherit that as its
standard error, and write into it whatever it has to say.
"""

from __future__ import annotations

import os
from contextlib import suppress

STANDARD = (0, 1, 2)


def fill_standard_descriptors() -> None:
    """Open the null device as each of them that is closed, or that nobody can write to."""
    for number in STANDARD:
        if not _is_open(number) or (number > 0 and _is_read_only_null(number)):
            with suppress(OSError):
                _open_null_as(number)


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


def _is_read_only_null(number: int) -> bool:
    """SQLite fills closed descriptors too, so that they are not its files; but only for reading."""
    try:
        import fcntl
    except ImportError:  # Windows
        return False
    try:
        is_null = os.path.samestat(os.fstat(number), os.stat(os.devnull))
        return is_null and fcntl.fcntl(number, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY
    except OSError:
        return False


def _open_null_as(number: int) -> None:
    null = os.open(os.devnull, os.O_RDWR)
    if null == number:
        os.set_inheritable(null, True)
        return
    os.dup2(null, number)
    os.close(null)
