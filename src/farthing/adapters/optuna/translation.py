"""Configurations of a Farthing space as parameters of Optuna, and back.

Optuna knows floats, integers and categories; a category is a number, a text, true, false or nothing. So an `Ordered` or
a `Choice` becomes a category per option, under its text where the option is anything else, and a condition shows only
in that the parameter is missing from a trial. Names are those of the space, as far as every database can hold them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from optuna.distributions import (
    BaseDistribution,
    CategoricalChoiceType,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.trial import FrozenTrial

from farthing.checks import finite, refuse
from farthing.errors import InvalidConfig
from farthing.space import Choice, Integer, Ordered, Real, Space
from farthing.space.fields import same
from farthing.space.parameters import Parameter
from farthing.text.plain import readable, shown
from farthing.trial import Config

LONGEST_NAME = 512  # characters of a name, by Optuna's tables
LONGEST_CATEGORY = 200  # characters of a category: each trial holds all of them again
EXACT = 2**53  # whole numbers up to here are floats too, and Optuna stores floats


@dataclass(frozen=True)
class Translated:
    """One parameter: its name and values in Optuna, those of a `Choice` or `Ordered` in the order of its levels.

    `step` is that of a float with a step, whose values Optuna may round otherwise than we do.
    """

    name: str  # in Optuna
    param: Parameter
    distribution: BaseDistribution
    categories: tuple[Any, ...] = ()
    step: float | None = None

    def to_optuna(self, value: Any) -> Any:
        """A value of the space as Optuna has it."""
        if self.categories:
            return self.categories[self.param.find(value)]  # type: ignore[index]
        if isinstance(self.distribution, FloatDistribution):
            return min(max(float(value), self.distribution.low), self.distribution.high)
        return value

    def from_optuna(self, value: Any) -> Any:
        """The inverse, or an InvalidConfig."""
        place = self._place(value)
        if place is None:
            refuse(f"parameter {self.name!r}", self.param.accepted, value, InvalidConfig)
        return self.param.value(place)  # type: ignore[arg-type]

    def _place(self, value: Any) -> float | int | None:
        if self.categories:
            if self.step is not None:
                return self._nearest(value)
            exact = (i for i, category in enumerate(self.categories) if same(category, value))
            equal = (i for i, category in enumerate(self.categories) if category == value)
            return next(exact, next(equal, None))
        number = finite(value)
        if isinstance(self.param, Integer) and number is not None and abs(number) >= EXACT:
            return self._level_near(number)
        return self.param.find(value)

    def _nearest(self, value: Any) -> int | None:
        """The level of a float with a step, which may have been rounded."""
        number = finite(value)
        if number is None or self.step is None:
            return None
        level = round((number - self.categories[0]) / self.step)
        held = 0 <= level < len(self.categories)
        return level if held and math.isclose(number, self.categories[level], abs_tol=self.step / 1e6) else None

    def _level_near(self, number: float) -> int | None:
        """The level of a whole number that was stored as a float and lost its last digits."""
        assert isinstance(self.param, Integer)
        level = round((int(number) - self.param.low) / self.param.step)
        return level if 0 <= level < self.param.levels else None


@dataclass(frozen=True)
class Translation:
    """All parameters of a space, by their names in Farthing."""

    params: Mapping[str, Translated]

    @classmethod
    def of(cls, space: Space) -> Translation:
        """How a study of this space is exported."""
        names = distinct(map(storable_name, space.names), LONGEST_NAME)
        return cls(
            {name: translated(shown, param) for (name, param), shown in zip(space.params.items(), names, strict=True)}
        )

    @classmethod
    def plain(cls, space: Space) -> Translation:
        """Every parameter under its own name, with its own values."""
        return cls({
            name: Translated(name, param, translated(name, param).distribution,
                             tuple(param.items) if isinstance(param, Ordered | Choice) else ())
            for name, param in space.params.items()
        })  # fmt: skip

    def reads(self, trials: Iterable[FrozenTrial]) -> bool:
        """Whether these trials were exported so."""
        distributions = self.distributions(self.params)
        return all(
            distributions.get(name) == distribution
            for trial in trials
            for name, distribution in trial.distributions.items()
        )

    def to_optuna(self, config: Config) -> dict[str, Any]:
        """The parameters of a trial in Optuna: those that are active."""
        return {self.params[name].name: self.params[name].to_optuna(value) for name, value in config.items()}

    def distributions(self, names: Iterable[str]) -> dict[str, BaseDistribution]:
        """Their distributions."""
        return {self.params[name].name: self.params[name].distribution for name in names}

    def from_optuna(self, params: Mapping[str, Any]) -> Config:
        """The configuration of a trial in Optuna, not yet checked against the conditions of a space."""
        known = {param.name: (name, param) for name, param in self.params.items()}
        config = {}
        for shown_name, value in params.items():
            if shown_name not in known:
                raise InvalidConfig(f"unknown parameter {shown(shown_name)}")
            name, param = known[shown_name]
            config[name] = param.from_optuna(value)
        return config


def translated(name: str, param: Parameter) -> Translated:
    """One parameter of a space, for Optuna."""
    if isinstance(param, Ordered | Choice):
        texts = categories(param.items)
        return Translated(name, param, CategoricalDistribution(texts), tuple(texts))
    if isinstance(param, Real):
        return Translated(name, param, FloatDistribution(param.low, param.high, log=param.log))
    assert isinstance(param, Integer)
    if max(abs(param.low), abs(param.high)) >= EXACT:
        return Translated(name, param, FloatDistribution(param.low, param.high, log=param.log))
    # In Optuna only integers without a step may be on a log scale.
    log = param.log and param.step == 1
    return Translated(name, param, IntDistribution(param.low, param.high, log=log, step=param.step))


def categories(options: Sequence[Any]) -> list[CategoricalChoiceType]:
    """Options as Optuna's categories: as they are where they can be and differ for Optuna too, which takes 1, 1.0 and
    True for the same; else as texts.

    >>> categories(["a", None, 2]), categories([1, True]), categories([(1, 2), "x"])
    (['a', None, 2], ['1', 'True'], ['(1, 2)', 'x'])
    """
    plain = [option if _is_category(option) else _text(option) for option in options]
    if len(set(plain)) < len(plain):
        return list(distinct(map(_text, options), LONGEST_CATEGORY))
    return plain


def _is_category(option: Any) -> bool:
    if type(option) is str:
        return len(option) <= LONGEST_CATEGORY and "\0" not in option and readable(option) == option
    if type(option) is int:
        return abs(option) < EXACT
    return option is None or type(option) is bool or (type(option) is float and math.isfinite(option))


def _text(option: Any) -> str:
    text = readable(option) if type(option) is str else shown(option)
    return text.replace("\0", "\\x00")[:LONGEST_CATEGORY]


def storable_name(text: str) -> str:
    """A name that every database can hold."""
    return readable(text).replace("\0", "\\x00")[:LONGEST_NAME]


def distinct(texts: Iterable[str], longest: int) -> tuple[str, ...]:
    """Texts of at most so many characters, each with a number behind it if it came before.

    >>> distinct(["a", "b", "a"], 10)
    ('a', 'b', 'a (2)')
    """
    found: dict[str, None] = {}
    last: dict[str, int] = {}  # number given to a text: where many are the same, the search goes on from there
    for text in texts:
        other, count = text, last.get(text, 1)
        while other in found:
            count += 1
            mark = f" ({count})"
            other = f"{text[: longest - len(mark)]}{mark}"
        found[other], last[text] = None, count
    return tuple(found)
