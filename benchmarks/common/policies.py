"""Farthing's policies as the tasks of peers describe them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from farthing.policies import BY_NAME
from farthing.policies.protocol import Policy


def policy_of(described: Mapping[str, Any]) -> Policy:
    """A name and options; the others have the defaults of today.

    `policy_from_json` is for study files: there, an option that is missing has the value that old files ran with.
    """
    options = {name: value for name, value in described.items() if name != "name"}
    kind: Any = BY_NAME[described["name"]]
    policy: Policy = kind(**options)
    return policy
