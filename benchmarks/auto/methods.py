"""Who searches: Farthing as it is by default, and peers."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import farthing
from benchmarks.auto.problems import Problem


@dataclass(frozen=True)
class Method:
    """A way to search. `knows_cheap`: whether it is told of the parts of configurations that cost little."""

    name: str
    title: str
    library: str
    policy: str
    knows_cheap: bool = False

    @property
    def is_farthing(self) -> bool:
        return self.library == "farthing"

    @property
    def place(self) -> int:
        """In tables: Farthing last."""
        return EVERY.index(self)

    @property
    def module(self) -> str:
        return f"auto.peers.{self.library}_peer"

    def system(self, problem: Problem) -> str:
        """Its environment; Farthing needs scikit-learn for live problems only."""
        if self.is_farthing:
            return "sklearn" if problem.is_live else "farthing"
        return "hebo" if self.library == "hebo" else "auto"

    def told(self, problem: Problem) -> Mapping[str, Any]:
        """The part of a configuration that it is told to be cheap."""
        return problem.cheap if self.knows_cheap else {}


def has_cheap() -> bool:
    """Whether Farthing can be told, yet."""
    return "cheap" in inspect.signature(farthing.Study).parameters


# In the order in which they are run: the quick ones first.
PEERS = (
    Method("random", "random search", "optuna", "random"),
    Method("tpe", "Optuna TPE", "optuna", "tpe"),
    Method("flaml", "FLAML", "flaml", "flaml", knows_cheap=True),
    Method("flaml-uninformed", "FLAML without its low-cost start", "flaml", "flaml"),
    Method("tpe-univariate", "Optuna TPE, univariate", "optuna", "tpe-univariate"),
    Method("smac", "SMAC3", "smac", "smac"),
    Method("gpsampler", "Optuna GPSampler", "optuna", "gpsampler"),
    Method("hebo", "HEBO", "hebo", "hebo"),
)
UNINFORMED = Method("farthing-uninformed", "Farthing without `cheap=`", "farthing", "auto")
INFORMED = Method("farthing", "Farthing", "farthing", "auto", knows_cheap=True)


EVERY = (*PEERS, UNINFORMED, INFORMED)


def methods() -> tuple[Method, ...]:
    """Those that can be run."""
    return EVERY if has_cheap() else (*PEERS, UNINFORMED)


def named(name: str) -> Method:
    return next(method for method in EVERY if method.name == name)
