"""Farthing: the best configuration a budget can buy.

Names are imported when they are first used: worker processes need few of them, and start sooner.
"""

import logging
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from farthing import errors, policies
    from farthing.acquisitions.ei_change import EIChange
    from farthing.acquisitions.pareto import Front, ImpliedAlpha, Persistence
    from farthing.adapters.ray.workers import Ray
    from farthing.adapters.sklearn.search import FarthingSearchCV
    from farthing.budget import Budget, Ledger
    from farthing.comparing import compare
    from farthing.history.cost_knowledge import CostPrior
    from farthing.policies.value_cost import ValueAtCost
    from farthing.run_context import Run, current_run
    from farthing.space import Choice, Integer, Ordered, Real, Space
    from farthing.study import Study
    from farthing.study_view import value_cost_front
    from farthing.surrogates.cost import flops
    from farthing.trial import Curve, Decision, EndedBy, Proposal, Status, Trial
    from farthing.tuning import tune

logging.getLogger("farthing").addHandler(logging.NullHandler())  # silent unless the program that imports us listens

__version__ = "0.1.0"

__all__ = [
    "Budget", "Choice", "CostPrior", "Curve", "Decision", "EIChange", "EndedBy", "FarthingSearchCV", "Front",
    "ImpliedAlpha", "Integer", "Ledger", "Ordered", "Persistence", "Proposal", "Ray", "Real", "Run", "Space",
    "Status", "Study", "Trial", "ValueAtCost", "compare", "current_run", "errors", "flops", "policies", "tune",
    "value_cost_front",
]  # fmt: skip

_HOMES = {
    "CostPrior": "history.cost_knowledge", "flops": "surrogates.cost.flops",
    "FarthingSearchCV": "adapters.sklearn.search", "Ray": "adapters.ray.workers",
    "errors": "errors", "policies": "policies", "Study": "study", "tune": "tuning",
    "EIChange": "acquisitions.ei_change", "ValueAtCost": "policies.value_cost", "value_cost_front": "study_view",
    "compare": "comparing",
    **dict.fromkeys(["Front", "ImpliedAlpha", "Persistence"], "acquisitions.pareto"),
    **dict.fromkeys(["Budget", "Ledger"], "budget"),
    **dict.fromkeys(["Run", "current_run"], "run_context"),
    **dict.fromkeys(["Choice", "Integer", "Ordered", "Real", "Space"], "space"),
    **dict.fromkeys(["Curve", "Decision", "EndedBy", "Proposal", "Status", "Trial"], "trial"),
}  # fmt: skip

_OPTIONAL = ("FarthingSearchCV",)  # need packages that may not be there


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'farthing' has no attribute {name!r}")
    try:
        home = import_module(f"farthing.{_HOMES[name]}")
    except ImportError as error:
        if name not in _OPTIONAL:
            raise
        return _stand_in(name, error)
    globals()[name] = getattr(home, name, home)
    return globals()[name]


def _stand_in(name: str, missing: ImportError) -> type:
    """A class that says what is missing when it is used, and not before: `from farthing import *` names it too."""

    def refuse(self: object, *args: object, **named: object) -> None:
        raise ImportError(str(missing)) from missing

    return type(name, (), {"__init__": refuse, "__doc__": str(missing), "__module__": __name__})


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
