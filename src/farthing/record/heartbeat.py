"""A heartbeat: what a run has spent since its last events, written twice a second over the one before.

Where a process is killed, nobody can record what it spent since its last event. The heartbeat bounds what is lost: who
opens the file next charges what still counts of it. Amounts that belong to no trial count if no event came after the
heartbeat; those of a trial if the trial is still running and no event of its own came after it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from farthing.budget import ACCOUNT_OF, Charges
from farthing.record import stored_checks as stored
from farthing.trial import Status

Amounts = Mapping[str, float]  # by unit


@dataclass(frozen=True)
class Heartbeat:
    """What was spent beyond what events say, as it was after the event with the number `after`."""

    after: int
    due: Charges = field(default_factory=dict)  # belongs to no trial
    trials: Mapping[int, Amounts] = field(default_factory=dict)  # by the number of a running trial

    def __post_init__(self) -> None:
        stored.whole("after", self.after)
        stored.charges(self.due)
        for number, amounts in self.trials.items():
            stored.whole("trial", number)
            stored.amounts(f"trial {number}", amounts)

    def text(self) -> str:
        """As JSON."""
        trials = {str(number): dict(amounts) for number, amounts in self.trials.items()}
        due = {account: dict(amounts) for account, amounts in self.due.items()}
        return json.dumps({"after": self.after, "due": due, "trials": trials}, separators=(",", ":"))

    @classmethod
    def read(cls, text: str) -> Heartbeat:
        """From text of any origin; whatever is wrong with it may raise any exception."""
        body: dict[str, Any] = json.loads(text)
        return cls(body["after"], body["due"], {int(number): amounts for number, amounts in body["trials"].items()})

    def counted(
        self, last: int, running: Mapping[int, int], account: str = ACCOUNT_OF[Status.INTERRUPTED]
    ) -> Charges:  # fmt: skip
        """What still counts after `last` events, of which `running` holds the last one of each running trial; what
        trials spent goes to `account`."""
        charges = {account: dict(amounts) for account, amounts in self.due.items()} if last == self.after else {}
        of_trials = charges.get(account, {})
        for number, amounts in self.trials.items():
            if number in running and running[number] <= self.after <= last:
                for unit, amount in amounts.items():
                    of_trials[unit] = of_trials.get(unit, 0.0) + amount
        if of_trials:
            charges[account] = of_trials
        return {account: amounts for account, amounts in charges.items() if any(amounts.values())}
