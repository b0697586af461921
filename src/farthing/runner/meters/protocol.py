"""What a meter is: it measures one unit of `Budget`, process by process.

A meter raises `MeterUnavailable` when it is created, if this machine cannot measure its unit.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable


class Gauge(Protocol):
    """Measures what one process, with its descendants, has spent since the gauge began. It may be read repeatedly."""

    def spent(self) -> float:
        """The amount so far. If the process has ended, the amount at the last reading before that."""
        ...


@runtime_checkable
class Meter(Protocol):
    """Begins a gauge for each process that is to be measured."""

    @property
    def unit(self) -> str:
        """One of `Budget.UNITS`."""
        ...

    def begin(self, pid: int) -> Gauge:
        """A gauge for what the process, with its descendants, spends from now on."""
        ...


class Held(Protocol):
    """Machines that cost dollars for as long as a run holds them, whether an evaluation runs on them or not. The run
    and its heartbeat read it, from two threads."""

    @property
    def usd_per_second(self) -> float:
        """What one evaluation costs, on average over the machines that are held now."""
        ...

    def idle_usd(self) -> float:
        """Dollars for time in which no evaluation ran, since they were last taken."""
        ...

    def take_idle_usd(self) -> float:
        """The same; from here on they are charged."""
        ...
