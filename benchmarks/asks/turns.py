"""Processor time per ask of Farthing's policies and of Optuna's samplers, in turn, with the same known results.

Of a space and a number of known results each participant has a study of its own. A round asks each of them once and
tells it the value of its own proposal: what disturbs the machine disturbs them all. Another one begins each round. The
first ask of each, which fits from nothing, is not counted. Few asks search for hyperparameters, and those take longest:
so there are medians and means, of enough asks for both, and the share of asks that searched.

Batches: of two studies with the same results, one asks for one configuration and the other for a batch. Then each is
given what the other has found.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np

import farthing as ft
from benchmarks.asks.spaces import SPACES, Number, Options
from benchmarks.common.children import Child

POLICIES = ("auto", "ei", "cei", "carbo")
SAMPLERS = ("TPE", "GPSampler")
ENVIRONMENT = "auto"  # it has Optuna, and PyTorch for GPSampler
KNOWN = (50, 100, 200, 500)
BATCH, BATCH_KNOWN, BATCH_POLICIES = 16, 100, ("auto", "ei", "cei")
ENOUGH_SECONDS, FEWEST = 8.0, 3  # of one participant in one cell, after which it asks no more; and asks at least

Known: TypeAlias = list[tuple[dict[str, Any], float, float]]  # configuration, value, cost
Cells: TypeAlias = dict[str, dict[str, dict[str, float]]]  # by space, number of known results and participant


def space_of(name: str) -> ft.Space:
    return ft.Space({key: _parameter(parameter) for key, parameter in SPACES[name].items()})


def _parameter(parameter: Number | Options) -> Any:
    when = {name: set(options) for name, options in parameter.when.items()} or None
    if isinstance(parameter, Options):
        return ft.Choice(list(parameter.options), when=when)
    if parameter.whole:
        return ft.Integer(int(parameter.low), int(parameter.high), log=parameter.log, when=when)
    return ft.Real(parameter.low, parameter.high, log=parameter.log, when=when)


def outcome(space: ft.Space, config: dict[str, Any]) -> tuple[float, float]:
    """A made-up value and cost: a bowl with a wave and an interaction; cost grows along the first parameters."""
    u = space.encode(config)
    value = float(((u - 0.4) ** 2).sum() + 0.05 * np.sin(20.0 * u[0]) + 0.1 * u[1] * u[2])
    return value, float(np.exp(3.0 * u[0] + u[1] * u[2]))


def known_results(space: ft.Space, count: int) -> Known:
    """Of random configurations, the same for everyone."""
    configs = [space.decode(row) for row in np.random.default_rng(0).random((count, len(space)))]
    return [(config, *outcome(space, config)) for config in configs]


def studied(space: ft.Space, policy: str, known: Known) -> ft.Study:
    """A study with known results and a budget of about twice their cost, of which nothing is used: they count as its
    initial design."""
    study = ft.Study(space, ft.Budget(cost=16.0 * len(known)), policy=policy, seed=0)
    add(study, known)
    return study


def add(study: ft.Study, known: Known) -> None:
    for config, value, cost in known:
        study.add(config, value=value, cost=cost)


def told(space: ft.Space, study: ft.Study, proposals: Sequence[ft.Proposal]) -> Known:
    """Tell the outcomes of proposals, and return them."""
    found = [(proposal.config, *outcome(space, proposal.config)) for proposal in proposals]
    for proposal, (_, value, cost) in zip(proposals, found, strict=True):
        study.tell(proposal, value=value, cost=cost)
    return found


def timed(action: Callable[[], Any]) -> tuple[float, Any]:
    """Processor seconds and the result."""
    began = time.process_time()
    result = action()
    return time.process_time() - began, result


class Participant(Protocol):
    def ask(self) -> float:
        """The processor seconds of one ask, which is told afterwards."""
        ...


@dataclass(frozen=True)
class Times:
    """Of one participant, in the order of the asks."""

    seconds: list[float]

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    @property
    def mean(self) -> float:
        return statistics.fmean(self.seconds)


class OfFarthing:
    def __init__(self, space: ft.Space, policy: str, known: Known) -> None:
        self._space, self._study = space, studied(space, policy, known)
        self._searched = list[bool]()

    def ask(self) -> float:
        seconds, proposal = timed(self._study.ask)
        self._searched.append(proposal.fits["value"]["at"] == len(self._study.trials) - 1)
        told(self._space, self._study, [proposal])
        return seconds

    @property
    def share_searched(self) -> float:
        """Of the asks but the first, those that searched for hyperparameters of values."""
        return statistics.fmean(self._searched[1:])


class OfOptuna:
    def __init__(self, child: Child, name: str, space: ft.Space, sampler: str, known: Known) -> None:
        self._child, self._space, self._sampler = child, space, sampler
        self._value: float | None = None
        trials = [(config, value) for config, value, _ in known]
        self.versions = child.ask({"begin": sampler, "space": name, "trials": trials})["ready"]

    def ask(self) -> float:
        answer = self._child.ask({"ask": self._sampler, "value": self._value})
        self._value = outcome(self._space, answer["config"])[0]
        return float(answer["seconds"])


def in_turn(participants: Mapping[str, Participant], rounds: int) -> dict[str, Times]:
    """The times of each; who is slow asks less often."""
    for participant in participants.values():
        participant.ask()
    seconds: dict[str, list[float]] = {name: [] for name in participants}
    names = list(participants)
    for i in range(rounds):
        first = i % len(names)
        for name in names[first:] + names[:first]:
            if len(seconds[name]) < FEWEST or sum(seconds[name]) < ENOUGH_SECONDS:
                seconds[name].append(participants[name].ask())
    return {name: Times(taken) for name, taken in seconds.items()}


@dataclass(frozen=True)
class Turns:
    """Median and mean seconds of every cell, the shares of asks that searched for hyperparameters, and the versions of
    what Optuna's process uses."""

    medians: Cells
    means: Cells
    searched: Cells
    versions: dict[str, str]


