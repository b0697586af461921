"""The search space of an Optuna study, from the distributions of its trials.

Optuna has no space: each trial says what it was asked for. A parameter whose range changes has the union of its ranges.
One that is missing from some trials has a condition: if one parameter with levels explains exactly where it is there,
that is its `when`. Where nothing does, the space cannot be known, and the user is asked for it.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
    distribution_to_json,
)
from optuna.trial import FrozenTrial, TrialState

from farthing.adapters.optuna.translation import Translated, Translation
from farthing.errors import FarthingError, InvalidConfig, InvalidSpace
from farthing.space import Choice, Integer, Ordered, Space
from farthing.space.fields import alike, same
from farthing.space.foreign.common import MAX_STEPS, integer, listed, real, stepped
from farthing.space.parameters import Parameter
from farthing.text.plain import shown, warn
from farthing.trial import Config

MOST_LEVELS = 1000  # of a parameter that may be a condition
WHOLE = (TrialState.COMPLETE, TrialState.PRUNED)  # others may have ended before they asked for all parameters


def inferred(trials: Sequence[FrozenTrial]) -> tuple[Space, Translation]:
    """The space of some trials, and how their parameters are values of it."""
    held: dict[str, dict[str, BaseDistribution]] = {}  # by name, and by what they say
    for trial in trials:
        for name, distribution in trial.distributions.items():
            held.setdefault(name, {})[_said(distribution)] = distribution
    if not held:
        raise InvalidSpace("no trial has a parameter, so the space is not known; give it (space=...)")
    params = {name: _merged(name, list(found.values())) for name, found in held.items()}
    plain = Translation(params)
    whole = [trial for trial in trials if trial.state in WHOLE and trial.params] or list(trials)
    whens = _Conditions(plain, whole).all()
    return Space({name: replace(item.param, when=whens.get(name)) for name, item in params.items()}), plain


def _said(distribution: BaseDistribution) -> str:
    try:
        return distribution_to_json(distribution)
    except TypeError:  # categories that no file could hold
        return repr(distribution)


# -- ranges ------------------------------------------------------------------------------------------------------------


def _merged(name: str, found: Sequence[BaseDistribution]) -> Translated:
    """One parameter of all its distributions."""
    kinds = {kind for kind in (FloatDistribution, IntDistribution, CategoricalDistribution) for d in found
             if isinstance(d, kind)}  # fmt: skip
    if len(kinds) != 1 or len({getattr(d, "log", None) for d in found}) != 1:
        raise InvalidSpace(
            f"parameter {shown(name)}: is of several kinds in different trials; give the space (space=...)"
        )
    try:
        if kinds == {CategoricalDistribution}:
            return _category(name, found)
        return _float(name, found) if kinds == {FloatDistribution} else _integer(name, found)
    except (FarthingError, ArithmeticError, ValueError, TypeError) as error:
        raise InvalidSpace(f"parameter {shown(name)}: {error}") from error


def _category(name: str, found: Sequence[Any]) -> Translated:
    options: list[Any] = []
    seen: dict[Hashable, list[Any]] = {}
    for option in (option for distribution in found for option in distribution.choices):
        earlier = seen.setdefault(alike(option), [])
        if not any(same(option, other) for other in earlier):
            earlier.append(option)
            options.append(option)
    return Translated(name, listed(options), found[0], tuple(options))


def _float(name: str, found: Sequence[Any]) -> Translated:
    low, high = min(d.low for d in found), max(d.high for d in found)
    steps = {d.step for d in found}
    step = steps.pop() if len(steps) == 1 else None
    if step is not None and all(_lands(d.low - low, step) for d in found):
        if (high - low) / step < MAX_STEPS:
            param = stepped(lambda i: min(i * step + low, high), round((high - low) / step) + 1)
            return Translated(name, param, found[0], tuple(_items(param)), step)
        warn(f"parameter {shown(name)}: its step of {step:g} is left out: it has more than {MAX_STEPS} values")
    param = real(low, high, log=found[0].log)
    return Translated(name, param, found[0], tuple(_items(param)))


def _integer(name: str, found: Sequence[Any]) -> Translated:
    low, high = min(d.low for d in found), max(d.high for d in found)
    steps = {d.step for d in found}
    step = steps.pop() if len(steps) == 1 else 1
    step = step if all((d.low - low) % step == 0 for d in found) else 1
    param = integer(low, high, log=found[0].log, step=step)
    return Translated(name, param, found[0], tuple(_items(param)))


def _items(param: Parameter) -> Sequence[Any]:
    """The values of one that is listed."""
    return param.items if isinstance(param, Choice | Ordered) else ()


def _lands(distance: float, step: float) -> bool:
    """Whether a distance is a multiple of a step, but for rounding."""
    return abs(distance / step - round(distance / step)) < 1e-6


# -- conditions --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Presence:
    """In which trials a parameter is, by position."""

    name: str
    rows: frozenset[int]


class _Conditions:
    """What explains where parameters are."""

    def __init__(self, translation: Translation, trials: Sequence[FrozenTrial]) -> None:
        self._translation = translation
        self._configs: list[Config] = []
        for trial in trials:
            with suppress(InvalidConfig):  # that of a damaged storage, which is left out later
                self._configs.append(translation.from_optuna(trial.params))
        rows: dict[str, set[int]] = {name: set() for name in translation.params}
        for i, config in enumerate(self._configs):
            for name in config:
                rows[name].add(i)
        held = [_Presence(name, frozenset(found)) for name, found in rows.items()]
        # A parent is there whenever its child is, and was asked for before it: so nothing can lead in a circle.
        self._ordered = sorted(held, key=lambda presence: -len(presence.rows))
        self._depth: dict[str, int] = {}
        self._levels: dict[str, dict[int, int]] = {}

    def all(self) -> dict[str, dict[str, object]]:
        """`when` by name; an InvalidSpace names the parameters that nothing explains."""
        whens: dict[str, dict[str, object]] = {}
        unexplained: list[str] = []
        for i, child in enumerate(self._ordered):
            self._depth[child.name] = 0
            if len(child.rows) == len(self._configs):
                continue
            found = self._explained(child, self._ordered[:i])
            if found is None:
                unexplained.append(child.name)
                continue
            parent, value = found
            self._depth[child.name] = self._depth[parent] + 1
            whens[child.name] = {parent: value}
        if unexplained:
            names = ", ".join(map(shown, unexplained[:5])) + ", ..." * (len(unexplained) > 5)
            raise InvalidSpace(
                f"some trials do not have {names}, and no other parameter explains which ones; give the space "
                "(space=...): then trials that do not fit it are left out"
            )
        return whens

    def _explained(self, child: _Presence, before: Sequence[_Presence]) -> tuple[str, object] | None:
        """The parameter, and the value or values of it, with which a parameter is there and without which it is not.
        One that is always there goes before one that is not, and a category before a number."""
        found = []
        for position, parent in enumerate(before):
            param = self._translation.params[parent.name].param
            if param.levels is None or param.levels > MOST_LEVELS or not child.rows <= parent.rows:
                continue
            if (value := self._values(child, parent, param)) is not None:
                rank = (self._depth[parent.name], isinstance(param, Integer), isinstance(param, Ordered), position)
                found.append((rank, parent.name, value))
        return min(found, key=lambda item: item[0])[1:] if found else None

    def _values(self, child: _Presence, parent: _Presence, param: Parameter) -> object | None:
        levels = self._levels_of(parent)
        with_it = {levels[i] for i in child.rows}
        without = {levels[i] for i in parent.rows - child.rows}
        if with_it & without:
            return None
        wanted = sorted(_filled(with_it, without, param))
        values = [param.value(level) for level in wanted]
        if len(values) == 1:
            return values[0]
        try:
            several = set(values)
        except TypeError:  # a list, in a study in memory
            return None
        return several if len(several) == len(values) else None

    def _levels_of(self, parent: _Presence) -> Mapping[int, int]:
        """Its level in each trial that has it."""
        if parent.name not in self._levels:
            param = self._translation.params[parent.name].param
            found = {i: param.find(self._configs[i][parent.name]) for i in parent.rows}
            self._levels[parent.name] = {i: int(level) for i, level in found.items() if level is not None}
        return self._levels[parent.name]


def _filled(with_it: set[int], without: set[int], param: Parameter) -> set[int]:
    """Levels at which a parameter is there, also among those that no trial had: of numbers in order, all beyond a
    threshold (units of layer 3 are there from 3 layers on); of others, all if it was never missing."""
    every = set(range(param.levels or 0))
    if not without:
        return every
    if isinstance(param, Choice):
        return with_it
    if min(with_it) > max(without):
        return {level for level in every if level >= min(with_it)}
    if max(with_it) < min(without):
        return {level for level in every if level <= max(with_it)}
    return with_it
