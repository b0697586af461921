"""Farthing and Optuna: `to_optuna` writes a study into an Optuna storage, `from_optuna` makes a study of one there.

Both are imported when they are first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from farthing.adapters.optuna.exporting import to_optuna
    from farthing.adapters.optuna.importing import from_optuna

__all__ = ["from_optuna", "to_optuna"]

_MODULES = {"from_optuna": "importing", "to_optuna": "exporting"}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