def turns(rounds: int, counts: Sequence[int]) -> Turns:
    medians: Cells = {}
    means: Cells = {}
    searched: Cells = {}
    versions: dict[str, str] = {}
    with Child(ENVIRONMENT, "asks.peers.optuna_peer") as child:
        for name in SPACES:
            space, medians[name], means[name], searched[name] = space_of(name), {}, {}, {}
            for count in counts:
                known = known_results(space, count)
                peers = {sampler: OfOptuna(child, name, space, sampler, known) for sampler in SAMPLERS}
                ours = {policy: OfFarthing(space, policy, known) for policy in POLICIES}
                versions = peers[SAMPLERS[0]].versions
                found = in_turn({**ours, **peers}, rounds)
                medians[name][str(count)] = {who: times.median for who, times in found.items()}
                means[name][str(count)] = {who: times.mean for who, times in found.items()}
                searched[name][str(count)] = {policy: one.share_searched for policy, one in ours.items()}
                said = (f"{who} {1e3 * times.median:.1f} / {1e3 * times.mean:.1f}" for who, times in found.items())
                print(f"{name}, {count}:", *said, "ms", flush=True)
    return Turns(medians, means, searched, versions)


def batch_turns(rounds: int) -> dict[str, dict[str, tuple[float, float]]]:
    """Median seconds of one ask and of a batch, by space and policy."""
    found: dict[str, dict[str, tuple[float, float]]] = {}
    for name in SPACES:
        space = space_of(name)
        known = known_results(space, BATCH_KNOWN)
        found[name] = {policy: _one_and_batch(space, policy, known, rounds) for policy in BATCH_POLICIES}
        print(f"{name}, batches:", *(f"{who} {b / a:.1f}" for who, (a, b) in found[name].items()), "times", flush=True)
    return found


def _one_and_batch(space: ft.Space, policy: str, known: Known, rounds: int) -> tuple[float, float]:
    studies = {count: studied(space, policy, known) for count in (1, BATCH)}
    seconds: dict[int, list[float]] = {1: [], BATCH: []}
    for _ in range(1 + rounds):
        results = {}
        for count, study in studies.items():
            taken, proposals = timed(lambda study=study, count=count: study.ask(count))  # type: ignore[misc]
            seconds[count].append(taken)
            results[count] = told(space, study, proposals)
        add(studies[1], results[BATCH])
        add(studies[BATCH], results[1])
    one, batch = (statistics.median(seconds[count][1:]) for count in (1, BATCH))  # the first ones fit from nothing
    return one, batch
