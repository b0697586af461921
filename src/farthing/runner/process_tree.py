"""What a process uses, with all its descendants: CPU seconds and resident bytes.

On Linux from the kernel's files, without a dependency; elsewhere from `psutil`, if it is installed. The CPU time of
children that ended is their parent's once it waited for them; of one that nobody waited for it is lost. Pages that
processes share, as after a fork, are resident in each of them.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from farthing.errors import MeterUnavailable

PROC = Path("/proc")


@dataclass(frozen=True)
class Usage:
    """Of a process and its descendants: CPU seconds until now, those of ended children included, and memory now."""

    cpu_seconds: float
    resident_bytes: int
    started: float  # when the process itself was: its number may be another's later


def usage(pid: int, proc: Path = PROC) -> Usage | None:
    """What a process and its descendants use; None if there is no such process.

    >>> mine = usage(os.getpid())
    >>> mine.cpu_seconds > 0.0, mine.resident_bytes > 1_000_000
    (True, True)
    """
    return usages([pid], proc)[pid]


def usages(pids: Iterable[int], proc: Path = PROC) -> dict[int, Usage | None]:
    """The same of several, for one walk over all processes."""
    everyone = _everyone(proc)
    children = _children(everyone)
    return {pid: _together([everyone.read(one) for one in _tree(pid, children)]) for pid in pids}


def resident_bytes(pid: int) -> int:
    """Memory of a process and its descendants, 0 if there is no such process."""
    found = usage(pid)
    return 0 if found is None else found.resident_bytes


def require(proc: Path = PROC) -> None:
    """Raise MeterUnavailable where processes cannot be read."""
    if not (proc / "stat").exists():
        _psutil()


def pidfd(pid: int) -> int | None:
    """A file that becomes readable when a process has ended; None where the system has no such thing."""
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):  # not on this system, not in this container
        return None


def signal_name(number: int) -> str:
    """A signal in words.

    >>> signal_name(9), signal_name(40)
    ('SIGKILL', 'signal 40')
    """
    try:
        return signal.Signals(number).name
    except ValueError:  # real-time signals have no name
        return f"signal {number}"


def end_all(leader: int) -> None:
    """Kill the process that leads a group, its group, and those of its descendants that left the group."""
    with suppress(OSError):
        if leader != os.getpid():
            os.kill(leader, signal.SIGSTOP)  # it starts no more while we look
    for pid in _descendants(leader):
        with suppress(OSError):
            os.kill(pid, signal.SIGKILL)
    with suppress(OSError):
        os.killpg(leader, signal.SIGKILL)


def _descendants(pid: int) -> list[int]:
    """Without the process itself; none where they cannot be seen."""
    try:
        return _tree(pid, _children(_everyone(PROC)))[1:]
    except MeterUnavailable:
        return []


class _Everyone(Protocol):
    """All processes at one moment: whose child each is, and what one of them uses without its descendants."""

    parents: dict[int, int]

    def read(self, pid: int) -> Usage | None: ...


def _everyone(proc: Path) -> _Everyone:
    return _Proc(proc) if (proc / "stat").exists() else _Psutil(_psutil())


def _children(everyone: _Everyone) -> dict[int, list[int]]:
    children: dict[int, list[int]] = {}
    for pid, parent in everyone.parents.items():
        children.setdefault(parent, []).append(pid)
    return children


def _tree(pid: int, children: dict[int, list[int]]) -> list[int]:
    """A process, then its descendants."""
    found = [pid]
    for parent in found:  # grows as it goes
        found += [
            child for child in children.get(parent, []) if child not in found
        ]  # numbers used again may make rings
    return found


def _together(processes: list[Usage | None]) -> Usage | None:
    """The sum of a process, which comes first, and of those of its descendants that can be read."""
    if processes[0] is None:
        return None
    found = [process for process in processes if process is not None]
    return Usage(sum(p.cpu_seconds for p in found), sum(p.resident_bytes for p in found), found[0].started)


# -- Linux -------------------------------------------------------------------------------------------------------------


class _Proc:
    """By the lines of proc(5). After the name, which may hold anything, their fields are numbered from 3."""

    def __init__(self, proc: Path) -> None:
        lines = {int(name): _line(f"{proc}/{name}/stat") for name in os.listdir(proc) if name.isdecimal()}
        self._lines = {pid: line[line.rindex(b")") + 2 :] for pid, line in lines.items() if line}
        self._is_real = proc == PROC
        self.parents = {pid: int(line.split(None, 2)[1]) for pid, line in self._lines.items()}

    def read(self, pid: int) -> Usage | None:
        if pid not in self._lines:
            return None
        fields = self._lines[pid].split()
        utime, stime, cutime, cstime, started, pages = (int(fields[i - 3]) for i in (14, 15, 16, 17, 22, 24))
        ticks = float(os.sysconf("SC_CLK_TCK"))
        own = (utime + stime) / ticks
        if self._is_real:
            own = _precise(pid, own)
        return Usage(own + (cutime + cstime) / ticks, pages * os.sysconf("SC_PAGE_SIZE"), started / ticks)


def _line(path: str) -> bytes:
    """A file's content, nothing if its process has ended meanwhile or is hidden from us; there may be thousands."""
    try:
        file = os.open(path, os.O_RDONLY)
    except OSError:
        return b""
    try:
        return os.read(file, 4096)
    except ProcessLookupError:
        return b""
    finally:
        os.close(file)


def _precise(pid: int, coarse: float) -> float:
    """CPU seconds by the process's own clock: ticks are hundredths of a second, and steps of training often shorter.

    The clock's number is that of clock_getcpuclockid(3), which Python does not offer. A process that has ended and not
    been waited for has none.
    """
    try:
        return time.clock_gettime((~pid << 3) | 2)
    except OSError:
        return coarse


# -- elsewhere ---------------------------------------------------------------------------------------------------------


def _psutil() -> Any:
    try:
        return import_module("psutil")
    except ImportError:
        raise MeterUnavailable(
            "what processes use can be read on Linux, or where psutil is installed: pip install psutil"
        ) from None


class _Psutil:
    def __init__(self, psutil: Any) -> None:
        self._psutil = psutil
        self._processes = {process.pid: process for process in psutil.process_iter()}
        self.parents = {pid: self._parent(process) for pid, process in self._processes.items()}

    def _parent(self, process: Any) -> int:
        try:
            return int(process.ppid())
        except self._psutil.Error:  # ended meanwhile: nobody's child
            return 0

    def read(self, pid: int) -> Usage | None:
        if pid not in self._processes:
            return None
        process = self._processes[pid]
        try:
            with process.oneshot():
                times = process.cpu_times()
                ended = getattr(times, "children_user", 0.0) + getattr(times, "children_system", 0.0)
                return Usage(times.user + times.system + ended, process.memory_info().rss, process.create_time())
        except self._psutil.Error:  # ended meanwhile, or belongs to another
            return None
