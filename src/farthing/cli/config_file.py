"""`farthing run --config FILE`: the options of a run in a TOML file.

Every option of `farthing run` is a key, with `-` or `_`; the space may be a table, and `start` an array of tables. What
the command line says replaces what the file says. Paths in the file are relative to its folder, and the objective or
command of the file is run there. No file is ever looked for: only one that is named is read.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import click
from click.core import ParameterSource

from farthing.cli.toml_lines import Path
from farthing.errors import FarthingError

OBJECTIVE_KEYS = ("objective", "command", "iterative", "pause", "isolate")  # another objective replaces them all
TABLES = {
    "task": "names and values, such as {rows = 1000}",
    "start": "an array of tables, or of texts",
    "cheap": "names and values, such as {n_estimators = 10}",
    "warm_start": "a file, or an array of files",
}
NUMBERS_AS_TEXT = (
    "trial_seconds", "trial_memory", "max_failures", "keep_checkpoints", "ray_cpus", "ray_gpus", "ray_usd_per_hour",
)  # fmt: skip
YES_OR_NO = {True: "yes", False: "no"}  # of isolate


@dataclass(frozen=True)
class Place:
    """Where things are: the folder of the user, that of the config file, and which of the two everything is run in."""

    here: str
    file: str
    run: str

    def seen(self, path: str, *, from_file: bool, in_run: bool = False) -> str:
        """A path of the file or of the command line, as seen from here or from where everything is run."""
        base, goal = self.file if from_file else self.here, self.run if in_run else self.here
        if base == goal or os.path.isabs(path):
            return path
        return os.path.normpath(os.path.join(os.path.relpath(base, goal), path))


def load_config(context: click.Context, _: click.Parameter, path: str | None) -> str | None:
    """Let a file's values be the defaults of the options."""
    if path is None or context.resilient_parsing:  # a shell that completes words reads no files
        return path
    from farthing.cli.toml_file import TomlFile, nearest

    file = TomlFile.read(path)
    known = {_key(param): param for param in context.command.params if param.expose_value and param.name != "config"}
    values: dict[str, Any] = {}
    for key, value in file.document.items():
        param = known.get(key.replace("_", "-"))
        if param is None or param.name is None:
            raise file.refusal((key,), f"unknown key; {nearest(key.replace('_', '-'), known)}")
        if param.name in values:
            raise file.refusal((key,), "is given twice, with - and with _")
        values[param.name] = _Value(context, param, (key,), file.refusal).of(value, file)
    context.default_map = values
    return path


def _key(param: click.Parameter) -> str:
    """The name of an option, without its dashes, or of an argument."""
    return max(param.opts, key=len).lstrip("-")


@dataclass(frozen=True)
class _Value:
    """The place of a value in the file, and the option it is for."""

    context: click.Context
    param: click.Parameter
    path: Path
    refusal: Any

    def of(self, given: Any, file: Any) -> Any:
        """What click takes for the option, checked."""
        name = str(self.param.name)
        if name == "space" and isinstance(given, dict):
            from farthing.cli.space_file import space_in

            return space_in(file, *map(str, self.path))
        if name in TABLES:
            return self._table(name, given)
        if name in NUMBERS_AS_TEXT and _is_number(given):
            given = str(given)
        if name == "isolate" and isinstance(given, bool):
            given = YES_OR_NO[given]
        self._check_kind(given)
        try:
            return self.param.type.convert(given, self.param, self.context)
        except click.BadParameter as error:
            raise self._refuse(error.message.rstrip(".")) from error

    def _refuse(self, why: str) -> FarthingError:
        refused: FarthingError = self.refusal(self.path, why)
        return refused

    def _table(self, name: str, given: Any) -> Sequence[Any]:
        from farthing.cli.toml_file import shown

        if name == "task" and isinstance(given, Mapping):
            return [f"{key}={value}" for key, value in given.items()]
        if name == "cheap" and isinstance(given, Mapping):
            return [given]
        several = [given] if isinstance(given, str) else given
        accepted = (str, dict) if name == "start" else (str,)
        if name != "task" and isinstance(several, list) and all(isinstance(item, accepted) for item in several):
            return several
        raise self._refuse(f"expected {TABLES[name]}, got {shown(given)}")

    def _check_kind(self, given: Any) -> None:
        """Of the right type: click would take the text "3" for the number, and any number for true."""
        from farthing.cli.toml_file import shown

        kind, right = "text", isinstance(given, str)
        if getattr(self.param, "is_flag", False):
            kind, right = "true or false", isinstance(given, bool)
        elif isinstance(self.param.type, click.types.IntParamType):
            kind, right = "a whole number", isinstance(given, int) and not isinstance(given, bool)
        elif isinstance(self.param.type, click.types.FloatParamType):
            kind, right = "a number", _is_number(given)
        if not right:
            raise self._refuse(f"expected {kind}, got {shown(given)}")


def _is_number(given: Any) -> bool:
    return isinstance(given, int | float) and not isinstance(given, bool)


def from_file(context: click.Context) -> set[str]:
    """The names of the options whose values come from the config file."""
    return {
        name for name in context.params if context.get_parameter_source(name) is ParameterSource.DEFAULT_MAP
    }  # fmt: skip


def without_replaced(given: Mapping[str, Any], filed: set[str]) -> dict[str, Any]:
    """The options, without what the file says of its objective if the command line names another."""
    replaced = {"objective", "command"} & {name for name, value in given.items() if value is not None} - filed
    gone = {name for name in OBJECTIVE_KEYS if replaced and name in filed}
    return {name: None if name in gone else value for name, value in given.items()}


def place_of(config: str | None, given: Mapping[str, Any], filed: set[str]) -> Place:
    """The file's objective runs in the folder of the file, that of the command line here."""
    here = os.path.realpath(os.getcwd())
    file = here if config is None else os.path.dirname(os.path.realpath(config))
    in_file = any(given.get(name) is not None and name in filed for name in ("objective", "command"))
    return Place(here, file, file if in_file else here)
