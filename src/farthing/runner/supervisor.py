"""The program of the supervising process of a pool. It starts the workers, and runs no code of the user's.

A run is killed while a worker holds the interpreter's lock, or is stopped: then nothing in the worker can notice. The
supervisor does, by the end of its socket or of the run's process, and kills every worker with all it started. It adopts
what a worker that died leaves behind, and ends that too. A worker that ended keeps its number until the run has taken
note of it.

It is run as a file, by a Python without site packages, so that it starts in ten milliseconds. So it imports nothing of
the package, and of `signal` and `socket` only the parts written in C: the rest would take as long again. What it knows
of processes is here, and process_tree.py uses it too.
"""

from __future__ import annotations

import _signal as signal  # type: ignore[import-not-found]  # nobody has written down its types
import _socket as socket
import errno
import os
import select
import struct
import sys
import time

TYPE_CHECKING = False  # as in `typing`, which takes long to import
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PROC = "/proc"
STAT_BYTES = 4096  # more than a line of proc(5) can hold: a name of at most 64 bytes and about 50 numbers
SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER of prctl(2)
ROUNDS = 100  # of stopping what a process starts while we list its descendants: two are enough unless it forks wildly

RECORD = struct.Struct("=3i")  # what a run and its supervisor say to each other: what, and two numbers
FILE = struct.Struct("i")  # a file descriptor that comes along
START, FORGET = 1, 2  # the run: start a worker (its channel comes along); forget the worker of that number
STARTED, REFUSED, ENDED = 3, 4, 5  # the supervisor: its number; the errno; its number and exit code

RUN_POLL = 0.25  # seconds between checks that the run is there, where the system does not notify us
DYING_SECONDS = 5.0  # that killed processes may take to end before the supervisor leaves them to the system
DYING_POLL = 0.005  # seconds between checks that they have


class suppress:  # as in contextlib, which takes long to import
    """Goes on after a block that raised one of these errors."""

    def __init__(self, *errors: type[BaseException]) -> None:
        self._errors = errors

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> bool:
        return kind is not None and issubclass(kind, self._errors)


# -- processes ---------------------------------------------------------------------------------------------------------


class Row:
    """One process of the system. (Not a dataclass: to import those takes longer than to start Python.)"""

    def __init__(self, line: bytes) -> None:
        fields = line.split(None, 19)
        self.parent, self.session = int(fields[1]), int(fields[3])
        # Ended, and its parent has not taken note. A process whose first thread ended looks so while others go on.
        self.is_dead = fields[0] in (b"Z", b"X") and int(fields[17]) <= 1


def stat_line(path: str) -> bytes:
    """A line of /proc/PID/stat from its third field on: the name before it may hold anything. Empty if the process has
    just ended or is hidden from us."""
    try:
        file = os.open(path, os.O_RDONLY)
    except OSError:
        return b""
    try:
        line = os.read(file, STAT_BYTES)
    except ProcessLookupError:
        return b""
    finally:
        os.close(file)
    return line[line.rindex(b")") + 2 :]


def each_stat_line(proc: str = PROC) -> Iterator[tuple[int, bytes]]:
    """The line of every process, read one by one; none where there is no /proc. The newest mostly come first: one that
    forks and ends all the time is there only for a moment."""
    try:
        names = os.listdir(proc)
    except OSError:
        return
    for name in reversed(names):
        if name.isdecimal() and (line := stat_line(f"{proc}/{name}/stat")):
            yield int(name), line


def process_rows() -> dict[int, Row]:
    """All processes, by their number."""
    return {pid: Row(line) for pid, line in each_stat_line()}


def tree_of(pid: int, children: dict[int, list[int]]) -> list[int]:
    """A process, then its descendants."""
    found, known = [pid], {pid}
    for parent in found:  # grows while it is walked; a reused number may close a ring
        new = [child for child in children.get(parent, []) if child not in known]
        found += new
        known.update(new)
    return found


def living_descendants(pid: int) -> list[int]:
    """Without the process itself."""
    rows = process_rows()
    children: dict[int, list[int]] = {}
    for child, row in rows.items():
        children.setdefault(row.parent, []).append(child)
    return [member for member in tree_of(pid, children)[1:] if not rows[member].is_dead]


def kill_tree(leader: int, descendants: Callable[[int], list[int]] = living_descendants) -> None:
    """Kill the leader of a process group, its group, and those of its descendants that left the group.

    They are stopped first: what is stopped starts no more processes while we list them.
    """
    if leader != os.getpid():
        _send(leader, signal.SIGSTOP)
    found: list[int] = []
    for _ in range(ROUNDS):
        new = [pid for pid in descendants(leader) if pid not in found]
        for pid in new:
            _send(pid, signal.SIGSTOP)
        found += new
        if not new:
            break
    for pid in found:
        _send(pid, signal.SIGKILL)
    with suppress(OSError):
        os.killpg(leader, signal.SIGKILL)


