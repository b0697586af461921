"""The program of the supervising process of a pool. It starts the workers, and runs no code of the user's.

A run is killed while a worker holds the interpreter's lock, or is stopped: then nothing in the worker can notice. The
supervisor does, by the end of its socket or of the run's process, and kills every worker with all it started. It adopts
what a worker that died leaves behind, and ends that too. A worker that ended keeps its number until the run has taken
note of it.

Workers are forked by a nursery (nursery.py), one process that has loaded the objective. They fork twice, so that the
supervisor adopts them and is their parent. A nursery that must not fork becomes a worker itself. From then on, and
where forks are not wanted, each worker is a new process of its own.

It runs in a Python without site packages, so that it starts in ten milliseconds. So it imports nothing of the package
but processes.py, and of `signal` and `socket` only the parts written in C: the rest would take as long again.
"""

from __future__ import annotations

import _signal as signal  # type: ignore[import-not-found]  # nobody has written down its types
import _socket as socket
import errno
import os
import select
import struct
import time

from farthing.runner.processes import (
    STAT_BYTES,
    Row,
    adopt_orphans,
    each_stat_line,
    exit_code,
    kill_tree,
    suppress,
    take_note,
)  # fmt: skip

RECORD = struct.Struct("=4i")  # what a run, its supervisor and a nursery say to each other: what, and three numbers
FILE = struct.Struct("i")  # a file descriptor that comes along
# The run: start a worker for this ticket (its channel comes along); forget the worker of that number, which ended;
# nobody waits for that ticket any more.
START, FORGET, CANCEL = 1, 2, 3
# The supervisor: a ticket's worker has this number; it could not be started, with the errno; the nursery died before
# there was one, with its exit code and whether it was loading the objective; a worker ended, with its exit code.
STARTED, REFUSED, LOST, ENDED = 4, 5, 6, 7
# The nursery: it loads the objective; a ticket's worker has this number; it cannot fork, with the errno; it must not
# fork, and is the worker itself.
AWAKE, FORKED, FAILED, STAYS = 8, 9, 10, 11

FORKS, SPAWNS = "forks", "spawns"  # how workers are started

FOR_FORKS = {
    "OPENBLAS_NUM_THREADS": "1"
}  # it starts threads when it is loaded, and others than the main one end a fork

RUN_POLL = 0.25  # seconds between checks that the run is there, where the system does not notify us
DYING_SECONDS = 5.0  # that killed processes may take to end before the supervisor leaves them to the system
DYING_POLL = 0.005  # seconds between checks that they have


