"""The user's sign and ours: the only place where values change sign.

Inside, values are minimised. What a user gives and sees, and what a study file holds, is in the user's own sign.
Turning a value twice gives it back, so one function leads both ways.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from typing import overload

from farthing.trial import Curve, Trial


@dataclass(frozen=True)
class Direction:
    """Whether a study maximises, and what that does to values.

    >>> Direction(maximize=True).turned(0.9), Direction(maximize=False).turned(0.9)
    (-0.9, 0.9)
    """

    maximize: bool = False

    @overload
    def turned(self, value: float) -> float: ...
    @overload
    def turned(self, value: None) -> None: ...
    @overload
    def turned(self, value: float | None) -> float | None: ...
    def turned(self, value: float | None) -> float | None:
        """A value in the other sign, where the two differ."""
        return -value if self.maximize and value is not None else value

    def turned_curve(self, curve: Curve) -> Curve:
        """A training curve in the other sign; its costs have none."""
        if not self.maximize:
            return curve
        trained = tuple(self.turned(value) for value in curve.train_values)
        return Curve(tuple(-value for value in curve.values), curve.costs, trained)

    def shown(self, trial: Trial) -> Trial:
        """A trial as a user sees it: in the user's sign, without what only policies and runners need, and with a
        configuration and attributes that the user may alter."""
        return Trial(
            trial.number, dict(trial.config), trial.status, self.turned(trial.value), trial.cost,
            self.turned_curve(trial.curve), trial.error, deepcopy(trial.attributes), trial.predicted_cost, trial.reason,
            trial.ended_by, trial.began, trial.ended,
        )  # fmt: skip
