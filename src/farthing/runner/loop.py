"""A run, from its beginning to its end: what it needs is opened, its turns are taken (turns.py), and all is closed.

All wall-clock time from the first line to the last goes to the ledger (clock.py), and twice a second to the file, in
case this process is killed (heartbeat.py).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from farthing import checks
from farthing.errors import EveryTrialFailed
from farthing.runner.clock import Clock, Timer, wall_clock
from farthing.runner.control import Control
from farthing.runner.failing import FirstFailures
from farthing.runner.heartbeat import Heartbeat
from farthing.runner.interrupts import Interrupts, Terminated, is_interactive
from farthing.runner.options import RunOptions
from farthing.runner.paused import PausedLearners
from farthing.runner.progress import progress_for, say_end, say_why_ended
from farthing.runner.standard_descriptors import fill_standard_descriptors
from farthing.runner.thinker import thinking_beside
from farthing.runner.turns import Turns
from farthing.session import Session
from farthing.trial import Objective, Trial

EXIT_CODE = 128  # plus the number of the signal, as shells report a program that a signal ended


def run(
    session: Session, objective: Objective, began: float, options: RunOptions,
    callbacks: Sequence[Callable[[Trial], Any]], timer: Timer = wall_clock,
) -> None:  # fmt: skip
    """Run until the budget is spent, the target reached, the space exhausted, a stop requested, or a signal comes.

    Each callback is called with a trial that ended or was paused. After Ctrl-C a script goes on with KeyboardInterrupt,
    as without a study; where somebody sits at a prompt the run returns. `began` is a reading of the timer.
    """
    checks.function("objective", objective)
    session.stop_requested = session.interrupted = False
    session.halted, failed = "", None
    fill_standard_descriptors()
    control = Control(session, time.time() - max(timer() - began, 0.0), simulated=timer is not wall_clock)
    with session.alone():
        control.begin()
        meters = options.meters(session.ledger.budget)
        clock = Clock(session, began, meters.units, timer, held=meters.held)
        with Interrupts() as interrupts, progress_for(session, options.progress) as progress:
            control.progress = progress
            with Heartbeat(session, clock) as heartbeat:
                try:
                    with (
                        options.executor(session, objective, interrupts, clock, meters) as executor,
                        PausedLearners(
                            session, executor, clock, options.paused_limit, options.paused_bytes()
                        ) as paused,
                        thinking_beside(session, executor, options.most) as thinker,
                    ):
                        Turns(
                            session, executor, paused, clock, heartbeat, meters, progress, interrupts, options,
                            callbacks, FirstFailures(options.max_failures), control, thinker,
                        ).take()  # fmt: skip
                except (KeyboardInterrupt, Terminated):
                    interrupts.interrupted += 1  # an objective may raise it too
                except EveryTrialFailed as error:
                    failed, session.halted = error, str(error).rpartition(";")[0]
                session.interrupted = interrupts.any
                say_why_ended(session, progress)
            session.charge(clock.overhead())
            if failed is None:
                say_end(session, progress)
    if interrupts.terminated_by is not None:
        raise SystemExit(EXIT_CODE + interrupts.terminated_by)
    if failed is not None:
        raise failed
    if interrupts.any and not is_interactive():
        raise KeyboardInterrupt
