"""A space in a TOML file: a table per parameter, and `[[forbid]]`. Errors name the file, the line and the key."""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cached_property
from os import PathLike
from pathlib import Path as FilePath
from typing import Any

from farthing.cli.toml_lines import Path, key_lines
from farthing.errors import InvalidSpace
from farthing.space import Choice, Integer, Ordered, Parameter, Real, Space

EXAMPLE = '{type = "real", low = 0, high = 1}'
LISTED = 12  # names in a message: all types and keys, and enough parameters to see what is meant
SHOWN = 80  # characters of a wrong value in a message: the rest of it fits on the line too


@dataclass(frozen=True)
class ParameterType:
    """A type of parameter in a file: its class, the keys it needs, and all keys it may have besides `type`."""

    make: Callable[..., Parameter]
    needed: tuple[str, ...]
    keys: tuple[str, ...]


TYPES = {
    "real": ParameterType(Real, ("low", "high"), ("low", "high", "log", "when")),
    "integer": ParameterType(Integer, ("low", "high"), ("low", "high", "log", "step", "when")),
    "ordered": ParameterType(Ordered, ("values",), ("values", "log", "when")),
    "choice": ParameterType(Choice, ("options",), ("options", "when")),
}
ALIASES = {  # what other libraries call these types: for a hint
    "float": "real", "double": "real", "uniform": "real", "int": "integer", "ordinal": "ordered",
    "categorical": "choice", "bool": "choice", "boolean": "choice",
}  # fmt: skip


