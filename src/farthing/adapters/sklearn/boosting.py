"""Estimators of XGBoost, LightGBM and CatBoost: how each goes on with a model that is there.

    XGBClassifier, XGBRegressor            fit(X, y, xgb_model=estimator)
    LGBMClassifier, LGBMRegressor          fit(X, y, init_model=estimator)
    CatBoostClassifier, CatBoostRegressor  fit(X, y, init_model=estimator)

A new estimator is fitted that begins with the trees of the one before. Without random rows or columns the result is the
same as of one fit. With them the trees are others, because a generator that begins again with the same seed would draw
the same rows in every step: so every step has its own seed.

What a step costs beyond its rounds decides how many there are. Reading and binning rows takes as long as some ten
rounds, and the trees that are there predict all rows once more. With 20 000 rows, 20 columns and 300 rounds, ten steps
take 1.4 times as long as one fit in XGBoost (which is made to keep the rows it has read), 1.2 times in CatBoost, and
2.9 times in LightGBM, where five steps take 1.9 times as long.

None of these libraries is imported: an estimator is recognised by the name of its class and the package it comes from.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from numbers import Integral
from typing import Any

LARGEST_SEED = 2**31  # seeds of these libraries are 32-bit integers with a sign


@dataclass(frozen=True)
class Library:
    """How the estimators of one library are told the number of rounds, and when they can go on."""

    package: str
    classes: frozenset[str]
    model_argument: str  # of fit: the model to begin with
    steps: int  # of a complete training
    rounds: tuple[str, ...]  # names of the number of rounds; the first is the usual one
    default_rounds: int
    seeds: tuple[str, ...]
    needed: Mapping[str, tuple[Any, ...]]  # parameters that must be unset, or have one of these values
    fit_params: frozenset[str]  # arguments of fit that every step can take
    decided_by_rounds: frozenset[str] = frozenset()  # parameters that the number of rounds decides unless they are set
    reader: str | None = None  # the estimator's method that reads rows for `fit`

    def rounds_name(self, params: Mapping[str, Any]) -> str:
        """The name by which an estimator with these parameters counts rounds."""
        return next((name for name in self.rounds if params.get(name) is not None), self.rounds[0])

    def seeds_after(self, params: Mapping[str, Any], rounds: int) -> dict[str, int]:
        """The seeds of a step that begins after some rounds."""
        given = {name: params[name] for name in self.seeds if params.get(name) is not None} or {self.seeds[0]: 0}
        return {
            name: (int(seed) + rounds) % LARGEST_SEED if isinstance(seed, Integral) else rounds
            for name, seed in given.items()
        }

    def reason_against(self, params: Mapping[str, Any], searched: Iterable[str]) -> str | None:
        """Why an estimator with these parameters cannot go on with a model as one fit would have."""
        for name in (*self.rounds, *self.needed):
            if name in searched:
                return f"{name!r} is searched, and it decides how long or whether the estimator trains in steps"
        for name, accepted in self.needed.items():
            value = params.get(name)
            if value is not None and not any(value is one or value == one for one in accepted):
                return f"with {name}={value!r} a model of {self.package} cannot go on as one training would"
        for name in self.decided_by_rounds:
            if params.get(name) is None and name not in searched:
                return f"{self.package} chooses {name} by the number of rounds; set {name} or search it"
        if len([name for name in self.rounds if params.get(name) is not None]) > 1:
            return f"the number of rounds is given by several names of {', '.join(self.rounds)}"
        return None

    @contextmanager
    def keeping_rows(self, estimator: Any, kept: list[Any]) -> Iterator[None]:
        """Within, `fit` of an estimator takes the rows that are kept, or reads and keeps them.

        The method is not public. Where a version has it by another name, rows are read in every step.
        """
        read = None if self.reader is None else getattr(estimator, self.reader, None)
        if self.reader is None or read is None:
            yield
            return

        def read_once(*args: Any, **kwargs: Any) -> Any:
            if not kept:
                kept.append(read(*args, **kwargs))
            return kept[0]

        setattr(estimator, self.reader, read_once)
        try:
            yield
        finally:
            delattr(estimator, self.reader)


STOPS_EARLY: Mapping[str, tuple[Any, ...]] = {"early_stopping_rounds": (), "callbacks": ()}

LIBRARIES = (
    Library(
        "xgboost",
        frozenset({"XGBClassifier", "XGBRegressor"}),
        "xgb_model",
        10,
        ("n_estimators",),
        100,
        ("random_state", "seed"),
        # dart scales old trees again; gblinear has no trees
        {**STOPS_EARLY, "booster": ("gbtree",), "process_type": ("default",)},
        frozenset({"sample_weight", "feature_weights", "verbose"}),
        reader="_create_dmatrix",
    ),
    Library(
        "lightgbm",
        frozenset({"LGBMClassifier", "LGBMRegressor"}),
        "init_model",
        5,
        (
            "n_estimators", "num_iterations", "num_iteration", "n_iter", "num_tree", "num_trees", "num_round",
            "num_rounds", "nrounds", "num_boost_round", "max_iter",
        ),
        100,
        ("random_state", "seed", "random_seed", "bagging_seed", "feature_fraction_seed", "extra_seed"),
        {
            **STOPS_EARLY, "early_stopping_round": (), "early_stopping": (), "n_iter_no_change": (),
            # goss takes all rows in its first rounds, and so in all rounds of short steps; rf takes means
            **dict.fromkeys(("boosting_type", "boosting", "boost"), ("gbdt", "gbrt")),
            "data_sample_strategy": ("bagging",),
        },
        frozenset({"sample_weight", "feature_name", "categorical_feature"}),
    ),
    Library(
        "catboost",
        frozenset({"CatBoostClassifier", "CatBoostRegressor"}),
        "init_model",
        10,
        ("iterations", "n_estimators", "num_boost_round", "num_trees"),
        1000,
        ("random_seed", "random_state"),
        {
            **STOPS_EARLY, "od_type": (), "od_wait": (), "od_pval": (), "use_best_model": (False,),
            # ordered boosting knows of each row what was predicted without it: a model alone does not
            "boosting_type": ("Plain",), "task_type": ("CPU",), "save_snapshot": (False,),
            "model_shrink_rate": (0,), "langevin": (False,), "posterior_sampling": (False,),
        },
        frozenset({"sample_weight", "verbose", "silent", "logging_level"}),
        decided_by_rounds=frozenset({"learning_rate"}),
    ),
)  # fmt: skip


def library_of(estimator: Any) -> Library | None:
    """The library of an estimator that can go on; None for others, and for subclasses, which may do anything."""
    name, package = type(estimator).__name__, type(estimator).__module__.partition(".")[0]
    return next((one for one in LIBRARIES if package == one.package and name in one.classes), None)
