"""What an evaluation spends besides time: CPU seconds, energy, or whatever you can measure.

A meter says what it measures (`unit`, one of Budget's) and begins a gauge for what a process does from then on. A gauge
can be read any number of times, and keeps what it has seen when its process is gone. Meters say that they are
unavailable when they are made.

    Cpu      compute_seconds   CPU seconds of the process and its descendants
    Rapl     joules            of the processor packages, split by CPU time
    Nvidia   joules            of the GPUs, split evenly among the processes on each
    Sum                        of meters of one unit
    OfTime                     a function of wall seconds

Energy of a package over some time, E, is shared by everything that ran: a process tree that had c of the C CPU seconds
of the machine in that time is charged E c / C. So what the machine draws while idle is paid by those who use it, and
the shares of all processes add up to E.
"""

from __future__ import annotations

import math
import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from numbers import Real
from pathlib import Path
from typing import Any, Protocol, TypeAlias, runtime_checkable

from farthing.budget import Budget
from farthing.errors import InvalidArgument, MeterUnavailable
from farthing.runner import process_tree as processes

POWERCAP = Path("/sys/class/powercap")
PACKAGE = re.compile(r"intel-rapl:\d+")  # AMD's too; intel-rapl:0:1 is part of intel-rapl:0, intel-rapl-mmio its double


class Gauge(Protocol):
    """What one process has spent since the gauge began."""

    def spent(self) -> float:
        """Until now; of a process that is gone, until it was last read."""
        ...


@runtime_checkable
class Meter(Protocol):
    """Measures one unit of Budget."""

    @property
    def unit(self) -> str: ...

    def begin(self, pid: int) -> Gauge:
        """A gauge for what that process, with its descendants, spends from now on."""
        ...


# -- processor time ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cpu:
    """CPU seconds of a process and all its descendants, in `compute_seconds`: two busy threads spend two a second."""

    proc: Path = processes.PROC
    unit: str = field(default="compute_seconds", init=False)

    def __post_init__(self) -> None:
        processes.require(self.proc)

    def begin(self, pid: int) -> CpuGauge:
        return CpuGauge(pid, self.proc)


class CpuGauge:
    """Adds up how much the CPU time of a process tree grows; a descendant that vanishes takes nothing back."""

    def __init__(self, pid: int, proc: Path) -> None:
        self._pid, self._proc, self._total = pid, proc, 0.0
        self._last = processes.usage(pid, proc)

    def spent(self) -> float:
        if self._last is not None:
            now = processes.usage(self._pid, self._proc)
            if now is None or now.started != self._last.started:  # gone, or its number was given to another
                self._last = None
            else:
                self._total += max(now.cpu_seconds - self._last.cpu_seconds, 0.0)
                self._last = now
        return self._total


# -- energy of processors ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Rapl:
    """Joules of the processor packages by the kernel's powercap files, split by CPU time.

    Packages only: their parts (cores, graphics) are in them already, and so are they in the platform's domain (psys).
    Memory is a domain of its own and not counted. The counters wrap around every ten minutes or more, depending on
    power: a gauge that is read less often than that misses whole turns.
    """

    powercap: Path = POWERCAP
    proc: Path = processes.PROC
    unit: str = field(default="joules", init=False)

    def __post_init__(self) -> None:
        if not self.packages:
            raise MeterUnavailable(
                f"RAPL: no processor package under {self.powercap}; Linux shows those of Intel and AMD, but "
                "seldom inside virtual machines and containers. Report 'cost' from the objective"
            )
        processes.require(self.proc)
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
    """One domain of the powercap tree."""

    folder: Path

    def microjoules(self) -> int:
        """The counter, from 0 to below `turn`."""
        return _integer(self.folder / "energy_uj")

    @cached_property
    def turn(self) -> int:
        """What the counter goes up to before it begins at 0 again."""
        return _integer(self.folder / "max_energy_range_uj")

    def between(self, before: int, now: int) -> int:
        """Microjoules between two readings, with at most one turn."""
        return now - before if now >= before else now - before + self.turn


