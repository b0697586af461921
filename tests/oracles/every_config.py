"""A finite space of which every configuration is looked at: beliefs and expected improvement by brute force.

A Gaussian process with numpy.linalg, EI from its textbook formula, in the units of the objective, and a line through
log costs. The hyperparameters of the process are those that the ask stored; all else is computed here.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.stats import norm

import farthing as ft
from farthing.surrogates.gp import Hyperparameters
from oracles.dense_gp import DenseGP, kernel, least_squares_mean

SPACE = ft.Space(depth=ft.Integer(1, 12), size=ft.Integer(1, 14, log=True), kind=ft.Choice(["a", "b"]))
EVERY = list(SPACE.enumerate())
X = SPACE.features(SPACE.encode_many(EVERY))
NUMBER = {SPACE.key(config): i for i, config in enumerate(EVERY)}
EXACT = 1e-5  # of log EI: two ways of solving one system


def value(config: dict) -> float:
    """Long upper tail, so that warping it changes EI; the lowest values are expensive."""
    bend = (config["depth"] - 9) / 4 + 0.3 * np.sin(config["size"])
    return float(np.exp(1.2 * bend**2) + 3.0 / config["size"] + (0.2 if config["kind"] == "b" else 0.0))


def cost(config: dict) -> float:
    return float(0.5 + config["depth"] * config["size"] ** 1.3 / 10)


COST = np.array([cost(config) for config in EVERY])


@dataclass(frozen=True)
class Search:
    """A study to the end of its budget, and what each of its asks gave."""

    study: ft.Study
    proposals: list

    def modelled(self) -> list[int]:
        """The trials that a model chose."""
        return [p.trial for p in self.proposals if "value" in p.fits]


@cache
def search(policy, seed: int = 0, budget: float = 200.0, scale: float = 1.0, known: bool = True) -> Search:
    """`scale` multiplies all costs; where they are not `known` beforehand they are learned."""
    options = {"known_cost": lambda config: scale * cost(config)} if known else {}
    study = ft.Study(SPACE, ft.Budget(cost=budget), policy=policy, seed=seed, **options)
    proposals = []
    while study.ended is None:
        proposal = study.ask()
        proposals.append(proposal)
        study.tell(proposal, value=value(proposal.config), cost=scale * cost(proposal.config))
    return Search(study, proposals)


@dataclass(frozen=True)
class Oracle:
    """What is believed of every configuration before a trial, in the units of the objective."""

    mean: np.ndarray
    sd: np.ndarray
    least: float
    fresh: np.ndarray  # whether it was not tried

    @classmethod
    def before(cls, found: Search, trial: int) -> Oracle:
        tried = [NUMBER[SPACE.key(t.config)] for t in found.study.trials[:trial]]
        y = np.array([t.value for t in found.study.trials[:trial]])
        fit = Hyperparameters.from_json(found.proposals[trial].fits["value"])
        scales, eta = np.exp(np.array(fit.log_scales))[SPACE.groups], float(np.exp(fit.log_noise))
        centre, spread = y.mean(), y.std()
        z = (y - centre) / spread
        K = kernel(X[tried], X[tried], scales) + eta * np.eye(len(z))
        mean = least_squares_mean(K, z)
        q = (z - mean) @ np.linalg.solve(K, z - mean)
        model = DenseGP(X[tried], z, mean, (q + 1.0) / (len(z) + 1.0), scales, eta)
        mu, covariance = model.predict(X)
        fresh = np.ones(len(EVERY), dtype=bool)
        fresh[tried] = False
        sd = spread * np.sqrt(np.maximum(np.diag(covariance), 1e-12 * model.variance))
        return cls(centre + spread * mu, sd, float(y.min()), fresh)

    def ei(self, target: float | None = None) -> np.ndarray:
        """E[max(0, f_min - f(x))], section 2."""
        z = ((self.least if target is None else target) - self.mean) / self.sd
        return self.sd * (z * norm.cdf(z) + norm.pdf(z))

    def log_utility(self, alpha: float, cost: np.ndarray = COST) -> np.ndarray:
        """log of Eq. 1; -inf where it was tried."""
        with np.errstate(divide="ignore"):
            return np.where(self.fresh, np.log(self.ei()) - alpha * np.log(cost), -np.inf)


def learned_cost(found: Search, trial: int) -> np.ndarray:
    """c(x) of every configuration before a trial, as in CEI's section 3.2: log cost is a line in log features.

    Here there are three features, so the line in the three most significant is the one in all. It is fitted as
    docs/cost.md says, by least squares over and over with Huber's weights and a small ridge, and bends beyond the costs
    seen.
    """
    tried = [NUMBER[SPACE.key(t.config)] for t in found.study.trials[:trial]]
    b = np.log([t.cost for t in found.study.trials[:trial]])
    log_depth = np.log([2.0 * config["depth"] for config in EVERY]) / np.log(25.0)  # of 0.5 to 12.5; size is a log in X
    A = np.column_stack([np.ones(len(EVERY)), log_depth, X[:, 1:]])
    ridge, v = np.sqrt(0.05) * np.eye(A.shape[1])[1:], np.ones(len(b))
    for _ in range(300):
        root = np.sqrt(v)
        rows, aims = np.vstack([root[:, None] * A[tried], ridge]), np.append(root * b, np.zeros(len(ridge)))
        theta = np.linalg.lstsq(rows, aims, rcond=None)[0]
        residuals, lost = b - A[tried] @ theta, ((aims - rows @ theta) ** 2).sum()
        scale = np.sqrt((3.0 * 0.3**2 + lost / (2.0 * norm.cdf(1.345) - 1.0)) / (len(b) + 2.0))
        v = np.minimum(1.0, 1.345 * scale / np.abs(residuals))
    line, room = A @ theta, np.ptp(b) + 3.0 * scale
    inside = np.clip(line, b.min(), b.max())
    return np.exp(inside + room * np.sign(line - inside) * (1.0 - np.exp(-np.abs(line - inside) / room)))


def pick(proposal) -> int:
    return NUMBER[SPACE.key(proposal.config)]
