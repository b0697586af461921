"""Farthing's policies as the tasks of peers describe them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from farthing import policies


def policy_of(described: Mapping[str, Any]) -> policies.Policy:
    """By name and options: `{"name": "carbo-paper", "alpha": 0.0}`. The other options are as the name has them now.

    `policy_from_json` is for study files: there, an option that is missing has the value that old files ran with.
    """
    options = {option: given for option, given in described.items() if option != "name"}
    policy: Any = policies.policy_of(described["name"])
    return replace(policy, **options)  # type: ignore[no-any-return]
