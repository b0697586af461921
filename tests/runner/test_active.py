"""Evaluations side by side: what is kept about all of them is what a look at each of them would say."""

from __future__ import annotations

import math
from random import Random

import pytest

from farthing.runner.active import SPARE, Active, Advancing, Doom, Verdict
from farthing.runner.checkpoints import Checkpoints
from farthing.runner.limits import TrialLimits
from farthing.trial import EndedBy, Status

VERDICT = Verdict(0.2, Status.KILLED, EndedBy.BUDGET, "killed")


def begun(tmp_path, began: float, limit: float = math.inf, before: float = 0.0) -> Active:
    return Active(Checkpoints(tmp_path), began, before, limits=TrialLimits(limit))


def looked_at(advancing: Advancing, now: float) -> tuple[float, float, bool]:
    """Their ages together, when the next is due, and whether all are doomed, by looking at each."""
    each = list(advancing.values())
    ages = math.fsum(active.age(now) for active in each)
    return ages, min((active.due for active in each), default=math.inf), all(active.doom for active in each)


@pytest.mark.parametrize("seed", range(5))
def test_it_knows_what_a_look_at_each_would_say(seed, tmp_path):
    """However evaluations begin, do further steps, are doomed and end."""
    random, advancing, now = Random(seed), Advancing(), 1000.0
    for number in range(400):
        now += random.expovariate(10.0)
        limit = random.choice([math.inf, random.uniform(0.1, 5.0)])
        advancing.add(number, begun(tmp_path, now, limit, random.uniform(0.0, 0.1)))
        other = random.choice(list(advancing))
        match random.randrange(4):
            case 0:
                advancing.pop(other)
            case 1:
                advancing.doom(other, Doom(now + random.uniform(0.0, 2.0), VERDICT))
            case 2 if advancing[other].doom is None:
                advancing[other].before += now - advancing[other].began
                advancing.begin(other, now)
        ages, due, are_doomed = looked_at(advancing, now)
        assert advancing.ages(now) == (len(advancing), pytest.approx(ages, abs=1e-6))
        assert advancing.next_due() == due
        assert advancing.are_doomed == are_doomed


def test_ages_do_not_drift(tmp_path):
    """After a million comings and goings at odd moments, nobody is of no age at all."""
    advancing = Advancing()
    advancing.add(0, begun(tmp_path, 1e6 + 1 / 3))
    for _ in range(100_000):
        advancing.begin(0, 1e6 + 1 / 7)
        advancing.begin(0, 1e6 + 1 / 3)
    assert advancing.ages(1e6 + 1 / 3).seconds == 0.0


def test_those_that_are_due_come_in_their_order_once_each_is_dealt_with(tmp_path):
    advancing = Advancing()
    for number, limit in enumerate([3.0, 1.0, 9.0, 2.0]):
        advancing.add(number, begun(tmp_path, 0.0, limit))
    order = []
    for number in advancing.due(5.0):
        order.append(number)
        advancing.pop(number)
    assert order == [1, 3, 0]
    assert list(advancing) == [2]


def test_a_trial_that_comes_back_again_and_again_leaves_nothing_behind(tmp_path):
    """Its limits are far off, so entries of earlier stretches would pile up until then."""
    advancing = Advancing()
    for moment in range(10_000):
        advancing.add(7, begun(tmp_path, float(moment), 1e9))
        advancing.pop(7)
    assert len(advancing._queue) <= SPARE + 1


def test_nobody_is_never_due():
    advancing = Advancing()
    assert advancing.next_due() == math.inf
    assert list(advancing.due(1e9)) == []
    assert advancing.ages(5.0) == (0, 0.0)
    assert advancing.are_doomed
