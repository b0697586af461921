"""One run of a program: started in its own process group, read line by line, suspended, resumed and ended.

A suspended program (SIGSTOP) uses no processor; it is resumed (SIGCONT) when more output is wanted than it has printed.
However a run ends, its whole process group is ended with it.
"""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from select import select
from typing import Self

from farthing.cli.program_output import ProgramFailed, quoted
from farthing.runner.process_tree import open_pidfd, signal_name

CHUNK = 1 << 16  # bytes read at once: what a pipe of Linux holds
BLOCK = 1 << 12  # bytes: buffers have this size or a multiple of it
LONGEST = 1 << 20  # bytes of a line that are kept: more than any result, and gigantic output does not fill the memory
TAIL, TAIL_LINES = 1 << 13, 20  # bytes and lines of standard error that are kept: about a screen, for the error message
KILLED_SECONDS = 0.1  # to end after SIGTERM, if the evaluation is being killed: whoever kills it is waiting
# Seconds until a program that does not continue is sent SIGCONT again: soon at first, then twice as long each time.
FIRST_AGAIN, LONGEST_AGAIN = 0.01, 1.0
POLL = 0.05  # seconds between two looks, on systems without open_pidfd


@dataclass(frozen=True)
class Arrival:
    """Lines that arrived together.

    silence   seconds for which the program ran before and printed nothing
    is_block  whether they look like a whole buffer: C libraries and Python fill one if output goes into a pipe
    """

    lines: tuple[bytes, ...] = ()
    silence: float = 0.0
    is_block: bool = False


def _is_block(printed: bytes) -> bool:
    return len(printed) % BLOCK == 0 and not printed.endswith(b"\n")


class ProgramProcess:
    """A program that is running."""

    def __init__(self, arguments: list[str], environment: Mapping[str, str], patience: float, show: bool) -> None:
        self._patience, self._show, self._errors = patience, show, b""
        self._suspended, self._again = False, math.inf
        self._ahead, self._since = b"", time.monotonic()  # output that was read too soon; how long nothing has come
        self.arrived = Arrival()
        try:
            self._popen = subprocess.Popen(
                arguments, env=environment, process_group=0,
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            )  # fmt: skip
        except (OSError, ValueError) as error:
            raise ProgramFailed(f"the program {arguments[0]!r} cannot be started: {error}") from error
        assert self._popen.stdout is not None
        assert self._popen.stderr is not None
        self._pipes = [self._popen.stdout.fileno(), self._popen.stderr.fileno()]
        self._open = list(self._pipes)
        for pipe in self._pipes:
            os.set_blocking(pipe, False)
        self._end = open_pidfd(self._popen.pid)  # becomes readable when the program has ended

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        closed = kind is None or issubclass(kind, Exception | GeneratorExit)
        self.end(self._patience if closed else KILLED_SECONDS)

    def lines(self) -> Iterator[bytes]:
        """The lines it prints, as they arrive, until it has ended; not until its child processes have."""
        arriving = b""
        while True:
            ended = self._has_ended()  # asked before reading: all it wrote can then be read
            printed, errors = self._read_pipes()
            printed, self._ahead = self._ahead + printed, b""
            if printed:
                *whole, arriving = (arriving + printed).split(b"\n")
                arriving = arriving[-LONGEST:]
                now = time.monotonic()
                self.arrived = Arrival(tuple(whole), now - self._since, _is_block(printed))
                self._since = now
                yield from whole
            elif not errors and ended:
                break
            elif not errors:
                self._resume()
                self._wait(math.inf)
        if arriving:
            yield arriving

    def ends_within(self, seconds: float) -> bool:
        """Whether it ends so soon, and prints nothing more."""
        deadline = time.monotonic() + seconds
        while not self._has_ended():
            self._ahead += self._read_pipes()[0]
            left = deadline - time.monotonic()
            if self._ahead or left <= 0.0:
                return False
            self._wait(left)
        return True

    def _read_pipes(self) -> tuple[bytes, bytes]:
        """Read what has arrived on standard output and standard error."""
        printed, errors = (self._read(pipe) for pipe in self._pipes)
        self._errors = (self._errors + errors)[-TAIL:]
        if self._show and (printed or errors):
            with suppress(OSError):
                sys.stderr.buffer.write(printed + errors)
                sys.stderr.flush()
        return printed, errors

    def _read(self, pipe: int) -> bytes:
        if pipe not in self._open:
            return b""
        try:
            some = os.read(pipe, CHUNK)
        except BlockingIOError:
            return b""
        if not some:
            self._open.remove(pipe)
        return some

    def _wait(self, seconds: float) -> None:
        """Wait for output, for the end of the program, or for some seconds."""
        seconds = min(seconds, self._again, math.inf if self._end is not None else POLL)
        signs = [*self._open, *([] if self._end is None else [self._end])]
        if not any(select(signs, [], [], None if math.isinf(seconds) else seconds)) and seconds == self._again:
            self._signal(signal.SIGCONT)
            self._again = min(2 * self._again, LONGEST_AGAIN)

    def _has_ended(self) -> bool:
        """Whether it has ended. It is not reaped yet: until then its process and group numbers are not used again."""
        return os.waitid(os.P_PID, self._popen.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def suspend(self) -> None:
        """Stop it until more output is wanted than it has printed."""
        self._signal(signal.SIGSTOP)
        self._suspended = True

    def _resume(self) -> None:
        """Let it continue. The signal is repeated while no output comes: a process that is just being forked may be
        stopped by SIGSTOP but, not yet in the group, miss SIGCONT."""
        if self._suspended:
            self._signal(signal.SIGCONT)
            self._suspended, self._again = False, FIRST_AGAIN
            self._since = time.monotonic()

    def _signal(self, number: int) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._popen.pid, number)

    def end(self, patience: float) -> None:
        """Ask it to end, wait up to `patience` seconds, and kill what is left of its group."""
        if not self._has_ended():
            self._signal(signal.SIGTERM)
            self._signal(signal.SIGCONT)  # a suspended process gets other signals only then
            deadline = time.monotonic() + patience
            while not self._has_ended() and (left := deadline - time.monotonic()) > 0.0:
                self._wait(left)
                self._read_pipes()  # it may be blocked because its pipe is full
        self._signal(signal.SIGKILL)
        self._popen.wait()
        with suppress(ChildProcessError):  # orphans of its group, which this process adopted
            while os.waitpid(-self._popen.pid, os.WNOHANG)[0]:
                pass
        for pipe in (self._popen.stdout, self._popen.stderr):
            if pipe is not None:
                pipe.close()
        if self._end is not None:
            os.close(self._end)
            self._end = None

    def require_success(self) -> None:
        """Raise an error if it failed, with the end of its standard error."""
        code = self._popen.returncode
        if code == 0:
            return
        how = f"ended with exit status {code}" if code > 0 else f"died of {signal_name(-code)}"
        tail = self._errors.decode(errors="replace").strip().splitlines()[-TAIL_LINES:]
        if not tail:
            raise ProgramFailed(f"the program {how} and wrote nothing to standard error")
        said = "" if len(tail) == 1 else "the end of its standard error:\n" + "\n".join(tail) + "\n"
        raise ProgramFailed(f"{said}the program {how}: {quoted(tail[-1].strip())}")
