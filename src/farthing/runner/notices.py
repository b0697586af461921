"""What a user should know of a run that does not do what it seems to: it continues the results of another objective, or
evaluates nothing at all."""

from __future__ import annotations

from farthing.history import History
from farthing.runner.objective_code import code_of, differ
from farthing.session import Session
from farthing.text.plain import warn
from farthing.trial import Objective


def notice_edits(session: Session, objective: Objective) -> None:
    """Before a run: say if earlier results are those of other code."""
    session.objective = code_of(objective)
    if text := _another_objective(session):
        warn(text)


def notice_idleness(session: Session, before: History) -> None:
    """After a run: say if it evaluated nothing, or left something to be told."""
    if session.interrupted or session.stop_requested:
        return
    if session.history.asks == before.asks and session.history.trials == before.trials:
        warn(_nothing_evaluated(session))
    elif session.ended is None and session.history.pending:
        warn(f"{_name(session)}: the run has ended{session.said_of_pending}")


def _name(session: Session) -> str:
    return session.record.log.name if session.storage else "the study"


def _another_objective(session: Session) -> str | None:
    ran, code, last = session.record.state.objective, session.objective, len(session.history.trials) - 1
    if ran is None or code is None or not differ(ran.code, code):
        return None
    trials = f"trial {last}" if last <= ran.since else f"trials {ran.since} to {last}"
    elsewhere = "a new study in another file evaluates everything anew" if session.storage else "a new study has none"
    return (
        f"{_name(session)}: the objective is not the one of {trials}, whose results are kept: "
        f"its code has changed since; {elsewhere}"
    )


def _nothing_evaluated(session: Session) -> str:
    why = session.ended or f"there was nothing more to propose{session.said_of_pending}"
    kept = f"; the {len(session.history.trials)} trials are those of before" if session.history.trials else ""
    return f"{_name(session)}: nothing was evaluated: {why}{kept}"
