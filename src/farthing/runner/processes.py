"""What the kernel says of processes, and how to end them.

The supervisor (supervisor.py) uses it, and so do workers and runs. It imports nothing of the package, and of `signal`
only the part written in C, so that the supervisor starts in ten milliseconds.
"""

from __future__ import annotations

import _signal as signal  # type: ignore[import-not-found]  # nobody has written down its types
import os

TYPE_CHECKING = False  # as in `typing`, which takes long to import
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PROC = "/proc"
STAT_BYTES = 4096  # more than a line of proc(5) can hold: a name of at most 64 bytes and about 50 numbers
DEATH_SIGNAL, SUBREAPER = 1, 36  # PR_SET_PDEATHSIG and PR_SET_CHILD_SUBREAPER of prctl(2)
ROUNDS = 100  # of stopping what a process starts while we list its descendants: two are enough unless it forks wildly


class suppress:  # as in contextlib, which takes long to import
    """Goes on after a block that raised one of these errors."""

    def __init__(self, *errors: type[BaseException]) -> None:
        self._errors = errors

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> bool:
        return kind is not None and issubclass(kind, self._errors)


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
        send_signal(leader, signal.SIGSTOP)
    found: list[int] = []
    for _ in range(ROUNDS):
        new = [pid for pid in descendants(leader) if pid not in found]
        for pid in new:
            send_signal(pid, signal.SIGSTOP)
        found += new
        if not new:
            break
    for pid in found:
        send_signal(pid, signal.SIGKILL)
    with suppress(OSError):
        os.killpg(leader, signal.SIGKILL)
    if leader != os.getpid():
        send_signal(leader, signal.SIGKILL)  # it was forked a moment ago, and leads no group yet


def send_signal(pid: int, number: int) -> None:
    with suppress(OSError):
        os.kill(pid, number)


def adopt_orphans() -> bool:
    """Let orphaned descendants become children of this process, if the system can: whoever ends this process finds its
    descendants by their parents, and ends those too."""
    return process_control(SUBREAPER, 1)


def process_control(option: int, value: int) -> bool:
    """Call prctl(2); False where the system cannot."""
    import ctypes

    with suppress(OSError, AttributeError):
        return bool(ctypes.CDLL(None).prctl(option, value, 0, 0, 0) == 0)
    return False


def exit_code(pid: int) -> int | None:
    """How a child ended, None while it runs. It keeps its number, where the system can say so without taking note."""
    try:
        if not hasattr(os, "waitid"):
            ended, status = os.waitpid(pid, os.WNOHANG)
            return os.waitstatus_to_exitcode(status) if ended else None
        found = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:  # somebody else took note; or a fork that is there is not our child yet, but will be
        return None if exists(pid) else 0
    if found is None:
        return None
    return found.si_status if found.si_code == os.CLD_EXITED else -found.si_status


def exists(pid: int) -> bool:
    """Whether a process has that number."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # it is another user's
        pass
    return True


def take_note(pid: int) -> None:
    """Of the end of a child: its number is free from here on."""
    with suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)
