"""Distributions of Optuna as parameters of Farthing, and values from one to the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution

from farthing.errors import InvalidSpace
from farthing.space import Integer
from farthing.space.foreign import parameter
from farthing.space.parameters import Parameter

MOST_LISTED = 1_000  # steps of a float that become a list: beyond that its values are numbered
MOST_LEVELS = 64  # whole numbers that others can depend on: numbers of layers, not of units


@dataclass(frozen=True)
class Translated:
    """A parameter for a distribution. A float with many steps is an Integer that counts them."""

    distribution: BaseDistribution
    parameter: Parameter

    @property
    def _counts_steps(self) -> bool:
        return isinstance(self.distribution, FloatDistribution) and isinstance(self.parameter, Integer)

    def read(self, value: Any) -> Any:
        """A value of a trial as one of the parameter's, or as it is where it is none."""
        distribution = self.distribution
        if not isinstance(distribution, FloatDistribution) or distribution.step is None:
            return value
        step = round((value - distribution.low) / distribution.step)
        return step if self._counts_steps else stepped(distribution, step)

    def write(self, value: Any) -> Any:
        """A value of the parameter as a trial has it."""
        if isinstance(self.distribution, FloatDistribution) and self._counts_steps:
            return stepped(self.distribution, value)
        return value


def stepped(distribution: FloatDistribution, step: int) -> float:
    """The value after so many steps.

    >>> stepped(FloatDistribution(0.0, 1.0, step=0.25), 3)
    0.75
    """
    assert distribution.step is not None
    return float(min(step * distribution.step + distribution.low, distribution.high))


def translated(name: str, distribution: BaseDistribution) -> Translated | None:
    """The parameter for a distribution; None where Farthing has none, such as for options that repeat each other."""
    if isinstance(distribution, FloatDistribution) and distribution.step is not None:
        steps = round((distribution.high - distribution.low) / distribution.step)
        if steps >= MOST_LISTED:
            return Translated(distribution, Integer(0, steps))
    try:
        return Translated(distribution, parameter(name, distribution))
    except InvalidSpace:
        return None


def levels(distribution: BaseDistribution) -> Sequence[Any] | None:
    """The values of a distribution that others can depend on: options, or a few whole numbers; None for the others.

    >>> levels(IntDistribution(1, 9, step=4)), levels(FloatDistribution(0, 1))
    ([1, 5, 9], None)
    """
    if isinstance(distribution, CategoricalDistribution):
        return distribution.choices
    if isinstance(distribution, IntDistribution):
        values = range(distribution.low, distribution.high + 1, distribution.step)
        return list(values) if len(values) <= MOST_LEVELS else None
    return None
