"""A logistic regression, as a script has it that imports scikit-learn at its top."""

from __future__ import annotations

from typing import Any

from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression

X, y = make_classification(400, 10, random_state=0)


def fitted(config: dict[str, Any]) -> float:
    """One small training; its error."""
    return 1.0 - float(LogisticRegression(C=10.0 ** config["x"]).fit(X, y).score(X, y))
