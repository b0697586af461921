"""The four kinds of parameters: `Real`, `Integer`, `Ordered` and `Choice`.

A value has three forms, and a parameter translates between them:

value   what a user sees: a float, an int, or the option object itself
place   a hashable stand-in: the float of a `Real`, the index of the level of the others
u       the unit coordinate in [0, 1]; a level owns a bin of it and sits at the bin's centre

A level is one of the values of a parameter that has a finite list of them; `levels` says how many there are, and is
None for a `Real`. Users only construct parameters; `Space` calls the methods that translate.
"""

from __future__ import annotations

from typing import TypeAlias

from farthing.space.choices import Choice, Ordered
from farthing.space.numbers import Integer, Real

__all__ = ["Choice", "Discrete", "Integer", "Ordered", "Parameter", "Real"]

Discrete: TypeAlias = Integer | Ordered | Choice
Parameter: TypeAlias = Real | Discrete
