"""What a study has found, in three sentences: the best value and its price, when it came, and what more would bring."""

from __future__ import annotations

from collections.abc import Sequence

from farthing.budget import amount_text
from farthing.errors import NoTrial
from farthing.policies.outlook import outlook_in_time
from farthing.policies.value_cost import ValueAtCost, bought
from farthing.session import Session

MOST_OF_IT = 0.8  # of the gain: it is said when that much was reached


def headline(session: Session, seconds: float) -> list[str]:
    """The sentences that can be said; the outlook only if it is found in that many seconds."""
    sentences = [_best(session), _when(session), _outlook(session, seconds)]
    return [f"{sentence[0].upper()}{sentence[1:]}." for sentence in sentences if sentence]


def short(value: float) -> str:
    """A number as a headline has it.

    >>> short(0.031234567), short(12345678.0)
    ('0.03123', '1.235e+07')
    """
    return f"{value:.4g}"


def _best(session: Session) -> str:
    best, ledger = session.results.best_value, session.ledger
    if best is None:
        return "no trial has a value yet"
    unit = ledger.budget.paid_in
    if unit == "cost":
        return f"best value {short(best)} at a cost of {short(ledger.total(unit))}"
    return f"best value {short(best)} {'after' if unit == 'evaluations' else 'for'} {spent_text(session)}"


def spent_text(session: Session) -> str:
    """What was spent, in the unit that the budget is paid in."""
    unit = session.ledger.budget.paid_in
    return amount_text(unit, session.ledger.total(unit))


def _when(session: Session) -> str:
    try:
        points = bought(session.history.trials)
    except NoTrial:  # not all costs are known
        return ""
    limit = session.ledger.budget.limits.get(session.ledger.unit)
    found = most_of_the_gain(points, limit)
    if found is None:
        return ""
    gain, share, of_budget = found
    return f"{_percent(gain)} of the gain came in the first {_percent(share)} of {'the budget' if of_budget else 'it'}"


def most_of_the_gain(points: Sequence[ValueAtCost], limit: float | None) -> tuple[float, float, bool] | None:
    """At the first point that has most of the gain: its share of the gain, its share of the cost, and whether that is a
    share of the budget's limit and not of what the trials have cost in all; None if nothing was gained.

    >>> points = [ValueAtCost(c, v, 0) for c, v in [(1.0, 9.0), (2.0, 2.0), (4.0, 1.0), (5.0, 1.0)]]
    >>> most_of_the_gain(points, 10.0), most_of_the_gain(points, None)
    ((0.875, 0.2, True), (0.875, 0.4, False))
    """
    if not points or (gain := points[0].value - points[-1].value) <= 0.0 or points[-1].cost <= 0.0:
        return None
    of_budget = limit is not None and points[-1].cost <= limit  # trials beside each other may cost more seconds
    whole = limit if limit is not None and of_budget else points[-1].cost
    reached = next(point for point in points if points[0].value - point.value >= MOST_OF_IT * gain)
    return (points[0].value - reached.value) / gain, reached.cost / whole, of_budget


def _percent(share: float) -> str:
    """A share, which is said to be all of it or nothing only if it is.

    >>> _percent(0.824), _percent(0.9999), _percent(1e-6), _percent(1.0)
    ('82%', '99%', '1%', '100%')
    """
    whole = round(100.0 * share)
    return f"{whole if share in (0.0, 1.0) else min(max(whole, 1), 99)}%"


def _outlook(session: Session, seconds: float) -> str:
    if seconds <= 0.0 or session.results.best_value is None:
        return ""
    found = outlook_in_time(session.record, session.policy, seconds)
    if found is None:
        return ""
    return str(found) if found.gain > 0.0 else f"no gain is expected of the next {amount_text(found.unit, found.spend)}"
