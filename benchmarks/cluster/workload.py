"""What simulated evaluations do: their values, how long they take, and which of them fail or lose their worker.

Everything follows from the seed, the number of the trial and how often it was begun before: so a simulation gives the
same results every time, whatever the policy asks for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from random import Random
from typing import Any, NamedTuple

import farthing as ft

PARAMETERS = 6
SPACE = ft.Space(
    {**{f"x{i}": ft.Real(0, 1) for i in range(PARAMETERS)}, "width": ft.Integer(8, 512, log=True)}
)  # fmt: skip
SECONDS = 600.0  # that a typical evaluation takes
SPREAD = 0.5  # of the log of its seconds
STRAGGLERS, TAIL = 0.05, 1.5  # the share of evaluations that take far longer, and the exponent of how much longer
LOST = 0.02  # of evaluations lose their worker
FAILING = 0.02  # of evaluations raise an error


class Ahead(NamedTuple):
    """What the next action of an evaluation will do, unless its node leaves before: how many seconds it takes, its
    value (None: it fails), and whether its worker is lost at the end of these seconds instead."""

    seconds: float
    value: float | None
    is_lost: bool = False


@dataclass(frozen=True)
class Workload:
    """Evaluations that return one value; with `steps`, learners that report one after every step."""

    seed: int = 0
    steps: int = 0
    saves_every: int = 5  # steps, at which a learner writes a checkpoint

    @property
    def mean_seconds(self) -> float:
        """Of an evaluation, roughly: that of points drawn uniformly."""
        straggling = 1.0 + STRAGGLERS * (TAIL / (TAIL - 1.0) - 1.0)
        return SECONDS * straggling * math.exp(SPREAD**2 / 2.0) * math.sinh(1.0)

    def ahead(self, trial: int, times: int, step: int, config: dict[str, Any]) -> Ahead:
        """The action after `step` steps of a trial whose actions have begun `times` times before."""
        random = Random((self.seed << 64) | (trial << 32) | times)
        share = 1.0 / max(self.steps, 1)
        seconds = share * self._seconds(trial, config, random)
        if random.random() < 1.0 - (1.0 - LOST) ** share:
            return Ahead(random.random() * seconds, None, is_lost=True)
        if random.random() < 1.0 - (1.0 - FAILING) ** share:
            return Ahead(random.random() * seconds, None)
        return Ahead(seconds, self._value(config, step + 1))

    def _seconds(self, trial: int, config: dict[str, Any], random: Random) -> float:
        """Of a whole evaluation. Wide ones take longer; how slow a trial is, all its steps are."""
        own = Random((self.seed << 64) | (trial << 32) | 0xFFFFFFFF)
        straggles = own.paretovariate(TAIL) if own.random() < STRAGGLERS else 1.0
        width = math.log(config["width"] / 64.0) / math.log(8.0)  # -1 to 1
        noise = random.gauss(0.0, 0.1) if self.steps else 0.0
        return SECONDS * math.exp(width + SPREAD * own.gauss(0.0, 1.0) + noise) * straggles

    def _value(self, config: dict[str, Any], step: int) -> float:
        """The least is near a corner where evaluations take long; learners come nearer with every step."""
        end = sum((config[f"x{i}"] - 0.15 * (i + 1)) ** 2 for i in range(PARAMETERS))
        end += 0.2 * (math.log(config["width"] / 256.0) / math.log(8.0)) ** 2
        return end if not self.steps else end + math.exp(-4.0 * step / self.steps * (0.5 + config["x0"]))
