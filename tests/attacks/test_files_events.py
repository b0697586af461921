"""Events that were changed by somebody who knows the format: they are refused by their number, or do no harm.

The files are of schema version 1, which has no checksums to mend.
"""

from __future__ import annotations

import gzip
import json
import math
import random
import shutil
import sqlite3
import warnings
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hostile_files import LOOKS, answer, refused

import farthing as ft
from farthing.errors import FarthingError, StudyEnded
from farthing.policies import BY_NAME
from farthing.record.reader import read_study

FILES = Path(__file__).parents[1] / "record" / "files"
MORE = {"told": ft.Budget(cost=900.0), "run": "200s", "steps": "200s", "paused": ft.Budget(cost=60)}
MUTATIONS = 150

Row = list[Any]  # number, time, kind, body


@pytest.fixture(scope="module")
def originals(tmp_path_factory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("originals")
    for name in MORE:
        (folder / f"{name}.db").write_bytes(gzip.decompress((FILES / f"{name}-0.1.db.gz").read_bytes()))
    return {name: folder / f"{name}.db" for name in MORE}


def rows_of(path: Path) -> list[Row]:
    with closing(sqlite3.connect(path)) as connection:
        return [list(row) for row in connection.execute("SELECT number, time, kind, body FROM events ORDER BY number")]


def with_rows(original: Path, path: Path, rows: list[Row]) -> Path:
    shutil.copyfile(original, path)
    numbered = [(number, *row[1:]) for number, row in enumerate(rows, start=1)]
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DELETE FROM events")
        connection.executemany("INSERT INTO events (number, time, kind, body) VALUES (?, ?, ?, ?)", numbered)
        connection.commit()
    return path


def places(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, item in items:
        yield (*path, key)
        yield from places(item, (*path, key))


VALUES = [
    None, True, -1, -1.5, 1e300, 10**400, float("nan"), float("inf"), "x", "", [], {}, [1], {"a": 1}, 0, 10**18, [[[1]]]
]  # fmt: skip


def mutated(text: str, rng: random.Random) -> str:
    """The JSON of an event with one thing changed."""
    body = json.loads(text)
    *way, last = rng.choice(list(places(body)))
    node = body
    for key in way:
        node = node[key]
    match rng.choice(["delete", "value", "value", "value", "minus", "huge", "more", "deep"]):
        case "delete":
            del node[last]
        case "minus" if isinstance(node[last], int | float):
            node[last] = -node[last] - 1
        case "huge" if isinstance(node[last], int | float):
            node[last] = node[last] * 10**20 + 10**15
        case "more" if isinstance(node, dict):
            node["__class__"] = "x"
        case "deep":
            node[last] = json.loads("[" * 300 + "]" * 300)
        case _:
            node[last] = rng.choice(VALUES)
    return json.dumps(body)


def changed(rows: list[Row], rng: random.Random) -> list[Row]:
    """Mostly one event changed; sometimes one twice, two swapped, one of another kind, or one left out."""
    place = rng.randrange(len(rows)) if rng.random() < 0.8 else 0
    way = rng.random()
    if way < 0.8:
        number, time, kind, body = rows[place]
        return [*rows[:place], [number, time, kind, mutated(body, rng)], *rows[place + 1 :]]
    if way < 0.87:
        return [*rows[:place], rows[place], *rows[place:]]
    if way < 0.94:
        other, swapped = rng.randrange(len(rows)), list(rows)
        swapped[place], swapped[other] = rows[other], rows[place]
        return swapped
    if way < 0.97:
        renamed = [rows[place][0], rows[place][1], rng.choice(["told", "asked", "dreamt", "noted"]), rows[place][3]]
        return [*rows[:place], renamed, *rows[place + 1 :]]
    return [*rows[:place], *rows[place + 1 :]]


def used(path: Path, budget: Any, ask: bool) -> str | None:
    """What is wrong with what becomes of a file, None if nothing is."""
    try:
        ledger = read_study(path).ledger
        amounts = [amount for account in ledger.accounts.values() for amount in account.values()]
        if not all(math.isfinite(amount) and amount >= 0 for amount in amounts):
            return f"absurd ledger: {ledger.accounts}"
        if ledger.remaining > ledger.budget.limits.get(ledger.unit, math.inf) or not 0 <= ledger.fraction <= 1:
            return f"absurd ledger: {ledger}"
    except FarthingError:
        pass
    except Exception as error:
        return f"looking: {error!r:.300}"
    try:
        with ft.Study.resume(path, budget=budget) as study:
            if ask:
                study.tell(study.ask(), value=0.5, cost=0.1)
    except FarthingError as error:
        if not isinstance(error, StudyEnded) and len(str(error)) > 2000:
            return f"a message of {len(str(error))} characters"
    except Exception as error:
        return f"asking: {error!r:.300}"
    return None


def test_mutations_are_refused_or_do_no_harm(originals, tmp_path):
    rng, wrong = random.Random(11), list[str]()
    events = {name: rows_of(path) for name, path in originals.items()}
    names = ["told", "paused", "told", "paused", "told", "paused", "run", "steps"]  # the last two take longer to ask
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for attempt in range(MUTATIONS):
            name = names[attempt % len(names)]
            path = with_rows(originals[name], tmp_path / "mutated.db", changed(events[name], rng))
            if found := used(path, MORE[name], ask=attempt % 3 > 0):
                wrong.append(f"{attempt} ({name}): {found}")
    assert wrong == []


PLANTED = {  # what nobody can have written: in which kind of event, and what stands there instead
    "a negative charge": ("told", {"charges": {"evaluation": {"cost": -1e9}}}),
    "a charge in no unit": ("told", {"charges": {"evaluation": {"gold": 1.0}}}),
    "a charge to no account": ("told", {"charges": {"bribes": {"cost": 1.0}}}),
    "a fit that is a number": ("asked", {"fits": {"value": 5}}),
    "a fit of another space": ("asked", {"fits": {"value": {"log_scales": [0.0], "log_noise": 0.0, "cold_at": 1}}}),
    "a fit with text": ("asked", {"fits": {"cost": {"leader": "x", "contest_at": "y"}}}),
    "a ledger that is text": ("asked", {"ledger": "x"}),
    "a ledger in debt": (
        "asked",
        {"ledger": {"accounts": {"evaluation": {"cost": -5.0}}, "committed": 0, "running": 0}},
    ),
    "a step that was never seen": ("asked", {"start_step": 7}),
    "a complete trial without a value": ("told", {"status": "complete", "value": None}),
    "an ask from the future": ("asked", {"ask": 10**6}),
}


@pytest.mark.parametrize("case", PLANTED)
def test_what_nobody_can_have_written_is_refused_by_its_number(originals, tmp_path, case):
    kind, planted = PLANTED[case]
    rows = rows_of(originals["told"])
    place = next(i for i, row in reversed(list(enumerate(rows))) if row[2] == kind)
    rows[place][3] = json.dumps({**json.loads(rows[place][3]), **planted})
    path = with_rows(originals["told"], tmp_path / "planted.db", rows)
    for look in LOOKS.values():
        given = answer(lambda look=look: look(path))
        assert refused(given, f"event {place + 1} cannot be read"), given


def test_a_study_cannot_be_given_more_than_its_budget(originals, tmp_path):
    """One negative charge, and the rest of the budget was 1,000,000,096 of 100."""
    rows = rows_of(originals["told"])
    rows.append([0, 0.0, "charged", json.dumps({"charges": {"evaluation": {"cost": -1e9}}})])
    path = with_rows(originals["told"], tmp_path / "rich.db", rows)
    given = answer(lambda: read_study(path).ledger.remaining)
    assert refused(given) or given <= 500.0


def test_every_policy_of_ours_has_its_fits_checked(originals, tmp_path):
    for name in BY_NAME:
        rows = rows_of(originals["told"])
        opened = json.loads(rows[0][3])
        rows[0][3] = json.dumps({**opened, "policy": {"name": name}})
        place = next(i for i, row in reversed(list(enumerate(rows))) if row[2] == "asked")
        rows[place][3] = json.dumps({**json.loads(rows[place][3]), "fits": {"value": 5}})
        path = with_rows(originals["told"], tmp_path / f"{name}.db", rows)
        assert refused(answer(lambda path=path: read_study(path)), f"event {place + 1}"), name
