"""What nodes cost: dollars per hour by their labels and resources, and what the actors on them have cost so far.

An actor costs dollars from the moment it holds its resources until it is ended. Those of the time in which it did
something for a trial are the trial's; the others are due to nobody (`Held`).
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from threading import Lock

from farthing import checks
from farthing.adapters.ray.messages import Facts
from farthing.errors import InvalidArgument
from farthing.runner.meters import Gauges, Meters

ANY = "*"
Rates = float | Mapping[str, float] | None
ACCEPTED = 'a rate of at least 0, or rates by label: {"market=spot": 1.2, "H100": 3.5, "*": 2.0}'


def checked_rates(given: Rates) -> Rates:
    """A rate for all nodes, or rates by label in the order in which they are tried."""
    if given is None or checks.is_number(given):
        return checks.optional(checks.number, "Ray: usd_per_hour", given, least=0.0)
    if not isinstance(given, Mapping) or not given or not all(isinstance(name, str) and name for name in given):
        checks.refuse("Ray: usd_per_hour", ACCEPTED, given)
    return {
        name: checks.number(f"Ray: usd_per_hour[{name!r}]", rate, least=0.0) for name, rate in given.items()
    }  # fmt: skip


def rate_of(facts: Facts, rates: float | Mapping[str, float]) -> float:
    """Dollars per hour of a worker on that node: of the first label that it has.

    >>> facts = Facts("ab12", "host", {"market": "spot"}, {"CPU": 8.0, "H100": 1.0}, "0.1.0", True)
    >>> rate_of(facts, {"A100": 2.0, "H100": 3.5, "*": 1.0})
    3.5
    >>> rate_of(facts, {"market=spot": 1.2, "H100": 3.5})
    1.2
    """
    if not isinstance(rates, Mapping):
        return rates
    labels = {f"{name}={value}" for name, value in facts.labels.items()}
    names = {*labels, *facts.labels, *(name for name, amount in facts.resources.items() if amount > 0.0), ANY}
    for name, rate in rates.items():
        if name in names:
            return rate
    there = sorted({*labels, *(name for name in facts.resources if not name.startswith("node:"))})
    raise InvalidArgument(
        f"Ray: usd_per_hour: expected a rate for each kind of node, got none for {facts.name}, which has "
        f"{', '.join(there)}; the rates are for {', '.join(rates)}. '{ANY}' is the rate of all others"
    )


@dataclass
class Bill:
    """Of one actor."""

    per_second: float  # dollars
    since: float  # when what it does now began
    is_busy: bool = False
    action: float = 0.0  # dollars of the action that ended last


class HeldActors:
    """The actors of a run, by their numbers, and what they cost. Two threads may read it."""

    def __init__(self) -> None:
        self._bills: dict[int, Bill] = {}
        self._last: dict[int, float] = {}  # dollars of the last action of those that are gone
        self._idle, self._last_rate = 0.0, 0.0
        self._lock = Lock()

    def hold(self, number: int, usd_per_hour: float) -> None:
        """An actor has its resources from here on."""
        with self._lock:
            self._bills[number] = Bill(usd_per_hour / 3600.0, time.perf_counter())

    def work(self, number: int) -> None:
        """It does something for a trial from here on."""
        with self._lock:
            if number in self._bills:
                self._turn(self._bills[number], True)

    def rest(self, number: int, seconds: float | None = None) -> None:
        """It did, for that many seconds by its own clock; the rest was the way there and back."""
        with self._lock:
            if number in self._bills and self._bills[number].is_busy:
                self._turn(self._bills[number], False, seconds)

    def give_back(self, number: int) -> None:
        """It holds nothing any more."""
        with self._lock:
            if number in self._bills:
                self._turn(self._bills[number], False)
                bill = self._bills.pop(number)
                self._last_rate, self._last[number] = bill.per_second, bill.action

    def _turn(self, bill: Bill, is_busy: bool, seconds: float | None = None) -> None:
        now = time.perf_counter()
        passed = now - bill.since
        if bill.is_busy:
            worked = passed if seconds is None else min(max(seconds, 0.0), passed)
            bill.action = worked * bill.per_second
            self._idle += (passed - worked) * bill.per_second
        else:
            self._idle += passed * bill.per_second
        bill.since, bill.is_busy = now, is_busy

    def of_action(self, number: int) -> float:
        """Dollars of what an actor does now for a trial, or did last."""
        with self._lock:
            bill = self._bills.get(number)
            if bill is None:
                return self._last.get(number, 0.0)
            return bill.per_second * (time.perf_counter() - bill.since) if bill.is_busy else bill.action

    @property
    def usd_per_second(self) -> float:
        with self._lock:
            rates = [bill.per_second for bill in self._bills.values()]
            return sum(rates) / len(rates) if rates else self._last_rate

    def idle_usd(self) -> float:
        with self._lock:
            now = time.perf_counter()
            waiting = sum((now - bill.since) * bill.per_second for bill in self._bills.values() if not bill.is_busy)
            return self._idle + waiting

    def take_idle_usd(self) -> float:
        with self._lock:
            for bill in self._bills.values():
                if not bill.is_busy:
                    self._turn(bill, False)
            idle, self._idle = self._idle, 0.0
            return idle


@dataclass(frozen=True)
class DollarGauge:
    """What one action of an actor costs."""

    held: HeldActors
    number: int

    def spent(self) -> float:
        return self.held.of_action(self.number)


class ShownGauge:
    """What a meter on the actor's node has shown last."""

    def __init__(self) -> None:
        self.amount = 0.0

    def spent(self) -> float:
        return self.amount


@dataclass(frozen=True)
class ClusterMeters(Meters):
    """Dollars, if nodes have rates; and what is measured on the nodes, or by a function of seconds here."""

    actors: HeldActors | None = None
    remote: str = ""  # the unit of what is measured on the nodes
    shown: dict[int, ShownGauge] = field(default_factory=dict)  # by actor

    @property
    def held(self) -> HeldActors | None:
        return self.actors

    @property
    def units(self) -> tuple[str, ...]:
        dollars = "usd" if self.actors is not None else ""
        return (*filter(None, (dollars, self.remote)), *super().units)

    def begin(self, pid: int) -> Gauges:
        """Gauges for one action of the actor of that number."""
        gauges = dict(super().begin(pid).gauges)
        if self.remote:
            gauges[self.remote] = self.shown[pid] = ShownGauge()
        if self.actors is not None:
            self.actors.work(pid)
            gauges["usd"] = DollarGauge(self.actors, pid)
        return Gauges(gauges)

    def hear(self, number: int, amounts: Mapping[str, float]) -> None:
        """What meters on the node of an actor show."""
        if number in self.shown:
            self.shown[number].amount = amounts.get(self.remote, 0.0)
