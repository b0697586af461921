"""What the sampler does at an ask: from trials to a proposal, by a policy and nothing else.

The same trials, seed and number of the trial give the same proposal. What is kept between asks (`Remembered`) only
saves time, and is built again from the trials where it is missing.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from optuna.distributions import BaseDistribution
from optuna.study import Study
from optuna.trial import FrozenTrial

from farthing.adapters.optuna.proposed import Proposed
from farthing.adapters.optuna.spaces import Params, Part, parts_of
from farthing.adapters.optuna.spending import Spending, Spent
from farthing.adapters.optuna.trials import Known, place, tracked
from farthing.budget import Ledger
from farthing.direction import Direction
from farthing.history import History, Way
from farthing.policies import Policy, rows_of
from farthing.policies.protocol import generator_of
from farthing.policies.thinking import Thinking
from farthing.runner.clock import THINKING_SHARE
from farthing.trial import Proposal

DIGITS = 16  # of the name of a space
ALL_TRIED = "every configuration was tried: one of them again"


@dataclass(eq=False)
class Remembered:
    """What finished trials of a study spent, and where they lie in the parts of the space of the last ask, by number;
    and which trials are not to begin, because nothing is left."""

    storage: object = None
    study: int = -1
    spent: dict[int, Spent] = field(default_factory=dict)
    places: dict[str, dict[int, Known | None]] = field(default_factory=dict)
    never_begin: set[int] = field(default_factory=set)

    def __reduce__(self) -> Any:
        """Nothing of it is lost by leaving it behind."""
        return Remembered, ()

    def is_of(self, study: Study) -> bool:
        return self.storage is study._storage and self.study == study._study_id

    def spent_of(self, spending: Spending, trials: Sequence[FrozenTrial]) -> dict[int, Spent]:
        """What those of the trials that have ended spent."""
        ended = [trial for trial in trials if trial.state.is_finished()]
        self.spent.update((trial.number, spending.of(trial)) for trial in ended if trial.number not in self.spent)
        return {trial.number: self.spent[trial.number] for trial in ended}

    def places_in(self, part: Part, name: str, trials: Sequence[FrozenTrial]) -> dict[int, Known | None]:
        """Where trials lie in a part of that name."""
        before = self.places.get(name, {})
        found = {**before, **place(part, [trial for trial in trials if trial.number not in before])}
        self.places[name] = {trial.number: found[trial.number] for trial in trials if trial.state.is_finished()}
        return found

    def forget_all_but(self, names: Sequence[str]) -> None:
        self.places = {name: places for name, places in self.places.items() if name in names}


@dataclass(frozen=True, eq=False)
class Ask:
    """One ask: of which trial, and what is known. `trials` are all others, in the order of their numbers."""

    number: int
    seed: int
    trials: Sequence[FrozenTrial]
    ledger: Ledger
    direction: Direction

    def answered(
        self, policy: Policy, distributions: Mapping[str, BaseDistribution], remembered: Remembered, thinking: Thinking
    ) -> Proposed:
        """What is proposed for parameters with these distributions: each part of the space is asked for in turn."""
        began = time.perf_counter()
        parts = {name_of(part): part for part in parts_of(self.trials, distributions)}
        remembered.forget_all_but(list(parts))
        params: Params = {}
        first: tuple[str, Proposal] | None = None
        for number, (name, part) in enumerate(parts.items()):
            history = self._history(part, name, remembered, number)
            proposal = self._proposal(policy, part, history, thinking)
            params.update(part.params(proposal.config))
            first = first or (name, proposal)
        if first is None:
            return Proposed(seconds=time.perf_counter() - began)
        name, told = first
        seconds = time.perf_counter() - began
        return Proposed(params, told.predicted_cost, told.reason, seconds, dict(told.fits), name)

    def _history(self, part: Part, name: str, remembered: Remembered, number: int) -> History:
        known = remembered.places_in(part, name, self.trials)
        fits: dict[str, Any] = {}
        for proposed in map(Proposed.of, self.trials):
            if proposed.space == name:
                fits.update(proposed.fits)
        trials = tracked(self.trials, known, remembered.spent, self.direction)
        return History(self.seed + number, trials, self.number, fits)

    def _proposal(self, policy: Policy, part: Part, history: History, thinking: Thinking) -> Proposal:
        """The policy's. Where every configuration was tried it has none: Optuna's studies go on, with any of them."""

        def think(way: Way) -> list[Proposal]:
            thought = replace(history, way=way)
            return policy.propose(part.space, thought, self.ledger, 1, generator_of(history))

        found, _ = thinking.within(self._seconds_to_think, rows_of(policy, history), think)
        if found:
            return found[0]
        config = part.space.decode(generator_of(history).random(len(part.space)))
        return Proposal(len(history.trials), config, reason=ALL_TRIED)

    @property
    def _seconds_to_think(self) -> float:
        """Where time is limited, thinking uses no more than a part of what is left; else as much as it takes."""
        left = self.ledger.left("seconds")
        if rate := self.ledger.budget.usd_per_hour:
            left = min(left, self.ledger.left("usd") * 3600.0 / rate)
        return THINKING_SHARE * left


def name_of(part: Part) -> str:
    """What two spaces have in common only if they are the same."""
    stored = json.dumps(part.space.as_json(), sort_keys=True, default=repr)
    return hashlib.sha256(stored.encode()).hexdigest()[:DIGITS]
