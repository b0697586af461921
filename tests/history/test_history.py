"""A history grows cheaply, and every one that ever was stays what it was."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import farthing as ft
from farthing.history import History
from farthing.history.history import Place, TrackedTrial, Trials
from farthing.history.persistent import RATIO, WIDTH, KeySet, Vector
from farthing.policies.candidates import FreshSpace
from farthing.trial import ENDS_OF_STUDY, EndedBy, Status

EDGES = [0, 1, WIDTH - 1, WIDTH, WIDTH + 1, WIDTH**2 - 1, WIDTH**2, WIDTH**2 + 1, 3 * WIDTH**2]


class TestVector:
    @pytest.mark.parametrize("length", EDGES)
    def test_it_is_the_sequence_of_its_items_however_it_was_made(self, length):
        items = list(range(length))
        grown: Vector[int] = Vector()
        for item in items:
            grown = grown.with_item(item, item)
        for vector in (grown, Vector.of(items)):
            assert len(vector) == length
            assert list(vector) == items
            assert [vector[i] for i in range(-length, length)] == items + items
            for part in (slice(None), slice(-3, None), slice(5, 40, 7), slice(None, None, -1), slice(9, 2)):
                assert vector[part] == tuple(items[part])

    @pytest.mark.parametrize("length", EDGES[1:])
    def test_an_item_can_be_replaced_anywhere_and_the_old_one_stays(self, length):
        before = Vector.of(range(length))
        for place in {0, length // 2, length - 1}:
            after = before.with_item(place, -1)
            assert list(before) == list(range(length))
            assert list(after) == [-1 if i == place else i for i in range(length)]

    def test_places_that_are_not_there_are_refused(self):
        vector = Vector.of("abc")
        for place in (-4, 3):
            with pytest.raises(IndexError):
                vector[place]
        for place in (-1, 4):
            with pytest.raises(IndexError):
                vector.with_item(place, "d")

    @pytest.mark.parametrize("length", [WIDTH**2 + 5, WIDTH**2, 7 * WIDTH**2])
    def test_growing_copies_one_path_and_shares_the_rest(self, length):
        before = Vector.of(range(length))
        after = before.with_item(length, length)
        made = [node for node in nodes(after._root) if id(node) not in set(map(id, nodes(before._root)))]
        assert len(made) <= 4, "a node of each level"


def nodes(node: object) -> list[object]:
    """A tree's inner tuples."""
    return [node, *(inner for child in node for inner in nodes(child))] if isinstance(node, tuple) else []


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(0, 300), max_size=400))
def test_a_key_set_is_a_set_and_stays_as_it_was(keys):
    grown, versions = KeySet(), []
    for key in keys:
        versions.append(grown)
        grown = grown.with_key(key)
    for count in {0, len(keys) // 3, len(keys) // 2}:
        if count < len(versions):
            assert [key in versions[count] for key in range(301)] == [key in keys[:count] for key in range(301)]
    assert [key in grown for key in range(301)] == [key in keys for key in range(301)]
    sizes = [len(part) for part in grown._parts]
    assert all(large >= RATIO * small for large, small in pairwise(sizes))


def scanned(trials: tuple[TrackedTrial, ...]) -> dict[str, object]:
    """What a history knows of its trials, looked for one by one."""
    valued = [trial for trial in trials if trial.value is not None and trial.status is not Status.FAILED]
    return {
        "running": [trial for trial in trials if trial.status is Status.RUNNING],
        "cut_short": [
            trial
            for trial in trials
            if trial.status is Status.INTERRUPTED or (trial.status is Status.PAUSED and trial.ended_by in ENDS_OF_STUDY)
        ],
        "uncounted": sum(trial.status is Status.RUNNING and not trial.counted for trial in trials),
        "incumbent": min(valued, key=lambda trial: (trial.value, trial.number), default=None),
        "counts": {status: sum(trial.status is status for trial in trials) for status in Status},
        "taken": {trial.key for trial in trials},
    }


def known(history: History) -> dict[str, object]:
    return {
        "running": history.running,
        "cut_short": history.cut_short,
        "uncounted": history.trials.uncounted,
        "incumbent": history.incumbent,
        "counts": {status: history.count(status) for status in Status},
        "taken": {(key,) for key in range(12) if (key,) in history.taken},
    }


CHANGES = st.lists(
    st.tuples(
        st.integers(0, 50),
        st.sampled_from(Status),
        st.none() | st.sampled_from([0.0, 1.0, 2.0, -1.0]),
        st.sampled_from([None, *EndedBy]),
        st.integers(0, 11),
    ),
    max_size=60,
)


@settings(max_examples=200, deadline=None)
@given(CHANGES)
def test_a_history_knows_what_a_scan_of_every_trial_finds(changes):
    """Whatever happens to trials, in any order: also what no study does, as a key that changes."""
    empty, trials, past = History(0), (), []
    history = empty
    for place, status, value, ended_by, key in changes:
        number = min(place, len(trials))
        trial = TrackedTrial(number, {}, status, value, ended_by=ended_by, counted=key % 3 == 0, place=Place((key,)))
        history = history.with_trial(trial)
        trials = (*trials[:number], trial, *trials[number + 1 :])
        past.append((history, trials))
    for version, expected in past:
        assert version.trials == expected
        assert version.trials[:] == expected
        assert known(version) == scanned(expected)
        assert version == replace(empty, trials=Trials.of(expected))


def test_two_futures_of_one_history_do_not_see_each_other():
    base = History(0)
    for number in range(40):
        base = base.with_trial(TrackedTrial(number, {}, Status.COMPLETE, float(number), place=Place((number,))))
    left = base.with_trial(TrackedTrial(40, {}, Status.RUNNING, place=Place(("left",))))
    right = base.with_trial(TrackedTrial(40, {}, Status.COMPLETE, -1.0, place=Place(("right",))))
    assert [len(history.trials) for history in (base, left, right)] == [40, 41, 41]
    assert ("left",) in left.taken
    assert ("left",) not in right.taken
    assert ("left",) not in base.taken
    assert (left.running[0].number, right.running, base.running) == (40, [], [])
    assert (left.incumbent.number, right.incumbent.number) == (0, 40)


def test_trials_are_an_immutable_sequence_that_equals_the_tuple_of_them():
    trials = tuple(TrackedTrial(number, {"x": number}, Status.COMPLETE, 1.0) for number in range(3))
    history = History(0, trials=Trials.of(trials))
    assert history.trials == trials
    assert trials == history.trials
    assert history.trials != trials[:2]
    assert history.trials[-1] is trials[-1]
    assert history.trials[1:] == trials[1:]
    assert list(reversed(history.trials)) == list(reversed(trials))
    assert trials[1] in history.trials
    assert replace(history, trials=Trials()).trials == ()
    assert replace(history, trials=Trials()).incumbent is None
    with pytest.raises(TypeError):
        history.trials[0] = trials[1]


def test_a_fresh_space_claims_without_telling_the_history():
    space = ft.Space(n=ft.Integer(0, 3))
    taken = {"n": 0}
    history = History(0).with_trial(TrackedTrial(0, taken, Status.COMPLETE, place=Place(space.key(taken))))
    fresh, rng = FreshSpace(space, history), np.random.default_rng(0)
    claimed = [fresh.claim_any(rng) for _ in range(4)]
    assert sorted(config["n"] for config in claimed[:3]) == [1, 2, 3]
    assert claimed[3] is None
    assert FreshSpace(space, history).claim_any(rng) is not None, "another one starts from the history"
