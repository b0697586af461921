"""Tests with libraries that are too large for the environment of the others: `make test-libraries`."""

from __future__ import annotations

import os

os.environ.setdefault("KERAS_BACKEND", "torch")  # before Keras is imported, here and in worker processes
