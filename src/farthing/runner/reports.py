"""What an objective reports from inside one call: `ft.current_run().report(value)`.

It is for training loops that belong to a library, which calls us back after each step. To a run, a report is what a
learner that yields answers to one step: the call goes on inside the objective when the next step is asked for, and is
stopped when the learner is closed.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from typing import Any

from farthing.errors import InvalidArgument
from farthing.trial import Decision

YIELDS = "the objective returned an iterator: it either yields its steps or reports them"
OVER = "its trial has ended"


class Reports:
    """Those of one call of the objective, which was to go on from `start_step`.

    `exchange` hands a step to the run, and returns when the run has said what comes next. After it said STOP the
    objective may go on for as long as it likes: no further report reaches the run.
    """

    def __init__(self, start_step: int, exchange: Callable[[Mapping[str, Any]], Decision]) -> None:
        self._exchange = exchange
        self._thread = os.getpid(), threading.get_ident()
        self._is_busy = False
        self._refusal = ""
        self._was_iterative = start_step > 0
        self.any = False
        self.is_stopped = False

    @property
    def is_iterative(self) -> bool:
        """Whether this call has reported, or an earlier one has, from where this one went on."""
        return self.any or self._was_iterative

    def __call__(self, report: Mapping[str, Any]) -> Decision:
        self._require_place()
        if self.is_stopped:
            return Decision.STOP
        self.any = self._is_busy = True
        try:
            self.is_stopped = self._exchange(report) is Decision.STOP
        finally:
            self._is_busy = False
        return Decision.STOP if self.is_stopped else Decision.CONTINUE

    def refuse(self, why: str) -> None:
        """From here on a report is an error."""
        self._refusal = why

    def _require_place(self) -> None:
        """Only where the objective was called: elsewhere nobody could wait for the answer."""
        if self._refusal:
            raise InvalidArgument(f"report: {self._refusal}")
        if self._thread != (os.getpid(), threading.get_ident()):
            raise InvalidArgument("report: call it in the process and thread in which the objective was called")
        if self._is_busy:
            raise InvalidArgument("report: the report before this one is still being taken in")
