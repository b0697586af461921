"""Objectives that answer with something that is not a value, or raise something that is not an error."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import numpy as np

from benchmarks.attack.objectives.registry import Config, hostile


class EvilNumber:
    """Raises wherever it is looked at."""

    def __float__(self) -> float:
        raise RuntimeError("no float")

    def __repr__(self) -> str:
        raise RuntimeError("no repr")

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("no eq")

    __hash__ = object.__hash__


class SlowNumber:
    def __float__(self) -> float:
        time.sleep(60)
        return 1.0


class EvilPickle:
    def __reduce__(self) -> Any:
        return time.sleep, (60,)


class EvilError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no str")

    __repr__ = __str__


class SlowError(Exception):
    def __str__(self) -> str:
        time.sleep(60)
        return ""


class NoException(BaseException):
    pass


def _raises(error: BaseException) -> None:
    raise error


ANSWERS: dict[str, Any] = {
    "a number of 5001 digits": lambda config: 10**5000,
    "an evil number": lambda config: EvilNumber(),
    "a slow number": lambda config: SlowNumber(),
    "an evil pickle": lambda config: {"value": 1.0, "note": EvilPickle()},
    "a lambda": lambda config: lambda: 1.0,
    "a lock as a note": lambda config: {"value": 1.0, "note": threading.Lock()},
    "a note of 50 MB": lambda config: {"value": 1.0, "note": "x" * 50_000_000},
    "a note nested 10,000 deep": lambda config: {"value": 1.0, "note": _nested(10_000)},
    "a lone surrogate": lambda config: {"value": 1.0, "note": "\ud800"},
    "an array": lambda config: np.zeros((1000, 1000)),
    "a negative cost": lambda config: {"value": 1.0, "cost": -5.0},
    "a cost that is not a number": lambda config: {"value": 1.0, "cost": float("nan")},
    "CancelledError": lambda config: _raises(asyncio.CancelledError()),
    "a BaseException": lambda config: _raises(NoException("not caught by except Exception")),
    "KeyboardInterrupt": lambda config: _raises(KeyboardInterrupt()),
    "GeneratorExit": lambda config: _raises(GeneratorExit()),
    "SystemExit": lambda config: _raises(SystemExit(0)),
    "an error without a text": lambda config: _raises(EvilError()),
    "an error that is slow to show": lambda config: _raises(SlowError()),
    "an error with a text of 20 MB": lambda config: _raises(ValueError("x" * 20_000_000)),
    "a group of errors": lambda config: _raises(BaseExceptionGroup("many", [NoException(), ValueError()])),
}


def _nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


class Answering:
    """One of ANSWERS after a moment, so that a study holds a sensible number of them."""

    def __init__(self, name: str) -> None:
        self.__name__ = f"answers with {name}"

    def __call__(self, config: Config) -> Any:
        time.sleep(0.05)
        return ANSWERS[self.__name__.removeprefix("answers with ")](config)


FOR_PEERS = {"a number of 5001 digits", "an evil number", "a lone surrogate", "CancelledError", "a BaseException"}
for _name in ANSWERS:
    hostile(peers=_name in FOR_PEERS)(Answering(_name))


@hostile()
def recurses(config: Config) -> float:
    return recurses(config)
