"""What all readers share: recognising an object by its class, and making parameters from lists and bounds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from numbers import Integral
from typing import Any

import numpy as np

from farthing.checks import finite, is_number
from farthing.errors import InvalidSpace
from farthing.space.parameters import Choice, Integer, Ordered, Parameter, Real
from farthing.text.plain import shown

Partials = list[dict[str, object]]  # partial configurations, for `forbid`

LISTED = "a list of options"
BOUNDS = 'a tuple of bounds ((1, 9), (0.0, 1.0) or (1e-4, 0.1, "log"))'
MAX_STEPS = 1000  # values of a float with a step: they become a list, which is held in memory and in files
FEWEST_IN_ORDER = 3  # two numbers in a list are as likely a switch as a scale


def class_names(thing: object, package: str) -> set[str]:
    """The names of an object's classes, inherited ones included, that come from a package.

    >>> from collections import OrderedDict
    >>> class_names(OrderedDict(), "collections")
    {'OrderedDict'}
    """
    return {cls.__name__ for cls in type(thing).__mro__ if cls.__module__.partition(".")[0] == package}


def no_counterpart(thing: object, accepted: str) -> InvalidSpace:
    """The error for an object that Farthing cannot represent."""
    return InvalidSpace(f"{shown(thing)} has no counterpart in Farthing; expected {accepted}")


@contextmanager
def naming(name: object) -> Iterator[None]:
    """Put the name of the parameter in front of errors."""
    try:
        yield
    except InvalidSpace as error:
        raise InvalidSpace(f"parameter {name!r}: {error}") from None


# Lists


def listed(options: Sequence[Any], *, in_order: bool = False) -> Parameter:
    """`Ordered` for at least three numbers that rise or fall, and with `in_order`; otherwise `Choice`.

    >>> listed([1, 10, 100]), listed([3, 2, 1]), listed([1, 3, 2]), listed([5])
    (Ordered([1, 10, 100], log=True), Ordered([3, 2, 1]), Choice([1, 3, 2]), Choice([5]))
    """
    if _rising_or_falling(options) and (in_order or len(options) >= FEWEST_IN_ORDER):
        return Ordered(options, log=even_in_ratio(options))
    return Ordered(options) if in_order else Choice(options)


def _rising_or_falling(options: Sequence[Any]) -> bool:
    numeric = all(type(option) in (int, float) or isinstance(option, np.number) for option in options)
    numbers = [finite(option) for option in options] if numeric else [None]
    if len(numbers) < 2 or None in numbers:
        return False
    steps = np.sign(np.diff(np.array(numbers, dtype=np.float64) / 2))  # divided by 2, so that no difference overflows
    return bool(abs(steps.sum()) == len(steps))


def even_in_ratio(options: Sequence[float]) -> bool:
    """Whether positive numbers in order are more evenly spaced on a log scale than on a linear one.

    >>> even_in_ratio([1, 10, 100]), even_in_ratio([1, 2, 3]), even_in_ratio([0, 1, 10])
    (True, False, False)
    """
    numbers = np.array([float(option) for option in options])
    if numbers.min() <= 0:
        return False

    def unevenness(v: np.ndarray[Any, Any]) -> float:
        gaps = np.abs(np.diff(v))
        return float(np.std(gaps) / np.mean(gaps))

    # The margin is for rounding: numbers that are as even on both scales are not log.
    return unevenness(np.log(numbers)) < unevenness(numbers / numbers.max()) - 1e-9


# Bounds


def real(low: Any, high: Any, *, log: bool = False) -> Parameter:
    """A `Real`, or a constant if the bounds are equal.

    >>> real(0, 1), real(2.0, 2.0)
    (Real(0.0, 1.0), Choice([2.0]))
    """
    if finite(low) is not None and low == high:
        return Choice([float(low)])
    return Real(low, high, log=log)


def integer(low: Any, high: Any, *, log: bool = False, step: int = 1) -> Parameter:
    """An `Integer`, or a constant if the bounds are equal.

    >>> integer(1, 9, step=2), integer(4, 4)
    (Integer(1, 9, step=2), Choice([4]))
    """
    if finite(low) is not None and low == high:
        return Choice([int(low)])
    return Integer(low, high, log=log, step=step)


def bounds(given: tuple[Any, ...]) -> Parameter | None:
    """An `Integer` between two whole numbers, a `Real` if one of them is a float; None for a tuple of options.

    >>> bounds((1, 9)), bounds((0, 1.0)), bounds((1, 64, "log")), bounds(("rbf", "poly"))
    (Integer(1, 9), Real(0.0, 1.0), Integer(1, 64, log=True), None)
    """
    numbers, log = (given[:2], True) if len(given) == 3 and given[2] == "log" else (given, False)
    if not all(is_number(number) for number in numbers):
        return None
    if len(numbers) == 3 and not _rising_or_falling(numbers):
        raise InvalidSpace(
            f"{shown(given)} may be three options, or two bounds and a step; write {shown(list(given))} for the "
            f"options, or Integer(low, high, step=...)"
        )
    if len(numbers) != 2:
        return None
    is_whole = all(isinstance(number, Integral) for number in numbers)
    return integer(*numbers, log=log) if is_whole else real(*numbers, log=log)


def stepped(values: Callable[[int], float], count: int, *, log: bool = False) -> Parameter:
    """A float with a step: `Ordered`, because a `Real` has no steps."""
    if count > MAX_STEPS:
        raise InvalidSpace(f"a float with a step may have at most {MAX_STEPS} values, got {count}; leave the step out")
    numbers = [float(values(i)) for i in range(count)]
    return Ordered(numbers, log=log) if count > 1 else Choice(numbers)
