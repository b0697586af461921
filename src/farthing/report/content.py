"""What the report and the live page say of a study, as plain values: everything but figures and the table of trials.

All text is plain text, also that of strangers: whoever shows it must not read tags in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from farthing.budget import amount_text
from farthing.policies.outlook import QUICK
from farthing.report import copies, reproduction
from farthing.report.drawing import cut
from farthing.report.headline import headline, short, spent_text
from farthing.report.rows import LONGEST_CELL, cell, trial_rows
from farthing.session import Session
from farthing.text.plain import counted
from farthing.trial import Status, Trial

__all__ = ["overview", "trial_rows"]

Card = dict[str, Any]


def overview(
    session: Session, name: str, *, left_out: Sequence[str] = (), seconds: float = QUICK
) -> dict[str, Any]:  # fmt: skip
    """A page but for its figures and its table.

    name      of the study, as it is shown
    left_out  parts of the study that its file cannot hold: without them nothing is expected of more budget
    seconds   that finding out what more budget would bring may take
    """
    best = None if session.results.best_value is None else session.results.best
    return {
        "name": cut(name, LONGEST_CELL),
        "headline": headline(session, 0.0 if left_out else seconds),
        "state": _state(session),
        "cards": [_best_card(session, best), _spent_card(session), _trials_card(session), _time_card(session)],
        "counts": {status.value: count for status in Status if (count := session.history.count(status))},
        "best": None if best is None else _best(session, best),
        "reproduction": {
            "facts": reproduction.facts(session, left_out), "copies": reproduction.copies(session),
        },
        "maximize": session.record.settings.maximize,
        "events": session.record.events,
    }  # fmt: skip


def _state(session: Session) -> dict[str, str]:
    """Whether it goes on, as one word for a page, and in words."""
    if running := session.history.count(Status.RUNNING):
        return {"kind": "running", "text": f"{counted(running, 'trial')} running"}
    if why := session.why_ended:
        return {"kind": "ended", "text": f"ended: {why}"}
    return {"kind": "idle", "text": f"not running; {1.0 - session.ledger.fraction:.0%} of the budget is left"}


def _card(title: str, value: str, note: str, share: float | None = None) -> Card:
    return {"title": title, "value": value, "note": note, "share": share}


def _best_card(session: Session, best: Trial | None) -> Card:
    if best is None or best.value is None:
        return _card("Best value", "–", "no trial has a value yet")
    cost = "" if best.cost is None else f", cost {amount_text(session.ledger.unit, best.cost)}"
    steps = f", {counted(len(best.curve), 'step')}" if len(best.curve) else ""
    return _card("Best value", short(best.value), f"trial {best.number}{steps}{cost}")


def _spent_card(session: Session) -> Card:
    ledger = session.ledger
    limits, paid_in = ledger.budget.limits, ledger.budget.paid_in
    others = [
        f", {amount_text(unit, ledger.total(unit))} of {amount_text(unit, limit)}"
        for unit, limit in limits.items()
        if unit != paid_in
    ]
    note = f"of {amount_text(paid_in, limits[paid_in])}{''.join(others)}"
    return _card("Spent", spent_text(session), note, ledger.fraction)


def _trials_card(session: Session) -> Card:
    counts = [f"{count} {status.value}" for status in Status if (count := session.history.count(status))]
    return _card("Trials", f"{session.history.count():,}", ", ".join(counts) or "none yet")


def _time_card(session: Session) -> Card:
    """From the first trial to what happened last."""
    trials = session.history.trials
    began = min((trial.began for trial in trials if trial.began is not None), default=None)
    last = max((trial.ended or trial.began or 0.0 for trial in trials), default=0.0)
    optimiser = session.ledger.account("optimiser", "seconds")
    note = f"{amount_text('seconds', optimiser)} of it to choose trials" if optimiser else "first trial to last"
    if began is None:
        return _card("Time", "–", "not known")
    return _card("Time", amount_text("seconds", max(last - began, 0.0)), note)


def _best(session: Session, best: Trial) -> dict[str, Any]:
    """The best configuration, to read and to copy."""
    forms = {
        "Python": copies.as_python(best.config), "JSON": copies.as_json(best.config),
        "Command line": copies.as_arguments(best.config), "Command": _command(session, best),
    }  # fmt: skip
    return {
        "trial": best.number, "value": best.value, "cost": best.cost, "steps": len(best.curve),
        "config": [(cut(name, LONGEST_CELL), cell(value)) for name, value in best.config.items()],
        "copies": [{"title": title, "text": text} for title, text in forms.items() if text],
    }  # fmt: skip


def _command(session: Session, best: Trial) -> str | None:
    """The command that `farthing run` has run for it."""
    run = reproduction.run_note(session)
    if not isinstance(command := run.get("command"), str):
        return None
    known = {"farthing.trial": best.number, "farthing.start_step": 0}
    return copies.as_command(command, best.config, known | ({"farthing.steps": run["steps"]} if "steps" in run else {}))
