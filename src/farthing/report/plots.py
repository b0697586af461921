"""`study.plot`: every figure by name, as a Plotly figure that a notebook shows and `write_image` saves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from farthing.report.drawing import figure_of
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

if TYPE_CHECKING:
    from plotly.graph_objects import Figure


class Plots:
    """The figures of a study.

    Each method returns a Plotly figure: `.show()` opens it, `.write_html("f.html")`, `.write_image("f.svg")` and
    `.write_image("f.png")` save it (images need `pip install 'farthing[images]'` and a Chrome or Chromium).
    """

    def __init__(self, session: Session) -> None:
        self._session = session

    def best_value(self) -> Figure:
        """The best value against the total cost, and the line of the budget."""
        return figure_of(best_value.draw(best_value.numbers(self._session)))

    def budget_use(self) -> Figure:
        """What trials and the optimiser have taken of the budget, and what is left."""
        return figure_of(budget_use.draw(budget_use.numbers(self._session)))

    def cost_per_trial(self) -> Figure:
        """The cost of each trial in order, and how it was chosen."""
        return figure_of(cost_per_trial.draw(cost_per_trial.numbers(self._session)))

    def predicted_cost(self) -> Figure:
        """What each trial was predicted to cost against what it did cost, with intervals where the policy has a model
        that gives them."""
        return figure_of(predicted_cost.draw(predicted_cost.numbers(self._session)))

    def curves(self) -> Figure:
        """The learning curves of trainings that report step by step: pauses, resumptions and stops, and how the best
        that could go on are predicted to."""
        return figure_of(curves.draw(curves.numbers(self._session)))

    def parallel(self) -> Figure:
        """Configurations as lines through an axis for each parameter, coloured by their values."""
        return figure_of(parallel.draw(parallel.numbers(self._session)))

    def importance(self) -> Figure:
        """How much of the variation of value and of cost each parameter makes, alone and with others."""
        return figure_of(importance.draw(importance.numbers(self._session)))

    def dependence(self, *names: str) -> Figure:
        """Slices and partial dependence of value and of cost, for these parameters or the most influential ones."""
        return figure_of(dependence.draw(dependence.numbers(self._session, *names)))

    def two_levels(self, *names: str) -> Figure:
        """What `bopt` or `eqie` believes of both levels of training along one or two parameters."""
        return figure_of(two_levels.draw(two_levels.numbers(self._session, *names)))

    def pareto(self, trial: int | None = None) -> Figure:
        """The EI-cost front as it changed, with a slider through at most 25 asks; or as it was for one trial, exactly,
        which takes longer."""
        found = pareto.numbers(self._session) if trial is None else pareto.numbers_at(self._session, trial)
        return figure_of(pareto.draw(found))

    def implied_alpha(self) -> Figure:
        """The alphas whose EI / cost^alpha leads to the pick of contextual EI, over the trials."""
        return figure_of(implied_alpha.draw(implied_alpha.numbers(self._session)))
