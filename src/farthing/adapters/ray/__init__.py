"""Ray: evaluations on a cluster (`ft.Ray`), and Farthing in Ray Tune. Names are imported when they are first used: each
needs another part of Ray."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from farthing.adapters.ray.tune_scheduler import FarthingScheduler as FarthingScheduler
    from farthing.adapters.ray.tune_search import FarthingSearch as FarthingSearch
    from farthing.adapters.ray.workers import Ray as Ray

_HOMES = {"FarthingScheduler": "tune_scheduler", "FarthingSearch": "tune_search", "Ray": "workers"}

__all__ = ["FarthingScheduler", "FarthingSearch", "Ray"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
