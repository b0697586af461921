"""A space as JSON, and back.

The JSON holds one entry per parameter, with its fields by name, and what is forbidden. Conditions are clauses by name
and stored value: `{"booster": [1]}`. Options that JSON cannot hold are stored as their repr: two spaces can then still
be compared, but the space cannot be rebuilt from the JSON alone.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from farthing.errors import InvalidSpace
from farthing.space.conditions import Clause
from farthing.space.fields import same
from farthing.space.parameters import Choice, Integer, Ordered, Parameter, Real


def as_json(
    params: Mapping[str, Parameter],
    when: Sequence[Clause | None],
    forbid: Sequence[Clause] | Callable[..., object],
) -> dict[str, Any]:
    """The parameters with their conditions, and what is forbidden, as JSON.

    >>> as_json({"eta": Real(0, 1)}, [None], [])["parameters"]
    [{'name': 'eta', 'type': 'Real', 'low': 0.0, 'high': 1.0, 'log': False, 'when': None}]
    """
    entries = []
    for (name, param), clause in zip(params.items(), when, strict=True):
        entry = {"name": name, "type": type(param).__name__, **param.settings()}
        for field in ("values", "options"):
            if field in entry:
                entry[field] = [described(option) for option in entry[field]]
        entries.append({**entry, "when": _stored(params, clause) if clause else None})
    if callable(forbid):
        return {"parameters": entries, "forbid": {"function": _function_name(forbid)}}
    return {"parameters": entries, "forbid": [_stored(params, clause) for clause in forbid] or None}


def from_json(stored: Mapping[str, Any]) -> tuple[dict[str, Parameter], list[dict[str, object]]]:
    """The parameters and forbidden partial configurations that were stored, or `InvalidSpace` saying why not.

    >>> from_json(as_json({"eta": Real(0, 1)}, [None], []))
    ({'eta': Real(0.0, 1.0)}, [])
    """
    try:
        bare = {entry["name"]: _rebuilt(entry) for entry in stored["parameters"]}
        whens = {entry["name"]: _partial_config(bare, entry["when"]) for entry in stored["parameters"] if entry["when"]}
        forbid = stored["forbid"]
        if isinstance(forbid, Mapping):
            raise InvalidSpace(
                f"forbid: function {forbid['function']} cannot be rebuilt from a file; pass space= again"
            )
        forbidden = [_partial_config(bare, partial) for partial in forbid or []]
    except (KeyError, TypeError, IndexError) as error:
        raise InvalidSpace(f"not a stored space: {error!r}") from error
    return {name: replace(param, when=whens.get(name)) for name, param in bare.items()}, forbidden


def difference(here: Mapping[str, Any], there: Mapping[str, Any]) -> str | None:
    """The first difference between two stored spaces, in words; None if there is none.

    >>> wide, narrow = ({"eta": Real(0, high)} for high in (10, 1))
    >>> difference(as_json(wide, [None], []), as_json(narrow, [None], []))
    "parameter 'eta': high is 10.0 here and 1.0 there"
    """
    mine = {entry["name"]: entry for entry in here["parameters"]}
    theirs = {entry["name"]: entry for entry in there["parameters"]}
    for name in [*mine, *theirs]:
        if name not in mine or name not in theirs:
            sides = ("here", "there") if name in mine else ("there", "here")
            return f"parameter {name!r}: is {sides[0]} but not {sides[1]}"
        for field in mine[name]:
            found = _difference(field, mine[name][field], theirs[name].get(field))
            if found:
                return f"parameter {name!r}: {found}"
    if list(mine) != list(theirs):
        return f"the order of parameters is {list(mine)} here and {list(theirs)} there"
    return _difference("forbid", here["forbid"], there["forbid"])


def partial_configs(params: Mapping[str, Parameter], clauses: Iterable[Clause]) -> list[dict[str, object]]:
    """Clauses as a user would write them.

    >>> partial_configs({"depth": Integer(1, 4)}, [Clause(((0, frozenset({2})),))])
    [{'depth': 3}]
    """
    return [_partial_config(params, _stored(params, clause)) for clause in clauses]


def _stored(params: Mapping[str, Parameter], clause: Clause) -> dict[str, list[Any]]:
    """A clause by name, with values as they are stored."""
    columns = list(params.items())
    found: dict[str, list[Any]] = {}
    for j, levels in clause.wanted:
        name, param = columns[j]
        found[name] = [param.store(level) for level in sorted(levels)]
    return found


def _partial_config(params: Mapping[str, Parameter], stored: Mapping[str, list[Any]]) -> dict[str, object]:
    """A stored clause as a partial configuration: per name one value, or a set of several."""
    found: dict[str, object] = {}
    for name, items in stored.items():
        param: Any = params[name]
        values = [param.value(param.load(item)) for item in items]
        found[name] = values[0] if len(values) == 1 else set(values)
    return found


def _rebuilt(entry: Mapping[str, Any]) -> Parameter:
    """The parameter of one entry, still without its condition."""
    fields = {field: value for field, value in entry.items() if field not in ("name", "type", "when")}
    for field in ("values", "options"):
        if field in fields:
            fields[field] = [_option_from_json(entry["name"], option) for option in fields[field]]
    types: dict[str, type[Parameter]] = {each.__name__: each for each in (Real, Integer, Ordered, Choice)}
    return types[entry["type"]](**fields)


def described(option: Any) -> Any:
    """An option as JSON that `_option_from_json` can undo, or its repr without the memory address."""
    if option is None or type(option) in (str, int, bool):
        return option
    if type(option) is float:
        return option if math.isfinite(option) else {"float": repr(option)}
    if type(option) in (list, tuple):
        return {type(option).__name__: [described(item) for item in option]}
    if type(option) is dict and all(type(name) is str for name in option):
        return {"dict": {name: described(item) for name, item in option.items()}}
    return {"repr": _without_address(repr(option))}


def _option_from_json(name: str, stored: Any) -> Any:
    if not isinstance(stored, Mapping):
        return stored
    ((form, content),) = stored.items()
    if form == "repr":
        raise InvalidSpace(f"parameter {name!r}: option {content} cannot be rebuilt from a file; pass space= with it")
    if form == "float":
        return float(content)
    if form == "dict":
        return {key: _option_from_json(name, item) for key, item in content.items()}
    items = [_option_from_json(name, item) for item in content]
    return tuple(items) if form == "tuple" else items


def _without_address(text: str) -> str:
    return re.sub(r" at 0x[0-9a-fA-F]+", "", text)


def _function_name(function: Callable[..., object]) -> str:
    name = getattr(function, "__qualname__", None)
    return f"{function.__module__}.{name}" if name else _without_address(repr(function))


def _difference(what: str, here: Any, there: Any) -> str | None:
    if same(here, there):
        return None
    if isinstance(here, list) and isinstance(there, list):
        if len(here) != len(there):
            return f"{what} has length {len(here)} here and {len(there)} there"
        i = next(i for i, (a, b) in enumerate(zip(here, there, strict=True)) if not same(a, b))
        what, here, there = f"{what}[{i}]", here[i], there[i]
    return f"{what} is {here!r} here and {there!r} there"
