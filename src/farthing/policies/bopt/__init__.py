"""Two levels of training: BOPT-HPO, and its rival EQIE."""

from farthing.policies.bopt.eqie import EQIE as EQIE
from farthing.policies.bopt.policy import BOPT as BOPT
