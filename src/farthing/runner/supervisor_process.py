"""The supervising process of a pool (supervisor.py), as the run sees it: it starts workers and says how they ended."""

from __future__ import annotations

import errno
import os
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from multiprocessing.connection import wait

from farthing.runner import supervisor
from farthing.runner.supervisor import CANCEL, ENDED, FORGET, FORKS, LOST, RECORD, REFUSED, SPAWNS, START, STARTED

CLOSING_SECONDS = 10.0  # that it may take to end, which includes ending all it knows of

BOOT = (  # with stand-ins for the packages around it: to import those would take ten times as long
    "import sys; file = sys.argv[1]; folder = file[:file.rindex('/')]; "
    "package, rooms = (sys.modules.setdefault(name, type(sys)(name)) for name in ('farthing', 'farthing.runner')); "
    "rooms.__path__ = [folder]; package.__path__ = []; "
    "from farthing.runner.supervisor import main; main(sys.argv[2:])"
)


@dataclass(frozen=True)
class LostStart:
    """A worker that never was."""

    error: OSError | None  # why it could not be started; None if the nursery died before there was one
    exit_code: int = 0  # of the nursery
    was_loading: bool = False  # the nursery, the objective


class SupervisorProcess:
    """A supervisor and the socket to it. It leads a session of its own: no signal to the run's group ends it."""

    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str], files: Sequence[int], forks: bool
    ) -> None:  # fmt: skip
        """`command` starts a worker, in that environment and with those files open. Raises OSError if the supervisor
        cannot be started."""
        self._control, theirs = socket_pair()
        self.is_gone = False
        self._tickets = count()
        self._known: dict[int, int | LostStart] = {}  # what became of tickets, until somebody asks
        self._codes: dict[int, int] = {}  # how workers ended
        isolated = ("-s", "-P", "-S") if "PYTHONHOME" in environment else ("-I", "-S")  # which -I would not see
        numbers = [str(theirs.fileno()), str(os.getpid()), FORKS if forks else SPAWNS]
        program = [sys.executable, *isolated, "-c", BOOT, supervisor.__file__, *numbers, *command]
        try:
            with theirs:
                self._popen = subprocess.Popen(
                    program, pass_fds=[theirs.fileno(), *files], stdin=subprocess.DEVNULL, start_new_session=True,
                    env=environment,
                )  # fmt: skip
        except BaseException:
            self._control.close()
            raise

    @property
    def waitables(self) -> list[socket.socket]:
        """What becomes readable when there is something to `take_in`."""
        return [] if self.is_gone else [self._control]

    def start(self, channel: socket.socket) -> int:
        """Ask for a worker with that end of its channel. Returns its ticket."""
        ticket = next(self._tickets)
        with suppress(OSError):  # it is gone, which take_in notices
            socket.send_fds(self._control, [RECORD.pack(START, ticket, 0, 0)], [channel.fileno()])
        return ticket

    def became_of(self, ticket: int, seconds: float = 0.0) -> int | LostStart | None:
        """The number of a worker, or why there will be none; None if neither is known within `seconds`."""
        deadline = time.monotonic() + seconds
        self.take_in()
        while ticket not in self._known and not self.is_gone and (left := deadline - time.monotonic()) > 0.0:
            self.take_in(left)
        gone = LostStart(ConnectionResetError(errno.ECONNRESET, "the supervising process ended"))
        return self._known.pop(ticket, gone if self.is_gone else None)

    def cancel(self, ticket: int) -> None:
        """Nobody waits for that worker any more."""
        self._known.pop(ticket, None)
        self._send(CANCEL, ticket)

    def take_in(self, seconds: float = 0.0) -> None:
        """What it says, waiting at most `seconds` for it."""
        while not self.is_gone and wait([self._control], seconds):
            try:
                record = self._control.recv(RECORD.size)
            except OSError:
                record = b""
            if len(record) < RECORD.size:
                self.is_gone = True
                return
            what, number, code, was_loading = RECORD.unpack(record)
            if what == ENDED:
                self._codes[number] = code
            elif what == STARTED:
                self._known[number] = code
            elif what == REFUSED:
                self._known[number] = LostStart(OSError(code, os.strerror(code)))
            elif what == LOST:
                self._known[number] = LostStart(None, code, bool(was_loading))
            seconds = 0.0

    def exit_code(self, pid: int, seconds: float = 0.0) -> int | None:
        """How a worker ended; None if it has not within `seconds`, or nobody saw how."""
        deadline = time.monotonic() + seconds
        self.take_in()
        while pid not in self._codes and not self.is_gone and (left := deadline - time.monotonic()) > 0.0:
            self.take_in(left)
        return self._codes.get(pid)

    def forget(self, pid: int) -> None:
        """A worker that ended: its number may be another process's from here on."""
        self._codes.pop(pid, None)
        self._send(FORGET, pid)

    def _send(self, what: int, number: int) -> None:
        with suppress(OSError):  # it is gone
            self._control.sendall(RECORD.pack(what, number, 0, 0))

    def close(self) -> None:
        """End it, with all the workers it has and all they left behind."""
        with suppress(OSError):
            self._control.shutdown(socket.SHUT_RDWR)  # a fork of the run may hold another copy of the socket open
        self._control.close()
        self.is_gone = True
        try:
            self._popen.wait(CLOSING_SECONDS)
        except subprocess.TimeoutExpired:
            self._popen.kill()
            self._popen.wait()


def socket_pair() -> tuple[socket.socket, socket.socket]:
    """Two connected sockets, whose numbers are not those of standard input, output and errors: where these are closed,
    what somebody prints would go into the socket."""
    ends = socket.socketpair()
    return _above_standard(ends[0]), _above_standard(ends[1])


def _above_standard(end: socket.socket) -> socket.socket:
    if end.fileno() > 2:
        return end
    import fcntl

    with end:
        return socket.socket(fileno=fcntl.fcntl(end.fileno(), fcntl.F_DUPFD_CLOEXEC, 3))
