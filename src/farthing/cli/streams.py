"""Standard output for results, standard error for everything else."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO


@contextmanager
def result_stream() -> Iterator[TextIO]:
    """Standard output for the result alone: whatever objectives and their processes print goes to standard error."""
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        kept, wanted = os.dup(1), os.dup(1)
    except OSError:  # standard output is closed
        yield sys.stdout
        return
    os.dup2(2, 1)
    try:
        with os.fdopen(wanted, "w", encoding=sys.stdout.encoding, errors=sys.stdout.errors) as out:
            yield out
    finally:
        sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)


def warn(text: str) -> None:
    """Write a warning to standard error."""
    sys.stderr.write(f"farthing: warning: {text}\n")
    sys.stderr.flush()
