"""A Gaussian process under several possible outcomes of evaluations that are still running.

Symbols: X (n, f) all inputs, the pending ones last; k fantasies; alphas (n, k) = K^-1 (Y - mean), a column for each;
targets (k,) the value to beat in each. All fantasies share the inputs, hence the factor L and the variance; only the
means differ (CArBO, Algorithm 3: lines 8 to 11).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from farthing.numerics.arrays import Array
from farthing.numerics.linalg import backward, cholesky, forward
from farthing.surrogates.gp import GP

COUNT = 10  # k, the n_f of the paper


@dataclass(frozen=True, eq=False)
class Fantasies:
    """One process under k possible outcomes of the pending evaluations."""

    process: GP  # conditioned on the pending inputs; its own alpha is that of the first fantasy
    Y: Array  # (n, k) outputs in each fantasy
    alphas: Array  # (n, k)
    targets: Array  # (k,)

    @classmethod
    def of(cls, process: GP, target: float, pending: Array, rng: np.random.Generator, count: int = COUNT) -> Fantasies:
        """Fantasies of the pending inputs (m, f), drawn from their joint posterior; with none pending, the process."""
        if not len(pending):
            return cls(process, process.y[:, None], process.alpha[:, None], np.array([target]))
        mean, covariance = process.covariance(pending)
        covariance[np.diag_indices(len(pending))] += process.noise
        drawn = mean[:, None] + cholesky(covariance) @ rng.standard_normal((len(pending), count))  # (m, k)
        start = cls(process, np.repeat(process.y[:, None], count, axis=1), np.empty((0, 0)), np.full(count, target))
        return start._with(pending, drawn)

    def extended(self, x: Array, rng: np.random.Generator, count: int = COUNT) -> Fantasies:
        """With one more pending input x (1, f), each fantasy drawing its own outcome."""
        if len(self.targets) == 1 and count > 1:
            return Fantasies.of(self.process, float(self.targets[0]), x, rng, count)
        means, variance = self.predict(x)
        spread = np.sqrt(variance + self.process.noise)
        return self._with(x, means + spread * rng.standard_normal(means.shape))

    def _with(self, X: Array, drawn: Array) -> Fantasies:
        """All fantasies conditioned on their own outcomes drawn (m, k) at X (m, f)."""
        process = self.process.condition(X, drawn[:, 0])
        Y = np.concatenate([self.Y, drawn])
        alphas = backward(process.L, forward(process.L, Y - _column(process.prior_mean(process.X))))
        targets = np.minimum(self.targets, drawn.min(axis=0))
        return replace(self, process=process, Y=Y, alphas=alphas, targets=targets)

    def predict(self, X: Array) -> tuple[Array, Array]:
        """Means (m, k) and variance (m,) at X (m, f)."""
        K = self.process.between(X)
        V = forward(self.process.L, K.T)
        return _column(self.process.prior_mean(X)) + K @ self.alphas, self.process.posterior_variance(V)

    def predict_with_pull(self, X: Array) -> tuple[Array, Array, Array, Callable[[Array], Array]]:
        """Means (m, k), variance (m,), d variance / dX (m, f), and the map from weights W (m, k) to the gradient (m, f)
        of sum_k W_k mean_k: what an average over fantasies needs, without k gradients."""
        K, decay, A = self.process.cross(X)
        V = forward(self.process.L, K.T)
        variance = self.process.posterior_variance(V)
        slope = self.process.pull(A, decay * backward(self.process.L, V).T)
        free = (variance > self.process.least_variance)[:, None]
        variance_slope = np.where(free, -2.0 * self.process.variance * slope, 0.0)
        prior_slope = self.process.prior_slope(X)

        def pull(weights: Array) -> Array:
            along_prior = prior_slope * weights.sum(axis=1)[:, None]
            return np.asarray(along_prior + self.process.pull(A, decay * (weights @ self.alphas.T)))

        return _column(self.process.prior_mean(X)) + K @ self.alphas, variance, variance_slope, pull


def _column(prior: Array | float) -> Array | float:
    """A prior mean, the same in all fantasies."""
    return prior[:, None] if isinstance(prior, np.ndarray) else prior
