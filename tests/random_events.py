"""Sequences of events that can happen to a study, made at random, and what damage may make of them."""

from __future__ import annotations

import json
import random
from contextlib import suppress
from typing import Any

import numpy as np

import farthing as ft
from farthing.errors import FarthingError
from farthing.history.cost_knowledge import CostKnowledge
from farthing.record.added import Added
from farthing.record.events import Asked, Dropped, Ended, Moved, Reported
from farthing.record.record import Record
from farthing.record.state import Event, State, write_event
from farthing.record.storage import MemoryLog
from farthing.record.study_events import Budgeted, Charged, Judged, Noted, Opened, Valued
from farthing.trial import EndedBy, Outcome, Proposal, Report, Status
from tests.large_files import SPACE

CHARGES = [{}, {"evaluation": {"cost": 0.1, "seconds": 0.3}}, {"optimiser": {"seconds": 1e-9}, "failed": {"cost": 1}}]
KINDS = [Asked, Asked, Asked, Reported, Reported, Ended, Ended, Ended, Moved, Dropped, Added, Charged, Budgeted, Valued]
KINDS += [Judged, Noted]


def record_of(maximize: bool = False) -> Record:
    settings = Opened(SPACE.as_json(), {"name": "random"}, 0, maximize)
    record = Record(MemoryLog(), settings, SPACE, CostKnowledge())
    record.state = Budgeted(ft.Budget(cost=100.0)).applied(record.state)
    return record


def happened(kind: type[Event], state: State, rng: random.Random) -> Event:
    """Something of that kind that may happen at a state, mostly."""
    trials, charges = len(state.history.trials), rng.choice(CHARGES)
    number, amount = rng.randrange(trials + 1), rng.choice([None, 0.25, 1e-3, 7])
    config = SPACE.decode(np.array([rng.random() for _ in SPACE.names]))
    status = rng.choice([status for status in Status if status is not Status.RUNNING])
    if kind is Asked:
        start = 0
        if number < trials:
            trial = state.history.trials[number]
            config, start = trial.config, rng.choice([trial.kept_step, 0])
        proposal = Proposal(
            number, config, amount, "because", rng.choice([{}, {"own": [1.0]}]), start, rng.choice([None, start + 2])
        )  # fmt: skip
        asks = rng.randrange(state.history.asks + 1)
        code = rng.choice([None, "a", "b"])
        return Asked(asks, proposal, state.ledger.as_json(), charges, pending=rng.random() < 0.2, objective=code)
    if kind is Reported:
        return Reported(number, Report(rng.random(), amount, None, rng.random() < 0.3, {"a": [number]}), charges)
    if kind is Ended:
        value = rng.choice([None, rng.random()])
        ended_by = rng.choice([None, *EndedBy])
        return Ended(number, Outcome(status, value, amount, "why", {"b": 1}, ended_by), charges, rng.random() < 0.2)
    if kind is Added:
        curve = tuple(rng.random() for _ in range(rng.randrange(3)))
        value = min(curve) if curve else 0.5
        return Added(trials, config, value, amount, rng.choice([None, "why"]), curve, {}, 1.0, 2.0, status)
    return {
        Moved: Moved(number, rng.randrange(4)), Dropped: Dropped(number, rng.randrange(2)), Charged: Charged(charges),
        Budgeted: Budgeted(ft.Budget(cost=200.0)), Valued: Valued(2.0), Judged: Judged(0.5, 1.0, charges),
        Noted: Noted({"x": [1, {"y": None}]}),
    }[kind]  # fmt: skip


def rows_of(record: Record, kinds: list[type[Event]], rng: random.Random) -> list[tuple[str, str]]:
    """The rows of events that can have happened one after the other."""
    state, rows = record.state, []
    for kind in kinds:
        event = happened(kind, state, rng)
        with suppress(ValueError, FarthingError, IndexError):
            event.check(state)
            state = event.applied(state)
            rows.append(write_event(event, record._encoding))
    return rows


def spoiled(rows: list[tuple[str, str]], rng: random.Random) -> list[tuple[str, str]]:
    """With one value of one event replaced by something that may be wrong there."""
    rows, place = list(rows), rng.randrange(len(rows))
    kind, text = rows[place]
    body = json.loads(text)
    inner: Any = body
    key = rng.choice(list(inner))
    while isinstance(inner[key], dict) and inner[key] and rng.random() < 0.7:
        inner = inner[key]
        key = rng.choice(list(inner))
    inner[key] = rng.choice([None, True, -1, -0.5, 3, 10**400, float("nan"), float("inf"), "x", [], {}, {"a": -1}])
    rows[place] = rng.choice([kind, kind, kind, "told", "dreamt"]), json.dumps(body) + rng.choice(["", "", " ", "x"])
    return rows
