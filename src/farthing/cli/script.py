"""What a user's script or module defines: `train.py:objective`, `package.module:name`.

An objective is sent to worker processes by its address, and the script is read there again, before the first evaluation
begins: nothing of it has to be picklable.
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

from farthing.errors import InvalidArgument


class Objective:
    """A function of a script, or another thing to call.

    >>> Objective("math:floor")(2.5)
    2
    """

    def __init__(self, address: str, folder: str | None = None) -> None:
        self.address, self._folder = address, folder or os.getcwd()
        self._function = loaded(address, self._folder)
        if not callable(self._function) or isinstance(self._function, type):
            raise InvalidArgument(f"{address}: expected a function of a config, got {type(self._function).__name__}")

    def __call__(self, config: dict[str, Any]) -> Any:
        return self._function(config)

    def __reduce__(self) -> tuple[Any, ...]:
        return Objective, (self.address, self._folder)


def parts_of(address: str) -> tuple[str, str]:
    """Where to look, and for what."""
    where, colon, name = address.rpartition(":")
    if not colon or not where or not name:
        raise InvalidArgument(
            f"{address!r}: expected a script or module and a name in it: train.py:objective, package.module:name"
        )
    return where, name


def loaded(address: str, folder: str) -> Any:
    """The thing at an address; a script is looked for from that folder on."""
    where, name = parts_of(address)
    thing: Any = _script(str(Path(folder, where))) if where.endswith(".py") else _module(where, folder)
    for part in name.split("."):
        if not hasattr(thing, part):
            there = ", ".join(sorted(one for one in vars(thing) if not one.startswith("_"))) or "nothing"
            raise InvalidArgument(f"{where}: defines no {name!r}; there is {there}")
        thing = getattr(thing, part)
    return thing


def _module(name: str, folder: str) -> ModuleType:
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        return importlib.import_module(name)
    except ImportError as error:
        hint = f"; a script is given by its file: {name}.py" if Path(folder, f"{name}.py").is_file() else ""
        raise InvalidArgument(f"{name}: cannot be imported ({error}){hint}") from error


@cache
def _script(path: str) -> ModuleType:
    """A script as a module, run once, under its own name where that is free: what it defines is found by pickle."""
    if not Path(path).is_file():
        raise InvalidArgument(f"{path}: there is no such script")
    stem, folder = Path(path).stem, str(Path(path).resolve().parent)
    name = stem if stem not in sys.modules and stem not in sys.stdlib_module_names else f"farthing_script_{stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    if folder not in sys.path:
        sys.path.insert(0, folder)  # modules beside a script are found, as when it is run
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
