"""A space in a TOML file: a table per parameter, and `[[forbid]]`. Errors name the file, the line and the key."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any

from farthing.cli.streams import warn
from farthing.cli.toml_file import TomlFile, dotted, nearest, quoted, shown
from farthing.cli.toml_lines import Path
from farthing.errors import FarthingError, InvalidConfig, InvalidSpace
from farthing.space import Choice, Integer, Ordered, Parameter, Real, Space
from farthing.trial import Config

EXAMPLE = '{type = "real", low = 0, high = 1}'


@dataclass(frozen=True)
class ParameterType:
    """A type of parameter in a file: its class, the keys it needs, and all keys it may have besides `type`."""

    make: Callable[..., Parameter]
    needed: tuple[str, ...]
    keys: tuple[str, ...]


EVERY_TYPE = ("when", "default")  # keys that a parameter of any type may have
TYPES = {
    "real": ParameterType(Real, ("low", "high"), ("low", "high", "log", *EVERY_TYPE)),
    "integer": ParameterType(Integer, ("low", "high"), ("low", "high", "log", "step", *EVERY_TYPE)),
    "ordered": ParameterType(Ordered, ("values",), ("values", "log", *EVERY_TYPE)),
    "choice": ParameterType(Choice, ("options",), ("options", *EVERY_TYPE)),
}
ALIASES = {  # what other libraries call these types: for a hint
    "float": "real", "double": "real", "uniform": "real", "int": "integer", "ordinal": "ordered",
    "categorical": "choice", "bool": "choice", "boolean": "choice",
}  # fmt: skip


@dataclass(frozen=True)
class SpaceInFile:
    """A space, and the configuration of its defaults, None if it has none."""

    space: Space
    default: Config | None = None


def read_space(path: str | PathLike[str]) -> Space:
    """The space of a file, or an `InvalidSpace` that says what is wrong, and where.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
    ...     _ = file.write('depth = {type = "integer", low = 1, high = 16}')
    ...     file.flush()
    ...     read_space(file.name)
    Space(depth=Integer(1, 16))
    """
    return space_in(TomlFile.read(path, InvalidSpace)).space


def space_in(file: TomlFile, *table: str) -> SpaceInFile:
    """The space that a file is, or that one of its tables is."""
    found = _Tables(file, table)
    try:
        space = found.space()
        return SpaceInFile(space, found.default(space))
    except RecursionError as error:
        raise InvalidSpace(f"{file.name}: arrays or tables are nested too deeply") from error


class _Tables:
    """The tables of a space, and where in its file they are."""

    def __init__(self, file: TomlFile, at: tuple[str, ...]) -> None:
        self._file, self._at = file, at
        document: Any = file.document
        for key in at:
            document = document[key]
        self._document = dict(document)

    def _refuse(self, path: Path, why: str) -> FarthingError:
        return self._file.refusal((*self._at, *path), why)

    def space(self) -> Space:
        forbid = self._document.pop("forbid") if isinstance(self._document.get("forbid"), list) else []
        if not self._document:
            raise self._refuse((), f"holds no parameter; write a table for each, such as eta = {EXAMPLE}")
        bare = {name: self._parameter(name, entry) for name, entry in self._document.items()}
        params = {
            name: replace(param, when=self._clause((name, "when"), self._document[name]["when"], bare))
            if "when" in self._document[name]
            else param
            for name, param in bare.items()
        }
        clauses = [self._clause(("forbid", i), clause, bare) for i, clause in enumerate(forbid)]
        try:
            return Space(params, forbid=clauses or None)
        except InvalidSpace as error:
            found = re.match(r"parameter '(.*?)': (?:when: )?(.*)", str(error), re.DOTALL)
            path, why = ((found[1], "when"), found[2]) if found else ((), str(error))
            raise self._refuse(path, why) from error

    def default(self, space: Space) -> Config | None:
        """The defaults of all parameters that are active with them. If one of these has none, that is said."""
        given = {
            name: self._found((name, "default"), space.params[name], entry["default"])
            for name, entry in self._document.items()
            if "default" in entry
        }
        if not given:
            return None
        try:
            places = dict(zip(space.names, space.key(given), strict=True))
        except InvalidConfig as error:
            warn(f"{self._file.name}: the defaults are not tried first, because not all have one: {error}")
            return None
        config = space.validate({name: value for name, value in given.items() if places[name] is not None})
        if not space.allows(config):
            raise self._refuse(("forbid",), f"the defaults together are forbidden: {shown(config)}")
        return config

    # -- parameters --------------------------------------------------------------------------------------------------

    def _parameter(self, name: str, entry: Any) -> Parameter:
        """One parameter, without its condition: that may name a parameter further down."""
        if not isinstance(entry, dict):
            raise self._refuse((name,), f"expected a parameter, such as {EXAMPLE}, got {shown(entry)}")
        chosen = self._type(name, entry)
        for key in entry:
            if key not in ("type", *chosen.keys):
                raise self._refuse((name, key), f"unknown key; {nearest(key, chosen.keys)}")
        for key in chosen.needed:
            if key not in entry:
                raise self._refuse(
                    (name,), f'a parameter of type "{entry["type"]}" needs {quoted(chosen.needed)}, got no "{key}"'
                )
        self._check(name, entry)
        fields = {key: value for key, value in entry.items() if key not in ("type", *EVERY_TYPE)}
        try:
            return chosen.make(**fields)
        except InvalidSpace as error:
            raise self._refuse(*_field_of(name, chosen.keys, str(error))) from error

    def _type(self, name: str, entry: Mapping[str, Any]) -> ParameterType:
        if "type" not in entry:
            if entry and all(isinstance(value, dict) for value in entry.values()):
                inner = dotted((*self._at, f"{name}.{next(iter(entry))}"))
                raise self._refuse(
                    (name,), f"expected a parameter, got a table of tables; a name with a dot is written [{inner}]"
                )
            raise self._refuse((name,), f'has no "type"; accepted: {quoted(TYPES)}')
        given = entry["type"]
        if isinstance(given, str) and given in TYPES:
            return TYPES[given]
        meant = nearest(given, TYPES, ALIASES) if isinstance(given, str) else f"accepted: {quoted(TYPES)}"
        raise self._refuse((name, "type"), f"no type is called {shown(given)}; {meant}")

    def _check(self, name: str, entry: Mapping[str, Any]) -> None:
        """Check single keys, before the parameter checks them together: these errors can name the key."""
        whole = entry["type"] == "integer"
        log = entry.get("log", False)
        if not isinstance(log, bool):
            raise self._refuse((name, "log"), f"expected true or false, got {shown(log)}")
        for key in ("options", "values"):
            if key in entry:
                self._check_list((name, key), entry[key])
        if "low" not in entry:
            return
        low, high = (self._bound(name, key, entry, whole) for key in ("low", "high"))
        noun = "whole number" if whole else "number"
        if low >= high:
            raise self._refuse((name, "low"), f"expected a {noun} below high ({entry['high']}), got {entry['low']}")
        if log and low <= 0:
            raise self._refuse((name, "log"), f"a log scale needs low above 0, got low = {entry['low']}")
        if "step" in entry and (not _is_number(entry["step"], True) or not 1 <= entry["step"] <= high - low):
            raise self._refuse(
                (name, "step"),
                f"expected a whole number from 1 to {int(high) - int(low)} (high - low), got {shown(entry['step'])}",
            )

    def _bound(self, name: str, key: str, entry: Mapping[str, Any], whole: bool) -> float:
        given, noun = entry[key], "whole number" if whole else "finite number"
        if _is_number(given, whole):
            number: float = given
            return number
        other, side = ("high", "below") if key == "low" else ("low", "above")
        if _is_number(entry[other], whole):
            noun = f"{noun.removeprefix('finite ')} {side} {other} ({entry[other]})"
        raise self._refuse((name, key), f"expected a {noun}, got {shown(given)}")

    def _check_list(self, path: Path, given: Any) -> None:
        if not isinstance(given, list) or not given:
            raise self._refuse(path, f"expected an array of at least one, such as [1, 2], got {shown(given)}")
        for i, item in enumerate(given):
            if not _is_plain(item):
                raise self._refuse(
                    (*path, i), f"expected text, a number, true, false, an array or a table, got {shown(item)}"
                )

    # -- conditions --------------------------------------------------------------------------------------------------

    def _clause(self, path: Path, given: Any, params: Mapping[str, Parameter]) -> dict[str, object]:
        """A partial configuration: per name one value, or an array of several."""
        if not isinstance(given, dict) or not given:
            raise self._refuse(path, f'expected names and values, such as {{booster = "dart"}}, got {shown(given)}')
        return {name: self._wanted((*path, name), name, value, params) for name, value in given.items()}

    def _wanted(self, path: Path, name: str, value: Any, params: Mapping[str, Parameter]) -> object:
        if name not in params:
            raise self._refuse(path, f"no parameter is called {shown(name)}; {nearest(name, params)}")
        param = params[name]
        if isinstance(param, Real):
            raise self._refuse(path, 'is of type "real"; a condition needs one of "integer", "ordered", "choice"')
        if not isinstance(value, list) or param.find(value) is not None:
            return self._found(path, param, value)
        if not value:
            raise self._refuse(path, f"names no value; accepted: {param.accepted}")
        several = [self._found((*path, i), param, one) for i, one in enumerate(value)]
        try:
            distinct = frozenset(several)
        except TypeError as error:
            raise self._refuse(
                path, "several values must not be arrays or tables; write one condition for each"
            ) from error
        if len(distinct) < len(several):
            raise self._refuse(path, f"the values must differ, got {shown(value)}")
        return distinct

    def _found(self, path: Path, param: Parameter, value: Any) -> Any:
        if param.find(value) is None:
            raise self._refuse(path, f"expected {param.accepted}, got {shown(value)}")
        return value


def _field_of(name: str, keys: tuple[str, ...], error: str) -> tuple[Path, str]:
    """Where in the file the error of a parameter is, and what it says of that place.

    >>> _field_of("k", ("options",), "Choice: options[1]: expected a value other than options[0], got 'x'")
    (('k', 'options', 1), "expected a value other than options[0], got 'x'")
    """
    why = error.partition(": ")[2]  # without the type of the parameter
    found = re.fullmatch(r"(\w+)(?:\[(\d+)\])?: (.*)", why, re.DOTALL)
    if found is None or found[1] not in keys:
        return (name,), why
    return ((name, found[1]) if found[2] is None else (name, found[1], int(found[2]))), found[3]


def _is_number(value: Any, whole: bool) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < math.inf:
        return False
    return not whole or value == int(value)


def _is_plain(value: Any) -> bool:
    """Whether a study's file can hold a value: not dates and times."""
    if isinstance(value, list):
        return all(map(_is_plain, value))
    if isinstance(value, dict):
        return all(map(_is_plain, value.values()))
    return isinstance(value, str | int | float | bool)
