"""What more budget is expected to bring: the policy's next candidates, and joint draws of their values.

Symbols: n candidates that the policy would evaluate one after the other if it learned nothing from them, y (n, draws)
their values drawn from the joint posterior, b the best value so far. After the first i of them the gain of a draw is
max(b - min(y_1 .. y_i), 0). The budget pays for N evaluations at the predicted costs: between whole numbers gains are
interpolated, beyond n they stay, since gains that grow with N / n predicted worse. All are scaled by what comes true of
them on average (docs/worth.md).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from farthing.budget import Budget, Ledger, amount_text
from farthing.checks import refuse
from farthing.errors import FarthingError, InvalidArgument, NoTrial, SpaceExhausted
from farthing.history import History, Way, units, values
from farthing.numerics.arrays import Array
from farthing.numerics.deadline import OutOfTime
from farthing.numerics.linalg import cholesky
from farthing.numerics.threads import one_blas_thread
from farthing.policies.auto import trains_in_steps
from farthing.policies.fits import FEWEST_VALUES, scale_of, success_model, value_model
from farthing.policies.model_options import ModelledValues
from farthing.policies.protocol import Policy, generator_of, needs_steps, rows_of
from farthing.policies.thinking import Thinking
from farthing.record.record import Record
from farthing.space import Space
from farthing.trial import Proposal

SHARE = 0.1  # of the budget, by default
MOST = 8  # candidates: an ask for that many takes about as long as one for as many workers
DRAWS = 1_000
REALISED = 0.5  # share of a drawn gain that comes true, as on the tables for choosing defaults (docs/worth.md)
RECENT = 10  # trials whose costs say how many candidates there will be
LEAST_COST = 1e-12  # so that an evaluation without cost can be divided by
QUICK = 1.0  # seconds that an outlook may take where nobody has asked for it
INSIDE = (0.1, 0.9)  # quantiles of the gain, the interval


@dataclass(frozen=True)
class Outlook:
    """What a study expects of more budget. Values are in the user's own sign; a gain is never negative.

    spend        how much more, in `unit`
    evaluations  how many evaluations that pays for, about
    gain         the expected improvement of the best value
    interval     from the improvement that is exceeded in 9 of 10 cases to the one that is exceeded in 1 of 10
    chance       that there is any improvement
    best         the best value so far
    """

    spend: float
    unit: str
    evaluations: float
    gain: float
    interval: tuple[float, float]
    chance: float
    best: float
    maximize: bool = False

    @property
    def expected_best(self) -> float:
        """The best value that is expected then."""
        return self.best + self.gain if self.maximize else self.best - self.gain

    @property
    def _is_many(self) -> bool:
        return self.unit != "evaluations" or self.spend > 1

    def __str__(self) -> str:
        digits = min(max(1 - math.floor(math.log10(self.gain)), 0), 12) if self.gain > 0.0 else 6
        then = f"{self.best:.{digits}f} to {self.expected_best:.{digits}f}"
        more = f"{amount_text(self.unit, self.spend)} are" if self._is_many else "evaluation is"
        what = f"the next {more} expected to bring {self.gain:.2g} ({then})"
        if self.unit == "evaluations":
            return what
        count = round(self.evaluations) if self.evaluations >= 1.0 else round(self.evaluations, 1)
        return f"{what}, in about {count} evaluation{'' if count == 1 else 's'}"


def outlook_of(
    record: Record, policy: Policy, budget: Budget | None = None, seconds: float = math.inf
) -> Outlook | None:  # fmt: skip
    """What `budget` more would bring, by default a tenth of the study's, or what is left of it if that is less; None if
    `seconds` are not enough to find out. Nothing of the study changes."""
    history, ledger = record.history, record.ledger
    _require_known(policy, history, ledger)
    unit, spend = _spend(ledger, budget)

    def think(way: Way) -> Outlook | None:
        seen = replace(history, way=way, worth=None)
        found = _outlook_at(policy, record.space, seen, ledger, unit, spend) if way is not Way.NONE else None
        return found and (replace(found, best=-found.best, maximize=True) if record.settings.maximize else found)

    with one_blas_thread():
        return Thinking().within(seconds, rows_of(policy, history), think)[0]


def outlook_in_time(record: Record, policy: Policy, seconds: float = QUICK) -> Outlook | None:
    """The outlook, if there is one and it takes no longer than that."""
    try:
        return outlook_of(record, policy, None, seconds)
    except (FarthingError, OutOfTime):
        return None


def _outlook_at(
    policy: Policy, space: Space, history: History, ledger: Ledger, unit: str, spend: float
) -> Outlook:  # fmt: skip
    each = _usual_cost(history, ledger, unit)
    n = min(max(math.ceil(spend / each), 1), MOST)
    rng = generator_of(history)
    proposals = policy.propose(space, history, _with_room(ledger, unit, spend), n, rng)
    if not proposals:
        raise SpaceExhausted("outlook: every allowed configuration was proposed")
    best = history.incumbent
    assert best is not None  # `_require_known` has seen complete trials
    assert best.value is not None
    gains = _gains(getattr(policy, "values", "warped"), space, history, proposals, best.value, rng)
    evaluations = spend / _predicted_cost(proposals, each, history, ledger, unit)
    if len(proposals) < n:  # there are no more configurations
        evaluations = min(evaluations, len(proposals))
    drawn = REALISED * _after(gains, evaluations)
    low, high = np.quantile(drawn, INSIDE)
    chance = float(np.mean(drawn > 0.0))
    return Outlook(spend, unit, evaluations, float(drawn.mean()), (float(low), float(high)), chance, best.value)


def _require_known(policy: Policy, history: History, ledger: Ledger) -> None:
    """An error unless values of whole evaluations are known, and their costs where these are limited."""
    if needs_steps(policy) or trains_in_steps(history):
        raise InvalidArgument("outlook: is known for objectives that return a value, not for training step by step")
    if (known := len(history.complete)) < FEWEST_VALUES:
        raise NoTrial(f"outlook: needs the values of {FEWEST_VALUES} complete trials, got {known}")
    if ledger.budget.paid_in != "evaluations" and not history.costed:
        raise NoTrial("outlook: needs the cost of at least 1 trial; tell(..., cost=...) gives it")


def _spend(ledger: Ledger, budget: Budget | None) -> tuple[str, float]:
    """The unit, and how much of it."""
    unit = ledger.budget.paid_in
    if budget is None:
        share = SHARE * ledger.budget.limits[unit]
        spend = min(share, ledger.left(unit)) or share
        return unit, max(round(spend), 1) if unit == "evaluations" else spend
    limits = budget.limits
    if len(limits) > 1 or not limits.keys() <= {unit, "evaluations"}:
        accepted = "one amount in evaluations" + (f" or in {unit}, as the study counts" * (unit != "evaluations"))
        refuse("outlook: budget", accepted, str(budget))
    return next(iter(limits.items()))


def _usual_cost(history: History, ledger: Ledger, unit: str) -> float:
    """What one evaluation has cost lately."""
    if unit == "evaluations":
        return 1.0
    recent = [trial.cost for trial in history.costed[-RECENT:] if trial.cost is not None]
    return max(float(np.mean(recent)) + _overhead(history, ledger, unit), LEAST_COST)


def _overhead(history: History, ledger: Ledger, unit: str) -> float:
    """What the optimiser and starting processes have taken for each trial."""
    taken = ledger.account("optimiser", unit) + ledger.account("start-up", unit)
    return taken / max(len(history.trials), 1)


def _predicted_cost(
    proposals: Sequence[Proposal], usual: float, history: History, ledger: Ledger, unit: str
) -> float:  # fmt: skip
    """What one of the candidates is expected to cost on average."""
    if unit == "evaluations":
        return 1.0
    predicted = [proposal.predicted_cost for proposal in proposals if proposal.predicted_cost is not None]
    if not predicted:
        return usual
    return max(float(np.mean(predicted)) + _overhead(history, ledger, unit), LEAST_COST)


def _with_room(ledger: Ledger, unit: str, spend: float) -> Ledger:
    """The ledger with limits that leave room for that much more, where the study's do not."""
    limits = ledger.budget.limits
    room = {name: limit if ledger.left(name) > 0.0 else ledger.total(name) + limit for name, limit in limits.items()}
    if unit in room:
        room[unit] = max(limits[unit], ledger.total(unit) + spend)
    rate = {} if ledger.budget.usd_per_hour is None else {"usd_per_hour": ledger.budget.usd_per_hour}
    return replace(ledger, budget=Budget.from_json({**room, **rate}))


