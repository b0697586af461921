"""Ticks of axes that are drawn as places between two ends: which places are labelled, and with what."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from farthing.numerics.arrays import Array
from farthing.report.drawing import label, spread
from farthing.space.parameters import Choice, Integer, Ordered, Parameter, Real
from farthing.text.plain import shown

MOST_OPTIONS = 12  # that are labelled
LONGEST_OPTION = 16  # characters
LOOK_ALIKE = str.maketrans("<>", "‹›")
APART = 0.07  # of an axis, between two labels
STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)


@dataclass(frozen=True, eq=False)
class Ticks:
    """Labelled places."""

    place: Array  # (k,)
    text: Sequence[str]  # (k,), safe to show


def ticks_of(parameter: Parameter) -> Ticks:
    """Ticks of a parameter at its unit coordinates: its ends and round numbers between them, or its options.

    >>> ticks = ticks_of(Real(1e-4, 1.0, log=True))
    >>> ticks.place.round(3).tolist(), ticks.text
    ([0.0, 0.25, 0.5, 0.75, 1.0], ['0.0001', '0.001', '0.01', '0.1', '1'])
    >>> ticks_of(Choice(["gbtree", "dart"])).text
    ['gbtree', 'dart']
    """
    if isinstance(parameter, Choice | Ordered):
        kept = spread(parameter.levels, MOST_OPTIONS)
        return Ticks(parameter.units(kept.tolist()), [option_text(parameter.items[level]) for level in kept])
    return _of_range(parameter)


def option_text(option: object) -> str:
    """An option on an axis. Parallel axes show text as it is, but nothing in it could ever be taken for a tag.

    >>> option_text("<b>"), option_text(None), option_text(0.1)
    ('‹b›', 'None', '0.1')
    """
    text = label(option if isinstance(option, str) else shown(option), LONGEST_OPTION)
    return html.unescape(text).translate(LOOK_ALIKE)


def _of_range(parameter: Real | Integer) -> Ticks:
    """The ends, and between them round numbers that are values of the parameter and not too near to each other."""
    low, high = float(parameter.low), float(parameter.high)
    inner = _magnitudes(low, high) if parameter.log else _round_numbers(low, high)
    places: list[float] = []
    texts: list[str] = []
    for number in (low, high, *inner):
        found = parameter.find(int(number) if isinstance(parameter, Integer) else number)
        if found is None or (isinstance(parameter, Integer) and number != int(number)):
            continue
        place = parameter.unit(found)  # type: ignore[arg-type]  # a place goes to the parameter it came from
        if all(abs(place - other) >= APART for other in places):
            places.append(place)
            texts.append(number_text(number))
    order = np.argsort(places)
    return Ticks(np.array(places)[order], [texts[i] for i in order])


def number_ticks(low: float, high: float, *, log: bool) -> Ticks:
    """Ticks between two numbers; with `log` these are the logs, to base 10, of what the labels say.

    >>> number_ticks(-1.0, 0.5, log=True).text
    ['0.1', '0.2', '0.5', '1', '2']
    """
    if not log:
        found = _round_numbers(low, high)
        return Ticks(np.array(found), [number_text(number) for number in found])
    found = sorted(number for number in _magnitudes(10.0**low, 10.0**high) if low <= math.log10(number) <= high)
    return Ticks(np.log10(found), [number_text(number) for number in found])


def number_text(number: float) -> str:
    """A number on an axis.

    >>> number_text(0.0001), number_text(2e6), number_text(12.0)
    ('0.0001', '2e+06', '12')
    """
    return f"{number:.3g}" if abs(number) < 1000.0 else f"{number:.4g}"


def _magnitudes(low: float, high: float) -> list[float]:
    """Powers of ten between two numbers above 0; where there are few, also 2 and 5 times these."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    every = max(math.ceil(len(decades) / 8), 1)
    of = (1.0,) if len(decades) > 4 else (1.0, 2.0, 5.0)
    return _between(low, high, (float(f"{digit:g}e{decade}") for digit in of for decade in decades[::every]))


def _round_numbers(low: float, high: float) -> list[float]:
    """About five round numbers between two others.

    >>> _round_numbers(0.0, 0.5)
    [0.0, 0.1, 0.2, 0.3, 0.4, 0.5]
    """
    width = high / 5.0 - low / 5.0
    if not width > 0.0:
        return [low]
    size = 10.0 ** math.floor(math.log10(width))
    step = min((size * s for s in STEPS), key=lambda candidate: abs(candidate - width))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return _between(low, high, (float(f"{i * step:.12g}") for i in range(first, last + 1)))


def _between(low: float, high: float, numbers: Iterable[float]) -> list[float]:
    return [number for number in numbers if low <= number <= high]
