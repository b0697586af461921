"""The policies. `named.py` has them by name, `protocol.py` says what a policy is."""

from farthing.policies.auto import Auto
from farthing.policies.bapi import BAPI
from farthing.policies.bopt import BOPT, EQIE
from farthing.policies.carbo import CArBO
from farthing.policies.cei import CEI
from farthing.policies.ei import EI
from farthing.policies.ei_alpha import EIAlpha, EICool, EIpu
from farthing.policies.fits import recommend
from farthing.policies.named import BY_NAME, continued, policy_from_json, policy_names, policy_of
from farthing.policies.pbgi import PBGI
from farthing.policies.protocol import Policy, decide, policy_as_json, rows_of
from farthing.policies.sampling import Random, Sobol
from farthing.policies.thaw import Thaw

__all__ = [
    "BAPI",
    "BOPT",
    "BY_NAME",
    "CEI",
    "EI",
    "EQIE",
    "PBGI",
    "Auto",
    "CArBO",
    "EIAlpha",
    "EICool",
    "EIpu",
    "Policy",
    "Random",
    "Sobol",
    "Thaw",
    "continued",
    "decide",
    "policy_as_json",
    "policy_from_json",
    "policy_names",
    "policy_of",
    "recommend",
    "rows_of",
]
