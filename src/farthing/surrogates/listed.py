"""Models at the points of a short list: all that was expensive about them is computed, and a new outcome changes the
rest in microseconds.

Symbols: m points; mu (m,) and S (m, m) the joint posterior of a process at them; J the points whose outcomes z have
become known, N the noise variance:

    mu' = mu + S_J' (S_JJ + N I)^-1 (z - mu_J),      S' = S - S_J' (S_JJ + N I)^-1 S_J

In a list the coordinates of a point are its place: X (k, 1) holds whole numbers. Places have no slopes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from farthing.numerics.arrays import Array, Ints
from farthing.numerics.linalg import cholesky, forward
from farthing.surrogates.cost.log_cost import CostModel
from farthing.surrogates.fantasies import COUNT


def places(X: Array) -> Ints:
    """The places (k,) that X (k, 1) names."""
    return X[:, 0].astype(np.intp)


@dataclass(frozen=True, eq=False)
class JointPosterior:
    """A process at m points."""

    mean: Array  # (m,)
    covariance: Array  # (m, m)
    noise: float

    def given(self, at: Ints, outcomes: Array) -> JointPosterior:
        """After outcomes (j,) at some of the points became known."""
        means, covariance = self._conditioned(at, outcomes[:, None])
        return JointPosterior(means[:, 0], covariance, self.noise)

    def extended(self, mean: Array, across: Array, covariance: Array) -> JointPosterior:
        """With k more points: their mean (k,), their covariance (m, k) with those before, and among them (k, k)."""
        whole = np.block([[self.covariance, across], [across.T, covariance]])
        return JointPosterior(np.concatenate([self.mean, mean]), whole, self.noise)

    def surprise(self, at: Ints, outcomes: Array) -> float:
        """How far the outcome that was least expected is from its prediction, in standard deviations."""
        spread = np.sqrt(np.maximum(self.covariance[at, at], 0.0) + self.noise)
        return float(np.max(np.abs(outcomes - self.mean[at]) / spread, initial=0.0))

    def fantasised(
        self, at: Ints, target: float, least_variance: float, rng: np.random.Generator, count: int = COUNT
    ) -> ListedFantasies:
        """Under `count` outcomes of the points that are being evaluated, drawn from their joint posterior."""
        if not len(at):
            variance = np.maximum(np.diag(self.covariance), least_variance)
            return ListedFantasies(self.mean[:, None], variance, np.array([target]))
        factor = cholesky(self._with_noise(at))
        drawn = self.mean[at, None] + factor @ rng.standard_normal((len(at), count))  # (j, count)
        means, covariance = self._conditioned(at, drawn)
        variance = np.maximum(np.diag(covariance), least_variance)
        return ListedFantasies(means, variance, np.minimum(target, drawn.min(axis=0)))

    def _with_noise(self, at: Ints) -> Array:
        return self.covariance[np.ix_(at, at)] + self.noise * np.eye(len(at))

    def _conditioned(self, at: Ints, outcomes: Array) -> tuple[Array, Array]:
        """Means (m, k) and covariance (m, m) given outcomes (j, k)."""
        factor = cholesky(self._with_noise(at))
        explained = forward(factor, self.covariance[at])  # (j, m)
        means = self.mean[:, None] + explained.T @ forward(factor, outcomes - self.mean[at, None])
        return means, self.covariance - explained.T @ explained


@dataclass(frozen=True, eq=False)
class ListedFantasies:
    """What `Fantasies` are, at the places of a list."""

    means: Array  # (m, k)
    variance: Array  # (m,)
    targets: Array  # (k,)

    def predict(self, X: Array) -> tuple[Array, Array]:
        return self.means[places(X)], self.variance[places(X)]

    def predict_with_pull(self, X: Array) -> tuple[Array, Array, Array, Callable[[Array], Array]]:
        flat = np.zeros_like(X)
        return *self.predict(X), flat, lambda weights: flat


@dataclass(frozen=True, eq=False)
class ListedCost(CostModel):
    """log cost at the places of a list."""

    mean: Array  # (m,)
    variance: Array  # (m,)

    def predict(self, X: Array) -> tuple[Array, Array]:
        return self.mean[places(X)], self.variance[places(X)]

    def predict_with_gradient(self, X: Array) -> tuple[Array, Array, Array, Array]:
        flat = np.zeros_like(X)
        return *self.predict(X), flat, flat


@dataclass(frozen=True, eq=False)
class ListedSuccess:
    """The log probability of success at the places of a list."""

    log_chance: Array  # (m,)

    def log_success(self, X: Array) -> Array:
        return self.log_chance[places(X)]

    def log_success_with_gradient(self, X: Array) -> tuple[Array, Array]:
        return self.log_success(X), np.zeros_like(X)
