"""Two levels of training (BOPT-HPO)."""

from farthing.policies.bopt.policy import BOPT as BOPT
