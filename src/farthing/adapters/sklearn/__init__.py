"""Farthing in scikit-learn: `FarthingSearchCV`.

It is imported when it is first used: worker processes need only other modules of this package, and start faster.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from farthing.adapters.sklearn.search import FarthingSearchCV

__all__ = ["FarthingSearchCV"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from farthing.adapters.sklearn import search

    return getattr(search, name)
