"""The figures that a report and the live page show, in their order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from farthing.report.drawing import Drawing
from farthing.report.figures import (
    best_value,
    budget_use,
    cost_per_trial,
    curves,
    dependence,
    implied_alpha,
    importance,
    parallel,
    pareto,
    predicted_cost,
    two_levels,
)
from farthing.session import Session


@dataclass(frozen=True)
class Figure:
    """A figure by name. `make(session, seconds)` draws it in about that many seconds, with less in it where there is
    not enough time for all; it raises a FarthingError that says why there is nothing to draw. `models`: whether it
    asks the models of the study, which takes longer, and which a study without values does not have."""

    name: str
    title: str
    make: Callable[[Session, float], Drawing]
    models: bool = False


def _of(figure: Any) -> Callable[[Session, float], Drawing]:
    """A figure that takes no time worth speaking of."""
    return lambda session, _: figure.draw(figure.numbers(session))


def _timed(figure: Any) -> Callable[[Session, float], Drawing]:
    """One that takes as long as it may."""
    return lambda session, seconds: figure.draw(figure.numbers(session, seconds=seconds))


FIGURES = (
    Figure("best_value", "Best value over cost", _of(best_value)),
    Figure("budget_use", "Where the budget went", _of(budget_use)),
    Figure("cost_per_trial", "Cost of each trial", _of(cost_per_trial)),
    Figure("predicted_cost", "Predicted and actual cost", _timed(predicted_cost), models=True),
    Figure("curves", "Learning curves", _timed(curves), models=True),
    Figure("importance", "Importance of each parameter", _timed(importance), models=True),
    Figure("dependence", "How value and cost depend on each parameter", _timed(dependence), models=True),
    Figure("parallel", "Parallel coordinates", _of(parallel)),
    Figure("two_levels", "Two levels of training", _of(two_levels), models=True),
    Figure("pareto", "What improvement can be expected for what cost", _timed(pareto), models=True),
    Figure("implied_alpha", "How much contextual EI weighs cost", _timed(implied_alpha), models=True),
)  # fmt: skip
