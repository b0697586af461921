"""The meter "energy": joules of processors and GPUs together, as far as this machine measures them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from farthing.checks import refuse
from farthing.errors import MeterUnavailable
from farthing.runner.meters.nvidia import Nvidia
from farthing.runner.meters.protocol import Gauge, Meter
from farthing.runner.meters.rapl import Rapl


@dataclass(frozen=True)
class Sum:
    """The sum of meters of one unit."""

    meters: tuple[Meter, ...]

    def __post_init__(self) -> None:
        units = [meter.unit for meter in self.meters]
        if len(set(units)) != 1:
            refuse("meters", "meters of one unit", units)

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


def energy_meter() -> Meter:
    """Rapl, Nvidia, or their sum: whatever this machine has."""
    found: list[Meter] = []
    reasons = []
    for kind in (Rapl, Nvidia):
        try:
            found.append(kind())
        except MeterUnavailable as error:
            reasons.append(str(error))
    if not found:
        raise MeterUnavailable("nothing on this machine measures energy. " + ". ".join(reasons))
    return found[0] if len(found) == 1 else Sum(tuple(found))
