"""HpBandSter's Hyperband and BOHB, driven one run at a time without its network of workers.

Needs HpBandSter, so only peers import this.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.metadata import version
from types import SimpleNamespace
from typing import Any

import ConfigSpace
import numpy as np
from hpbandster.core.dispatcher import Job
from hpbandster.optimizers.bohb import BOHB
from hpbandster.optimizers.config_generators.bohb import BOHB as Densities
from hpbandster.optimizers.config_generators.random_sampling import RandomSampling
from hpbandster.optimizers.hyperband import HyperBand

VERSIONS = {name: version(name) for name in ("hpbandster", "ConfigSpace", "statsmodels", "numpy", "scipy")}
KINDS = {"hyperband": (HyperBand, RandomSampling), "bohb": (BOHB, Densities)}

Evaluate = Callable[[Any, dict[str, Any], float], float | None]  # (id, configuration, budget) -> value, None: crashed


def drive(
    kind: str, parameters: Sequence[Any], budgets: Sequence[float], eta: float, seed: int, evaluate: Evaluate
) -> None:
    """Its own brackets and models, one evaluation after the other, until `evaluate` raises."""
    np.random.seed(seed)  # noqa: NPY002 - what HpBandSter draws from
    space = ConfigSpace.ConfigurationSpace(seed=seed)
    space.add_hyperparameters(list(parameters))
    optimiser, sampler = KINDS[kind]
    generator = sampler(space)
    brackets = SimpleNamespace(
        eta=eta, max_SH_iter=len(budgets), budgets=np.array(budgets), config_generator=generator
    )  # fmt: skip
    number = 0
    while True:
        bracket = optimiser.get_next_iteration(brackets, number, {"result_logger": None})
        while (run := bracket.get_next_run()) is not None:
            config_id, config, budget = run
            value = evaluate(config_id, config, budget)
            job = Job(config_id, config=config, budget=budget)
            job.timestamps, job.exception = {}, None
            job.result = None if value is None else {"loss": value, "info": {}}
            bracket.register_result(job)
            generator.new_result(job)
        number += 1
