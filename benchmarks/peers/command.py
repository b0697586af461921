"""The command line that every peer has: `latency ...` and, where the system offers it, `quality`."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from latency_task import Latency
from latency_task import latency as time_rounds
from quality_task import Quality, Task, serve


def main(
    about: str | None,
    versions: dict[str, str],
    *,
    latency: Callable[[int], Latency],
    quality: Callable[[Any, Task], Quality] | None = None,
) -> None:
    """Parse the command line and do what it says."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    _add_latency(commands.add_parser("latency", help="time suggestions"))
    if quality is not None:
        commands.add_parser("quality", help="minimise the problems on stdin")
    arguments = parser.parse_args()
    if quality is not None and arguments.command == "quality":
        serve(quality, versions)
    else:
        time_rounds(latency, versions, arguments)


def _add_latency(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--n", type=int, required=True, help="trials told before the first timed suggestion")
    parser.add_argument("--rounds", type=int, required=True, help="suggestions to time")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--lockstep", action="store_true", help="wait for a line on stdin before each round")
