"""Small studies for the figures that ask models, and what was evaluated in them."""

from __future__ import annotations

from functools import cache

import numpy as np

import farthing as ft
from farthing.designs.filling import sobol

SPACE = ft.Space(
    rate=ft.Real(1e-4, 1.0, log=True),
    depth=ft.Integer(1, 8),
    kind=ft.Choice(["plain", "dropped", "<b>bold</b>"]),
    share=ft.Real(0.0, 0.5, when={"kind": "dropped"}),
)


def value_of(config) -> float:
    value = (np.log10(config["rate"]) + 2.0) ** 2 + 0.2 * abs(config["depth"] - 5) + 0.5 * (config["kind"] == "plain")
    return float(value + 2.0 * config.get("share", 0.0))


def cost_of(config) -> float:
    return 0.5 * float(config["depth"])


@cache
def tuned(policy="cei", trials=14, *, maximize=False, cost=True, fail=None, space=SPACE, storage=None, budget=60.0):
    """A study of `value_of` and `cost_of`; trials of the numbers in `fail` fail. It is only looked
    at, so that all tests share it."""
    study = ft.Study(space, ft.Budget(cost=budget), policy=policy, seed=3, maximize=maximize, storage=storage)
    for number in range(trials):
        proposal = study.ask()
        spent = cost_of(proposal.config) if cost else None
        if number in (fail or ()):
            study.tell(proposal, failed="out of memory", cost=spent)
        else:
            value = value_of(proposal.config)
            study.tell(proposal, value=-value if maximize else value, cost=spent)
    return study


def known(space, function, count, *, cost=None, policy="random", maximize=False, seed=0):
    """A study that knows a function at that many even points, without having asked for them."""
    study = ft.Study(space, ft.Budget(cost=1e9), policy=policy, seed=seed, maximize=maximize)
    for config in space.decode_many(space.snap(sobol(count, len(space), np.random.default_rng(1)))):
        study.add(config, value=function(config), cost=None if cost is None else cost(config))
    return study
