"""Histories made event by event, for tests of what policies make of them."""

from __future__ import annotations

import farthing as ft
from farthing.budget import Ledger
from farthing.history import History
from farthing.record.events import Asked, Ended
from farthing.record.state import Event, State
from farthing.trial import Config, Outcome, Proposal


def after(history: History, space: ft.Space, *events: Event) -> History:
    """The history after some events, whatever they cost."""
    state = State(space, history, Ledger(ft.Budget(cost=1e9)))
    for event in events:
        state = event.applied(state)
    return state.history


def asked(history: History, space: ft.Space, config: Config) -> History:
    """With one more trial running, in an ask of its own."""
    number = len(history.trials)
    return after(history, space, Asked(number, Proposal(number, config), {}))


def ended(history: History, space: ft.Space, number: int, outcome: Outcome) -> History:
    """With a running trial ended."""
    return after(history, space, Ended(number, outcome))
