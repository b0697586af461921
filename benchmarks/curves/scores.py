"""What several kinds of learners are judged by."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def relative_rmse(predicted: Array, y: Array) -> float:
    """Root mean squared error, 1 for the mean of the validation rows; inf if it overflows."""
    with np.errstate(all="ignore"):
        return float(np.sqrt(np.mean((predicted - y) ** 2)) / y.std())
