"""BAPI's models as its paper's symbols have them, over a small finite space, where every argmax is over a list.

Studies in an own loop, and mu, sigma, EI, q-EI, mu_c and t_opt of what is known from them: by Monte Carlo from joint
draws of the fitted model, and by trying every step.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np

import farthing as ft
from farthing.budget import Ledger
from farthing.errors import StudyEnded
from farthing.policies import BAPI
from farthing.policies.bapi.curves import TrainingCurves
from farthing.policies.bapi.planner import PlannedRun, Planner
from farthing.policies.candidates import FreshSpace

SPACE = ft.Space(x=ft.Integer(0, 15), z=ft.Integer(0, 2))
EVERY = list(SPACE.enumerate())
T_MAX, P = 20, 4  # p is 20 % of t_max
CONTINUE, PAUSE = ft.Decision.CONTINUE, ft.Decision.PAUSE

Config = dict[str, Any]


def value_at(config: Config, step: int) -> float:
    end = 0.1 + 0.6 * ((config["x"] - 11) / 15) ** 2 + 0.03 * config["z"]
    return end + 0.5 * math.exp(-step / (1.0 + config["x"] / 4.0))


def cost_of(config: Config) -> float:
    return 1.0 + config["x"] / 5.0


def proposals_of(study: ft.Study) -> Iterator[ft.Proposal]:
    """Until the study ends."""
    with suppress(StudyEnded):
        while True:
            yield study.ask()


Price = Callable[[Config], float]  # of a step


def train(study: ft.Study, proposal: ft.Proposal, price: Price = cost_of) -> None:
    step, decision = proposal.start_step, CONTINUE
    while decision is CONTINUE:
        step += 1
        decision = study.report(proposal, value_at(proposal.config, step), cost=price(proposal.config))


def searched(
    policy: BAPI | str, cost: float = 1e5, seed: int = 0, asks: int | None = None, price: Price = cost_of
) -> ft.Study:
    study = ft.Study(SPACE, ft.Budget(cost=cost), policy=policy, seed=seed, max_steps=T_MAX)
    for proposal in islice(proposals_of(study), asks):
        train(study, proposal, price)
    return study


@dataclass(frozen=True)
class Transcribed:
    """GP_f and GP_c of a study, asked for as the paper's symbols have it; values in units of the objective."""

    policy: BAPI
    study: ft.Study
    curves: TrainingCurves
    planner: Planner

    @classmethod
    def of(cls, policy: BAPI, study: ft.Study, left: float = 1e5, seed: int = 7) -> Transcribed:
        """As `policy.propose` with that seed and that much of the budget left sees them."""
        rng, history = np.random.default_rng(seed), study._history
        curves = TrainingCurves.of(policy, SPACE, history, rng)
        assert curves is not None
        fresh, ledger = FreshSpace(SPACE, history), Ledger(ft.Budget(cost=left))
        return cls(policy, study, curves, Planner.of(policy, SPACE, history, ledger, fresh, curves, rng))

    @cached_property
    def ends(self) -> np.ndarray:
        return np.array([trial.value for trial in self.study.trials])

    @property
    def y_best(self) -> float:
        return float(self.ends.min())

    def mu_sigma(self, config: Config, t: float) -> tuple[float, float]:
        mean, variance = self.curves.model.predict(features([config]), np.array([float(t)]))
        return float(self.ends.mean() + self.ends.std() * mean[0]), float(self.ends.std() * np.sqrt(variance[0]))

    def draws(self, configs: list[Config], t: list[float], count: int = 20_000) -> np.ndarray:
        """Joint draws (count, q) of f."""
        found = self.curves.model.sample(features(configs), np.array(t, dtype=float), count, np.random.default_rng(1))
        return self.ends.mean() + self.ends.std() * found

    def ei(self, config: Config, t: float) -> float:
        """Eq. 3 by Monte Carlo."""
        return float(np.maximum(self.y_best - self.draws([config], [t])[:, 0], 0.0).mean())

    def q_ei(self, configs: list[Config]) -> float:
        """Eq. 5: the expected improvement of a batch at t_max, by Monte Carlo."""
        least = self.draws(configs, [T_MAX] * len(configs)).min(axis=1)
        return float(np.maximum(self.y_best - least, 0.0).mean())

    def mu_c(self, config: Config, steps: float) -> float:
        return float(np.exp(self.planner.costs.log_per_step(features([config]))[0])) * steps

    def t_opt(self, config: Config) -> int:
        """Eq. 8 by trying every t."""
        end = self.mu_sigma(config, T_MAX)[0]
        return next(t for t in range(1, T_MAX + 1) if self.mu_sigma(config, t)[0] - end <= self.curves.eps)

    def planned_ei(self, configs: list[Config], planned: list[Config]) -> np.ndarray:
        """EI at t_max (c,) as the planner has it, given the runs planned before."""
        paths = self.planner.paths
        for config in planned:
            paths = paths.extend(features([config])[0], float(T_MAX))
        candidates = self.planner._candidates(SPACE.encode_many(configs), paused=False)
        return self.ends.std() * np.exp(self.planner._utility(candidates, paths, 1e5))

    @property
    def fresh(self) -> list[Config]:
        """X, without what was evaluated."""
        taken = [trial.config for trial in self.study.trials]
        return [config for config in EVERY if config not in taken]


def features(configs: list[Config]) -> np.ndarray:
    return SPACE.features(SPACE.encode_many(configs))


def config_of(planned: PlannedRun) -> Config:
    return SPACE.decode(planned.run.U[0])
