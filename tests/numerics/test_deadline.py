"""Computations that have to be ready by a time."""

from __future__ import annotations

import math
import threading
import time

import numpy as np
import pytest

from farthing.numerics.deadline import OutOfTime, keep_to_deadline, unless, within
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
    given_up = threading.Event()
    with unless(given_up):
        keep_to_deadline()
        another = threading.Thread(target=given_up.set)
        another.start()
        another.join()
        with pytest.raises(OutOfTime):
            keep_to_deadline()
    keep_to_deadline()


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
