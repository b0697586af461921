"""The search space of a study that is defined by running it, as far as its trials show it.

Optuna's spaces come into being while objectives run: what a trial asks for may depend on what it was given before.
Three questions are asked of the trials that ended:

    which range     a parameter has the distribution that the last AGREED trials with it have in common; one that
                    changes from trial to trial is drawn on its own
    which depends   a parameter that some trials lack depends on another one if the values of that one tell exactly
                    which trials have it; then it has that condition (`when=`), and all is one space
    what is left    parameters whose absence nothing explains; those that are always asked for together are one part,
                    which is proposed on its own from the trials that have it

What is concluded from few trials may be wrong. A trial that shows it corrects it, and costs nothing but a value that
was drawn at random where one could have been proposed: Optuna asks for what a proposal lacks, and leaves aside what it
has too much.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from optuna.distributions import BaseDistribution, CategoricalDistribution
from optuna.trial import FrozenTrial, TrialState

from farthing.adapters.optuna.distributions import Translated, levels, translated
from farthing.errors import InvalidConfig, InvalidSpace
from farthing.numerics.arrays import Mask
from farthing.space import Space
from farthing.space.conditions import Key
from farthing.trial import Config

AGREED = 3  # trials in a row with the same range: then it is the range
Params = dict[str, Any]
Condition = tuple[str, frozenset[Any]]  # on a parameter: that it has one of these values


@dataclass(frozen=True, eq=False)
class Part:
    """Parameters that are proposed together."""

    parameters: Mapping[str, Translated]
    space: Space

    @classmethod
    def of(cls, parameters: Mapping[str, Translated], conditions: Mapping[str, Condition]) -> Part:
        """A part; options that cannot be told apart as a condition leave the parameter unconditional."""

        def named(name: str, found: Translated) -> Any:
            condition = conditions.get(name)
            return found.parameter if condition is None else replace(found.parameter, when=dict([condition]))

        return cls(parameters, Space({name: named(name, found) for name, found in parameters.items()}))

    def key(self, config: Config) -> Key | None:
        """What makes a configuration the same as another; None for one that is not of this space."""
        try:
            return self.space.key(config)
        except InvalidConfig:
            return None

    def config(self, params: Params) -> Config:
        return {name: self.parameters[name].read(value) for name, value in params.items() if name in self.parameters}

    def params(self, config: Config) -> Params:
        return {name: self.parameters[name].write(value) for name, value in config.items()}


def settled(trials: Iterable[FrozenTrial]) -> dict[str, BaseDistribution]:
    """The distributions that trials agree on by now, by the name of the parameter, in alphabetical order."""
    last: dict[str, list[BaseDistribution]] = {}
    for trial in trials:
        for name, distribution in trial.distributions.items():
            last.setdefault(name, []).append(distribution)
    agreed = {name: found[-1] for name, found in last.items() if all(d == found[-1] for d in found[-AGREED:])}
    return {name: agreed[name] for name in sorted(agreed) if not agreed[name].single()}


def parts_of(trials: Sequence[FrozenTrial], distributions: Mapping[str, BaseDistribution]) -> list[Part]:
    """The parts of a space with these distributions, as the trials show them; the first holds all that is explained."""
    known = {name: found for name in sorted(distributions) if (found := translated(name, distributions[name]))}
    whole = [trial for trial in trials if _is_whole(trial)]
    has = {name: np.array([name in trial.params for trial in whole], dtype=np.bool_) for name in known}
    conditions = {name: condition for name in known if (condition := _condition(name, known, whole, has))}
    explained = _explained(known, conditions, has)
    groups: dict[bytes, dict[str, Translated]] = {}
    for name, found in known.items():
        groups.setdefault(b"" if name in explained else has[name].tobytes(), {})[name] = found
    parts = [groups.pop(b"")] if b"" in groups else []
    return [_part(names, conditions) for names in (*parts, *groups.values())]


def _is_whole(trial: FrozenTrial) -> bool:
    """Whether a trial asked for all parameters that it needed: it was complete, or had begun to train."""
    return trial.state is TrialState.COMPLETE or (trial.state is TrialState.PRUNED and bool(trial.intermediate_values))


def _part(parameters: Mapping[str, Translated], conditions: Mapping[str, Condition]) -> Part:
    inside = {name: condition for name, condition in conditions.items() if condition[0] in parameters}
    try:
        return Part.of(parameters, inside)
    except InvalidSpace:  # options that are equal, such as 1 and True, cannot be told apart in a condition
        return Part.of(parameters, {})


def _explained(known: Iterable[str], conditions: Mapping[str, Condition], has: Mapping[str, Mask]) -> set[str]:
    """Parameters that all trials have, and those that depend on one that is explained."""
    found = {name for name in known if has[name].all()}
    while more := {name for name in conditions if name not in found and conditions[name][0] in found}:
        found |= more
    return found


def _condition(
    name: str, known: Mapping[str, Translated], whole: Sequence[FrozenTrial], has: Mapping[str, Mask]
) -> Condition | None:  # fmt: skip
    """On which parameter another one depends, options before numbers; None if it always is there, or if no parameter
    tells exactly when."""
    if has[name].all() or not has[name].any():
        return None
    parents = [parent for parent in known if parent != name and (has[parent] >= has[name]).all()]
    parents.sort(key=lambda parent: not isinstance(known[parent].distribution, CategoricalDistribution))
    for parent in parents:
        every = levels(known[parent].distribution)
        seen = [(trial.params[parent], bool(has[name][i])) for i, trial in enumerate(whole) if has[parent][i]]
        with_it, without = ({value for value, there in seen if there is there_is} for there_is in (True, False))
        if every is None or not with_it or not without or with_it & without:
            continue
        if isinstance(known[parent].distribution, CategoricalDistribution):
            return parent, frozenset(with_it)
        nearest = {value: min(with_it | without, key=lambda other: abs(other - value)) for value in every}
        if wanted := frozenset(value for value in every if nearest[value] in with_it):
            return parent, wanted
    return None
