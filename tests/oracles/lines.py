"""Log costs that are linear in a few parameters, for tests of lines through them."""

from __future__ import annotations

import numpy as np

ONES = [np.array([0]), np.array([1]), np.array([2])]


def drawn(n: int = 30, seed: int = 0, noise: float = 0.3) -> tuple[np.ndarray, np.ndarray]:
    """Three parameters, the first two of them matter; some residuals are far out."""
    rng = np.random.default_rng(seed)
    Z = rng.random((n, 3))
    b = 1.0 + 3.0 * Z[:, 0] - 2.0 * Z[:, 1] + noise * rng.standard_normal(n)
    b[:: max(n // 3, 1)] += 4.0
    return Z, b


def one_hot(options: np.ndarray, k: int) -> np.ndarray:
    return (options[:, None] == np.arange(k)) / np.sqrt(2.0)
