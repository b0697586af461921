"""Ray: evaluations on a cluster (`ft.Ray`). Names are imported when they are first used."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from farthing.adapters.ray.workers import Ray as Ray

_HOMES = {"Ray": "workers"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
