"""Load what a user's script or module defines: `train.py:objective`, `package.module:name`.

An objective is sent to worker processes by its address, and they load the script again before the first evaluation:
nothing in it has to be picklable.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import traceback
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from farthing.checks import function, refuse
from farthing.errors import InvalidArgument


class NotDefined(InvalidArgument):
    """A script or module does not define a name."""


class ScriptObjective:
    """A function that a script or module defines.

    >>> ScriptObjective("math:floor")(2.5)
    2
    """

    def __init__(self, address: str, folder: str | None = None) -> None:
        self.address, self._folder = address, folder or os.getcwd()
        self._function = load(address, self._folder)
        if isinstance(self._function, type):
            refuse(address, "a function of a config", self._function)
        function(address, self._function)

    def __call__(self, config: dict[str, Any]) -> Any:
        return self._function(config)

    def __reduce__(self) -> tuple[Any, ...]:
        return ScriptObjective, (self.address, self._folder)


def split_address(address: str) -> tuple[str, str]:
    """The script or module, and the name in it."""
    where, colon, name = address.rpartition(":")
    if not colon or not where or not name:
        refuse("address", "a script or module and a name in it, such as train.py:objective", address)
    return where, name


def script_of(address: str, folder: str) -> str | None:
    """The full path of the script or module that `load` takes from a folder, links resolved; None for a module that is
    not there, but installed. Nothing is imported."""
    where, _ = split_address(address)
    top = where.partition(".")[0]
    names = [where] if where.endswith(".py") else [f"{top}{os.sep}__init__.py", f"{top}.py", top]
    found = [name for name in names if where.endswith(".py") or Path(folder, name).exists()]
    return os.path.realpath(Path(folder, found[0])) if found else None


def load(address: str, folder: str) -> Any:
    """What an address names. The path of a script is relative to the folder."""
    where, name = split_address(address)
    thing: Any = _script(str(Path(folder, where))) if where.endswith(".py") else _module(where, folder)
    for part in name.split("."):
        if not hasattr(thing, part):
            there = ", ".join(sorted(one for one in vars(thing) if not one.startswith("_"))) or "nothing"
            raise NotDefined(f"{where}: does not define {name!r}; it defines {there}")
        thing = getattr(thing, part)
    return thing


def _module(name: str, folder: str) -> ModuleType:
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        return importlib.import_module(name)
    except ImportError as error:
        hint = f"; write {name}.py for a script" if Path(folder, f"{name}.py").is_file() else ""
        raise InvalidArgument(f"{name}: cannot be imported ({error}){hint}") from error


@cache
def _script(path: str) -> ModuleType:
    """A script as a module, run once. It has its own name if that is free, so that pickle finds what it defines."""
    if not Path(path).is_file():
        raise InvalidArgument(f"{path}: no such script")
    stem, folder = Path(path).stem, str(Path(path).resolve().parent)
    name = stem if stem not in sys.modules and stem not in sys.stdlib_module_names else f"farthing_script_{stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    if folder not in sys.path:
        sys.path.insert(0, folder)  # it can import modules from its own folder, as if it were run
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise InvalidArgument(_where_it_failed(path, error)) from error
    return module


def _where_it_failed(path: str, error: BaseException) -> str:
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == path]
    if isinstance(error, SyntaxError) and error.filename == path:
        lines = [error.lineno]
    line = f":{lines[-1]}" if lines else ""
    return f"{path}{line}: raised {type(error).__name__}: {error}"
