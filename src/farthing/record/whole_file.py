"""Write a file whole or not at all."""

from __future__ import annotations

import os
import secrets
import shutil
from contextlib import suppress


def write_whole(name: str, text: str) -> None:
    """Write a text under another name, and then give it this one: nobody sees half of it, and if it cannot be written
    the file that was there stays. A device or a pipe is written to as it is."""
    path = os.path.realpath(name)
    if os.path.exists(path) and not os.path.isfile(path):
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return
    beside = f"{path}.{secrets.token_hex(4)}.part"
    try:
        with open(beside, "x", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        if os.path.exists(path):
            shutil.copymode(path, beside)
        os.replace(beside, path)
    except BaseException as error:
        with suppress(OSError):
            os.unlink(beside)
        if isinstance(error, OSError):
            raise OSError(error.errno, error.strerror, name) from error  # named as the user knows it
        raise
