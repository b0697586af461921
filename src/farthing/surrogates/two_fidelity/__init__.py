"""A surrogate of two levels of training: short runs, complete runs, and the bias between them."""

from farthing.surrogates.two_fidelity.fitting import at, fit, fit_plain
from farthing.surrogates.two_fidelity.model import Hyperparameters, TwoFidelity

__all__ = ["Hyperparameters", "TwoFidelity", "at", "fit", "fit_plain"]
