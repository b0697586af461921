"""What was proposed for a trial, as Optuna's storage keeps it beside the trial.

Other processes see by it what a running trial will be, before it has asked for all of its parameters; and the next
proposal begins with the hyperparameters that were found for this one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from optuna.study import Study
from optuna.trial import FrozenTrial

KEY = "farthing:proposed"  # of the system attribute
SPENT = "the budget is spent"  # the reason of a trial that never began


@dataclass(frozen=True)
class Proposed:
    """The parameters as Optuna has them, the predicted cost, why, the seconds that it took, and the hyperparameters of
    the models, which suit the space of that name."""

    params: Mapping[str, Any] = field(default_factory=dict)
    cost: float | None = None
    reason: str = ""
    seconds: float = 0.0
    fits: Mapping[str, Any] = field(default_factory=dict)
    space: str = ""

    @classmethod
    def of(cls, trial: FrozenTrial) -> Proposed:
        """That of a trial; nothing for one that Farthing did not propose."""
        stored = trial.system_attrs.get(KEY)
        return NOTHING if stored is None else cls(**stored)

    def keep(self, study: Study, trial: FrozenTrial) -> None:
        study._storage.set_trial_system_attr(trial._trial_id, KEY, dict(vars(self)))


NOTHING = Proposed()
