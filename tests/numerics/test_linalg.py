"""Cholesky factors and triangular solves against numpy.linalg."""

from __future__ import annotations

import numpy as np
import pytest

from farthing.numerics.linalg import LAST_JITTER, backward, cholesky, extend_cholesky, forward, lower_inverse

SIZES = [1, 2, 5, 40]


def positive_definite(n: int, seed: int = 0) -> np.ndarray:
    A = np.random.default_rng([seed, n]).standard_normal((n, n))
    return A @ A.T + 0.1 * n * np.eye(n)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("order", ["C", "F"])
def test_cholesky_is_that_of_numpy_where_there_is_one(n, order):
    K = np.array(positive_definite(n), order=order)
    np.testing.assert_allclose(cholesky(K), np.linalg.cholesky(K), rtol=1e-12, atol=1e-12)


def test_cholesky_adds_nothing_to_a_matrix_that_has_a_factor():
    """A jitter of 1e-10 would move the smallest eigenvalue of this matrix by a tenth of it."""
    Q = np.linalg.qr(np.random.default_rng(1).standard_normal((6, 6)))[0]
    K = (Q * np.array([1.0, 1.0, 1.0, 1.0, 1.0, 1e-9])) @ Q.T
    L = cholesky(K)
    assert np.linalg.det(L) ** 2 == pytest.approx(1e-9, rel=1e-4)


def test_cholesky_reads_only_the_lower_triangle():
    K = positive_definite(6)
    garbage = np.tril(K) + np.triu(np.full((6, 6), 1e9), 1)
    np.testing.assert_array_equal(cholesky(garbage), cholesky(K))


def test_cholesky_is_lower_triangular_with_positive_diagonal():
    L = cholesky(positive_definite(9))
    np.testing.assert_array_equal(L, np.tril(L))
    assert (np.diag(L) > 0.0).all()


@pytest.mark.parametrize("order", ["C", "F"])
def test_cholesky_leaves_its_argument_as_it_was(order):
    for K in (positive_definite(5), np.ones((5, 5))):
        K = np.array(K, order=order)
        before = K.copy()
        cholesky(K)
        np.testing.assert_array_equal(K, before)


@pytest.mark.parametrize("scale", [1e-200, 1e-12, 1.0, 1e12, 1e200])
@pytest.mark.parametrize("rank", [1, 3, 11])
def test_cholesky_of_a_singular_matrix_is_that_of_one_close_by(rank, scale):
    """The jitter is relative, so the same matrix in other units has the same factor in those units."""
    A = np.random.default_rng(rank).standard_normal((12, rank))
    K = A @ A.T
    L = cholesky(scale * K)
    assert np.isfinite(L).all()
    assert (np.diag(L) > 0.0).all()
    np.testing.assert_allclose(L @ L.T / scale, K, atol=1e-9 * np.mean(np.diag(K)))


@pytest.mark.parametrize("needed", [3e-9, 3e-8, 3e-7, 3e-6, 3e-5, 3e-4])
def test_cholesky_adds_hardly_more_than_the_matrix_needs(needed):
    """A lowest eigenvalue of -needed: the same is added to the whole diagonal, at most one decade too much."""
    Q = np.linalg.qr(np.random.default_rng(2).standard_normal((8, 8)))[0]
    K = (Q * np.array([1.0] * 7 + [-needed])) @ Q.T
    L = cholesky(K)
    added = np.diag(L @ L.T - K)
    assert (added > 0.99 * needed).all()
    assert (added < 10.1 * needed).all()
    np.testing.assert_allclose(added, added[0], atol=1e-14)


def test_cholesky_refuses_an_indefinite_matrix():
    with pytest.raises(FloatingPointError, match="Cholesky"):
        cholesky(np.array([[1.0, 2.0], [2.0, 1.0]]))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("where", [(0, 0), (2, 0), (2, 2)])
def test_cholesky_refuses_a_matrix_that_is_not_finite(bad, where):
    K = positive_definite(3)
    K[where] = K[where[::-1]] = bad
    with pytest.raises(FloatingPointError):
        cholesky(K)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("m", [1, 3])
def test_an_extended_factor_is_the_factor_of_the_whole(n, m):
    K = positive_definite(n + m)
    grown = extend_cholesky(cholesky(K[:n, :n]), K[:n, n:], K[n:, n:])
    np.testing.assert_allclose(grown, np.linalg.cholesky(K), rtol=1e-11, atol=1e-11)


def test_extending_with_a_duplicate_of_a_row_still_gives_a_factor():
    K = positive_definite(5)
    twice = K[np.ix_([0, 1, 2, 3, 4, 2], [0, 1, 2, 3, 4, 2])]
    grown = extend_cholesky(cholesky(K), twice[:5, 5:], twice[5:, 5:])
    assert np.isfinite(grown).all()
    np.testing.assert_allclose(grown @ grown.T, twice, atol=0.011 * LAST_JITTER * np.trace(twice))


def test_extending_by_no_rows_changes_nothing():
    L = cholesky(positive_definite(4))
    np.testing.assert_array_equal(extend_cholesky(L, np.empty((4, 0)), np.empty((0, 0))), L)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("columns", [(), (1,), (4,)])
def test_forward_and_backward_solve_with_the_factor_and_its_transpose(n, columns):
    L = np.linalg.cholesky(positive_definite(n))
    B = np.random.default_rng(n).standard_normal((n, *columns))
    before = B.copy()
    np.testing.assert_allclose(forward(L, B), np.linalg.solve(L, B), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(backward(L, B), np.linalg.solve(L.T, B), rtol=1e-10, atol=1e-12)
    assert forward(L, B).shape == backward(L, B).shape == B.shape
    np.testing.assert_array_equal(B, before)


@pytest.mark.parametrize("n", SIZES)
def test_lower_inverse_holds_the_lower_triangle_of_the_inverse(n):
    K = positive_definite(n)
    inverse = lower_inverse(cholesky(K))
    np.testing.assert_allclose(np.tril(inverse), np.tril(np.linalg.inv(K)), rtol=1e-9, atol=1e-12)
