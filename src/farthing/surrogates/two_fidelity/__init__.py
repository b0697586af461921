"""A surrogate of two fidelities of training: short runs, complete runs, and the bias between them."""

from farthing.surrogates.two_fidelity.bounded import Estimation
from farthing.surrogates.two_fidelity.fitting import fit, fit_plain, from_hyperparameters
from farthing.surrogates.two_fidelity.model import Hyperparameters, TwoFidelity

__all__ = ["Estimation", "Hyperparameters", "TwoFidelity", "fit", "fit_plain", "from_hyperparameters"]
