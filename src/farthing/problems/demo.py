"""The demonstration behind `make demo`: a random forest on handwritten digits, tuned for 30 seconds.

An evaluation is a 3-fold cross-validation. With 4 shallow trees it takes a few hundredths of a second, with 128 trees
that use half of the pixels more than a second: the budget decides which are worth their cost.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import farthing as ft

STORAGE = "farthing-demo.db"
BUDGET = "30s"

SPACE = ft.Space(
    n_estimators=ft.Integer(4, 128, log=True),
    max_features=ft.Real(0.02, 0.5, log=True),
    max_depth=ft.Integer(2, 24),
    min_samples_leaf=ft.Integer(1, 20, log=True),
    criterion=ft.Choice(["gini", "entropy"]),
)


@cache
def _digits() -> tuple[Any, Any]:
    try:
        from sklearn.datasets import load_digits
    except ImportError as error:
        raise ImportError("the demo tunes a scikit-learn model: pip install 'farthing[demo]'") from error
    images, labels = load_digits(return_X_y=True)
    return images, labels


def objective(config: dict[str, Any]) -> float:
    """The share of digits that are classified wrongly, by 3-fold cross-validation."""
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.model_selection import cross_val_score

    images, labels = _digits()
    model = RandomForestClassifier(**config, random_state=0)
    return 1.0 - float(cross_val_score(model, images, labels, cv=3).mean())


def main() -> None:
    _digits()
    Path(STORAGE).unlink(missing_ok=True)
    print(f"Tuning a random forest on handwritten digits for {BUDGET} ...")
    study = ft.tune(objective, SPACE, BUDGET, seed=0, storage=STORAGE)
    costs = [trial.cost for trial in study.trials if trial.cost is not None]
    print(f"\nbest error  {study.best.value:.4f}  (trial {study.best.number} of {len(study.trials)})")
    for name, value in study.best.config.items():
        print(f"  {name:<18}{value}")
    print(f"\nevaluations took {min(costs):.2f} to {max(costs):.2f} seconds")
    print(f"\n{study.ledger}")
    print(
        f"\nTo continue the study for another 30 seconds:\n"
        f"  import farthing as ft\n"
        f"  from farthing.problems.demo import objective\n"
        f'  ft.Study.resume("{STORAGE}", budget="60s").run(objective)'
    )


if __name__ == "__main__":
    main()
