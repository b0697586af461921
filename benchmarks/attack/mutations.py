"""Events of real study files, altered as a stranger could: the checksums are right, only the content is not.

Each altered file is read, shown, resumed and asked for one proposal.

opened, ledger sane    a lie that could be true
refused, event named   an error of farthing.errors that says which event
refused, not named     an error of farthing.errors that does not
absurd ledger          something negative, infinite or not a number was accepted
traceback              any other exception
took too long          more than ten seconds
"""

from __future__ import annotations

import json
import math
import os
import random
import re
import sqlite3
import tempfile
import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import farthing as ft
from benchmarks.attack.logged import InTurns
from benchmarks.attack.patience import TookTooLong, at_most
from benchmarks.attack.results import Result
from benchmarks.attack.specimens import Specimen
from farthing.errors import FarthingError
from farthing.record.reader import read_study
from farthing.record.storage import SQLiteLog

Events = list[tuple[str, str]]  # kind and body

SANE, NAMED, NOT_NAMED, ABSURD, TRACEBACK, LATE = (
    "opened, ledger sane", "refused, event named", "refused, not named", "absurd ledger", "traceback", "took too long",
)  # fmt: skip
OUTCOMES = (SANE, NAMED, NOT_NAMED, ABSURD, TRACEBACK, LATE)
SPECIMENS = ("closed", "closed, with models", "closed, trainings")
LONGEST_SECONDS = 10

HUGE = 10**400
PLACES: dict[str, list[Any]] = {
    "another type": [None, True, "", "x", [], {}, [1], {"a": 1}, 1.5, "1", [[]]],
    "negative": [-1, -0.5, -1e9, -1e300, -(10**18)],
    "huge": [1e308, 2**63, HUGE, -HUGE, 10**18],
    "not finite": [math.nan, math.inf, -math.inf],
    "odd text": ["\ud800", "\x1b[2J\x1b]0;owned\x07", "x" * 100_000, "\x00", "=1+1", "../../x"],
}


@dataclass(frozen=True)
class Mutation:
    """A change of the events of a file; `text` is put in the place of the first event that it names."""

    name: str
    change: Callable[[Events, random.Random], Events]


