"""Which meter a run uses: the one it was given, or what its budget needs and the machine offers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import TypeAlias

from farthing.budget import Budget
from farthing.checks import finite, refuse
from farthing.errors import InvalidArgument, MeterUnavailable
from farthing.runner.meters.cpu import Cpu
from farthing.runner.meters.energy import energy_meter
from farthing.runner.meters.nvidia import Nvidia
from farthing.runner.meters.protocol import Gauge, Held, Meter
from farthing.runner.meters.rapl import Rapl
from farthing.runner.meters.timed import Timed

NAMED: dict[str, Callable[[], Meter]] = {"cpu": Cpu, "energy": energy_meter, "rapl": Rapl, "nvidia": Nvidia}

MeterLike: TypeAlias = "Meter | str | Callable[[float], float] | None"  # what `meter=...` accepts


@dataclass(frozen=True)
class Meters:
    """What measures the evaluations of a run in addition to its clock: one meter, or none."""

    meter: Meter | None = None
    missing: str = ""  # why no meter measures a limited unit that machines can measure; the objective must report it

    @property
    def held(self) -> Held | None:
        """The machines that cost dollars, if that is how the run is paid."""
        return None

    @property
    def units(self) -> tuple[str, ...]:
        return () if self.meter is None else (self.meter.unit,)

    def begin(self, pid: int) -> Gauges:
        """Gauges for one action of a process, which is about to begin."""
        return Gauges({} if self.meter is None else {self.meter.unit: self.meter.begin(pid)})


@dataclass(frozen=True)
class Gauges:
    """The gauges of one process, by unit. The run and its heartbeat read them, never at the same time."""

    gauges: Mapping[str, Gauge] = field(default_factory=dict)
    _reading: Lock = field(default_factory=Lock, init=False, repr=False, compare=False)

    def spent(self) -> dict[str, float]:
        """Amounts by unit, as they are charged to the ledger."""
        with self._reading:
            return {unit: _checked_amount(gauge.spent(), unit) for unit, gauge in self.gauges.items()}


def meters_for(budget: Budget, meter: MeterLike = None) -> Meters:
    """The meters of a run.

    A given meter must be available, and must measure a unit that the budget limits. If none is given, the run's clock
    measures time. Energy is measured if the budget limits it and the machine can; otherwise `missing` says why not, and
    the objective must report its cost.

    >>> meters_for(Budget(compute_seconds=60), "cpu").units
    ('compute_seconds',)
    >>> meters_for(Budget(seconds=60)).units
    ()
    """
    if meter is None:
        return _default_meters(budget)
    found = _as_meter(meter, budget)
    if found.unit not in Budget.UNITS:
        refuse("meter", f"a meter of one of {', '.join(Budget.UNITS)}", found.unit)
    if found.unit not in (*budget.limits, budget.unit):
        raise InvalidArgument(
            f"meter: expected a meter of what the budget ({budget}) limits, got one of {found.unit}: "
            f"set Budget({found.unit}=...)"
        )
    return Meters(found)


def _default_meters(budget: Budget) -> Meters:
    if "joules" not in budget.limits:
        return Meters()
    try:
        return Meters(energy_meter())
    except MeterUnavailable as error:
        return Meters(missing=str(error))


def _as_meter(given: Meter | str | Callable[[float], float], budget: Budget) -> Meter:
    if isinstance(given, str) and given in NAMED:
        return NAMED[given]()
    if isinstance(given, str | type) or not (isinstance(given, Meter) or callable(given)):
        accepted = f"one of {', '.join(NAMED)}, an object with `unit` and `begin(pid)`, or a function of seconds"
        refuse("meter", accepted, given)
    return given if isinstance(given, Meter) else Timed(given, budget.unit)


def _checked_amount(amount: float, unit: str) -> float:
    """Stop a user's own meter from charging the ledger something that is not an amount."""
    found = finite(amount)
    if found is None or found < 0.0:
        refuse("meter", f"a finite amount of {unit} of at least 0", amount)
    return found
