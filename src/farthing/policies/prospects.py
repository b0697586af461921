"""What the best evaluation at an ask would bring for its cost, in the units of the objective and of the budget.

Symbols: y = W^-1(z) the value of a modelled one z, which is normal with mean mu and standard deviation s; t the
modelled value to beat; P the chance of success. An evaluation improves the value by
P E[max(W^-1(t) - W^-1(z), 0)] on average, and costs E[c] = exp(m + v / 2) for a log cost of mean m and variance v;
where only evaluations are limited, 1.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np

from farthing.acquisitions.cost import PerCost
from farthing.acquisitions.improvement import Outcomes
from farthing.numerics.arrays import Array
from farthing.policies.fits import FittedModels
from farthing.policies.worth import HITS, NAME, WINDOW
from farthing.record.state import Prospect
from farthing.surrogates.outputs import Scale, Warp

LOOKED_AT = 32  # best candidates by modelled improvement per cost, of which the best in the user's units counts
DEEPEST = 8.0  # standard deviations from the mean, where values end
NODES, WEIGHTS = np.polynomial.legendre.leggauss(48)
LARGEST = 1e150  # of what is stored


def prospects_after(models: FittedModels) -> dict[str, Any]:
    """The last prospects and that of this ask, to be stored with its proposals; {} while no cost is known."""
    found = best_prospect(replace(models, rng=deepcopy(models.rng)))  # what is proposed does not depend on it
    recent = [*models.earlier_fits.get(NAME, ()), *([] if found is None else [list(found)])]
    return {NAME: recent[-(WINDOW + HITS - 1) :]} if recent else {}


def best_prospect(models: FittedModels) -> Prospect | None:
    """The candidate that brings most for its cost; None while no cost is known, or if there is no candidate."""
    paid = models.ledger.budget.paid_in != "evaluations"
    if paid and models.log_price is None:
        return None
    price = models.log_price if paid else None
    ranking = models.by_improvement() if price is None else models.by(PerCost(models.improvement, price, 1.0))
    U = models.led_by_untried(ranking).U[:LOOKED_AT]
    if not len(U):
        return None
    X = models.space.features(U)
    gain = expected_gain(models.fantasies, models.scale, X)
    if models.success is not None:
        gain = gain * np.exp(models.success.log_success(X))
    cost = np.ones(len(X)) if price is None else _expected(*price.predict(X))
    best = int(np.argmax(gain / cost))
    return Prospect(min(float(gain[best]), LARGEST), min(float(cost[best]), LARGEST))


def _expected(mean: Array, variance: Array) -> Array:
    with np.errstate(over="ignore"):
        return np.maximum(np.exp(mean + 0.5 * variance), 1.0 / LARGEST)


def expected_gain(fantasies: Outcomes, scale: Warp | Scale, X: Array) -> Array:
    """The expected improvement (m,) at X (m, f) in the units of the objective, averaged over fantasies.

    The integral of max(W^-1(t) - W^-1(z), 0) over the density of z, by Gauss and Legendre.
    """
    means, variance = fantasies.predict(X)
    s = np.sqrt(variance)[:, None]  # (m, 1)
    low, high = means - DEEPEST * s, np.minimum(fantasies.targets, means + DEEPEST * s)
    half = 0.5 * np.maximum(high - low, 0.0)[..., None]
    z = low[..., None] + half * (1.0 + NODES)  # (m, k, nodes)
    density = np.exp(-0.5 * ((z - means[..., None]) / s[..., None]) ** 2) / (s[..., None] * np.sqrt(2.0 * np.pi))
    target = scale.inverse(fantasies.targets)[:, None]
    with np.errstate(over="ignore", invalid="ignore"):
        each = np.sum(WEIGHTS * half * density * np.maximum(target - scale.inverse(z), 0.0), axis=-1)
    return np.asarray(np.nan_to_num(each, nan=0.0, posinf=LARGEST).mean(axis=1))
