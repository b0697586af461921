"""Configurations to try first, as the command line names them: a file, JSON, or `lr=0.1,depth=3`; and cheap values."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from os.path import isfile
from pathlib import Path
from typing import Any

from farthing.cli.toml_file import TomlFile
from farthing.errors import InvalidArgument
from farthing.record.settings import checked_config
from farthing.space import Space
from farthing.trial import Config

ACCEPTED = "a JSON or TOML file, or values such as lr=0.1,depth=3"
CHEAP = "values such as n_estimators=10,depth=3"
OPENING, CLOSING, QUOTES = "[{(", "]})", "\"'"
PYTHON_WORDS = {"True": True, "False": False}  # which JSON writes in lower case


def start_configs(
    given: Iterable[str | Mapping[str, Any]], space: Space, option: str = "--start"
) -> list[Config]:  # fmt: skip
    """The configurations, checked against the space. Mappings are used as they are; texts are read, and errors name the
    option that they were given to.

    >>> from farthing import Choice, Integer, Real
    >>> start_configs(["x=0.5, kind=b", '{"x": 1, "kind": "a"}'], Space(x=Real(0, 1), kind=Choice(["a", "b"])))
    [{'x': 0.5, 'kind': 'b'}, {'x': 1.0, 'kind': 'a'}]
    """
    found: list[Config] = []
    for item in given:
        for where, config in [("start", item)] if isinstance(item, Mapping) else _read(item, space, option):
            found.append(checked_config(where, space, config))
    return found


def cheap_values(given: Iterable[str | Mapping[str, Any]], space: Space) -> dict[str, Any] | None:
    """Values at which evaluations are cheap, None if there are none. The study checks them.

    >>> from farthing import Integer
    >>> cheap_values(["trees=10"], Space(trees=Integer(1, 1000)))
    {'trees': 10}
    """
    found: dict[str, Any] = {}
    for item in given:
        found |= item if isinstance(item, Mapping) else _pairs(item, space, "--cheap", CHEAP)
    return found or None


def names_file(text: str) -> bool:
    """Whether a text is the name of a file, and not configurations themselves."""
    return not text.lstrip().startswith(("{", "[")) and ("=" not in text or isfile(text))


def _read(text: str, space: Space, option: str) -> list[tuple[str, Any]]:
    """The configurations in a text, and where each of them is, for messages."""
    if names_file(text):
        return _numbered(text, _in_file(Path(text), option))
    if text.lstrip().startswith(("{", "[")):
        return _numbered(option, _parsed(option, text))
    return [(f"{option} {text}", _pairs(text, space, option, ACCEPTED))]


def _in_file(path: Path, option: str) -> Any:
    """One configuration, or a list of them."""
    if path.suffix == ".toml":
        document = TomlFile.read(path).document
        return document["start"] if isinstance(document.get("start"), list) else document
    try:
        return _parsed(str(path), path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError as error:
        raise InvalidArgument(f"{option}: there is no file {str(path)!r}; expected {ACCEPTED}") from error
    except OSError as error:
        raise InvalidArgument(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InvalidArgument(f"{path}: is not a text in UTF-8 ({error})") from error


def _parsed(where: str, text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidArgument(f"{where}: cannot be read as JSON: {error}") from error


def _numbered(where: str, found: Any) -> list[tuple[str, Any]]:
    if not isinstance(found, list):
        return [(where, _config_in(found))]
    return [(f"{where}: number {i} of {len(found)}", _config_in(item)) for i, item in enumerate(found, 1)]


def _config_in(found: Any) -> Any:
    """A configuration, also in what `farthing best --json` and `farthing export --json` print of a trial."""
    is_trial = isinstance(found, dict) and isinstance(found.get("config"), dict) and "value" in found
    return found["config"] if is_trial else found


def _pairs(text: str, space: Space, option: str, accepted: str) -> dict[str, Any]:
    """`lr=0.1,depth=3`."""
    config: dict[str, Any] = {}
    for part in _parts(text):
        name, equals, value = (word.strip() for word in part.partition("="))
        if not equals or not name:
            raise InvalidArgument(f"{option}: expected {accepted}, got {part.strip()!r} in {text!r}")
        if name in config:
            raise InvalidArgument(f"{option}: {name} is given twice in {text!r}")
        config[name] = _value(value, name, space)
    return config


def _parts(text: str) -> list[str]:
    """Split at the commas that are not inside brackets or quotes.

    >>> _parts("a=[1, 2],b='x,y'")
    ['a=[1, 2]', "b='x,y'"]
    """
    parts, depth, quote = [""], 0, ""
    for sign in text:
        depth += (sign in OPENING) - (sign in CLOSING) if not quote else 0
        if sign in QUOTES and quote in ("", sign):
            quote = "" if quote else sign
        if sign == "," and not quote and depth <= 0:
            parts.append("")
        else:
            parts[-1] += sign
    return parts


def _value(text: str, name: str, space: Space) -> Any:
    """A value as JSON if the parameter has it, else as text, with or without quotes."""
    readings: list[Any] = [PYTHON_WORDS[text]] if text in PYTHON_WORDS else []
    with suppress(ValueError, RecursionError):
        readings.append(json.loads(text))
    readings += [text, text.strip("'\"")]
    param = space.params.get(name)
    return next((value for value in readings if param is not None and param.find(value) is not None), readings[0])
