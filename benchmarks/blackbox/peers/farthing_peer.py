"""Farthing's policies as a child process of the black-box benchmark, through its public names only.

    python -m benchmarks.blackbox.peers.farthing_peer FOLDER < tasks.jsonl

A task names the policy, or its paper's form, and options; what it leaves out is as the name has it now.
"""

from __future__ import annotations

import farthing
from benchmarks.blackbox.peers.task import Task, serve
from benchmarks.common.policies import policy_of
from benchmarks.common.tables import Parameter, Table
from benchmarks.common.versions import version
from farthing.errors import StudyEnded

VERSIONS = {name: version(name) for name in ("farthing", "numpy", "scipy")}


def translated(parameter: Parameter) -> farthing.Ordered | farthing.Choice:
    """A parameter as Farthing's users write it."""
    if parameter.ordered:
        return farthing.Ordered(parameter.values, log=parameter.log)
    return farthing.Choice(parameter.values)


class Farthing:
    """`study.ask(n)` and `study.tell` with a budget of cost."""

    def __init__(self, table: Table, task: Task) -> None:
        self._parameters = table.parameters
        self._study = farthing.Study(
            farthing.Space({parameter.name: translated(parameter) for parameter in table.parameters}),
            farthing.Budget(cost=task["budget"]),
            policy=policy_of(task["policy"]),
            seed=task["seed"],
            start=[self._config(levels) for levels in task["start"]],
        )

    def _config(self, levels: list[int]) -> dict[str, object]:
        return {
            parameter.name: parameter.values[level] for parameter, level in zip(self._parameters, levels, strict=True)
        }

    def ask(self, n: int) -> list[list[int]]:
        try:
            self._proposals = self._study.ask(n)
        except StudyEnded:
            return []
        return [
            [parameter.values.index(proposal.config[parameter.name]) for parameter in self._parameters]
            for proposal in self._proposals
        ]

    def tell(self, values: list[float], costs: list[float]) -> None:
        for proposal, value, cost in zip(self._proposals, values, costs, strict=True):
            self._study.tell(proposal, value=value, cost=cost)


if __name__ == "__main__":
    serve(Farthing, VERSIONS)
