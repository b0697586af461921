"""A study is safe to use from several threads."""

from __future__ import annotations

import threading

import pytest

import farthing as ft
from farthing.errors import StudyEnded

SPACE = ft.Space(x=ft.Real(0, 1), y=ft.Real(0, 1))
TRIALS, THREADS = 200, 8


def work(study: ft.Study, errors: list[BaseException]) -> None:
    try:
        while True:
            proposal = study.ask()
            study.tell(proposal, value=proposal.config["x"], cost=1.0)
    except StudyEnded:
        pass
    except BaseException as error:
        errors.append(error)


@pytest.mark.parametrize("kept", ["in a file", "in memory"])
def test_eight_threads_ask_and_tell_two_hundred_trials(tmp_path, kept):
    path = tmp_path / "study.db" if kept == "in a file" else None
    study, errors = ft.Study(SPACE, f"{TRIALS} evaluations", policy="random", seed=0, storage=path), []
    threads = [threading.Thread(target=work, args=(study, errors)) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):  # looking on does not disturb
        assert all(trial.number == number for number, trial in enumerate(study.trials))
        assert study.ledger.running <= THREADS
        threads[0].join(0.01)
    assert errors == []
    assert study.count(ft.Status.COMPLETE) == len(study.trials) == TRIALS
    assert study.ledger.spent == study.ledger.total("evaluations") == TRIALS
    if path is not None:
        study.close()
        with ft.Study.resume(path) as again:
            assert again.trials == study.trials
            assert again.ledger == study.ledger


class Pondering:
    """A policy that thinks until it is let go."""

    name = "pondering"

    def __init__(self) -> None:
        self.thinks, self.go = threading.Event(), threading.Event()

    def propose(self, space, history, ledger, n, rng):
        if history.trials:
            self.thinks.set()
            assert self.go.wait(60)
        return [ft.Proposal(len(history.trials), {"x": float(rng.random()), "y": 0.5})]


def test_who_looks_does_not_wait_for_thinking_and_who_tells_is_not_lost():
    policy = Pondering()
    study = ft.Study(SPACE, "9 evaluations", policy=policy, seed=0)
    first, errors = study.ask(), []
    asking = threading.Thread(target=study.ask)
    telling = threading.Thread(target=lambda: errors.append(study.tell(first, value=1.0)))
    asking.start()
    assert policy.thinks.wait(60)
    telling.start()
    assert [trial.status.value for trial in study.trials] == ["running"]
    assert study.ledger.running == 1
    telling.join(0.1)
    waits = telling.is_alive()
    policy.go.set()
    asking.join(60)
    telling.join(60)
    assert [trial.status.value for trial in study.trials] == ["complete", "running"]
    assert waits, "what a policy thinks about does not change meanwhile"
