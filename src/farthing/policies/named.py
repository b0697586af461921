"""The policies by name, and as study files hold them: a new one is added to `BY_NAME`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, NoReturn

from farthing.checks import refuse
from farthing.errors import InvalidArgument, StudyMismatch
from farthing.policies.auto import EDITION, Auto
from farthing.policies.bapi import BAPI
from farthing.policies.bopt import BOPT, EQIE
from farthing.policies.carbo import CArBO
from farthing.policies.cei import CEI
from farthing.policies.earlier import changes_since, completed, meant_by_name, with_present_network
from farthing.policies.ei import EI
from farthing.policies.ei_alpha import EIAlpha, EICool, EIpu
from farthing.policies.pbgi import PBGI
from farthing.policies.protocol import Policy, Published, policy_as_json
from farthing.policies.sampling import Random, Sobol
from farthing.policies.thaw import Thaw
from farthing.text.plain import warn

BY_NAME: Mapping[str, type[Policy]] = {
    kind.name: kind
    for kind in (Auto, BAPI, BOPT, CArBO, CEI, EIAlpha, EICool, EIpu, EI, EQIE, PBGI, Sobol, Random, Thaw)
}
AS_PUBLISHED = "-paper"  # after a name: the method as its paper has it


def policy_names() -> tuple[str, ...]:
    """Every name that `policy_of` knows."""
    published = (f"{name}{AS_PUBLISHED}" for name, kind in BY_NAME.items() if issubclass(kind, Published))
    return (*BY_NAME, *published)


def policy_of(policy: str | Policy) -> Policy:
    """A policy object as it is, or the policy of that name: with its default options, or as its paper has it.

    >>> policy_of("ei"), policy_of("ei-paper")
    (EI(), EI(values='plain', end='ignored', target='least'))
    """
    if isinstance(policy, str) and policy in policy_names():
        kind: Any = BY_NAME[policy.removesuffix(AS_PUBLISHED)]
        named: Policy = kind.paper() if policy.endswith(AS_PUBLISHED) else kind()
        return named
    if not hasattr(policy, "propose") or isinstance(policy, type):
        refuse("policy", f"one of {', '.join(policy_names())}, or an object such as policies.EI()", policy)
    if type(policy) is Auto:
        return Auto()  # of the present edition, whichever was given: it is what a study does from here on
    return policy  # type: ignore[return-value]  # a str has no `propose`


def policy_from_json(stored: Mapping[str, Any]) -> Policy:
    """The policy that `policy_as_json` stored.

    >>> policy_from_json({"name": "cei", "tradeoff": 0.5, "hints": True})
    CEI(tradeoff=0.5)
    """
    options = completed(stored)
    name = options.pop("name", None)
    if name not in BY_NAME:
        raise InvalidArgument(f"policy: {name!r} is not a policy of Farthing; pass policy= when resuming")
    kind: Any = BY_NAME[name]
    try:
        policy: Policy = kind(**options)
    except (InvalidArgument, TypeError) as error:  # a file of any origin: not an argument that the caller gave
        raise ValueError(f"the policy {name!r} cannot have these options: {error}") from error
    return policy


class UnknownPolicy:
    """Stands for a policy of the user's own, of which a file holds the name."""

    def __init__(self, name: str) -> None:
        self.name = name

    def propose(self, *given: Any) -> NoReturn:
        raise InvalidArgument(f"policy {self.name!r} is not known here")


def stored_policy(stored: Mapping[str, Any]) -> Policy:
    """The policy of a study that is only looked at, whoever wrote it.

    >>> stored_policy({"name": "mine"}).name
    'mine'
    """
    try:
        return policy_from_json(stored)
    except ValueError:
        policy: Any = UnknownPolicy(str(stored.get("name")))
        return policy  # type: ignore[no-any-return]


def continued(asked: Policy | None, stored: Mapping[str, Any], file: str) -> Policy:
    """The policy that the study of a file goes on with: its own. One that is asked for has to be that one, or to have
    no options: then it is what its name meant when the study was begun."""
    if unknown := _unknown_options(stored):
        raise StudyMismatch(
            f"{file}: its policy {stored['name']} has options that this version of Farthing does not know "
            f"({', '.join(unknown)}): the study was begun with a newer one"
        )
    policy = policy_from_json(stored) if asked is None or asked.name in BY_NAME else asked
    if asked is not None:
        here, there = policy_as_json(asked), with_present_network(completed(stored))
        is_default = type(asked) is BY_NAME.get(asked.name) and asked == type(asked)()
        if there not in (meant_by_name(here) if is_default else [here]):
            raise StudyMismatch(f"{file}: policy is {dict(stored)} in the file and {here} here")
    if changes := changes_since(stored):
        name = stored["name"]
        warn(f"{file}: policy {name} has changed since the study was begun, and goes on as it is now: {changes}")
    return policy


def _unknown_options(stored: Mapping[str, Any]) -> list[str]:
    kind: Any = BY_NAME.get(stored.get("name", ""))
    edition = stored.get("edition")
    if kind is Auto and isinstance(edition, int) and edition > EDITION:
        return [f"edition {edition}"]
    return [] if kind is None else sorted(stored.keys() - {"name", *(field.name for field in fields(kind))})