class RaplGauge:
    """Energy and busy time of the machine, and CPU time of a process tree, since it began.

    The split is made over all of that time: over short stretches the ticks of the machine's clock would decide.
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
        rose = zip(self._meter.packages, self._counters, now, strict=True)
        self._microjoules += sum(package.between(before, after) for package, before, after in rose)
        self._counters = now
        return 1e-6 * self._microjoules * (cpu / busy if busy > 0.0 else 0.0)


def busy_seconds(proc: Path = processes.PROC) -> float:
    """CPU seconds that all processors of the machine spent on anything, from the first line of proc/stat.

    That is user, nice, system, irq and softirq time; idle and waiting time are none, and stolen time is another's.
    """
    try:
        fields = (proc / "stat").read_text().split("\n", 1)[0].split()
        user, nice, system, _, _, irq, softirq = (int(field) for field in fields[1:8])
    except (OSError, ValueError) as error:
        raise MeterUnavailable(f"RAPL: the machine's CPU time cannot be read from {proc / 'stat'}: {error}") from None
    return (user + nice + system + irq + softirq) / float(os.sysconf("SC_CLK_TCK"))


def _is_package(folder: Path) -> bool:
    try:
        return (folder / "name").read_text().startswith("package")
    except OSError:
        return False


def _integer(path: Path) -> int:
    try:
        return int(path.read_text())
    except PermissionError:
        raise MeterUnavailable(
            f"RAPL: only root may read {path}, as everywhere since 2020, when it was found that energy betrays what "
            f"other users compute. Where that is no concern: sudo chmod a+r {path.parent.parent}/intel-rapl:*/energy_uj"
            " (until the next boot). Else report 'cost' from the objective"
        ) from None
    except (OSError, ValueError) as error:
        raise MeterUnavailable(f"RAPL: {path} cannot be read: {error}") from None


# -- energy of GPUs ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Nvidia:
    """Joules of NVIDIA GPUs by `pynvml`, from Volta on; of all, or of those in CUDA_VISIBLE_DEVICES.

    The whole energy of a device counts, idle power included, divided evenly among the processes that compute on it:
    which of them used how much the driver does not say. `devices` names them otherwise, by number or UUID.
    """

    devices: Sequence[int | str] | None = None
    unit: str = field(default="joules", init=False)

    def __post_init__(self) -> None:
        if not self.handles:
            raise MeterUnavailable("NVIDIA: no GPU is visible; see CUDA_VISIBLE_DEVICES")
        for handle in self.handles:
            self.millijoules(handle)

    @cached_property
    def handles(self) -> tuple[Any, ...]:
        nvml, wanted = self._nvml, _visible() if self.devices is None else self.devices
        try:
            if wanted is None:
                wanted = range(nvml.nvmlDeviceGetCount())
            return tuple(
                nvml.nvmlDeviceGetHandleByUUID(device)
                if isinstance(device, str)
                else nvml.nvmlDeviceGetHandleByIndex(device)
                for device in wanted
            )
        except nvml.NVMLError as error:
            raise MeterUnavailable(f"NVIDIA: {error}; the devices asked for: {wanted}") from None

    @cached_property
    def _nvml(self) -> Any:
        try:
            nvml = import_module("pynvml")
        except ImportError:
            raise MeterUnavailable("NVIDIA: pynvml is not installed: pip install nvidia-ml-py") from None
        try:
            nvml.nvmlInit()
        except nvml.NVMLError as error:
            raise MeterUnavailable(f"NVIDIA: {error}") from None
        return nvml

    def millijoules(self, handle: Any) -> int:
        """Of one device since its driver was loaded."""
        try:
            return int(self._nvml.nvmlDeviceGetTotalEnergyConsumption(handle))
        except self._nvml.NVMLError as error:
            raise MeterUnavailable(f"NVIDIA: the energy of a GPU cannot be read: {error}") from None

    def sharers(self, handle: Any) -> int:
        """How many processes compute on a device, at least 1."""
        try:
            return max(len(self._nvml.nvmlDeviceGetComputeRunningProcesses(handle)), 1)
        except self._nvml.NVMLError:  # not told everywhere
            return 1

    def begin(self, pid: int) -> NvidiaGauge:
        return NvidiaGauge(self)


class NvidiaGauge:
    """Adds up how much the energy of each device grows, divided by the processes on it before or after."""

    def __init__(self, meter: Nvidia) -> None:
        self._meter, self._joules = meter, 0.0
        self._last = [(meter.millijoules(handle), meter.sharers(handle)) for handle in meter.handles]

    def spent(self) -> float:
        now = [(self._meter.millijoules(handle), self._meter.sharers(handle)) for handle in self._meter.handles]
        for (before, sharers_before), (after, sharers) in zip(self._last, now, strict=True):
            self._joules += 1e-3 * max(after - before, 0) / max(sharers_before, sharers)
        self._last = now
        return self._joules


def _visible() -> list[int | str] | None:
    """What CUDA_VISIBLE_DEVICES names, as CUDA reads it: up to the first that is none. None: everything."""
    text = os.environ.get("CUDA_VISIBLE_DEVICES")
    if text is None:
        return None
    found: list[int | str] = []
    for name in (part.strip() for part in text.split(",")):
        if name.isdecimal():
            found.append(int(name))
        elif name.startswith(("GPU-", "MIG-")):
            found.append(name)
        else:
            break
    return found


# -- made of others ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Sum:
    """Meters of one unit, added up: the energy of processors and GPUs, say."""

    meters: tuple[Meter, ...]

    def __post_init__(self) -> None:
        if len({meter.unit for meter in self.meters}) != 1:
            raise InvalidArgument(f"Sum: expected meters of one unit, got {[meter.unit for meter in self.meters]}")

    @property
    def unit(self) -> str:
        return self.meters[0].unit

    def begin(self, pid: int) -> SumGauge:
        return SumGauge([meter.begin(pid) for meter in self.meters])


@dataclass(frozen=True)
class SumGauge:
    gauges: Sequence[Gauge]

    def spent(self) -> float:
        return math.fsum(gauge.spent() for gauge in self.gauges)


@dataclass(frozen=True)
class OfTime:
    """A function of wall seconds: what an evaluation costs that takes so long."""

    amount: Callable[[float], float]
    unit: str

    def begin(self, pid: int) -> TimeGauge:
        return TimeGauge(self.amount, time.perf_counter())


@dataclass(frozen=True)
class TimeGauge:
    amount: Callable[[float], float]
    begun: float

    def spent(self) -> float:
        return float(self.amount(time.perf_counter() - self.begun))


def energy() -> Meter:
    """Of processors and GPUs, as far as this machine measures them."""
    found: list[Meter] = []
    missing = []
    for kind in (Rapl, Nvidia):
        try:
            found.append(kind())
        except MeterUnavailable as error:
            missing.append(str(error))
    if not found:
        raise MeterUnavailable("nothing here measures energy. " + ". ".join(missing))
    return found[0] if len(found) == 1 else Sum(tuple(found))


# -- which of them a run uses ------------------------------------------------------------------------------------------

NAMED: dict[str, Callable[[], Meter]] = {"cpu": Cpu, "energy": energy, "rapl": Rapl, "nvidia": Nvidia}

Given: TypeAlias = "Meter | str | Callable[[float], float] | None"


@dataclass(frozen=True)
class Meters:
    """What measures the evaluations of a run, beside its clock."""

    meter: Meter | None = None
    missing: str = ""  # why nothing measures a unit of the budget that a machine might: the objective has to tell it

    @property
    def units(self) -> tuple[str, ...]:
        return () if self.meter is None else (self.meter.unit,)

    def begin(self, pid: int) -> Gauges:
        """Just before a process is given a step to do."""
        return Gauges({} if self.meter is None else {self.meter.unit: self.meter.begin(pid)})


@dataclass(frozen=True)
class Gauges:
    """Gauges by unit."""

    gauges: Mapping[str, Gauge] = field(default_factory=dict)

    def spent(self) -> dict[str, float]:
        """Amounts by unit, as a ledger is charged them."""
        return {unit: _checked(gauge.spent(), unit) for unit, gauge in self.gauges.items()}


def meters_for(budget: Budget, given: Given = None) -> Meters:
    """The meters of a run: the one given, which must be available and measure what the budget limits.

    With none given, time is measured by the run's clock, and energy, if the budget limits it and the machine offers it;
    else `missing` says why, and the objective must report what it costs.

    >>> meters_for(Budget(compute_seconds=60), "cpu").units
    ('compute_seconds',)
    >>> meters_for(Budget(seconds=60)).units
    ()
    """
    if given is None:
        return _of_the_machine() if "joules" in budget.limits else Meters()
    meter = _meter(given, budget)
    if meter.unit not in Budget.UNITS:
        raise InvalidArgument(f"meter: measures {meter.unit!r}; accepted are {', '.join(Budget.UNITS)}")
    if meter.unit not in (*budget.limits, budget.unit):
        raise InvalidArgument(
            f"meter: measures {meter.unit}, which the budget ({budget}) does not limit: set Budget({meter.unit}=...)"
        )
    return Meters(meter)


def _of_the_machine() -> Meters:
    try:
        return Meters(energy())
    except MeterUnavailable as error:
        return Meters(missing=str(error))


def _meter(given: Meter | str | Callable[[float], float], budget: Budget) -> Meter:
    if isinstance(given, str):
        if given not in NAMED:
            raise InvalidArgument(f"meter: {given!r} is unknown; accepted: {', '.join(NAMED)}, a meter, or a function")
        return NAMED[given]()
    if isinstance(given, Meter) and not isinstance(given, type):
        return given
    if callable(given) and not isinstance(given, type):
        return OfTime(given, budget.unit)
    raise InvalidArgument(
        f"meter: expected one of {', '.join(NAMED)}, an object with `unit` and `begin(pid)`, or a function of seconds; "
        f"got {given!r}"
    )


def _checked(amount: float, unit: str) -> float:
    """What a meter of the user's own may get wrong would otherwise surface as a ledger that makes no sense."""
    if not (isinstance(amount, Real) and math.isfinite(amount) and amount >= 0.0):
        raise InvalidArgument(f"meter: expected a finite amount of {unit} of at least 0, got {amount!r}")
    return float(amount)
