"""Policy `ei`: expected improvement under an exact Gaussian process, blind to cost.

A few points of a Sobol sequence, then the maximiser of log EI. Running trials are conditioned on at their posterior
mean, so that several proposals at once, or workers side by side, spread out. The target is the least posterior mean at
the evaluated points: with noise, the least observation is luck.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from farthing.acquisitions.improvement import LogEI
from farthing.acquisitions.maximize import maximize
from farthing.budget import Ledger
from farthing.errors import InvalidArgument
from farthing.history import History, units, values
from farthing.policies.fresh import FreshSpace
from farthing.policies.sampling import next_of_design, numbered
from farthing.space import Space
from farthing.surrogates import gp, log_cost
from farthing.surrogates.outputs import Warp
from farthing.trial import Proposal

Array = NDArray[np.float64]

ANCHORS = 3  # of the best evaluated points, perturbed in the search for the next
FEWEST_VALUES = 2  # below, there is nothing to model and the design goes on


@dataclass(frozen=True)
class EI:
    """Expected improvement. `initial` points of a Sobol design come first; by default p + 2, from 4 to 16."""

    name: ClassVar[str] = "ei"
    initial: int | None = None

    def __post_init__(self) -> None:
        if self.initial is not None and (not isinstance(self.initial, int) or self.initial < 1):
            raise InvalidArgument(f"EI: initial must be a whole number of at least 1, or None, got {self.initial!r}")

    def propose(
        self, space: Space, history: History, ledger: Ledger, n: int, rng: np.random.Generator
    ) -> list[Proposal]:
        fresh = FreshSpace(space, history)
        design = self._design_size(space)
        if len(history.trials) < design or len(history.complete) < FEWEST_VALUES:
            wanted = min(n, max(design - len(history.trials), 1))
            return numbered(history, wanted, lambda i: next_of_design(fresh, history, i, rng), "initial design")
        return _model_based(fresh, history, n, rng)

    def _design_size(self, space: Space) -> int:
        return self.initial if self.initial is not None else min(max(len(space) + 2, 4), 16)


def _model_based(fresh: FreshSpace, history: History, n: int, rng: np.random.Generator) -> list[Proposal]:
    space, p = fresh.space, len(fresh.space)
    complete = history.complete
    U, y = units(complete, p), values(complete)
    model = value_model(space, history)
    target = float(model.predict(model.X)[0].min())
    pending = units(history.running, p)
    if len(pending):
        model = _believing(model, space.features(pending))
    anchors = U[np.argsort(y, kind="stable")[:ANCHORS]]
    cost = predicted_cost(space, history)

    proposals: list[Proposal] = []
    pool = fresh.listed()
    for number in range(len(history.trials), len(history.trials) + n):
        ranking = maximize(LogEI(model, target), fresh, anchors, rng, pool)
        config = fresh.claim(ranking.U)
        if config is None:
            config = fresh.claim_any(rng)
        if config is None:
            break
        x = space.features(space.encode(config)[None, :])
        fits = {"value": model.hyperparameters.as_json()}
        proposals.append(Proposal(number, config, cost(x), "largest expected improvement", fits))
        model = _believing(model, x)
    return proposals


def value_model(space: Space, history: History) -> gp.GP:
    """The process over warped values of the complete trials, warm-started from the last fit in the history."""
    complete = history.complete
    X, y = space.features(units(complete, len(space))), values(complete)
    stored = history.fits.get("value")
    warm = gp.Hyperparameters.from_json(stored) if stored else None
    return gp.fit(X, Warp.of(y)(y), space.groups, warm)


def predicted_cost(space: Space, history: History) -> Callable[[Array], float | None]:
    """The cost to expect at one point x (1, f), from all trials whose cost is known, failed ones included."""
    known = [trial for trial in history.trials if trial.cost is not None]
    if not known:
        return lambda x: None
    cost = np.array([trial.cost for trial in known], dtype=np.float64)
    model = log_cost.fit(space.features(units(known, len(space))), cost)
    return lambda x: float(np.exp(model.predict(x)[0]))


def _believing(model: gp.GP, X: Array) -> gp.GP:
    """The model as if the points X had turned out as predicted."""
    return model.condition(X, model.predict(X)[0])
