"""What surrounds the objective in the process of the run, and is made so in a worker before each evaluation.

Folder, arguments, environment, recursion limit, filters of warnings, levels of loggers, and settings of libraries that
the run's process has imported. Handlers of loggers are objects of their process: only those are made again that write
to its standard streams.
"""

from __future__ import annotations

import builtins
import logging
import os
import re
import sys
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any, Literal, cast

Action = Literal["default", "error", "ignore", "always", "module", "once"]


# -- warnings ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class WarningFilter:
    """One of `warnings.filters`, with the name of its category: not every worker needs the library it is from."""

    action: str
    message: str  # a regular expression, as `module`
    category: str
    module: str
    line: int

    @classmethod
    def of(cls, entry: tuple[Any, ...]) -> WarningFilter:
        action, message, category, module, line = entry
        return cls(action, _expression(message), class_name(category), _expression(module), line)

    def add(self) -> None:
        """After those that are there."""
        category = _category(self.category)
        action = cast(Action, self.action)
        if self.message or self.module:
            warnings.filterwarnings(action, self.message, category, self.module, self.line, append=True)
        else:
            warnings.simplefilter(action, category, self.line, append=True)


def _expression(part: Any) -> str:
    """Of a filter: nothing, a compiled expression, or in those that Python begins with, the text itself."""
    return "" if part is None else re.escape(part) + r"\Z" if isinstance(part, str) else part.pattern


def class_name(kind: type) -> str:
    return kind.target if isinstance(kind, _ByName) else f"{kind.__module__}.{kind.__qualname__}"


class _ByName(type):
    """Classes that stand for one that is not imported: classes of that name are subclasses of it."""

    target: str

    def __subclasscheck__(cls, other: type) -> bool:
        return any(class_name(kind) == cls.target for kind in other.__mro__)


@cache
def _category(name: str) -> type[Warning]:
    kind = getattr(builtins, name.removeprefix("builtins."), None)
    return cast(type[Warning], kind or _ByName("StandIn", (Warning,), {"target": name}))


def warning_filters() -> tuple[WarningFilter, ...]:
    """Those of this process; a second one that is the same changes nothing."""
    return tuple(dict.fromkeys(WarningFilter.of(entry) for entry in warnings.filters))


# -- logging -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class StreamOfLogs:
    """A handler of the root logger that writes to standard output or standard error."""

    stream: str
    level: int
    form: str | None
    dates: str | None

    def open(self) -> logging.Handler:
        handler = logging.StreamHandler(getattr(sys, self.stream))
        handler.setLevel(self.level)
        handler.setFormatter(logging.Formatter(self.form, self.dates, validate=False))
        return handler


def log_levels() -> dict[str, int]:
    """Of the loggers that have one of their own; the name of the root is empty."""
    known = {"": logging.getLogger(), **logging.Logger.manager.loggerDict}
    return {name: one.level for name, one in known.items() if isinstance(one, logging.Logger) and one.level}


def log_streams() -> tuple[StreamOfLogs, ...]:
    found = []
    for handler in logging.getLogger().handlers:
        for name in ("stdout", "stderr"):
            if type(handler) is logging.StreamHandler and handler.stream in (getattr(sys, name), _original(name)):
                form = handler.formatter
                found.append(
                    StreamOfLogs(name, handler.level, getattr(form, "_fmt", None), getattr(form, "datefmt", None))
                )
                break
    return tuple(found)


def _original(name: str) -> Any:
    return getattr(sys, f"__{name}__")


# -- libraries ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Setting:
    """A setting of a library for the whole process."""

    read: Callable[[Any], Any]  # in the library, as a value that can be pickled without it
    write: Callable[[Any, Any], object]
    is_threads_own: bool = True  # a new thread has the default
    default: Any = None  # where it has not


