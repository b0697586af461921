"""The policies by name: a new one is added to `BY_NAME`. `protocol.py` says what a policy is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from farthing.checks import refuse
from farthing.errors import InvalidArgument
from farthing.policies.auto import Auto
from farthing.policies.bapi import BAPI
from farthing.policies.bopt import BOPT
from farthing.policies.carbo import CArBO
from farthing.policies.cei import CEI
from farthing.policies.ei import EI
from farthing.policies.ei_alpha import EIAlpha, EICool, EIpu
from farthing.policies.fits import recommend
from farthing.policies.protocol import Policy, decide, policy_as_json, rows_of
from farthing.policies.sampling import Random, Sobol

__all__ = [
    "BAPI",
    "BOPT",
    "CEI",
    "EI",
    "Auto",
    "CArBO",
    "EIAlpha",
    "EICool",
    "EIpu",
    "Policy",
    "Random",
    "Sobol",
    "decide",
    "policy_as_json",
    "policy_from_json",
    "policy_of",
    "recommend",
    "rows_of",
]

BY_NAME: Mapping[str, type[Policy]] = {
    kind.name: kind for kind in (Auto, BAPI, BOPT, CArBO, CEI, EIAlpha, EICool, EIpu, EI, Sobol, Random)
}


def policy_of(policy: str | Policy) -> Policy:
    """A policy object as it is, or the policy of that name with its default options.

    >>> policy_of("ei")
    EI(initial=None)
    """
    if isinstance(policy, str) and policy in BY_NAME:
        return BY_NAME[policy]()
    if not hasattr(policy, "propose") or isinstance(policy, type):
        refuse("policy", f"one of {', '.join(BY_NAME)}, or an object such as policies.EI()", policy)
    return policy  # type: ignore[return-value]  # a str has no `propose`


def policy_from_json(stored: Mapping[str, Any]) -> Policy:
    """The policy that `policy_as_json` stored.

    >>> policy_from_json({"name": "cei", "tradeoff": 0.5})
    CEI(tradeoff=0.5, initial=5)
    """
    options = dict(stored)
    name = options.pop("name", None)
    if name not in BY_NAME:
        raise InvalidArgument(f"policy: {name!r} is not a policy of Farthing; pass policy= when resuming")
    kind: Any = BY_NAME[name]
    try:
        policy: Policy = kind(**options)
    except (InvalidArgument, TypeError) as error:  # a file of any origin: not an argument that the caller gave
        raise ValueError(f"the policy {name!r} cannot have these options: {error}") from error
    return policy
