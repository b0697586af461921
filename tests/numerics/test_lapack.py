"""Factorisations without the interpreter's lock give what SciPy's functions give."""

from __future__ import annotations

import sys
import threading
import time

import numpy as np
import pytest
from scipy.linalg import lapack as scipys

from farthing.numerics import lapack
from farthing.numerics.threads import one_blas_thread


@pytest.fixture(params=[0.0, np.inf], ids=["unlocked", "by SciPy"])
def limit(request, monkeypatch):
    monkeypatch.setattr(lapack, "LARGE", request.param)


def matrix(n=40):
    A = np.random.default_rng(n).standard_normal((n, n))
    return A @ A.T + n * np.eye(n)


@pytest.mark.parametrize("order", ["C", "F"])
def test_results_are_the_same_to_the_last_bit(limit, order):
    K = np.array(matrix(), order=order)
    B = np.array(np.random.default_rng(1).random((40, 7)), order=order)
    L, info = lapack.dpotrf(K, clean=True)
    assert info == 0
    np.testing.assert_array_equal(L, scipys.dpotrf(K, lower=1, clean=1)[0])
    np.testing.assert_array_equal(lapack.dtrtrs(L, B), scipys.dtrtrs(L, B, lower=1)[0])
    np.testing.assert_array_equal(lapack.dtrtrs(L, B, trans=True), scipys.dtrtrs(L, B, lower=1, trans=1)[0])
    np.testing.assert_array_equal(lapack.dtrtrs(L, B[:, 0]), scipys.dtrtrs(L, B[:, 0], lower=1)[0])
    np.testing.assert_array_equal(lapack.dpotri(L), scipys.dpotri(L, lower=1)[0])


def test_what_is_given_stays_as_it_is_unless_it_may_be_overwritten(limit):
    K = np.asfortranarray(matrix())
    before = K.copy()
    L = lapack.dpotrf(K, clean=True)[0]
    kept, B = L.copy(), np.asfortranarray(np.ones((40, 2)))
    lapack.dpotri(L)
    lapack.dtrtrs(L, B)
    np.testing.assert_array_equal(K, before)
    np.testing.assert_array_equal(L, kept)
    assert (B == 1.0).all()
    assert lapack.dpotrf(K, clean=False, overwrite=True)[0] is K or np.shares_memory(
        lapack.dpotri(L, overwrite=True), L
    )


def test_a_matrix_without_a_factor_says_so(limit):
    assert lapack.dpotrf(-np.eye(5), clean=True)[1] == 1


def test_this_scipy_has_the_routines():
    assert all(lapack._unlocked(name) is not None for name in lapack._FORMS)


def test_another_thread_goes_on_meanwhile():
    """While a large matrix is factorised again and again, this thread counts on: with the lock held it would get its
    turn a few times per factorisation at most."""
    K, stop, rounds = matrix(700), threading.Event(), [0]
    lapack.dpotrf(K, clean=False)

    def factorise():
        while not stop.is_set():
            lapack.dpotrf(K, clean=False)
            rounds[0] += 1

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-4)
    try:
        with one_blas_thread():
            other = threading.Thread(target=factorise)
            other.start()
            turns, ends = 0, time.monotonic() + 0.5
            while time.monotonic() < ends:
                time.sleep(0)  # gives the lock away
                turns += 1
            stop.set()
            other.join()
    finally:
        sys.setswitchinterval(before)
    assert turns > 20 * rounds[0]
