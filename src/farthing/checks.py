"""Every check of an argument, once: what a user gives, as the value that is meant, or an error that names it.

All messages have one form: `<name>: expected <what is accepted>, got <what was given>`. A check returns the value in
Python's own type (NumPy's numbers become int and float), so that what is stored is what was checked. Booleans are not
numbers. Frozen values put what was checked in the place of what was given by `settle`.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Collection
from numbers import Real as AnyReal
from typing import Any, NoReturn, TypeVar

import numpy as np

from farthing.errors import FarthingError, InvalidArgument
from farthing.text.plain import shown
from farthing.trial import Outcome, Proposal, Status

Error = type[FarthingError]
T = TypeVar("T")


def refuse(name: str, accepted: str, given: object, error: Error = InvalidArgument) -> NoReturn:
    """Raise the error of a wrong argument."""
    raise error(f"{name}: expected {accepted}, got {shown(given)}")


def settle(frozen: object, **checked: object) -> None:
    """Put checked values in the place of the fields of a frozen dataclass, in its `__post_init__`."""
    for name, value in checked.items():
        object.__setattr__(frozen, name, value)


def optional(check: Callable[..., T], name: str, given: Any, **bounds: Any) -> T | None:
    """None as it is, anything else checked.

    >>> optional(whole_number, "max_steps", None, least=1)
    >>> optional(whole_number, "max_steps", 0, least=1)
    Traceback (most recent call last):
    farthing.errors.InvalidArgument: max_steps: expected a whole number of at least 1, or None, got 0
    """
    return None if given is None else check(name, given, or_none=True, **bounds)


def whole_number(
    name: str, given: Any, *, least: int | None = 0, or_none: bool = False, error: Error = InvalidArgument
) -> int:
    """An int of at least `least`, of any size if that is None.

    >>> whole_number("n", np.int64(2), least=1)
    2
    >>> whole_number("n", True)
    Traceback (most recent call last):
    farthing.errors.InvalidArgument: n: expected a whole number of at least 0, got True
    """
    try:
        whole = None if isinstance(given, bool | np.bool_) else operator.index(given)
    except TypeError:
        whole = None
    if whole is None or (least is not None and whole < least):
        bound = "" if least is None else f" of at least {least}"
        refuse(name, f"a whole number{bound}{_or_none(or_none)}", given, error)
    return whole


def number(
    name: str, given: Any, *, least: float = -math.inf, above: float = -math.inf, most: float = math.inf,
    below: float = math.inf, or_none: bool = False, error: Error = InvalidArgument,
) -> float:  # fmt: skip
    """A finite float within bounds, of which `above` and `below` are themselves left out.

    >>> number("tradeoff", np.float32(0.5), least=0, most=1)
    0.5
    >>> number("period", 2.0, above=0, most=1)
    Traceback (most recent call last):
    farthing.errors.InvalidArgument: period: expected a number above 0 and at most 1, got 2.0
    """
    found = finite(given)
    if found is None or not (least <= found <= most and above < found < below):
        refuse(name, f"a {_range(least, above, most, below)}{_or_none(or_none)}", given, error)
    return found


def one_of(name: str, given: Any, accepted: Collection[Any], *, or_none: bool = False) -> Any:
    """One of some values, each told from its equals of other types: 1 is not True.

    >>> one_of("points", "last", ("variance", "last"))
    'last'
    >>> one_of("points", 5, ("variance", "last"))
    Traceback (most recent call last):
    farthing.errors.InvalidArgument: points: expected one of 'variance', 'last', got 5
    """
    for value in accepted:
        if type(value) is type(given) and value == given:
            return value
    refuse(name, f"one of {', '.join(map(repr, accepted))}{_or_none(or_none)}", given)


def switch(name: str, given: Any, *, or_none: bool = False, error: Error = InvalidArgument) -> bool:
    """True or False.

    >>> switch("maximize", np.True_)
    True
    """
    if not isinstance(given, bool | np.bool_):
        refuse(name, f"True or False{_or_none(or_none)}", given, error)
    return bool(given)


def function(name: str, given: Any, *, of: str = "a function of a config", or_none: bool = False) -> Callable[..., Any]:
    """Something that can be called."""
    if not callable(given):
        refuse(name, f"{of}{_or_none(or_none)}", given)
    called: Callable[..., Any] = given
    return called


def instance(name: str, given: Any, kind: type[T], *, of: str, or_none: bool = False) -> T:
    """An object of one class, said in words by `of`."""
    if not isinstance(given, kind):
        refuse(name, f"{of}{_or_none(or_none)}", given)
    return given


def _or_none(accepted: bool) -> str:
    return ", or None" if accepted else ""


def _range(least: float, above: float, most: float, below: float) -> str:
    """The bounds in words.

    >>> _range(0, -math.inf, 1, math.inf), _range(-math.inf, -math.inf, math.inf, math.inf)
    ('number from 0 to 1', 'finite number')
    """
    if math.isfinite(least) and math.isfinite(most):
        return f"number from {least:g} to {most:g}"
    parts = [
        f"above {above:g}" if math.isfinite(above) else "",
        f"of at least {least:g}" if math.isfinite(least) else "",
        f"at most {most:g}" if math.isfinite(most) else "",
        f"below {below:g}" if math.isfinite(below) else "",
    ]
    said = " and ".join(filter(None, parts))
    infinite = not (math.isfinite(most) or math.isfinite(below))
    return f"{'finite ' if infinite else ''}number{f' {said}' if said else ''}"


# -- numbers as they are written --------------------------------------------------------------------------------------


def is_number(value: object) -> bool:
    """Whether a value counts as a number here: NumPy scalars do, booleans do not.

    >>> is_number(np.float32(1)), is_number(True), is_number("1")
    (True, False, False)
    """
    return isinstance(value, AnyReal) and not isinstance(value, bool)


def finite(value: object) -> float | None:
    """The value as a finite float, or None when it is not one.

    >>> finite(np.int64(3)), finite(float("inf")), finite("3")
    (3.0, None, None)
    """
    if not is_number(value):
        return None
    try:
        number = float(value)  # type: ignore[arg-type]  # is_number has seen to it
    except OverflowError:
        return None
    return number + 0.0 if math.isfinite(number) else None  # -0.0 becomes 0.0


def whole(value: object) -> int | None:
    """The value as an int, or None when it is not a whole number.

    >>> whole(3.0), whole(3.5), whole(True)
    (3, None, None)
    """
    number = finite(value)
    if number is None or number != math.floor(number):
        return None
    return int(value)  # type: ignore[call-overload, no-any-return]  # exact, where the float may not be


# -- what objectives give ---------------------------------------------------------------------------------------------


def read_value(value: Any) -> Outcome:
    """An outcome from what an objective returned as its value, which has failed if that is not a finite number.

    >>> read_value(0.5).value
    0.5
    >>> read_value(float("nan")).error
    'the value must be finite, got nan'
    """
    if isinstance(value, str | bytes):
        return Outcome(Status.FAILED, error=f"the value must be a number, got the text {shown(value)}")
    try:
        number = float(value)
    except Exception:  # a tensor of two elements and an integer of a thousand digits raise what they like
        kind = type(value).__name__
        return Outcome(Status.FAILED, error=f"the value must be a finite number, got {kind} {shown(value)}")
    if not math.isfinite(number):
        return Outcome(Status.FAILED, error=f"the value must be finite, got {number}")
    return Outcome(Status.COMPLETE, value=number)


def read_cost(cost: Any) -> float:
    """A cost as a number of the budget's unit.

    >>> read_cost(2)
    2.0
    """
    try:
        given = cost if isinstance(cost, str | bytes) else float(cost)
    except Exception:  # a tensor of two elements raises what it likes
        given = cost
    return number("cost", given, least=0.0)


def trial_number(caller: str, proposal: Any) -> int:
    """The number behind a proposal, or a number itself."""
    if isinstance(proposal, Proposal):
        return proposal.trial
    try:
        return whole_number(caller, proposal, least=None)  # whether there is such a trial is asked elsewhere
    except InvalidArgument:
        refuse(caller, "a proposal or the number of a trial", proposal)
