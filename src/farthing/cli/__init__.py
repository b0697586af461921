"""The program `farthing`: a thin shell over the public API.

Here is only its entry: worker processes that evaluate a program or a script import this package too, and start sooner
the less is in it.
"""

from __future__ import annotations

from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program with these arguments, else with those of the process; the exit status.

    >>> main(["--version"])
    farthing 0.1.0
    0
    """
    from farthing.cli.calling import call
    from farthing.cli.commands import group

    return call(group, arguments)
