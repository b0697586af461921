"""Thinking is inside the budget: a study of many trials with a second left answers within it.

Models of 1,800 trials are fitted in seconds, and were, however little was left. Now an ask takes the most careful way
of thinking there is time for, and says in its event which one and how many seconds it had.
"""

from __future__ import annotations

import json
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

import farthing as ft
from farthing.numerics.threads import one_blas_thread

TRIALS = 1_800
LEFT = 1.5  # seconds of the budget
SLACK = 1.0  # of a busy machine; in full, ei alone takes three seconds on an idle one
NAMES = "abcdef"
SPACE = ft.Space({name: ft.Real(0, 1) for name in NAMES})


def objective(config: dict[str, float]) -> float:
    return sum((config[name] - 0.3) ** 2 for name in NAMES)


def long_study(path: Path, policy: str) -> float:
    """A file with many trials, of noisy values and costs; what they spent."""
    rng = np.random.default_rng(0)
    start = [dict(zip(NAMES, map(float, point), strict=True)) for point in rng.random((TRIALS, len(NAMES)))]
    with ft.Study(SPACE, ft.Budget(seconds=1e6), policy=policy, seed=0, storage=path, start=start) as study:
        for proposal in study.ask(TRIALS):
            noise, cost = rng.standard_normal(2)
            value = objective(proposal.config) + 0.1 * noise
            study.tell(proposal, value=value, cost=0.01 * (1.0 + proposal.config["a"]) * float(np.exp(0.3 * cost)))
        return study.ledger.total("seconds")


def asks_in(path: Path) -> list[dict[str, object]]:
    """The asks after those of `long_study`, as the file holds them."""
    with closing(sqlite3.connect(path)) as connection:
        bodies = connection.execute("SELECT body FROM events WHERE kind = 'asked' ORDER BY number").fetchall()
    return [json.loads(body) for (body,) in bodies[TRIALS:]]


@pytest.mark.parametrize("policy", ["ei", "carbo"])
def test_a_study_of_many_trials_ends_when_its_budget_does(policy, tmp_path):
    path = tmp_path / "long.db"
    spent = long_study(path, policy)
    with ft.Study.resume(path, budget=ft.Budget(seconds=spent + LEFT)) as study:
        began = time.perf_counter()
        study.run(objective, isolate=False, progress=False)
        took = time.perf_counter() - began

    assert took < LEFT + SLACK, f"a run with {LEFT} s left took {took:.1f} s"
    asks = asks_in(path)
    assert len(asks) > 1, "a second is enough for more than one evaluation"
    assert {ask.get("way") for ask in asks} <= {"kept", "few", "none"}, "in full there was no time"
    given = [ask["seconds"] for ask in asks]
    assert all(0.0 <= seconds < LEFT for seconds in given)
    assert given == sorted(given, reverse=True), "ever less as the end comes closer"

    with ft.Study.resume(path) as study:
        for number in (TRIALS, TRIALS + len(asks) - 1):
            assert proposed_again(study, number) == study.trial(number).config, "the same way proposes the same"


def proposed_again(study: ft.Study, number: int) -> dict[str, float]:
    """What the policy proposes from what the file says that it knew then, in the way it took."""
    then = study._session.record.before(number)
    rng = np.random.default_rng([study.seed, then.history.asks])
    with one_blas_thread():
        (proposal,) = study.policy.propose(SPACE, then.history, then.ledger, 1, rng)
    return dict(proposal.config)
