"""The moments that are kept as events go by are those that the log has."""

from __future__ import annotations

import pytest

import farthing as ft
from farthing.record.moments import MOST, Moments, every
from farthing.trial import Proposal


def told(study, count):
    for _ in range(count):
        proposal = study.ask()
        study.tell(proposal, value=proposal.config["x"], cost=1.0 + proposal.config["x"])


def begun(storage=None, **options):
    return ft.Study(ft.Space(x=ft.Real(0, 1)), ft.Budget(cost=1e6), policy="random", seed=1, storage=storage, **options)


def same_state(a, b):
    assert a.history.trials == b.history.trials
    assert (a.history.asks, a.history.way, a.history.fits) == (b.history.asks, b.history.way, b.history.fits)
    assert a.ledger == b.ledger
    return True


def test_each_moment_is_the_state_that_the_log_has_for_that_trial(tmp_path):
    """In memory, from a file, and from what was written to a file since it was opened; of several proposals of one ask
    the earlier ones are running for the later ones."""
    path = str(tmp_path / "s.db")
    study = begun(path)
    told(study, 3)
    opened = ft.Study.open(path)
    batch = study.ask(3)
    for proposal in reversed(batch):
        study.tell(proposal, value=0.5, cost=2.0)
    told(study, 2)
    opened.refresh()
    for record in (study._session.record, opened._session.record, ft.Study.open(path)._session.record):
        moments = record.moments.kept
        assert [moment.trial for moment in moments] == list(range(8))
        assert all(same_state(moment.state, record.before(moment.trial)) for moment in moments)
    study.close()


def test_a_paused_trial_that_is_asked_for_again_has_the_moment_of_its_first_ask():
    study = ft.tune(_train, {"x": (0.0, 1.0)}, "12 evaluations", policy="bopt", seed=0, max_steps=8, progress=False)
    asked = [event.proposal.trial for event in study._session.record.past() if hasattr(event, "proposal")]
    assert len(asked) > len(set(asked))  # some were asked for again
    moments = study._session.record.moments.kept
    assert [moment.trial for moment in moments] == sorted(set(asked))
    assert all(same_state(moment.state, study._session.record.before(moment.trial)) for moment in moments)


def _train(config):
    for step in range(1, 9):
        yield config["x"] + 1.0 / step


@pytest.mark.parametrize("count", [MOST, MOST + 1, 5 * MOST])
def test_of_many_trials_as_many_are_kept_as_there_is_room_for_evenly_spread(count):
    study = begun()
    told(study, count)
    trials = [moment.trial for moment in study._session.record.moments.kept]
    assert MOST // 2 < len(trials) <= MOST
    assert trials == list(range(0, count, trials[1]))


def test_fewer_of_them_are_some_of_those_that_were_shown_before():
    """A live page that shows a growing study would else draw other moments each time."""
    study = begun()
    told(study, 40)
    kept = study._session.record.moments.kept
    few, more = every(kept[:20], 8), every(kept, 8)
    assert len(few) <= 8
    assert len(more) <= 8
    assert {m.trial for m in more if m.trial < 20} <= {m.trial for m in few}


def test_events_that_are_no_asks_pass_unnoticed():
    study = begun()
    study.add({"x": 0.5}, value=1.0)
    told(study, 1)
    assert [moment.trial for moment in study._session.record.moments.kept] == [1]
    assert Moments().kept == ()
    assert isinstance(study.ask(), Proposal)
