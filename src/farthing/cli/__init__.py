"""The program `farthing`: a thin layer over the public API.

This module holds only the entry point. Worker processes that evaluate a program or a script import the package too, and
start faster the less it imports.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

IMPORTED = time.perf_counter()  # near the start of a process that only runs this program


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program with these arguments, or with those of the process. Returns the exit status.

    >>> main(["--version"])
    farthing 0.1.0
    0
    """
    from farthing.cli import (  # noqa: F401  # they register
        control_commands,
        dashboard_command,
        optuna_commands,
        read_commands,
        run_commands,
    )  # fmt: skip
    from farthing.cli.exit_status import call
    from farthing.cli.group import group

    return call(group, arguments, IMPORTED if arguments is None else None)
