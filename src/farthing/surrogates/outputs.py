"""A robust, monotone rescaling of outputs before they reach a Gaussian process.

Symbols: y (n,) values to minimise; z = (y - median) / spread, spread the median distance below the median (the side
that matters when minimising), or the nearest thing to it that is not zero.

    warped = z                  for z <= KNEE
             KNEE + log(1 + z - KNEE)   above

so that one diverged run at 1e9 ends a few units above the rest instead of pressing the rest into one number. The order of
values is kept, and the lower half is only shifted and scaled, so an improvement is still an improvement.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

KNEE = 1.0


@dataclass(frozen=True)
class Warp:
    """The map from values to what the surrogate sees, and back."""

    median: float
    spread: float

    @classmethod
    def of(cls, y: Array) -> Warp:
        """The warp that suits some values.

        >>> y = np.array([1.0, 2.0, 3.0, 1e9])
        >>> Warp.of(y)(y).round(2).tolist()
        [-1.5, -0.5, 0.5, 21.72]
        """
        median = float(np.median(y))
        return cls(median, _spread(y, median))

    def __call__(self, y: Array) -> Array:
        with np.errstate(over="ignore"):
            z = y / self.spread - self.median / self.spread
        z = np.clip(z, -1e300, 1e300)
        return np.where(z > KNEE, KNEE + np.log1p(np.maximum(z - KNEE, 0.0)), z)

    def inverse(self, warped: Array) -> Array:
        z = np.where(warped > KNEE, KNEE + np.expm1(np.minimum(warped - KNEE, 690.0)), warped)
        return np.asarray(self.median + self.spread * z)


def _spread(y: Array, median: float) -> float:
    """Median distance to the median of the values below it, else of all others, else their size, else 1."""
    for distances in (median - y[y < median], np.abs(y - median)[y != median], np.abs(y[y != 0.0])):
        if len(distances):
            return max(float(np.median(distances)), 1e-290)
    return 1.0
