"""Search spaces as all peers are given them, in the form of common/described_spaces.py.

An ordered parameter of a table is a whole number, its level, so that a geometric grid is even; `values` are those of
the levels, and `values_log` says whether they are geometric.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.common.described_spaces import Config, Described
from benchmarks.common.tables import Parameter

GEOMETRIC = frozenset({"tau", "n_epochs", "C", "epsilon"})  # besides those that `Parameter.log` knows


def described(parameter: Parameter) -> dict[str, Any]:
    """An axis of a table."""
    if not parameter.ordered:
        return {"name": parameter.name, "type": "categorical", "choices": list(parameter.values)}
    return {
        "name": parameter.name,
        "type": "uniform_int",
        "lower": 0,
        "upper": len(parameter.values) - 1,
        "log": False,
        "values": list(parameter.values),
        "values_log": parameter.log or parameter.name in GEOMETRIC,
    }


def levels(parameters: Sequence[Parameter], config: Config) -> list[int]:
    """Where a table has a configuration of its described space."""
    given = ((parameter, config[parameter.name]) for parameter in parameters)
    return [int(value) if parameter.ordered else parameter.values.index(value) for parameter, value in given]


def as_described(space: Sequence[Described], part: Mapping[str, Any]) -> dict[str, Any]:
    """A part of a configuration, given in values, as the described space has it."""
    by_name = {one["name"]: one for one in space}
    return {
        name: by_name[name]["values"].index(value) if "values" in by_name[name] else value
        for name, value in part.items()
    }
