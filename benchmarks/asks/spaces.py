"""The spaces that Farthing and Optuna are timed on, as plain data: Optuna's process knows nothing of Farthing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

When: TypeAlias = Mapping[str, tuple[str, ...]]  # the options of another parameter that make this one active


@dataclass(frozen=True)
class Number:
    low: float
    high: float
    log: bool = False
    whole: bool = False
    when: When = field(default_factory=dict)


@dataclass(frozen=True)
class Options:
    options: tuple[str, ...]
    when: When = field(default_factory=dict)


Parameters: TypeAlias = Mapping[str, Number | Options]


def _continuous(count: int) -> Parameters:
    return {f"x{i}": Number(0.0, 1.0) for i in range(count)}


TREES: When = {"booster": ("gbtree", "dart")}
DART: When = {"booster": ("dart",)}

BOOSTING: Parameters = {
    "booster": Options(("gbtree", "gblinear", "dart")),
    "n_estimators": Number(10, 1000, log=True, whole=True),
    "learning_rate": Number(1e-3, 1.0, log=True),
    "max_depth": Number(1, 12, whole=True, when=TREES),
    "min_child_weight": Number(0.1, 100.0, log=True, when=TREES),
    "subsample": Number(0.3, 1.0),
    "colsample_bytree": Number(0.3, 1.0, when=TREES),
    "reg_lambda": Number(1e-6, 10.0, log=True),
    "reg_alpha": Number(1e-6, 10.0, log=True),
    "gamma": Number(0.0, 5.0, when=TREES),
    "grow_policy": Options(("depthwise", "lossguide"), when=TREES),
    "sample_type": Options(("uniform", "weighted"), when=DART),
    "rate_drop": Number(0.0, 0.5, when=DART),
}

SPACES: Mapping[str, Parameters] = {
    "7 continuous": _continuous(7),
    "13 mixed": BOOSTING,
    "25 whole numbers": {f"x{i}": Number(0, 9 + i, whole=True) for i in range(25)},
    "60 continuous": _continuous(60),
}


def is_active(parameter: Number | Options, config: Mapping[str, Any]) -> bool:
    """Whether a parameter has an effect, given those that come before it."""
    return all(config.get(name) in options for name, options in parameter.when.items())
