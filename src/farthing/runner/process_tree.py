"""A process with all its descendants: the CPU time and memory it uses, how to notice that it ended, how to kill it.

Usage is read from the kernel's files on Linux, without a dependency, and by `psutil` elsewhere, if it is installed. The
CPU time of a child that ended is added to its parent's when the parent waits for it; if nobody does, it is lost. Pages
that processes share, as after a fork, are counted in each of them; memory.py counts them once.
"""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from farthing.errors import MeterUnavailable
from farthing.runner import processes
from farthing.runner.processes import each_stat_line, living_descendants, tree_of

PROC = Path("/proc")

adopt_orphans = cache(processes.adopt_orphans)  # once is enough


@dataclass(frozen=True)
class Usage:
    """CPU seconds so far, those of ended children included, and memory now."""

    cpu_seconds: float
    resident_bytes: int
    started: float  # when the process started: a later process may get the same number


def tree_usage(pid: int, proc: Path = PROC) -> Usage | None:
    """What a process and its descendants use; None if there is no such process.

    >>> mine = tree_usage(os.getpid())
    >>> mine.cpu_seconds > 0.0, mine.resident_bytes > 1_000_000
    (True, True)
    """
    return tree_usages([pid], proc)[pid]


def tree_members(pid: int) -> list[int]:
    """A process, then its descendants."""
    return tree_of(pid, _children(_process_table(PROC)))


def tree_usages(pids: Iterable[int], proc: Path = PROC) -> dict[int, Usage | None]:
    """The usage of several process trees, from one walk over all processes."""
    table = _process_table(proc)
    children = _children(table)
    return {pid: _sum([table.usage(member) for member in tree_of(pid, children)]) for pid in pids}


def require_process_usage(proc: Path = PROC) -> None:
    """Raise MeterUnavailable where nothing says what processes use."""
    if not (proc / "stat").exists():
        _import_psutil()


def open_pidfd(pid: int) -> int | None:
    """A file descriptor that becomes readable when a process has ended; None where the system has no such thing."""
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):  # this system or this container does not offer it
        return None


def signal_name(number: int) -> str:
    """The name of a signal.

    >>> signal_name(9), signal_name(40)
    ('SIGKILL', 'signal 40')
    """
    try:
        return signal.Signals(number).name
    except ValueError:  # real-time signals have no name
        return f"signal {number}"


def readable(files: Iterable[int], seconds: float) -> list[int]:
    """The file descriptors that have become readable within `seconds`. It reads no clock of Python's: in a worker the
    objective may have replaced those."""
    poll = select.poll()
    for file in files:
        poll.register(file, select.POLLIN)
    return [file for file, _ in poll.poll(seconds * 1000.0)]


def is_running(pid: int, pidfd: int | None) -> bool:
    """Whether a process has not ended, by its descriptor if there is one."""
    if pidfd is not None:
        return not readable([pidfd], 0.0)
    return processes.exists(pid)


def kill_tree(leader: int) -> None:
    """Kill the leader of a process group, its group, and those of its descendants that left the group."""
    processes.kill_tree(leader, _descendants)


def _descendants(pid: int) -> list[int]:
    """Without the process itself; empty where processes cannot be listed."""
    if (PROC / "stat").exists():
        return living_descendants(pid)
    try:
        return tree_members(pid)[1:]
    except MeterUnavailable:
        return []


class _ProcessTable(Protocol):
    """All processes at one moment."""

    parents: dict[int, int]  # parent of each process

    def usage(self, pid: int) -> Usage | None:
        """What one process uses, without its descendants; None if it cannot be read."""
        ...


def _process_table(proc: Path) -> _ProcessTable:
    return _ProcTable(proc) if (proc / "stat").exists() else _PsutilTable(_import_psutil())


def _children(table: _ProcessTable) -> dict[int, list[int]]:
    children: dict[int, list[int]] = {}
    for pid, parent in table.parents.items():
        children.setdefault(parent, []).append(pid)
    return children


def _sum(members: list[Usage | None]) -> Usage | None:
    """The usage of a process, which comes first, plus that of its descendants, as far as they can be read."""
    if members[0] is None:
        return None
    found = [member for member in members if member is not None]
    return Usage(sum(m.cpu_seconds for m in found), sum(m.resident_bytes for m in found), found[0].started)


# -- Linux -------------------------------------------------------------------------------------------------------------


class _ProcTable:
    """From /proc/PID/stat, see proc(5), from field 3 on."""

    def __init__(self, proc: Path) -> None:
        self._lines = dict(each_stat_line(str(proc)))
        self._is_real = proc == PROC
        self.parents = {pid: int(line.split(None, 2)[1]) for pid, line in self._lines.items()}

    def usage(self, pid: int) -> Usage | None:
        if pid not in self._lines:
            return None
        fields = self._lines[pid].split()
        utime, stime, cutime, cstime, started, pages = (int(fields[i - 3]) for i in (14, 15, 16, 17, 22, 24))
        ticks = float(os.sysconf("SC_CLK_TCK"))
        own = (utime + stime) / ticks
        if self._is_real:
            own = _precise_cpu_seconds(pid, own)
        return Usage(own + (cutime + cstime) / ticks, pages * os.sysconf("SC_PAGE_SIZE"), started / ticks)


def _precise_cpu_seconds(pid: int, coarse: float) -> float:
    """CPU seconds by the process's own clock. The ticks of proc(5) are hundredths of a second, and a training step is
    often shorter.

    The number of that clock is what clock_getcpuclockid(3) returns, which Python does not offer. A process that has
    ended but was not waited for has no clock.
    """
    try:
        return time.clock_gettime((~pid << 3) | 2)
    except OSError:
        return coarse


# -- elsewhere ---------------------------------------------------------------------------------------------------------


def _import_psutil() -> Any:
    try:
        return import_module("psutil")
    except ImportError:
        raise MeterUnavailable(
            "the CPU time and memory of processes can be read only on Linux or with psutil: pip install psutil"
        ) from None


class _PsutilTable:
    def __init__(self, psutil: Any) -> None:
        self._psutil = psutil
        self._processes = {process.pid: process for process in psutil.process_iter()}
        self.parents = {pid: self._parent(process) for pid, process in self._processes.items()}

    def _parent(self, process: Any) -> int:
        try:
            return int(process.ppid())
        except self._psutil.Error:  # it has just ended
            return 0

    def usage(self, pid: int) -> Usage | None:
        if pid not in self._processes:
            return None
        process = self._processes[pid]
        try:
            with process.oneshot():
                times = process.cpu_times()
                ended = getattr(times, "children_user", 0.0) + getattr(times, "children_system", 0.0)
                return Usage(times.user + times.system + ended, process.memory_info().rss, process.create_time())
        except self._psutil.Error:  # it has just ended, or belongs to another user
            return None
