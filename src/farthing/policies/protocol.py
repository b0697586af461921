"""What a policy is: a pure function from what is known to what to evaluate next.

A policy learns nothing that cannot be rebuilt from the history: the same history, ledger and generator give the same
proposals. Hyperparameters it found travel in `Proposal.fits` and come back through `History.fits`. Policies are frozen
dataclasses whose fields are their options, so that a study file can name them.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

from farthing.budget import Ledger
from farthing.history import History, TrackedTrial
from farthing.space import Space
from farthing.trial import Decision, Proposal


class Policy(Protocol):
    """Decides what to evaluate next."""

    name: ClassVar[str]

    def propose(
        self, space: Space, history: History, ledger: Ledger, n: int, rng: np.random.Generator
    ) -> list[Proposal]:
        """At most n proposals: new trials, numbered from len(history.trials), or paused ones under their own number;
        fewer when the space runs out.

        A policy for iterative learners also has decide(space, history, ledger, trial, rng), called after every step of
        a trial; see the function `decide`. It refuses plain functions, unless it says `needs_steps = False`.
        """
        ...


def decide(
    policy: Policy, space: Space, history: History, ledger: Ledger, trial: TrackedTrial, rng: np.random.Generator
) -> Decision:
    """What a policy makes of a run after one of its steps; one that does not say trains completely."""
    own = getattr(policy, "decide", None)
    return Decision.CONTINUE if own is None else Decision(own(space, history, ledger, trial, rng))


def describe(policy: Any) -> dict[str, Any]:
    """A policy's name and options, JSON-ready.

    >>> from farthing.policies import EI
    >>> describe(EI(initial=8))
    {'name': 'ei', 'initial': 8}
    """
    return {"name": policy.name, **(_options(policy) if is_dataclass(policy) else {})}


def _options(described: Any) -> dict[str, Any]:
    """Fields by name; one that has options of its own is described in turn."""
    given = {f.name: getattr(described, f.name) for f in fields(described)}
    return {name: describe(value) if is_dataclass(value) else value for name, value in given.items()}
