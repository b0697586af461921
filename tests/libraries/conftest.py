"""Tests with libraries that are too large for the environment of the others: `make test-libraries`."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

os.environ.setdefault("KERAS_BACKEND", "torch")  # before Keras is imported, here and in worker processes

HERE = Path(__file__).parent
THEIRS = ["UserWarning", "FutureWarning", "DeprecationWarning"]  # Farthing's are RuntimeWarnings, and stay errors


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let the libraries warn, of themselves and of each other: their next version may."""
    for item in items:
        if HERE in item.path.parents:
            for category in THEIRS:
                item.add_marker(pytest.mark.filterwarnings(f"ignore::{category}"))
