"""Predictions as mixtures of normals, one for each draw of the slopes that are known to be negative."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from farthing.numerics.arrays import Array


@dataclass(frozen=True, eq=False)
class Mixture:
    """S normals of one variance for each of p probes: weights (S, p), means (S, p), variance (p,)."""

    weights: Array
    means: Array
    variance: Array

    def moments(self) -> tuple[Array, Array]:
        """Mean (p,) and variance (p,) of the whole."""
        mean = np.einsum("ij,ij->j", self.weights, self.means)
        spread = self.means - mean
        return mean, self.variance + np.einsum("ij,ij,ij->j", self.weights, spread, spread)

    def quantiles(self, share: float) -> Array:
        """The values (p,) below which a share of the probability lies, by bisection."""
        reach = 10.0 * np.sqrt(self.variance)
        low, high = self.means.min(axis=0) - reach, self.means.max(axis=0) + reach
        sd = np.sqrt(self.variance)
        for _ in range(60):
            middle = 0.5 * (low + high)
            below = np.einsum("ij,ij->j", self.weights, ndtr((middle - self.means) / sd)) < share
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        return np.asarray(0.5 * (low + high))

    @property
    def effective(self) -> Array:
        """The effective number of draws (p,): how many of equal weight would say as much."""
        return np.asarray(1.0 / np.einsum("ij,ij->j", self.weights, self.weights))
