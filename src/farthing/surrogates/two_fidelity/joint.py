"""What both fidelities say together about one configuration, before the bias is cut to its bounds.

Symbols and shapes
    f, delta       the low fidelity and the bias;  y_c = rho f + delta
    u              the complete runs without a low-fidelity run: the last rows of the bias's data
    c    (k, u)    covariance of f(x) and f(X_u) given the low fidelity's data
    C^-1 (n, n)    of d = y_c - rho (own or imputed low value), whose last rows hold rho (f - its mean) as well as delta

A run seen at both fidelities says nothing new about f (Proposition 1), and then f and delta are independent. A complete
run whose low value was imputed says something about their sum. All is normal, so with alpha = C^-1 (d - mu) and
k_d = cov(delta(x), delta)
    f:      mean + rho c alpha_u,          variance - rho^2 c (C^-1)_uu c'
    delta:  mu + k_d' alpha,               s2 - k_d' C^-1 k_d
    cov(f, delta) = -rho c (C^-1 k_d)_u
which is the posterior of the autoregressive process of Kennedy and O'Hagan (2000) for data that are not nested.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from farthing.numerics.arrays import Array
from farthing.numerics.linalg import backward, forward
from farthing.surrogates.gp import GP


@dataclass(frozen=True, eq=False)
class Pair:
    """Mean and variance of f and of delta, and their covariance: each (k,), or (k, f) where it is their gradient."""

    low: Array
    low_variance: Array
    bias: Array
    bias_variance: Array
    covariance: Array


@dataclass(frozen=True, eq=False)
class Joint:
    """Both processes; the last `imputed` complete runs have no low-fidelity run."""

    low: GP
    bias: GP
    rho: float
    imputed: int = 0

    def predict(self, X: Array) -> Pair:
        """At X (k, f)."""
        low, bias = self.low.predict(X), self.bias.predict(X)
        pair = Pair(low[0], low[1], bias[0], bias[1], np.zeros(len(X)))
        if not self.imputed:
            return pair
        c = self._reach.cross(X)[0] @ self._towards
        return self._with_complete_runs(pair, c, self.bias.cross(X)[0] @ self._columns)

    def predict_with_gradient(self, X: Array) -> tuple[Pair, Pair]:
        """At X (k, f), and the gradients by X."""
        low, bias = self.low.predict_with_gradient(X), self.bias.predict_with_gradient(X)
        pair = Pair(low[0], low[1], bias[0], bias[1], np.zeros(len(X)))
        slopes = Pair(low[2], low[3], bias[2], bias[3], np.zeros_like(X))
        if not self.imputed:
            return pair, slopes
        K, decay, A = self._reach.cross(X)
        c = K @ self._towards
        K_bias, decay_bias, A_bias = self.bias.cross(X)
        t = K_bias @ self._columns

        def by_c(weights: Array) -> Array:
            """Gradient (k, f) of sum_j weights_j c_j."""
            return self._reach.pull(A, decay * (weights @ self._towards.T))

        by_t = self.bias.pull(A_bias, decay_bias * (c @ self._columns.T))
        return self._with_complete_runs(pair, c, t), replace(
            slopes,
            low=slopes.low + self.rho * by_c(self._alpha[None, :]),
            low_variance=slopes.low_variance - 2.0 * self.rho**2 * by_c(c @ self._inverse),
            covariance=-self.rho * (by_c(t) + by_t),
        )

    def _with_complete_runs(self, pair: Pair, c: Array, t: Array) -> Pair:
        """With what complete runs say about the low fidelity; t (k, u) is (C^-1 k_d)_u."""
        gained = self.rho**2 * np.einsum("ij,jk,ik->i", c, self._inverse, c)
        return replace(
            pair,
            low=pair.low + self.rho * c @ self._alpha,
            low_variance=np.maximum(pair.low_variance - gained, self.low.least_variance),
            covariance=-self.rho * np.einsum("ij,ij->i", c, t),
        )

    @cached_property
    def _unseen(self) -> slice:
        return slice(len(self.bias.X) - self.imputed, None)

    @cached_property
    def _reach(self) -> GP:
        """The low fidelity's kernel from x to X_u and to its data; only its `cross` and `pull` make sense."""
        return replace(self.low, X=np.concatenate([self.bias.X[self._unseen], self.low.X]))

    @cached_property
    def _towards(self) -> Array:
        """(u + m, u): c is this linear map of the kernel's values."""
        explained = backward(self.low.L, forward(self.low.L, self.low.cross(self.bias.X[self._unseen])[0].T))
        return self.low.variance * np.concatenate([np.eye(self.imputed), -explained])

    @cached_property
    def _columns(self) -> Array:
        """(n, u): the last columns of K^-1 = s2 C^-1."""
        return backward(self.bias.L, forward(self.bias.L, np.eye(len(self.bias.X))[:, self._unseen]))

    @cached_property
    def _inverse(self) -> Array:
        """(u, u): (C^-1)_uu."""
        return np.asarray(self._columns[self._unseen] / self.bias.variance)

    @cached_property
    def _alpha(self) -> Array:
        """(u,): (C^-1 (d - mu))_u."""
        return np.asarray(self.bias.alpha[self._unseen] / self.bias.variance)
