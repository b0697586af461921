"""Computations that have to be ready by a time."""

from __future__ import annotations

import math
import threading
import time

import numpy as np
import pytest

from farthing.numerics.deadline import LONGEST_PAUSE, OutOfTime, in_background, keep_to_deadline, within
from farthing.numerics.optimize import minimize_rows
from farthing.surrogates import gp


def test_without_a_deadline_nothing_is_given_up():
    keep_to_deadline()
    with within(math.inf):
        keep_to_deadline()


def test_it_holds_inside_only():
    with within(60.0):
        with pytest.raises(OutOfTime), within(0.0):
            keep_to_deadline()
        keep_to_deadline()
    keep_to_deadline()


def test_another_thread_can_give_it_up():
    given_up, clear = threading.Event(), threading.Event()
    clear.set()
    with in_background(given_up, clear):
        keep_to_deadline()
        another = threading.Thread(target=given_up.set)
        another.start()
        another.join()
        with pytest.raises(OutOfTime):
            keep_to_deadline()
    keep_to_deadline()


def test_in_the_background_it_pauses_while_it_is_in_the_way():
    clear, passed = threading.Event(), threading.Event()

    def compute():
        with in_background(threading.Event(), clear):
            keep_to_deadline()
        passed.set()

    another = threading.Thread(target=compute)
    another.start()
    assert not passed.wait(0.2 * LONGEST_PAUSE)
    clear.set()
    another.join()
    assert passed.is_set()


def test_it_does_not_pause_for_long():
    with in_background(threading.Event(), threading.Event()):
        began = time.monotonic()
        keep_to_deadline()
    assert 0.5 * LONGEST_PAUSE < time.monotonic() - began < 20 * LONGEST_PAUSE


def test_a_fit_is_given_up_soon_after():
    """With 1,500 observations it would take seconds."""
    rng = np.random.default_rng(0)
    X, y = rng.random((1_500, 6)), rng.standard_normal(1_500)
    began = time.process_time()
    with pytest.raises(OutOfTime), within(0.05):
        gp.fit(X, y)
    assert time.process_time() - began < 1.5


def test_a_search_is_given_up():
    def bowl(X, rows):
        time.sleep(0.02)
        return ((X - 0.3) ** 2).sum(axis=1), 2 * (X - 0.3)

    with pytest.raises(OutOfTime), within(0.01):
        minimize_rows(bowl, np.full((1, 2), 0.9))


def test_what_is_ready_in_time_is_what_it_would_have_been():
    rng = np.random.default_rng(0)
    X, y = rng.random((40, 3)), rng.standard_normal(40)
    with within(600.0):
        hurried = gp.fit(X, y)
    assert hurried.hyperparameters == gp.fit(X, y).hyperparameters
