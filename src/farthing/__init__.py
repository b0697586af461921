"""Farthing: the best configuration a budget can buy."""

import logging

from farthing import errors, policies
from farthing.acquisitions.pareto import Front
from farthing.budget import Budget, Ledger
from farthing.cost_knowledge import CostPrior
from farthing.current import Run, current_run
from farthing.space import Choice, Integer, Ordered, Real, Space
from farthing.study import Study, tune
from farthing.surrogates import flops
from farthing.trial import Curve, Decision, Proposal, Status, Trial

logging.getLogger("farthing").addHandler(logging.NullHandler())  # silent unless the program that imports us listens

__version__ = "0.1.0"

__all__ = [
    "Budget", "Choice", "CostPrior", "Curve", "Decision", "Front", "Integer", "Ledger", "Ordered", "Proposal", "Real",
    "Run", "Space", "Status", "Study", "Trial", "current_run", "errors", "flops", "policies", "tune",
]  # fmt: skip
