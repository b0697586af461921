"""Checks of the hyperparameters that a policy stored with a proposal, from which its next fit starts.

Policies use them as they are, so what a file of any origin holds must have the form that a fit would have left. Of a
user's own policy only that policy knows the form.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from farthing.record import stored_checks as stored

OUR_POLICIES = frozenset(("auto", "bapi", "bopt", "carbo", "cei", "ei", "ei_alpha", "ei_cool", "eipu", "eqie"))
OUR_POLICIES |= {"pbgi", "random", "sobol", "thaw"}
LARGEST_LOG = 50.0  # of a scale or a noise: searches end at 20, and exp() of it is far from what a float can hold
LARGEST = 1e150  # of any other number: its square is finite
PROCESSES = ("gp", "gp-lv", "gp-selected", "gp-flops")  # of a choice between cost models
TIME_PARAMETERS = {"decay": 3, "rbf": 3, "rbf-plain": 1}  # of each kernel over time
LARGEST_LOG_OF_TIME = 10.0  # searches end within it, and time is divided by its exp()


def check(fits: Any, policy: Mapping[str, Any], parameters: int) -> None:
    """A ValueError unless these are fits to a space of that many parameters."""
    stored.mapping("fits", fits)
    stored.plain("fits", fits)
    if policy.get("name") in OUR_POLICIES:
        for name, fit in fits.items():
            _FORMS.get(name, _numbers)(f"fits of {name}", fit, parameters)


def _numbers(name: str, given: Any, parameters: int) -> None:
    """Any JSON whose numbers are finite."""
    if isinstance(given, list | dict | Mapping):
        for item in given if isinstance(given, list) else given.values():
            if type(item) is not float or not -LARGEST <= item <= LARGEST:
                _numbers(name, item, parameters)
    elif given is not None and not isinstance(given, str | bool):
        _bounded(name, given, LARGEST)


def _bounded(name: str, given: Any, most: float) -> None:
    stored.number(name, given)
    if not -most <= given <= most:
        raise ValueError(f"{name} is {given!r}")


def _logs(name: str, given: Any, length: int, most: float = LARGEST_LOG) -> None:
    if not isinstance(given, list) or len(given) != length:
        raise ValueError(f"{name} is not a list of {length} numbers")
    for item in given:
        if type(item) is not float or not -most <= item <= most:
            _bounded(name, item, most)


def _process(name: str, given: Any, parameters: int) -> None:
    """A Gaussian process."""
    stored.mapping(name, given)
    _logs(name, given["log_scales"], parameters)
    _bounded(name, given["log_noise"], LARGEST_LOG)
    stored.whole(name, given["cold_at"])
    stored.whole(name, given.get("at", 0))  # earlier files have none


def _curves(name: str, given: Any, parameters: int) -> None:
    """A process over configurations and time."""
    _process(name, given, parameters)
    _time_kernel(name, given["kernel"])
    _logs(name, given["time"], TIME_PARAMETERS[given["kernel"]], LARGEST_LOG_OF_TIME)


def _time_kernel(name: str, given: Any) -> None:
    stored.text(name, given)
    if given not in TIME_PARAMETERS:
        raise ValueError(f"{name} has the kernel {given!r:.100}")


def _curve_choice(name: str, given: Any, parameters: int) -> None:
    """A kernel over time that was chosen."""
    stored.mapping(name, given)
    _time_kernel(name, given["kernel"])
    stored.whole(name, given["at"])
    if not isinstance(given["falling"], bool):
        raise ValueError(f"{name} falls: {given['falling']!r:.100}")


def _levels(name: str, given: Any, parameters: int) -> None:
    """Two fidelities."""
    stored.mapping(name, given)
    for part in ("low", "bias"):
        _process(name, given[part], parameters)
    for part in ("mean", "variance", "rho"):
        _bounded(name, given[part], LARGEST)
    stored.amount(name, given["variance"])
    for part in ("kind", "kernel"):
        stored.text(name, given[part])
    bounds = given["bounds"]
    if not isinstance(bounds, list) or len(bounds) != 2:
        raise ValueError(f"{name} has no two bounds")
    for bound in bounds:
        if bound is not None:
            _bounded(name, bound, LARGEST)


def _choice(name: str, given: Any, parameters: int) -> None:
    """A choice between cost models."""
    stored.mapping(name, given)
    _numbers(name, given, parameters)
    for part in ("n", "contest_at"):
        stored.whole(name, given[part])
    if given["leader"] not in (None, *PROCESSES):
        raise ValueError(f"{name} has the leader {given['leader']!r:.100}")
    for part in ("scores", "weights"):
        stored.mapping(name, given.get(part, {}))
        for score in given.get(part, {}).values():
            stored.number(name, score)
    if "order" in given:  # earlier files have none
        _order(name, given["order"], parameters)
    stored.mapping(name, given["processes"])
    stored.only(name, given["processes"], PROCESSES)
    for process, fit in given["processes"].items():
        stored.mapping(name, fit)
        stored.whole(name, fit["at"])
        _process(name, fit["hyperparameters"], _selected(name, process, fit["selected"], parameters))


def _order(name: str, given: Any, parameters: int) -> None:
    """All parameters, each once."""
    if not isinstance(given, list) or len(given) != parameters:
        raise ValueError(f"{name} has the order {given!r:.100}")
    for parameter in given:
        stored.whole(name, parameter, most=parameters - 1)
    if len(set(given)) != parameters:
        raise ValueError(f"{name} has a parameter twice in the order {given!r:.100}")


def _selected(name: str, process: str, given: Any, parameters: int) -> int:
    """How many parameters a cost process has: all of them, or those that were selected."""
    if (given is None) == (process == "gp-selected"):
        raise ValueError(f"{name} has no parameters selected for {process!r}")
    if given is None:
        return parameters
    if not isinstance(given, Sequence) or isinstance(given, str) or not 1 <= len(given) <= parameters:
        raise ValueError(f"{name} selects {given!r:.100}")
    for parameter in given:
        stored.whole(name, parameter, most=parameters - 1)
    return len(given)


def _price(name: str, given: Any, parameters: int) -> None:
    """The price of the next ask of pbgi."""
    stored.mapping(name, given)
    stored.only(name, given, ("price",))
    _bounded(name, given["price"], LARGEST)
    if given["price"] <= 0.0:
        raise ValueError(f"{name} has the price {given['price']!r}")


def _prospects(name: str, given: Any, parameters: int) -> None:
    """What asks were expected to bring, and to cost."""
    if not isinstance(given, list):
        raise ValueError(f"{name} is no list")
    for pair in given:
        if not isinstance(pair, list) or len(pair) != 2:
            raise ValueError(f"{name} has {pair!r:.100} instead of a gain and a cost")
        for amount in pair:
            stored.amount(name, amount)
            _bounded(name, amount, LARGEST)


_FORMS: Mapping[str, Callable[[str, Any, int], None]] = {
    "value": _process, "success": _process, "cost": _choice, "step_cost": _choice, "bapi": _curves, "bopt": _levels,
    "curve_choice": _curve_choice, "pbgi": _price, "prospects": _prospects,
}  # fmt: skip