def read_space(path: str | PathLike[str]) -> Space:
    """The space of a file, or an `InvalidSpace` that says what is wrong, and where.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
    ...     _ = file.write('depth = {type = "integer", low = 1, high = 16}')
    ...     file.flush()
    ...     read_space(file.name)
    Space(depth=Integer(1, 16))
    """
    name = str(path)
    try:
        text = FilePath(path).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InvalidSpace(f"{name}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InvalidSpace(f"{name}: is not a text in UTF-8 ({error})") from error
    try:
        return _File(name, tomllib.loads(text), text).space()
    except tomllib.TOMLDecodeError as error:
        raise InvalidSpace(_syntax_error(name, text, str(error))) from error
    except RecursionError as error:
        raise InvalidSpace(f"{name}: arrays or tables are nested too deeply") from error
    except InvalidSpace:
        raise
    except ValueError as error:  # a number of more digits than Python reads
        raise InvalidSpace(f"{name}: cannot be read: {error}") from error


def _syntax_error(name: str, text: str, message: str) -> str:
    what, _, where = message.rpartition(" (at ")
    if found := re.fullmatch(r"line (\d+), column (\d+)\)", where):
        return f"{name}:{found[1]}: column {found[2]}: {what}"
    return f"{name}:{len(text.splitlines()) or 1}: {what or message} at the end of the file"


class _File:
    """The content of a file, and on which line each key is."""

    def __init__(self, name: str, document: Mapping[str, Any], text: str) -> None:
        self._name, self._document, self._text = name, dict(document), text

    @cached_property
    def _lines(self) -> Mapping[Path, int]:
        return key_lines(self._text)  # only for an error: it takes as long as reading the file

    def _refuse(self, path: Path, why: str) -> InvalidSpace:
        known = next((path[:n] for n in range(len(path), 0, -1) if path[:n] in self._lines), None)
        line = f":{self._lines[known]}" if known else ""
        return InvalidSpace(f"{self._name}{line}: {_dotted(path)}: {why}" if path else f"{self._name}{line}: {why}")

    def space(self) -> Space:
        forbid = self._document.pop("forbid") if isinstance(self._document.get("forbid"), list) else []
        if not self._document:
            raise InvalidSpace(f"{self._name}: holds no parameter; write a table for each, such as eta = {EXAMPLE}")
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

    # -- parameters --------------------------------------------------------------------------------------------------

    def _parameter(self, name: str, entry: Any) -> Parameter:
        """One parameter, without its condition: that may name a parameter further down."""
        if not isinstance(entry, dict):
            raise self._refuse((name,), f"expected a parameter, such as {EXAMPLE}, got {_shown(entry)}")
        chosen = self._type(name, entry)
        for key in entry:
            if key not in ("type", *chosen.keys):
                raise self._refuse((name, key), f"unknown key; {_nearest(key, chosen.keys)}")
        for key in chosen.needed:
            if key not in entry:
                raise self._refuse(
                    (name,), f'a parameter of type "{entry["type"]}" needs {_quoted(chosen.needed)}, got no "{key}"'
                )
        self._check(name, entry)
        fields = {key: value for key, value in entry.items() if key not in ("type", "when")}
        try:
            return chosen.make(**fields)
        except InvalidSpace as error:
            raise self._refuse(*_field_of(name, chosen.keys, str(error))) from error

    def _type(self, name: str, entry: Mapping[str, Any]) -> ParameterType:
        if "type" not in entry:
            if entry and all(isinstance(value, dict) for value in entry.values()):
                inner = _dotted((f"{name}.{next(iter(entry))}",))
                raise self._refuse(
                    (name,), f"expected a parameter, got a table of tables; a name with a dot is written [{inner}]"
                )
            raise self._refuse((name,), f'has no "type"; accepted: {_quoted(TYPES)}')
        given = entry["type"]
        if isinstance(given, str) and given in TYPES:
            return TYPES[given]
        meant = _nearest(given, TYPES, ALIASES) if isinstance(given, str) else f"accepted: {_quoted(TYPES)}"
        raise self._refuse((name, "type"), f"no type is called {_shown(given)}; {meant}")

    def _check(self, name: str, entry: Mapping[str, Any]) -> None:
        """Check single keys, before the parameter checks them together: these errors can name the key."""
        whole = entry["type"] == "integer"
        log = entry.get("log", False)
        if not isinstance(log, bool):
            raise self._refuse((name, "log"), f"expected true or false, got {_shown(log)}")
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
                f"expected a whole number from 1 to {int(high) - int(low)} (high - low), got {_shown(entry['step'])}",
            )

    def _bound(self, name: str, key: str, entry: Mapping[str, Any], whole: bool) -> float:
        given, noun = entry[key], "whole number" if whole else "finite number"
        if _is_number(given, whole):
            number: float = given
            return number
        other, side = ("high", "below") if key == "low" else ("low", "above")
        if _is_number(entry[other], whole):
            noun = f"{noun.removeprefix('finite ')} {side} {other} ({entry[other]})"
        raise self._refuse((name, key), f"expected a {noun}, got {_shown(given)}")

    def _check_list(self, path: Path, given: Any) -> None:
        if not isinstance(given, list) or not given:
            raise self._refuse(path, f"expected an array of at least one, such as [1, 2], got {_shown(given)}")
        for i, item in enumerate(given):
            if not _is_plain(item):
                raise self._refuse(
                    (*path, i), f"expected text, a number, true, false, an array or a table, got {_shown(item)}"
                )

    # -- conditions --------------------------------------------------------------------------------------------------

    def _clause(self, path: Path, given: Any, params: Mapping[str, Parameter]) -> dict[str, object]:
        """A partial configuration: per name one value, or an array of several."""
        if not isinstance(given, dict) or not given:
            raise self._refuse(path, f'expected names and values, such as {{booster = "dart"}}, got {_shown(given)}')
        return {name: self._wanted((*path, name), name, value, params) for name, value in given.items()}

    def _wanted(self, path: Path, name: str, value: Any, params: Mapping[str, Parameter]) -> object:
        if name not in params:
            raise self._refuse(path, f"no parameter is called {_shown(name)}; {_nearest(name, params)}")
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
            raise self._refuse(path, f"the values must differ, got {_shown(value)}")
        return distinct

    def _found(self, path: Path, param: Parameter, value: Any) -> Any:
        if param.find(value) is None:
            raise self._refuse(path, f"expected {param.accepted}, got {_shown(value)}")
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


def _dotted(path: Path) -> str:
    """A path as a TOML file would write it.

    >>> print(_dotted(("model.depth", "when", "kind")), _dotted(("forbid", 0)))
    "model.depth".when.kind forbid[0]
    """
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            bare = re.fullmatch(r"[A-Za-z0-9_-]+", part)
            text += ("." if text else "") + (part if bare else json.dumps(part, ensure_ascii=False))
    return text


def _shown(value: Any) -> str:
    """A value, nearly as a TOML file would write it."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]} ..."


def _quoted(names: Any) -> str:
    return ", ".join(f'"{name}"' for name in names)


def _nearest(given: str, names: Any, meant: Mapping[str, str] | None = None) -> str:
    """What was probably meant, or all that is accepted."""
    close = (meant or {}).get(given.lower()) or next(iter(get_close_matches(given, list(names), 1)), None)
    if close:
        return f'did you mean "{close}"?'
    listed = list(names)
    more = f" and {len(listed) - LISTED} more" if len(listed) > LISTED else ""
    return f"accepted: {_quoted(listed[:LISTED])}{more}"
