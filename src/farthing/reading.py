"""What users give: values, costs, trials and attributes, read or refused."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from farthing.errors import InvalidArgument
from farthing.trial import Outcome, Proposal, Status


def read_value(value: Any, maximize: bool) -> Outcome:
    """An outcome from what an objective returned as its value: minimised inside, failed where it is no finite number.

    >>> read_value(0.5, maximize=True).value
    -0.5
    >>> read_value(float("nan"), maximize=False).error
    'the value must be finite, got nan'
    """
    if isinstance(value, str | bytes):
        return Outcome(Status.FAILED, error=f"the value must be a number, got the text {value!r:.200}")
    try:
        number = float(value)
    except Exception:  # a tensor of two elements and an integer of a thousand digits raise what they like
        kind = type(value).__name__
        return Outcome(Status.FAILED, error=f"the value must be a finite number, got {kind} {value!r:.200}")
    if not math.isfinite(number):
        return Outcome(Status.FAILED, error=f"the value must be finite, got {number}")
    return Outcome(Status.COMPLETE, value=-number if maximize else number)


def read_cost(cost: Any) -> float:
    """A cost as a number of the budget's unit.

    >>> read_cost(2)
    2.0
    """
    try:
        number = math.nan if isinstance(cost, str | bytes) else float(cost)
    except Exception:
        number = math.nan
    if not 0.0 <= number < math.inf:
        raise InvalidArgument(f"cost: expected a finite number of at least 0, got {cost!r:.200}")
    return number


def trial_number(proposal: Any) -> int:
    """The number behind a proposal, or a number itself."""
    if isinstance(proposal, Proposal):
        return proposal.trial
    if isinstance(proposal, bool) or not isinstance(proposal, int | np.integer):
        raise InvalidArgument(f"tell: expected a proposal or the number of a trial, got {proposal!r:.200}")
    return int(proposal)


def plain(value: Any) -> Any:
    """A JSON value as near as possible: NumPy numbers become Python's, what has no JSON form its repr.

    >>> import numpy as np
    >>> plain({"a": np.float32(0.5), 2: (1, None)})
    {'a': 0.5, '2': [1, None]}
    """
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if hasattr(value, "tolist"):  # NumPy scalars and arrays
        return plain(value.tolist())
    return repr(value)
