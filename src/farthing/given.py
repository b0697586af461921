"""Configurations that are evaluated because somebody has given them: asked for while the study runs, given by `start`,
or taken over from earlier studies. They come before what the policy proposes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from farthing.record.record import Record
from farthing.trial import Config, Proposal

SHARE_TAKEN_OVER = 1 / 16  # of the budget, after which configurations of earlier studies are no longer begun with
ON_REQUEST = "asked for by request"  # why a trial begins: somebody who looks at the study asked for it
GIVEN = "given by start"
TAKEN_OVER = "warm start: good and cheap in earlier studies"


class Given:
    """What has been given to a study and waits to be evaluated."""

    def __init__(self, record: Record) -> None:
        self._record = record
        warm_start = record.history.warm_start
        taken_over = () if warm_start is None else warm_start.first
        first = [
            *((stored, GIVEN) for stored in record.settings.start),
            *((stored, TAKEN_OVER) for stored in taken_over),
        ]
        self._first = [(record.space.load_config(stored), reason) for stored, reason in first]
        self._begun = 0  # those before it are taken

    def next(self, n: int) -> list[Proposal]:
        """Up to n, all from one source; none that was evaluated already."""
        return self._on_request(n) or self._from_start(n)

    def _on_request(self, n: int) -> list[Proposal]:
        configs = self._record.state.requests.next_configs(n, self._record.history.taken)
        return self._proposals([(dict(config), ON_REQUEST) for config in configs])

    def _from_start(self, n: int) -> list[Proposal]:
        """Of earlier studies only while they cost little: what they cost here was not known."""
        taken, key, ledger = self._record.history.taken, self._record.space.key, self._record.ledger
        enough = ledger.unit in ledger.budget.limits and ledger.fraction >= SHARE_TAKEN_OVER
        left = (
            i
            for i in range(self._begun, len(self._first))
            if key(self._first[i][0]) not in taken and not (enough and self._first[i][1] == TAKEN_OVER)
        )
        fresh = list(islice(left, n))
        self._begun = fresh[0] if fresh else len(self._first)
        return self._proposals([self._first[i] for i in fresh])

    def _proposals(self, given: Sequence[tuple[Config, str]]) -> list[Proposal]:
        first = len(self._record.history.trials)
        return [Proposal(number, config, reason=reason) for number, (config, reason) in enumerate(given, start=first)]
