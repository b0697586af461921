"""What a study's models say now, for the figures that ask them: value and cost anywhere in the space.

Hyperparameters are those that the study found last, and the models know some of many trials (`numerics.rows`): a
figure shows no more than that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol
from weakref import WeakKeyDictionary

import numpy as np

from farthing.errors import NoTrial
from farthing.history import History, Way, units, values
from farthing.history.history import TrackedTrial
from farthing.numerics.arrays import Array
from farthing.numerics.rows import few_rows
from farthing.numerics.threads import one_blas_thread
from farthing.policies.cost_models import CostOfConfig
from farthing.policies.fits import FEWEST_VALUES, scale_of, value_model
from farthing.policies.model_options import ModelledValues, ModelOptions
from farthing.policies.pareto import cost_model_of
from farthing.report.drawing import with_extremes
from farthing.session import Session
from farthing.space import Space
from farthing.surrogates.gp import GP
from farthing.trial import Status

MOST_KNOWN = 500  # complete trials that the model of values knows: figures ask at tens of thousands of points


class Model(Protocol):
    """Mean and variance (m,) at features (m, f)."""

    def mean_at(self, X: Array) -> Array: ...
    def predict(self, X: Array) -> tuple[Array, Array]: ...


@dataclass(frozen=True, eq=False)
class Modelled:
    """The value or the cost: on the scale on which it is modelled, and as users see it."""

    space: Space
    model: Model
    shown: Callable[[Array], Array]  # from that scale to the user's; monotone
    trials: Sequence[TrackedTrial]  # in which it was seen; of many some, the extreme ones among them
    seen: Array  # (n,), as users see it

    def mean_at(self, U: Array) -> Array:
        """Mean (m,) at U (m, p)."""
        return self.model.mean_at(self.space.features(U))

    def predict(self, U: Array) -> tuple[Array, Array]:
        """Mean (m,) and standard deviation (m,)."""
        mean, variance = self.model.predict(self.space.features(U))
        return mean, np.sqrt(variance)

    @property
    def asks_users(self) -> bool:
        """Whether each prediction calls a function of the user's, which may be slow."""
        return isinstance(self.model, CostOfConfig)


@dataclass(frozen=True, eq=False)
class Surrogates:
    """The models of value and cost."""

    space: Space
    complete: Sequence[TrackedTrial]  # all whose values are known
    value: Modelled
    cost: Modelled | None  # None where no cost is known
    process: GP  # the model of value
    unit: str  # of cost
    maximize: bool

    def best_with(self, j: int) -> TrackedTrial | None:
        """The complete trial of best value in which parameter j has an effect."""
        having = [trial for trial in self.complete if trial.key[j] is not None]
        return min(having, key=lambda trial: (trial.value, trial.number), default=None)


def surrogates_of(session: Session) -> Surrogates:
    """The models of a session as it is now, fitted once; an error says what is missing."""
    events, found = _of_session.get(session, (-1, None))
    if found is None or events != session.record.events:
        events = session.record.events
        with one_blas_thread():
            found = _fitted(session)
        _of_session[session] = events, found
    return found


_of_session: WeakKeyDictionary[Session, tuple[int, Surrogates]] = WeakKeyDictionary()


def _fitted(session: Session) -> Surrogates:
    space, policy, history = session.space, session.policy, session.history
    complete = history.complete
    if len(complete) < FEWEST_VALUES:
        known = len(complete) or "none"
        raise NoTrial(f"models need the values of {FEWEST_VALUES} complete trials, and there is {known} so far")
    modelled: ModelledValues = policy.values if isinstance(policy, ModelOptions) else "warped"
    U, y = units(complete, len(space)), values(complete)
    rows = few_rows(len(y), y, MOST_KNOWN)
    process = value_model(space, U[rows], y[rows], replace(history, way=Way.KEPT), modelled)
    log_cost, _ = cost_model_of(policy)(space, replace(history, way=Way.FEW))
    scale, turned = scale_of(y[rows], modelled), session.record.direction.turned
    sign = turned(1.0)
    of_value = _modelled(space, process, lambda z: sign * scale.inverse(z), complete, sign * y)
    of_cost = None if log_cost is None else _modelled(space, log_cost, np.exp, *_costs(history))
    return Surrogates(space, complete, of_value, of_cost, process, session.ledger.unit, sign < 0.0)


def _modelled(
    space: Space, model: Model, shown: Callable[[Array], Array], trials: Sequence[TrackedTrial], seen: Array
) -> Modelled:
    drawn = with_extremes(seen)
    return Modelled(space, model, shown, [trials[i] for i in drawn.tolist()], seen[drawn])


def _costs(history: History) -> tuple[list[TrackedTrial], Array]:
    """Trials whose cost is that of all they had to do, and their costs (n,)."""
    ended = [trial for trial in history.of(Status.COMPLETE, Status.FAILED) if trial.cost is not None]
    return ended, np.array([trial.cost for trial in ended], dtype=np.float64)
