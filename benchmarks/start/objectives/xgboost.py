"""A few boosted trees, as a script has it that imports XGBoost and scikit-learn at its top."""

from __future__ import annotations

from typing import Any

from sklearn.datasets import make_classification
from xgboost import XGBClassifier

X, y = make_classification(400, 10, random_state=0)


def fitted(config: dict[str, Any]) -> float:
    """One small training; its error."""
    model = XGBClassifier(n_estimators=5, max_depth=3, learning_rate=10.0 ** config["x"], n_jobs=1)
    return 1.0 - float(model.fit(X, y).score(X, y))
