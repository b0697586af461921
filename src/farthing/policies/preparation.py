"""Preparing an ask from a snapshot of a study, and finishing it later: what sessions and runs need of `prepared.py`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, cast

from farthing.budget import Ledger
from farthing.history import History, Way
from farthing.policies.protocol import Policy, Prepares, generator_of, rows_of
from farthing.policies.thinking import Thinking
from farthing.record.events import PreparedFrom
from farthing.record.state import State
from farthing.space import Space
from farthing.trial import Proposal


@dataclass(frozen=True, eq=False)
class Snapshot:
    """What is known at one moment, after so many events: for a thread that prepares the next ask."""

    state: State
    events: int


@dataclass(frozen=True, eq=False)
class Preparation:
    """An ask that was prepared from a snapshot, in a way; `thought` is the policy's own."""

    snapshot: Snapshot
    thought: Any
    way: Way

    @property
    def seen(self) -> PreparedFrom:
        """For the event of the ask."""
        return PreparedFrom(self.snapshot.events, self.snapshot.state.ledger.as_json())

    def surprised(self, history: History) -> bool:
        """Whether what has happened since makes it worthwhile to think again."""
        return bool(self.thought.surprised(history))


class Finished(NamedTuple):
    """A proposal, and what it was made of."""

    proposal: Proposal
    preparation: Preparation


def prepared(
    policy: Policy, space: Space, snapshot: Snapshot, thinking: Thinking, seconds: float
) -> Preparation | None:  # fmt: skip
    """An ask prepared in a way that takes about `seconds`, with what a thread of its own has learned about thinking;
    None if there is nothing to prepare. It reads nothing that another thread changes."""
    if not isinstance(policy, Prepares):
        return None
    history, ledger, prepare = snapshot.state.history, snapshot.state.ledger, policy.prepare

    def think(way: Way) -> Any:
        return prepare(space, replace(history, way=way), ledger, generator_of(history, preparing=True))

    thought, way = thinking.ahead(seconds, rows_of(policy, history) or 0, think)
    return None if thought is None else Preparation(snapshot, thought, way)


def finished(
    policy: Policy, space: Space, history: History, ledger: Ledger, preparations: Iterable[Preparation]
) -> Finished | None:
    """What the first of these that can be finished proposes now."""
    for preparation in preparations:
        proposal = cast(Prepares, policy).finish(preparation.thought, space, history, ledger, generator_of(history))
        if proposal is not None:
            return Finished(proposal, preparation)
    return None