def places_in(value: Any, before: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The ways to all values inside a value."""
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    return [way for key in keys for way in ((*before, key), *places_in(value[key], (*before, key)))]


def _altered(events: Events, rng: random.Random, alter: Callable[[Any, Any], None]) -> Events:
    """One value of one event: all kinds of events are equally likely, and all fields of it."""
    kinds = sorted({kind for kind, _ in events})
    kind = rng.choice(kinds)
    number = rng.choice([number for number, (found, _) in enumerate(events) if found == kind])
    body = json.loads(events[number][1])
    fields = list(body)
    if not fields:
        return events
    field = rng.choice(fields)
    *way, last = rng.choice([(field,), *((field, *rest) for rest in places_in(body[field]))])
    holder = body
    for key in way:
        holder = holder[key]
    alter(holder, last)
    return [*events[:number], (kind, json.dumps(body)), *events[number + 1 :]]


def replaced(values: list[Any]) -> Callable[[Events, random.Random], Events]:
    def change(events: Events, rng: random.Random) -> Events:
        new = rng.choice(values)
        return _altered(events, rng, lambda holder, key: holder.__setitem__(key, new))

    return change


def negated(events: Events, rng: random.Random) -> Events:
    def alter(holder: Any, key: Any) -> None:
        number = holder[key]
        holder[key] = -number - 1 if isinstance(number, int | float) else -1

    return _altered(events, rng, alter)


def missing(events: Events, rng: random.Random) -> Events:
    return _altered(events, rng, lambda holder, key: holder.__delitem__(key))


def added(events: Events, rng: random.Random) -> Events:
    number = rng.randrange(len(events))
    kind, body = events[number]
    more = rng.choice(['"unknown":1', '"trial":0', '"charges":{"evaluation":{"evaluations":-1000000000}}', '"":{}'])
    return [*events[:number], (kind, body[:-1] + ("," if len(body) > 2 else "") + more + "}"), *events[number + 1 :]]


def deep(events: Events, rng: random.Random) -> Events:
    number, depth = rng.randrange(len(events)), rng.choice((500, 5_000, 100_000))
    kind, body = events[number]
    nested = '{"a":' * depth + "1" + "}" * depth if rng.random() < 0.5 else "[" * depth + "]" * depth
    key = json.dumps(rng.choice(list(json.loads(body)) or ["x"]))
    return [*events[:number], (kind, f"{{{key}:{nested},{body[1:]}"), *events[number + 1 :]]


def not_an_object(events: Events, rng: random.Random) -> Events:
    number = rng.randrange(len(events))
    text = rng.choice(["null", "[]", "5", '"x"', "{}", "", "{", "NaN", "[" * 100_000, '{"trial":0}', "\x00"])
    return [*events[:number], (events[number][0], text), *events[number + 1 :]]


def duplicated(events: Events, rng: random.Random) -> Events:
    number = rng.randrange(len(events))
    return [*events[: number + 1], *events[number : number + 1], *events[number + 1 :]]


def reordered(events: Events, rng: random.Random) -> Events:
    a, b = rng.sample(range(len(events)), 2)
    changed = list(events)
    changed[a], changed[b] = changed[b], changed[a]
    return changed


def dropped(events: Events, rng: random.Random) -> Events:
    number = rng.randrange(len(events))
    return events[:number] + events[number + 1 :]


def other_kind(events: Events, rng: random.Random) -> Events:
    number = rng.randrange(len(events))
    kind = rng.choice(
        ["opened", "budgeted", "asked", "reported", "told", "moved", "dropped", "charged", "noted", "", "x"]
    )
    return [*events[:number], (kind, events[number][1]), *events[number + 1 :]]


def refunded(events: Events, rng: random.Random) -> Events:
    """A charge that gives money back."""
    account, unit = rng.choice(["evaluation", "optimiser", "x"]), rng.choice(["cost", "evaluations", "seconds", "usd"])
    charge = json.dumps({"charges": {account: {unit: rng.choice([-1e9, -1, -1e-3, -math.inf, math.nan])}}})
    number = rng.randrange(2, len(events) + 1)
    return [*events[:number], ("charged", charge), *events[number:]]


MUTATIONS = (
    *(Mutation(f"{name} in a field", replaced(values)) for name, values in PLACES.items()),
    Mutation("a number negated", negated), Mutation("a field missing", missing), Mutation("a field added", added),
    Mutation("deeply nested", deep), Mutation("no object", not_an_object), Mutation("an event twice", duplicated),
    Mutation("two events exchanged", reordered), Mutation("an event left out", dropped),
    Mutation("an event of another kind", other_kind), Mutation("a negative charge", refunded),
)  # fmt: skip


# -- judging -----------------------------------------------------------------------------------------------------------


def is_sane(study: Any) -> bool:
    ledger = study.ledger
    amounts = [amount for account in ledger.accounts.values() for amount in account.values()]
    limits = ledger.budget.limits
    return (
        all(math.isfinite(amount) and amount >= 0 for amount in (*amounts, ledger.committed, ledger.running))
        and all(0 <= ledger.left(unit) <= limit for unit, limit in limits.items())
        and 0 <= ledger.fraction <= 1
        and all(trial.value is None or math.isfinite(trial.value) for trial in study.trials)
        and all(trial.cost is None or 0 <= trial.cost < math.inf for trial in study.trials)
    )


def used(path: Path, has_own_policy: bool) -> bool:
    """Read it, show it, resume it, ask it; returns whether all it says is sane."""
    study = read_study(path)
    shown = [str(study.ledger), repr(study.notes), repr(study.trials), str(study.best_value)]
    sane = is_sane(study) and all(shown)
    with ft.Study.resume(path, policy=InTurns() if has_own_policy else None) as resumed:
        sane = sane and is_sane(resumed)
        if resumed.ended is None:
            resumed.ask()
    return sane


def outcome_of(path: Path, has_own_policy: bool) -> str:
    try:
        with at_most(LONGEST_SECONDS), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return SANE if used(path, has_own_policy) else ABSURD
    except FarthingError as error:
        return NAMED if re.search(r"\bevents? \d+|first event|holds no study|budget", str(error)) else NOT_NAMED
    except TookTooLong:
        return LATE
    except Exception as error:
        print(f"mutation: {type(error).__name__}: {str(error)[:150]}", flush=True)
        return TRACEBACK


def write(events: Events, path: Path) -> None:
    """A new file with these events, as Farthing itself would write it: its checksums are right."""
    for suffix in ("", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    with closing(SQLiteLog(path)) as log:
        log.append(*events)


def attack(quick: bool) -> list[Result]:
    files = 100 if quick else 800
    outcomes: dict[str, Counter[str]] = defaultdict(Counter)
    began = time.monotonic()
    place_in_memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="attack-mutations-", dir=place_in_memory) as place:
        path = Path(place) / "study.db"
        originals = [_events_of(name, Path(place) / str(number)) for number, name in enumerate(SPECIMENS)]
        for number in range(files):
            mutation = MUTATIONS[number % len(MUTATIONS)]
            which = number // len(MUTATIONS) % len(SPECIMENS)
            write(mutation.change(originals[which], random.Random(number)), path)
            found = outcome_of(path, "trainings" in SPECIMENS[which])
            outcomes[mutation.name][found] += 1
            if found not in (SANE, NAMED):
                print(f"mutation {number}, {mutation.name} of {SPECIMENS[which]!r}: {found}", flush=True)
    results = [
        Result(name, counts.total(), {one: counts[one] for one in OUTCOMES}) for name, counts in outcomes.items()
    ]
    print(f"mutations: {files} files in {time.monotonic() - began:.0f} s", *results, sep="\n  ", flush=True)
    return results


def _events_of(name: str, folder: Path) -> Events:
    folder.mkdir()
    Specimen.made(name, folder)
    with closing(sqlite3.connect(folder / "study.db")) as connection:
        return connection.execute("SELECT kind, body FROM events ORDER BY number").fetchall()
