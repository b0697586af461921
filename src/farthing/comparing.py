"""`compare`: several studies in one figure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from os import PathLike
from typing import TYPE_CHECKING, TypeAlias

from farthing import checks
from farthing.report.drawing import figure_of
from farthing.report.figures import comparison
from farthing.session import Session
from farthing.study_view import OpenedStudy, StudyView

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

One: TypeAlias = StudyView | str | PathLike[str]

ACCEPTED = "studies by name: for each a study or the path of its file, or a list of these"
UNITS = ("cost", "usd", "joules", "compute_seconds", "seconds", "evaluations")


def compare(studies: Mapping[str, One | Iterable[One]], *, unit: str | None = None) -> Figure:
    """The best value over what was spent, of any number of studies by name, as a Plotly figure.

    A name stands for one study or for several with different seeds, of which the median and the quartiles are drawn;
    each is a study or the path of its file. A table says what each name came to, and what it took to reach the best
    value that all of them reach. What was spent is in the unit that the budgets are paid in, or in `unit`, such as
    "evaluations".

    >>> import farthing as ft
    >>> def searched(policy, seed):
    ...     space = {"x": (-1, 2.0)}
    ...     return ft.tune(lambda c: c["x"] ** 2, space, "6 evaluations", policy=policy, seed=seed, progress=False)
    >>> figure = ft.compare({"sobol": searched("sobol", 0), "random": [searched("random", seed) for seed in range(3)]})
    >>> [trace.name for trace in figure.data if trace.name]
    ['sobol', 'random (3 studies)']
    """
    if not isinstance(studies, Mapping) or not studies:
        checks.refuse("compare", ACCEPTED, studies)
    checks.optional(checks.one_of, "compare: unit", unit, accepted=UNITS)
    with ExitStack() as opened:
        sessions = {str(name): _sessions(held, opened) for name, held in studies.items()}
        return figure_of(comparison.draw(comparison.numbers(sessions, unit)))


def _sessions(held: One | Iterable[One], opened: ExitStack) -> list[Session]:
    """The studies under one name; files are opened, to be closed when the figure is there."""
    if isinstance(held, StudyView | str | PathLike):
        held = [held]
    if not isinstance(held, Iterable) or not (listed := list(held)):
        checks.refuse("compare", ACCEPTED, held)
    return [_session(one, opened) for one in listed]


def _session(one: One, opened: ExitStack) -> Session:
    if isinstance(one, str | PathLike):
        one = opened.enter_context(OpenedStudy(one))
    return checks.instance("compare", one, StudyView, of=ACCEPTED)._session
