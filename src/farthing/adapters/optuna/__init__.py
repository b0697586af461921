"""Farthing and Optuna: `FarthingSampler` and `FarthingPruner` work in Optuna's studies, `to_optuna` writes a study into
an Optuna storage, and `from_optuna` makes a study of one there.

Names are imported when they are first used: Optuna takes a second to import.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from farthing.adapters.optuna.exporting import to_optuna
    from farthing.adapters.optuna.importing import from_optuna
    from farthing.adapters.optuna.pruner import FarthingPruner
    from farthing.adapters.optuna.sampler import FarthingSampler

__all__ = ["FarthingPruner", "FarthingSampler", "from_optuna", "to_optuna"]

_HOMES = {
    "FarthingPruner": "pruner", "FarthingSampler": "sampler", "from_optuna": "importing", "to_optuna": "exporting"
}  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
