"""The policies by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from farthing.errors import InvalidArgument
from farthing.policies.auto import Auto
from farthing.policies.bapi import BAPI
from farthing.policies.bopt import BOPT
from farthing.policies.carbo import CArBO
from farthing.policies.cei import CEI
from farthing.policies.ei import EI
from farthing.policies.ei_alpha import EIAlpha, EICool, EIpu
from farthing.policies.fits import recommend
from farthing.policies.protocol import Policy, decide, describe
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
    "describe",
    "from_description",
    "policy_of",
    "recommend",
]

BY_NAME: Mapping[str, type[Policy]] = {
    kind.name: kind for kind in (Auto, BAPI, BOPT, CArBO, CEI, EIAlpha, EICool, EIpu, EI, Sobol, Random)
}


def policy_of(policy: str | Policy) -> Policy:
    """A policy object as it is, or the one of that name with its default options.

    >>> policy_of("ei")
    EI(initial=None)
    """
    if isinstance(policy, str):
        if policy not in BY_NAME:
            raise InvalidArgument(f"policy: no policy is called {policy!r}; there are {', '.join(BY_NAME)}")
        return BY_NAME[policy]()
    if not hasattr(policy, "propose") or isinstance(policy, type):
        raise InvalidArgument(
            f"policy: expected one of {', '.join(BY_NAME)} or an object such as policies.EI(), got {policy!r}"
        )
    return policy


def from_description(description: Mapping[str, Any]) -> Policy:
    """The policy that `describe` described."""
    options = dict(description)
    name = options.pop("name")
    if name not in BY_NAME:
        raise InvalidArgument(f"policy: {name!r} is not one of Farthing's own; pass policy= when resuming")
    return BY_NAME[name](**options)