SETTINGS: Mapping[str, Setting] = {
    "sklearn": Setting(lambda sklearn: sklearn.get_config(), lambda sklearn, config: sklearn.set_config(**config)),
    "numpy": Setting(lambda numpy: numpy.geterr(), lambda numpy, errors: numpy.seterr(**errors)),
    "torch": Setting(
        lambda torch: (str(torch.get_default_dtype()), torch.are_deterministic_algorithms_enabled()),
        lambda torch, found: (
            torch.set_default_dtype(getattr(torch, found[0].removeprefix("torch."))),
            torch.use_deterministic_algorithms(found[1]),
        ),
        is_threads_own=False,
        default=("torch.float32", False),
    ),
}


def library_settings() -> dict[str, Any]:
    """Of the libraries that are imported here."""
    found = {}
    for name, setting in SETTINGS.items():
        if name in sys.modules:
            with suppress(Exception):  # it may be half imported, of an old version, or something else of that name
                found[name] = setting.read(sys.modules[name])
    return found


def _default(name: str) -> Any:
    setting, found = SETTINGS[name], []
    if not setting.is_threads_own:
        return setting.default
    thread = threading.Thread(target=lambda: found.append(setting.read(sys.modules[name])))
    thread.start()
    thread.join()
    return found[0] if found else None


# -- all of it ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Surroundings:
    """Of one process, in plain values."""

    folder: str  # the working directory, empty if it was removed
    arguments: Sequence[str]  # sys.argv
    environment: Mapping[str, str]
    recursion_limit: int
    filters: tuple[WarningFilter, ...]
    levels: Mapping[str, int]  # of loggers
    disabled: int  # the level up to which nothing is logged at all
    streams: tuple[StreamOfLogs, ...]
    libraries: Mapping[str, Any]  # settings by the name of the library
    needed: frozenset[str]  # libraries whose settings are not those they begin with

    @classmethod
    def here(cls, environment: Mapping[str, str]) -> Surroundings:
        """Those of this process, with another environment."""
        libraries = library_settings()
        return cls(
            folder=_working_directory(),
            arguments=list(sys.argv),
            environment=dict(environment),
            recursion_limit=sys.getrecursionlimit(),
            filters=warning_filters(),
            levels=log_levels(),
            disabled=logging.root.manager.disable,
            streams=log_streams(),
            libraries=libraries,
            needed=frozenset(name for name, value in libraries.items() if value != _default(name)),
        )

    def prepare(self) -> None:
        """Once in a process, before it forks: import libraries that have to be set."""
        for name in self.needed:
            with suppress(Exception):  # `restore` does without it
                import_module(name)

    def enter(self) -> None:
        """Once in a worker."""
        sys.argv[:] = self.arguments
        if not logging.getLogger().handlers:  # a module of the user's may have added some when it was loaded
            for stream in self.streams:
                logging.getLogger().addHandler(stream.open())

    def restore(self) -> None:
        """Before each evaluation, whatever the one before has changed."""
        with suppress(OSError):
            os.chdir(self.folder)
        if self.environment != os.environ:
            os.environ.clear()
            os.environ.update(self.environment)
        if sys.getrecursionlimit() != self.recursion_limit:
            sys.setrecursionlimit(self.recursion_limit)
        if warning_filters() != self.filters:
            warnings.resetwarnings()
            for one in self.filters:
                one.add()
        self._restore_logging()
        self._restore_libraries()

    def _restore_logging(self) -> None:
        for name in self.levels.keys() | log_levels().keys():
            logger, level = logging.getLogger(name), self.levels.get(name, logging.NOTSET)
            if logger.level != level:
                logger.setLevel(level)
        if logging.root.manager.disable != self.disabled:
            logging.disable(self.disabled)

    def _restore_libraries(self) -> None:
        for name, value in self.libraries.items():
            if name not in sys.modules:
                continue
            with suppress(Exception):  # an error of the library is none of the objective's
                if SETTINGS[name].read(sys.modules[name]) != value:
                    SETTINGS[name].write(sys.modules[name], value)


def _working_directory() -> str:
    try:
        return os.getcwd()
    except OSError:
        return ""
