"""When a start is tried again, and when not."""

from __future__ import annotations

import errno
import os
import warnings

import pytest

from farthing.runner import failed_starts
from farthing.runner.failed_starts import LONGEST_PAUSE, PATIENCE, FailedStarts
from farthing.runner.worker_process import CannotIsolate


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        monkeypatch.setattr(failed_starts.time, "monotonic", lambda: self.now)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def lacking(number: int) -> OSError:
    return OSError(number, os.strerror(number))


def test_pauses_grow_and_then_it_gives_up_with_the_reason(clock):
    failed, pauses = FailedStarts(), []
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        while clock.now < 1000.0 + PATIENCE:
            failed.raise_if_hopeless()
            failed.note_error(lacking(errno.EAGAIN))
            pauses.append(failed.pause_left)
            clock.now += pauses[-1]
        failed.note_error(lacking(errno.EAGAIN))
    assert pauses[:6] == pytest.approx([0.05, 0.1, 0.2, 0.4, 0.8, 1.6])
    assert pauses[6:] == pytest.approx([LONGEST_PAUSE] * len(pauses[6:]))
    assert ["trying again" in str(warning.message) for warning in said] == [True], "it is said once"
    with pytest.raises(CannotIsolate, match=r"temporarily unavailable.* for 30 seconds"):
        failed.raise_if_hopeless()


@pytest.mark.parametrize("number", [errno.ENOENT, errno.EACCES, errno.ENOEXEC])
def test_what_would_fail_every_time_is_not_tried_again(number):
    failed = FailedStarts()
    failed.note_error(lacking(number))
    with pytest.raises(CannotIsolate):
        failed.raise_if_hopeless()


def test_an_objective_that_ends_its_process_is_given_up_soon_and_a_process_that_never_woke_is_not(clock):
    for was_loading in (True, False):
        failed = FailedStarts()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for _ in range(3):
                failed.raise_if_hopeless()
                failed.note_death("died of SIGSEGV", was_loading)
        if was_loading:
            with pytest.raises(CannotIsolate, match="SIGSEGV"):
                failed.raise_if_hopeless()
        else:
            failed.raise_if_hopeless()


@pytest.mark.parametrize(("reason", "is_hopeless"), [("ImportError: not here", True), ("MemoryError: ", False)])
def test_a_refusal_is_final_unless_memory_was_short(reason, is_hopeless):
    failed = FailedStarts()
    failed.note_refusal(reason)
    if is_hopeless:
        with pytest.raises(CannotIsolate, match="not here"):
            failed.raise_if_hopeless()
    else:
        failed.raise_if_hopeless()
