"""Standard output for results, standard error for everything else.

Messages are best effort: a standard error that is closed, full or broken, or that nobody reads, loses them, but never
ends a run or holds one up.
"""

from __future__ import annotations

import json
import os
import select
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TextIO

import click

from farthing.runner.standard_descriptors import fill_standard_descriptors
from farthing.text.escaping import on_lines, on_one_line

PIECE = 512  # bytes written at once: what every pipe that is ready takes without waiting (PIPE_BUF of POSIX)
DURING = 0.05  # seconds a message may wait for its reader during a run, which pays for them
AT_THE_END = 2.0  # the same for the last message: a reader on a busy machine gets it


def prepare_streams() -> None:
    """Give this process all its standard streams, and let none of them fail because of a character."""
    fill_standard_descriptors()
    for number, name in ((1, "stdout"), (2, "stderr")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, "w", encoding="utf-8", closefd=False))  # noqa: SIM115 - open to the end
        with suppress(AttributeError):  # in the place of the stream, what a test or a notebook has put there
            getattr(sys, name).reconfigure(errors="backslashreplace")


@contextmanager
def result_stream() -> Iterator[TextIO]:
    """Standard output for the result alone: whatever objectives and their processes print goes to standard error."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):
            stream.flush()
    kept, wanted = os.dup(1), os.dup(1)
    os.dup2(2, 1)
    out = os.fdopen(wanted, "w", encoding=sys.stdout.encoding, errors=sys.stdout.errors)
    try:
        yield out
    finally:
        for end in (out.close, sys.stdout.flush):
            with suppress(OSError):  # who wrote the result has flushed it, and heard of it
                end()
        os.dup2(kept, 1)
        os.close(kept)


def flush_streams() -> OSError | None:
    """Flush both streams, and return why standard output failed. What they cannot take goes nowhere: Python would try
    again when it exits, and complain."""
    failed = None
    for number, stream in ((2, sys.stderr), (1, sys.stdout)):
        try:
            stream.flush()
        except ValueError:  # closed by the program that called us
            continue
        except OSError as error:
            failed = error if number == 1 else None
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, number)
            os.close(null)
            with suppress(OSError):
                stream.flush()
    return failed


def json_for(out: TextIO, text: str) -> str:
    """JSON text for a stream: in ASCII if the stream cannot hold its characters."""
    try:
        text.encode(out.encoding or "utf-8")
    except UnicodeEncodeError:
        return json.dumps(json.loads(text), indent=2)
    return text


def show(text: str) -> None:
    """Write lines to standard output, without control codes; an error says that it is the one that failed."""
    try:
        click.echo(on_lines(text))
    except OSError as error:
        raise OSError(error.errno, error.strerror, "standard output") from error


def say(text: str, patience: float = AT_THE_END) -> None:
    """Write lines to standard error, as far as it takes them."""
    shown = "".join(f"{on_one_line(line.rstrip())}\n" for line in text.split("\n"))
    with suppress(OSError, ValueError, AttributeError):  # closed, full, broken, or replaced by something else
        sys.stderr.flush()
        if not hasattr(select, "poll") or (descriptor := _descriptor(sys.stderr)) is None:
            sys.stderr.write(shown)
            sys.stderr.flush()
            return
        left = shown.encode(sys.stderr.encoding or "utf-8", "backslashreplace")
        ready = select.poll()
        ready.register(descriptor, select.POLLOUT)
        while left and ready.poll(patience * 1000.0):
            left = left[os.write(descriptor, left[:PIECE]) :]


def _descriptor(stream: TextIO) -> int | None:
    try:
        return stream.fileno()
    except (OSError, AttributeError):  # a stream in memory
        return None


def warn(text: str) -> None:
    """Write a warning to standard error. All but its first line are indented: none looks like another message."""
    say(f"farthing: warning: {indented(text)}", DURING)


def indented(text: str) -> str:
    return text.strip().replace("\n", "\n  ")
