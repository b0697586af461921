"""What a hostile objective is, and the list of all of them. Nothing here needs Farthing, so that peers can run them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

Config = dict[str, Any]
Objective = Callable[[Config], Any]


@dataclass(frozen=True)
class Hostile:
    """An objective, the arguments of `tune` that it needs, and whether a peer that runs it in process can try it."""

    name: str
    objective: Objective
    options: dict[str, Any] = field(default_factory=dict)
    for_peers: bool = False


ALL: dict[str, Hostile] = {}


def hostile(
    *, peers: bool = False, workers: tuple[int, ...] = (1,), **options: Any
) -> Callable[[Objective], Objective]:
    """Put an objective on the list, once for each number of workers."""

    def add(objective: Objective) -> Objective:
        for count in workers:
            name = objective.__name__.replace("_", " ") + (f", {count} workers" if count > 1 else "")
            given = options if count == 1 else {**options, "workers": count}
            ALL[name] = Hostile(name, objective, given, peers and count == 1)
        return objective

    return add