class Nursery:
    """A process that forks workers, and the socket to it."""

    def __init__(self, pid: int, control: socket.socket) -> None:
        self.pid, self.control = pid, control
        self.is_awake = False  # Python has started, and loads the objective
        self.ticket: int | None = None  # for which it was asked to fork

    def ask(self, ticket: int, channel: int) -> None:
        self.ticket = ticket
        file = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, FILE.pack(channel))]
        with suppress(OSError):  # it has just died, which is seen elsewhere
            self.control.sendmsg([RECORD.pack(START, ticket, 0, 0)], file)

    def heard(self) -> tuple[int, int, int] | None:
        """What it says next, None if nothing. Raises EOFError if it will say no more."""
        try:
            record = self.control.recv(RECORD.size, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return None
        except OSError:
            record = b""
        if len(record) < RECORD.size:
            raise EOFError
        return RECORD.unpack(record)[:3]


class Supervisor:
    """Starts workers, says how they ended, and ends them all when the run is gone."""

    def __init__(self, control: socket.socket, run: int, forks: bool, command: list[str], reset: list[int]) -> None:
        self._control, self._run, self._command, self._reset = control, run, command, reset
        self._forks = forks  # whether a nursery forks workers
        self._nursery: Nursery | None = None
        self._waiting: dict[int, int] = {}  # by ticket: the channels of workers that the nursery is to fork
        self._running: dict[int, int] = {}  # workers, each with its ticket
        self._ended: set[int] = set()  # of which the run has not taken note
        self._adopts: bool | None = None
        self._wakeup, wakes = os.pipe()  # becomes readable when a child has ended
        for end in (self._wakeup, wakes):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(wakes, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        self._poll = select.poll()
        self._poll.register(control, select.POLLIN)
        self._poll.register(self._wakeup, select.POLLIN)
        self._patience: float | None = RUN_POLL * 1000
        with suppress(AttributeError, OSError):  # this system or this container does not offer it
            self._poll.register(os.pidfd_open(run), select.POLLIN)
            self._patience = None

    def serve(self) -> None:
        """Until the run is gone, or needs no more workers."""
        with suppress(EOFError, OSError):
            while os.getppid() == self._run:
                ready = [file for file, _ in self._poll.poll(self._patience)]
                self._hear_nursery()
                if self._wakeup in ready:
                    self._see_ends()
                if self._control.fileno() in ready:
                    self._answer()
                self._ask_nursery()
        self._end_all()

    def _answer(self) -> None:
        record, ancillary, _, _ = self._control.recvmsg(RECORD.size, socket.CMSG_LEN(FILE.size))
        if len(record) < RECORD.size:
            raise EOFError
        what, number, _, _ = RECORD.unpack(record)
        if what == START:
            (_, _, file), *_ = ancillary
            (channel,) = FILE.unpack(file[: FILE.size])
            os.set_inheritable(channel, False)  # a nursery that held it too would hide that its worker closed it
            self._waiting[number] = channel
        elif what == CANCEL:
            self._cancel(number)
        elif number in self._ended:
            self._ended.remove(number)
            take_note(number)

    def _say(self, what: int, number: int, more: int = 0, rest: int = 0) -> None:
        self._control.sendall(RECORD.pack(what, number, more, rest))

    # -- starting workers ----------------------------------------------------------------------------------------------

    def _ask_nursery(self) -> None:
        """For the next worker: it has one request at a time. Where there is no nursery, start all that are wanted."""
        while self._waiting and (self._nursery is None or self._nursery.ticket is None):
            ticket, channel = next(iter(self._waiting.items()))
            try:
                if self._nursery is None and self._forks:
                    self._start_nursery()
                if self._nursery is not None:
                    self._nursery.ask(ticket, channel)
                    return
                self._started(ticket, self._spawn("worker", channel))
            except OSError as error:
                self._drop(ticket)
                self._say(REFUSED, ticket, error.errno or 0)
            except NotImplementedError:  # this system cannot begin a session that way
                self._drop(ticket)
                self._say(REFUSED, ticket, errno.ENOSYS)

    def _spawn(self, kind: str, file: int) -> int:
        os.set_inheritable(file, True)
        try:
            return os.posix_spawn(
                self._command[0], [*self._command, kind, str(file)],
                {**os.environ, **FOR_FORKS} if kind == "nursery" else os.environ,
                setsid=True, setsigmask=[], setsigdef=self._reset,
            )  # fmt: skip
        finally:
            os.set_inheritable(file, False)
            if self._adopts is None:  # not earlier: it takes milliseconds, while the new process starts
                self._adopts = adopt_orphans()

    def _start_nursery(self) -> None:
        ours, theirs = socket.socketpair()
        try:
            pid = self._spawn("nursery", theirs.fileno())
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        self._nursery = Nursery(pid, ours)
        self._poll.register(ours, select.POLLIN)
        if not self._adopts:  # then the workers would be nobody's
            self._forks = False
            kill_tree(pid)
            self._leave_nursery()

    def _leave_nursery(self) -> None:
        assert self._nursery is not None
        with suppress(KeyError):
            self._poll.unregister(self._nursery.control)
        self._nursery.control.close()
        self._nursery = None

    def _hear_nursery(self) -> None:
        """Take in what the nursery says. It names a worker before the worker becomes a child of this process."""
        with suppress(EOFError):
            while self._nursery is not None and (heard := self._nursery.heard()) is not None:
                what, ticket, number = heard
                if what == AWAKE:
                    self._nursery.is_awake = True
                    continue
                self._nursery.ticket = None
                if what == FAILED:
                    self._drop(ticket)
                    self._say(REFUSED, ticket, number)
                    continue
                self._started(ticket, number)
                if what == STAYS:
                    self._forks = False
                    self._leave_nursery()
            return
        assert self._nursery is not None  # it closed its socket: it ends, or is of no use
        with suppress(KeyError):
            self._poll.unregister(self._nursery.control)
        if exit_code(self._nursery.pid) is None:
            kill_tree(self._nursery.pid)

    def _started(self, ticket: int, pid: int) -> None:
        self._drop(ticket)
        self._running[pid] = ticket
        self._say(STARTED, ticket, pid)

    def _drop(self, ticket: int) -> None:
        """A ticket for which there is nothing more to do."""
        if ticket in self._waiting:
            os.close(self._waiting.pop(ticket))

    def _cancel(self, ticket: int) -> None:
        """End the worker of a ticket; if the nursery has not forked it yet, the nursery, which may hang."""
        self._hear_nursery()
        self._drop(ticket)
        if self._nursery is not None and self._nursery.ticket == ticket:
            kill_tree(self._nursery.pid)
        for pid in [pid for pid, its in self._running.items() if its == ticket]:
            del self._running[pid]  # its end will bring us to the strays
            kill_tree(pid)

    # -- ends ----------------------------------------------------------------------------------------------------------

    def _see_ends(self) -> None:
        """Report workers that ended, and end what they left behind."""
        with suppress(BlockingIOError):
            os.read(self._wakeup, STAT_BYTES)
        nursery = self._nursery
        if nursery is not None and (code := exit_code(nursery.pid)) is not None:
            self._hear_nursery()  # its last words
            if nursery.ticket in self._waiting:
                self._drop(nursery.ticket)
                self._say(LOST, nursery.ticket, code, nursery.is_awake)
            self._leave_nursery()
            take_note(nursery.pid)
        for pid in list(self._running):
            code = exit_code(pid)
            if code is not None:
                del self._running[pid]
                self._ended.add(pid)
                self._say(ENDED, pid, code)
        self._end_strays()

    def _is_known(self, pid: int) -> bool:
        return pid in self._running or pid in self._ended or (self._nursery is not None and self._nursery.pid == pid)

    def _end_strays(self) -> None:
        """Children that are no workers are what dead workers left: workers that live adopt their own. One that forks
        and ends before it is stopped leaves us its child, and its end brings us here again."""
        for pid, line in each_stat_line():
            row = Row(line)
            if row.parent != os.getpid() or self._is_known(pid):
                continue
            self._hear_nursery()
            if self._is_known(pid):
                continue
            if row.is_dead:
                take_note(pid)
            else:
                kill_tree(pid)

    def _end_all(self) -> None:
        for pid in [*self._running, *([] if self._nursery is None else [self._nursery.pid])]:
            kill_tree(pid)
        self._running, self._ended, self._nursery = {}, set(), None
        deadline = time.monotonic() + DYING_SECONDS
        with suppress(ChildProcessError):  # there are no more
            while time.monotonic() < deadline:
                if os.waitpid(-1, os.WNOHANG)[0] == 0:
                    self._end_strays()
                    time.sleep(DYING_POLL)


def main(arguments: list[str]) -> None:
    """Supervise, given the number of the socket to the run, the process of the run, whether workers are forked, and the
    command that starts one."""
    control, run, forks, *command = arguments
    heard = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)  # the run decides what these mean, not we
    reset = [number for number in heard if signal.signal(number, signal.SIG_IGN) != signal.SIG_IGN]
    ignored_by_python = (signal.SIGPIPE, signal.SIGXFSZ)
    end = socket.socket(fileno=int(control))
    os.set_inheritable(end.fileno(), False)
    Supervisor(end, int(run), forks == FORKS, command, [*reset, *ignored_by_python]).serve()
    os._exit(0)
