"""Cards: what a notebook shows of a study and of a search. Those of a ledger and a trial are with these values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from farthing.budget import Ledger, amount_text
from farthing.errors import NoTrial
from farthing.policies.value_cost import bought
from farthing.session import Session
from farthing.text.cards import RED, Html, bar, beside, card, facts, large, legend, line, option, sparkline
from farthing.text.plain import counted, headline
from farthing.trial import Status, Trial

Points = Sequence[tuple[float, float]]  # (total cost, best value), as after each trial that ended


def study_card(session: Session) -> Html:
    """The best value and how it was reached, the best configuration, where the budget went, and why it has ended."""
    settings, history = session.record.settings, session.history
    aim = "maximise" if settings.maximize else "minimise"
    about = f"{session.policy.name} · {aim} · {counts_text({status: history.count(status) for status in Status})}"
    best = None if history.incumbent is None else session.results.best
    return card(
        "Study", about,
        _best(None if best is None else best.value, "best value", best, _bought(session), session.ledger),
        facts((name, option(value)) for name, value in best.config.items()) if best is not None else Html(""),
        _spent(session.ledger),
        line(f"ended: {session.why_ended}" if session.why_ended else ""),
        _last_error(history.trials if history.count(Status.FAILED, Status.KILLED) else ()),
    )  # fmt: skip


def search_card(
    title: str, trials: Sequence[Trial], ledger: Ledger, score: float | None, params: Mapping[str, Any] | None
) -> Html:  # fmt: skip
    """The same of a fitted search: score and parameters are None where it has several metrics and has chosen none."""
    found = {status: sum(trial.status is status for trial in trials) for status in Status}
    return card(
        title, counts_text(found),
        _best(score, "best cross-validated score", None, _scores(trials), ledger),
        facts((name, option(value)) for name, value in (params or {}).items()),
        _spent(ledger),
        _last_error(trials),
    )  # fmt: skip


def counts_text(counts: Mapping[Status, int]) -> str:
    """How many trials there are, and of which kinds.

    >>> counts_text({Status.COMPLETE: 3, Status.FAILED: 1, Status.RUNNING: 0})
    '4 trials: 3 complete, 1 failed'
    """
    kinds = ", ".join(f"{count} {status.value}" for status, count in counts.items() if count)
    return f"{counted(sum(counts.values()), 'trial')}{f': {kinds}' if kinds else ''}"


def _best(value: float | None, about: str, trial: Trial | None, points: Points, ledger: Ledger) -> Html:
    where = "" if trial is None else f", trial {trial.number}"
    number = large("none yet" if value is None else f"{value:.6g}", f"{about}{where}")
    if not points:
        return number
    (_, first), (cost, last) = points[0], points[-1]
    about = f"from {first:.4g} to {last:.4g} over {amount_text(ledger.unit, cost)} of trials"
    return beside(number, sparkline(points, about))


def _spent(ledger: Ledger) -> Html:
    texts = {name: amount_text(ledger.unit, amount) for name, amount in ledger.spent_on.items()}
    return Html(line(f"{ledger.fraction:.0%} of {ledger.budget} used") + bar(ledger.shares) + legend(texts))


def _last_error(trials: Iterable[Trial]) -> Html:
    last = next((trial for trial in reversed(list(trials)) if trial.unsuccessful and trial.error), None)
    return Html("") if last is None else line(f"last error, trial {last.number}: {headline(last.error or '')}", RED)


def _bought(session: Session) -> Points:
    turned = session.record.direction.turned
    try:
        return [(point.cost, turned(point.value)) for point in bought(session.history.trials)]
    except NoTrial:  # costs are not known
        return []


def _scores(trials: Iterable[Trial]) -> Points:
    """The best score after the cost of each candidate, in the order in which they ended."""
    points: list[tuple[float, float]] = []
    spent = 0.0
    for trial in sorted(trials, key=lambda trial: (trial.ended or 0.0, trial.number)):
        spent += trial.cost or 0.0
        if trial.value is not None and not trial.unsuccessful:
            points.append((spent, max(trial.value, points[-1][1]) if points else trial.value))
        elif points:
            points.append((spent, points[-1][1]))
    return points
