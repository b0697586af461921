"""The meter "rapl": joules of the processor packages, from the kernel's powercap files.

Everything that ran shares the energy E that a package used over some time: a process tree that had c of the machine's C
busy CPU seconds in that time is charged E c / C. So the power that an idle machine draws is paid by those who use it,
and the shares of all processes add up to E.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from farthing.errors import MeterUnavailable
from farthing.runner.meters.cpu import CpuGauge
from farthing.runner.process_tree import PROC, require_process_usage

POWERCAP = Path("/sys/class/powercap")

# AMD's processors use this name too. intel-rapl:0:1 is a part of intel-rapl:0, and intel-rapl-mmio:0 a second view of
# it: both would be counted twice.
PACKAGE = re.compile(r"intel-rapl:\d+")


@dataclass(frozen=True)
class Rapl:
    """Joules of the processor packages, split by CPU time.

    Only packages are counted. They include their parts (cores, graphics), and the platform's domain (psys) includes
    them. Memory is a domain of its own and is not counted. The counters wrap around every ten minutes or more,
    depending on power: a gauge that is read less often than that misses whole turns.
    """

    powercap: Path = POWERCAP
    proc: Path = PROC
    unit: str = field(default="joules", init=False)

    def __post_init__(self) -> None:
        if not self.packages:
            raise MeterUnavailable(
                f"RAPL: found no processor package under {self.powercap}. Linux shows the packages of Intel and AMD "
                "processors, but rarely inside virtual machines and containers. Report 'cost' from the objective "
                "instead"
            )
        require_process_usage(self.proc)
        busy_seconds(self.proc)
        for package in self.packages:
            package.microjoules()

    @cached_property
    def packages(self) -> tuple[Package, ...]:
        found = sorted(self.powercap.glob("intel-rapl:*")) if self.powercap.is_dir() else []
        return tuple(Package(folder) for folder in found if PACKAGE.fullmatch(folder.name) and _is_package(folder))

    def begin(self, pid: int) -> RaplGauge:
        return RaplGauge(self, pid)


@dataclass(frozen=True)
class Package:
    """One processor package: a folder of the powercap tree."""

    folder: Path

    def microjoules(self) -> int:
        """The counter, from 0 to below `wraps_at`."""
        return _read_integer(self.folder / "energy_uj")

    @cached_property
    def wraps_at(self) -> int:
        """The microjoules after which the counter starts again at 0."""
        return _read_integer(self.folder / "max_energy_range_uj")

    def microjoules_between(self, before: int, now: int) -> int:
        """The difference of two readings, if the counter wrapped around at most once."""
        return now - before if now >= before else now - before + self.wraps_at


class RaplGauge:
    """The machine's energy and busy time, and the CPU time of one process tree, since the gauge began.

    The energy is split over all of that time at once. Split over short stretches, the coarse ticks of the machine's
    clock would decide the shares.
    """

    def __init__(self, meter: Rapl, pid: int) -> None:
        self._meter, self._cpu = meter, CpuGauge(pid, meter.proc)
        self._counters = [package.microjoules() for package in meter.packages]
        self._busy_before = busy_seconds(meter.proc)
        self._microjoules = 0

    def spent(self) -> float:
        cpu = self._cpu.spent()
        busy = max(busy_seconds(self._meter.proc) - self._busy_before, cpu)
        now = [package.microjoules() for package in self._meter.packages]
        readings = zip(self._meter.packages, self._counters, now, strict=True)
        self._microjoules += sum(package.microjoules_between(before, after) for package, before, after in readings)
        self._counters = now
        return 1e-6 * self._microjoules * (cpu / busy if busy > 0.0 else 0.0)


def busy_seconds(proc: Path = PROC) -> float:
    """CPU seconds that all processors of the machine have worked, from the first line of proc/stat.

    This is user, nice, system, irq and softirq time. Idle time and time waiting for disks are not work; stolen time is
    the work of another virtual machine.
    """
    try:
        fields = (proc / "stat").read_text().split("\n", 1)[0].split()
        user, nice, system, _, _, irq, softirq = (int(field) for field in fields[1:8])
    except (OSError, ValueError) as error:
        raise MeterUnavailable(f"RAPL: cannot read the machine's CPU time from {proc / 'stat'}: {error}") from None
    return (user + nice + system + irq + softirq) / float(os.sysconf("SC_CLK_TCK"))


def _is_package(folder: Path) -> bool:
    try:
        return (folder / "name").read_text().startswith("package")
    except OSError:
        return False


def _read_integer(path: Path) -> int:
    try:
        return int(path.read_text())
    except PermissionError:
        raise MeterUnavailable(
            f"RAPL: only root may read {path}. Linux restricts it since 2020, because energy can reveal what other "
            f"users compute. If that is no concern here: sudo chmod a+r {path.parent.parent}/intel-rapl:*/energy_uj"
            " (until the next boot). Otherwise report 'cost' from the objective"
        ) from None
    except (OSError, ValueError) as error:
        raise MeterUnavailable(f"RAPL: cannot read {path}: {error}") from None