def _gains(
    modelled: ModelledValues, space: Space, history: History, proposals: Sequence[Proposal], best: float,
    rng: np.random.Generator,
) -> Array:  # fmt: skip
    """Gains (n + 1, draws) after none, one, ..., all of the candidates, under the models that chose them."""
    complete, kept = history.complete, replace(history, fits={**history.fits, **proposals[0].fits}, way=Way.KEPT)
    U, y = units(complete, len(space)), values(complete)
    model, success = value_model(space, U, y, kept, modelled), success_model(space, kept)
    X = space.features(space.encode_many([proposal.config for proposal in proposals]))
    mean, covariance = model.covariance(X)
    covariance[np.diag_indices(len(X))] += model.noise
    z = mean[:, None] + cholesky(covariance) @ rng.standard_normal((len(X), DRAWS))
    chance = np.ones(len(X)) if success is None else np.exp(success.log_success(X))
    succeeds = rng.random(z.shape) < chance[:, None]
    gains = np.where(succeeds, np.maximum(best - scale_of(y, modelled).inverse(z), 0.0), 0.0)
    return np.concatenate([np.zeros((1, DRAWS)), np.maximum.accumulate(gains)])


def _after(gains: Array, evaluations: float) -> Array:
    """Gains (draws,) after that many evaluations.

    >>> gains = np.array([[0.0], [1.0], [1.5]])
    >>> [float(_after(gains, n)[0]) for n in (0.5, 1.5, 8.0)]
    [0.5, 1.25, 1.5]
    """
    if evaluations >= len(gains) - 1:
        return np.asarray(gains[-1])
    whole = int(evaluations)
    return np.asarray(gains[whole] + (evaluations - whole) * (gains[whole + 1] - gains[whole]))
