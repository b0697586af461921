"""Fresh seeds for the global generators of a fork: else all forks of one process would draw the same numbers."""

from __future__ import annotations

import sys
from contextlib import suppress


def fresh_seeds() -> None:
    """Seed the global generators of those of `random`, NumPy and PyTorch that are imported, from the system."""
    if "random" in sys.modules:
        sys.modules["random"].seed()
    if "numpy.random" in sys.modules:
        sys.modules["numpy.random"].seed()
    if "torch.random" in sys.modules:
        with suppress(Exception):  # one that is half imported
            sys.modules["torch.random"].seed()
