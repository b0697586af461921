"""Farthing in Optuna: `FarthingSampler` and `FarthingPruner`.

Names are imported when they are first used: Optuna takes a second to import.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from farthing.adapters.optuna.pruner import FarthingPruner
    from farthing.adapters.optuna.sampler import FarthingSampler

__all__ = ["FarthingPruner", "FarthingSampler"]

_HOMES = {"FarthingPruner": "pruner", "FarthingSampler": "sampler"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
