"""Farthing: the best configuration a budget can buy."""

import logging

from farthing import errors, policies
from farthing.acquisitions.pareto import Front
from farthing.budget import Budget, Ledger
from farthing.cost_knowledge import CostPrior
from farthing.space import Choice, Integer, Ordered, Real, Space
from farthing.study import Study, tune
from farthing.surrogates import flops
from farthing.trial import Proposal, Status, Trial

logging.getLogger("farthing").addHandler(logging.NullHandler())  # silent unless the program that imports us listens

__version__ = "0.1.0"

__all__ = [
    "Budget", "Choice", "CostPrior", "Front", "Integer", "Ledger", "Ordered", "Proposal", "Real", "Space", "Status",
    "Study", "Trial", "errors", "flops", "policies", "tune",
]  # fmt: skip
