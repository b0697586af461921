"""Timing data for the benchmarks of cost models: tables of published training times, and fits timed here.

A `Source` draws a sample: configurations, uniform over its space, as models see them, with their log costs. Those of
timed fits are in programs.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

import farthing as ft
from benchmarks.common.tables import TABLES, Parameter, table_of
from benchmarks.cost_models.programs import Config, Timings, counts_of

Array = NDArray[np.float64]

# Rows, columns and classes of the tables' tasks, as OpenML and UCI have them; 1 class is a number to predict.
TABLE_TASKS: dict[str, tuple[int, int, int]] = {
    "mlp_australian": (690, 14, 2),
    "mlp_blood_transfusion": (748, 4, 2),
    "mlp_car": (1728, 6, 4),
    "mlp_credit_g": (1000, 20, 2),
    "mlp_kc1": (2109, 21, 2),
    "mlp_phoneme": (5404, 5, 2),
    "mlp_segment": (2310, 19, 7),
    "mlp_vehicle": (846, 18, 4),
    "fcnet_naval_propulsion": (11934, 15, 1),
    "fcnet_parkinsons_telemonitoring": (5875, 20, 1),
    "fcnet_protein_structure": (45730, 9, 1),
    "fcnet_slice_localization": (53500, 385, 1),
}


@dataclass(frozen=True, eq=False)
class Sample:
    """Configurations as models see them. `counts` is what a dense network computes, None for other programs."""

    X: Array  # (n, f) features in the unit cube
    groups: NDArray[np.intp]  # (f,)
    ratios: Array  # (f,)
    log_cost: Array  # (n,)
    counts: Array | None = None  # (n, 4), see `counts_of`


@dataclass(frozen=True, eq=False)
class Source:
    """One learner on one data set."""

    name: str
    what: str
    draw: Callable[[np.random.Generator, int], Sample]  # at most that many distinct configurations


def sampled(space: ft.Space, configs: Sequence[Config], cost: Array, counts: Callable[..., Any] | None) -> Sample:
    """A sample from configurations and their costs."""
    counted = None if counts is None else np.array([counts(config) for config in configs])
    features = space.features(space.encode_many(configs))
    return Sample(features, space.groups, space.ratios, np.log(cost), counted)


# -- tables ------------------------------------------------------------------------------------------------------------


def parameter_of(parameter: Parameter) -> ft.Ordered | ft.Choice:
    """A parameter of a table as Farthing's users write it."""
    if parameter.ordered:
        return ft.Ordered(parameter.values, log=parameter.log)
    return ft.Choice(parameter.values)


@cache
def table_space(name: str) -> ft.Space:
    return ft.Space({parameter.name: parameter_of(parameter) for parameter in table_of(name).parameters})


def table_configs(name: str, rng: np.random.Generator, n: int) -> tuple[list[Config], Array]:
    """Distinct configurations, uniform over the grid, and their seconds."""
    table = table_of(name)
    drawn = table.draw(n, rng)
    configs = [{p.name: p.values[level] for p, level in zip(table.parameters, levels, strict=True)} for levels in drawn]
    return configs, np.array([table.look_up(levels)[1] for levels in drawn])


def table_counts(name: str) -> Callable[[Config], tuple[float, ...]]:
    """What a table's network computes in one epoch; how many epochs is the same for all its configurations."""
    _, columns, classes = TABLE_TASKS[name]
    outputs = 1 if classes <= 2 else classes

    def counts(config: Config) -> tuple[float, ...]:
        wide = [config["width"]] * config["depth"] if "depth" in config else [config["n_units_1"], config["n_units_2"]]
        return counts_of([columns, *wide, outputs], config["batch_size"])

    return counts


def table_source(name: str) -> Source:
    def draw(rng: np.random.Generator, n: int) -> Sample:
        return sampled(table_space(name), *table_configs(name, rng, n), table_counts(name))

    return Source(name, "table", draw)


# -- timed fits --------------------------------------------------------------------------------------------------------


def timed_source(timed: Timings) -> Source:
    """A program whose configurations come in a random order. Costs are processor seconds.

    On a machine that others use too, the clock would add their noise to all models alike.
    """
    program = timed.program
    everything = sampled(program.space, program.configs, timed.cpu, program.counts)

    def draw(rng: np.random.Generator, n: int) -> Sample:
        rows = rng.permutation(program.fits)[:n]
        counts = None if everything.counts is None else everything.counts[rows]
        return Sample(everything.X[rows], everything.groups, everything.ratios, everything.log_cost[rows], counts)

    return Source(program.name, "timed here", draw)


def table_sources(names: Sequence[str] = TABLES) -> list[Source]:
    return [table_source(name) for name in names]
