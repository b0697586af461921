"""What policies of earlier versions were: files hold them without the options that came later, or with other defaults.

A file holds every option of its policy. An option that it lacks has the value that the study ran with (`BEFORE`). Where
the default of an option has changed, a study that was begun with the policy's name alone goes on with what that meant
(`MEANT`). What has changed and is no option, a study goes on with as it is now, and that is said when its file is
opened: what `auto` chooses (`CHANGES` in `auto.py`), and how `bapi` decides about trainings.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from farthing.policies.auto import CHANGES, EDITION
from farthing.policies.carbo import DESIGN_SHARE
from farthing.policies.initial_design import WARM_UP
from farthing.policies.thaw import Thaw

_MODELS = {"values": "warped", "end": "planned", "target": "mean"}
_COST_WEIGHTED = {**_MODELS, "cost_model": "auto", "hints": False}
_BAPI = {
    "values": "warped", "end": "planned", "cost_model": "auto", "overrun": 1.25, "initial_training": "period",
}  # fmt: skip
_BOPT = {
    "bounds": None, "values": "cut", "kernel": "matern52", "imputation": "carry", "fit": "map", "noise": "fitted",
    "ratio": 2, "end": "planned", "complete_cost": "ratio", "cost_model": "auto",
}  # fmt: skip

# For each policy, the options that came later, and the value that studies ran with before.
BEFORE: Mapping[str, Mapping[str, Any]] = {
    "auto": {"edition": 1},
    "bapi": _BAPI,
    "bopt": _BOPT,
    "ei": _MODELS,
    "ei_alpha": _COST_WEIGHTED,
    "eipu": _COST_WEIGHTED,
    "ei_cool": _COST_WEIGHTED,
    "cei": _COST_WEIGHTED,
    "carbo": {**_COST_WEIGHTED, "alpha": 1.0, "warm_up": "sobol"},
}

BAPI_CHANGED = (
    "the stop of a training moves with its own curve, the best training is not paused for not beating itself, and the "
    "noise of curves may be smaller"
)
COSTS_CHANGED = "; the process of costs has noise on total costs, so that a short training says less than a long one"

# For each policy whose defaults have changed, what its name alone meant in earlier versions: the options that were not
# what they are now.
_UNHINTED = {"hints": False, "initial": WARM_UP}
MEANT: Mapping[str, tuple[Mapping[str, Any], ...]] = {
    **dict.fromkeys(("ei_alpha", "eipu", "ei_cool", "cei"), (_UNHINTED,)),
    "carbo": ({**_UNHINTED, "design_share": DESIGN_SHARE},),
    "auto": tuple({"edition": edition} for edition in range(1, EDITION)),
    "thaw": ({"initial": 3, "period": 0.1, "alpha": 0.5},),
}


def completed(stored: Mapping[str, Any]) -> dict[str, Any]:
    """A stored policy with the options that came later.

    >>> completed({"name": "cei", "tradeoff": 0.5, "initial": 5})["end"]
    'planned'
    """
    name = stored.get("name")
    return {**(BEFORE.get(name, {}) if isinstance(name, str) else {}), **stored}


def meant_by_name(default: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What the name of a policy alone has meant so far, from its default as JSON: now, and in earlier versions."""
    return [dict(default), *({**default, **meant} for meant in MEANT.get(default["name"], ()))]


def changes_since(stored: Mapping[str, Any]) -> str | None:
    """In words, how a policy has changed since a study was begun with it, where no option brings that back."""
    found = completed(stored)
    if found.get("name") == "auto" and found["edition"] < EDITION:
        return "; ".join(CHANGES[edition] for edition in range(found["edition"] + 1, EDITION + 1))
    if found.get("name") == "bapi" and not _BAPI.keys() <= stored.keys():  # the options came with the changes
        return BAPI_CHANGED + (COSTS_CHANGED if found.get("cost") == "process" else "")
    if found.get("name") == "thaw" and found != with_present_network(found):
        return "its network of training curves is another one"
    return None


def with_present_network(stored: Mapping[str, Any]) -> dict[str, Any]:
    """A stored policy as if it had been begun with the network of this version, which is what it goes on with."""
    return {**stored, "network": Thaw().network} if stored.get("name") == "thaw" else dict(stored)