def _send(pid: int, number: int) -> None:
    with suppress(OSError):
        os.kill(pid, number)


def adopt_orphans() -> None:
    """Let orphaned descendants become children of this process, if the system can: whoever ends this process finds its
    descendants by their parents, and ends those too."""
    import ctypes

    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(SUBREAPER, 1, 0, 0, 0)


def exit_code(pid: int) -> int | None:
    """How a child ended, None while it runs. It keeps its number, where the system can say so without taking note."""
    try:
        if not hasattr(os, "waitid"):
            ended, status = os.waitpid(pid, os.WNOHANG)
            return os.waitstatus_to_exitcode(status) if ended else None
        found = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return 0
    if found is None:
        return None
    return found.si_status if found.si_code == os.CLD_EXITED else -found.si_status


def _take_note(pid: int) -> None:
    """Of the end of a child: its number is free from here on."""
    with suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)


# -- the supervisor ----------------------------------------------------------------------------------------------------


class Supervisor:
    """Starts workers, says how they ended, and ends them all when the run is gone."""

    def __init__(self, control: socket.socket, run: int, command: list[str], reset: list[int]) -> None:
        self._control, self._run, self._command, self._reset = control, run, command, reset
        self._running: set[int] = set()
        self._ended: set[int] = set()  # of which the run has not taken note
        self._adopts = False
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
                if self._wakeup in ready:
                    self._see_ends()
                if self._control.fileno() in ready:
                    self._answer()
        self._end_all()

    def _answer(self) -> None:
        record, ancillary, _, _ = self._control.recvmsg(RECORD.size, socket.CMSG_LEN(FILE.size))
        if len(record) < RECORD.size:
            raise EOFError
        what, pid, _ = RECORD.unpack(record)
        if what == START:
            (_, _, file), *_ = ancillary
            self._start(*FILE.unpack(file[: FILE.size]))
        elif pid in self._ended:
            self._ended.remove(pid)
            _take_note(pid)

    def _start(self, channel: int) -> None:
        try:
            os.set_inheritable(channel, True)
            pid = os.posix_spawn(
                self._command[0], [*self._command, str(channel)], os.environ,
                setsid=True, setsigmask=[], setsigdef=self._reset,
            )  # fmt: skip
        except OSError as error:
            self._say(REFUSED, error.errno or 0)
        except NotImplementedError:  # this system cannot begin a session that way
            self._say(REFUSED, errno.ENOSYS)
        else:
            self._running.add(pid)
            self._say(STARTED, pid)
        finally:
            os.close(channel)
        if not self._adopts:  # not earlier: it takes milliseconds, and the first worker need not wait for that
            self._adopts = True
            adopt_orphans()

    def _see_ends(self) -> None:
        """Report workers that ended, and end what they left behind."""
        with suppress(BlockingIOError):
            os.read(self._wakeup, STAT_BYTES)
        for pid in list(self._running):
            code = exit_code(pid)
            if code is not None:
                self._running.remove(pid)
                self._ended.add(pid)
                self._say(ENDED, pid, code)
        self._end_strays()

    def _end_strays(self) -> None:
        """Children that are no workers are what dead workers left: workers that live adopt their own. One that forks
        and ends before it is stopped leaves us its child, and its end brings us here again."""
        for pid, line in each_stat_line():
            row = Row(line)
            if row.parent != os.getpid() or pid in self._running or pid in self._ended:
                continue
            if row.is_dead:
                _take_note(pid)
            else:
                kill_tree(pid)
                _send(pid, signal.SIGKILL)  # it may lead no group

    def _end_all(self) -> None:
        for pid in self._running:
            kill_tree(pid)
        self._running, self._ended = set(), set()
        deadline = time.monotonic() + DYING_SECONDS
        with suppress(ChildProcessError):  # there are no more
            while time.monotonic() < deadline:
                if os.waitpid(-1, os.WNOHANG)[0] == 0:
                    self._end_strays()
                    time.sleep(DYING_POLL)

    def _say(self, what: int, number: int, more: int = 0) -> None:
        self._control.sendall(RECORD.pack(what, number, more))


def main(control: int, run: int, command: list[str]) -> None:
    """Supervise, given the number of the socket to the run, the process of the run, and how to start a worker."""
    heard = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)  # the run decides what these mean, not we
    reset = [number for number in heard if signal.signal(number, signal.SIG_IGN) != signal.SIG_IGN]
    ignored_by_python = (signal.SIGPIPE, signal.SIGXFSZ)
    os.set_inheritable(control, False)
    Supervisor(socket.socket(fileno=control), run, command, [*reset, *ignored_by_python]).serve()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
    os._exit(0)
