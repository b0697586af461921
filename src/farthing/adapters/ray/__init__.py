"""Farthing and Ray. Names are imported when they are first used: each needs another part of Ray."""

from importlib import import_module
from typing import Any

_HOMES = {"FarthingScheduler": "tune_scheduler", "FarthingSearch": "tune_search"}

__all__ = ["FarthingScheduler", "FarthingSearch"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
