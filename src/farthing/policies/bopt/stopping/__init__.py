"""Where a training curve leaves its fast-improving period, and where complete training ends: rules by name.

BOPT-HPO (Yang, Deng, Zhu, section 1 and Figure 1) trains to two levels. Eighty-percent training stops "immediately
after the fast-improving period ends", found as "the elbow point of the loss curve [...] via some stopping criteria
(Prechelt, 2012)": `elbow`, `progress`, `quotient`, `share`. Complete training continues "until a pre-given convergence
criterion is met": `converged`, `loss`, `rises`. docs/levels.md compares them on real curves.

Symbols; steps count from 1, and what is said of step t is computed from the steps up to t alone:
    k             number of steps seen
    E    (k,)     values: what is minimised, after each step (Prechelt's E_va); finite
    E_tr (k,)     train_values, where steps report them: used at t if all steps up to t did (NaN: not reported)
    m    (k,)     the best value so far (Prechelt's E_opt)
    G    (k,)     m_1 - m_t, the improvement so far
    max_steps     the length of complete training, at most, where that is known

A period that ended stays ended: `first_end` is the first step that meets a rule. A rule for the fast period is met at
the latest at the share `latest` of max_steps.

The rules `elbow` and `converged` compare improvements with improvements, so that neither the scale nor the origin of
the values changes them. No rule takes a plateau at the start for an end, since there is no real improvement yet (see
`measures.py`); except `share` and `latest`, which only look at the step, and `loss` and `rises`, which look for
training that got worse.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, TypeAlias

from numpy.typing import ArrayLike

from farthing.checks import refuse
from farthing.errors import InvalidArgument
from farthing.policies.bopt.stopping.rules import Converged, Elbow, Loss, Progress, Quotient, Rises, Rule, Share

__all__ = [
    "BY_NAME",
    "COMPLETE",
    "EIGHTY_PERCENT",
    "Converged",
    "Elbow",
    "Loss",
    "NamedRule",
    "Progress",
    "Quotient",
    "Rises",
    "Rule",
    "Share",
    "checked_rule",
    "ended",
    "first_end",
    "rule_of",
]

BY_NAME: Mapping[str, type[Rule]] = {
    kind.name: kind for kind in (Elbow, Progress, Quotient, Share, Converged, Loss, Rises)
}
EIGHTY_PERCENT = Elbow.name  # the default for the fast period
COMPLETE = Converged.name  # the default for complete training

NamedRule: TypeAlias = str | Rule


def rule_of(rule: NamedRule, option: str = "rule", *, or_none: bool = False) -> Rule:
    """A rule as it is, or the rule of that name with its default options.

    >>> rule_of("share")
    Share(share=0.2)
    """
    if isinstance(rule, Rule):
        return rule
    if not isinstance(rule, str) or rule not in BY_NAME:
        refuse(option, f"one of {', '.join(BY_NAME)}, or an object such as Elbow(){', or None' * or_none}", rule)
    return BY_NAME[rule]()


def checked_rule(option: str, given: NamedRule | Mapping[str, Any], *, or_none: bool = False) -> NamedRule:
    """A rule or the name of one, as given. What a study file holds of a rule becomes that rule.

    >>> checked_rule("fast_ends", "elbow"), checked_rule("fast_ends", {"name": "share", "share": 0.25})
    ('elbow', Share(share=0.25))
    """
    if isinstance(given, Mapping):
        return _rule_from_json(option, given)
    rule_of(given, option, or_none=or_none)
    return given


def _rule_from_json(option: str, stored: Mapping[str, Any]) -> Rule:
    options = dict(stored)
    name = options.pop("name", None)
    kind = BY_NAME.get(name) if isinstance(name, str) else None
    if kind is None or not options.keys() <= {f.name for f in fields(kind)}:
        refuse(option, f"the name and options of a rule, one of {', '.join(BY_NAME)}", dict(stored))
    try:
        return kind(**options)
    except InvalidArgument as error:
        raise InvalidArgument(f"{option}: {error}") from None


def first_end(
    rule: NamedRule, values: ArrayLike, train_values: ArrayLike | None = None, max_steps: int | None = None
) -> int | None:
    """The first step, from 1, at which the period had ended; None while it has not.

    >>> curve = [2.0**-t for t in range(40)]
    >>> first_end("elbow", curve), first_end("elbow", curve, max_steps=18), first_end("elbow", curve[:5])
    (13, 6, None)
    """
    return rule_of(rule).first_end(values, train_values, max_steps)


def ended(
    rule: NamedRule, values: ArrayLike, train_values: ArrayLike | None = None, max_steps: int | None = None
) -> bool:
    """Whether the period had ended at the last value seen, or before.

    >>> ended("share", [3.0, 2.0], max_steps=10), ended("share", [3.0], max_steps=10)
    (True, False)
    """
    return rule_of(rule).ended(values, train_values, max_steps)
