"""What evaluations leave running in a worker: daemons, which were orphaned and adopted by the worker.

A worker is used again. Before it is, daemons that the evaluation left are ended. Children that the objective itself
started may be meant for the next evaluation, such as a pool of processes, and are left alone.

The two are told apart by their sessions. A process can only stay in its parent's session, or begin one of its own. So a
child that is neither in the worker's session nor leads its own was somebody else's child, and adopted. That is what a
daemon looks like that forked twice. Others that were adopted cannot be told from children. They end with the worker.
"""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress

from farthing.runner.processes import kill_tree, process_rows

SHARE = 0.02  # of the time that may be spent on looking: with thousands of processes on the machine a look is slow
MOST_DEAD = 50  # children that ended and nobody waits for, with which a worker is used again
MOST_CHILDREN = 300  # the same, living ones too: more than any pool has, and killing thousands takes seconds


class Orphans:
    """Of this process."""

    def __init__(self) -> None:
        self._next_look = 0.0

    def end(self) -> bool:
        """End daemons. True if there are many children, or many that ended: perhaps they grow with every evaluation,
        and nobody will ever wait for them."""
        if not has_children() or time.monotonic() < self._next_look:
            return False
        began = time.thread_time()
        rows, me = process_rows(), os.getpid()
        mine = {pid: row for pid, row in rows.items() if row.parent == me}
        for pid, row in mine.items():
            if row.session in (me, pid):
                continue
            if not row.is_dead:
                kill_tree(pid)
                with suppress(OSError):
                    os.kill(pid, signal.SIGKILL)  # it may lead no group
            with suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)  # one that was just killed is taken note of at the next look
        self._next_look = time.monotonic() + (time.thread_time() - began) / SHARE
        return len(mine) > MOST_CHILDREN or sum(row.is_dead for row in mine.values()) > MOST_DEAD


def has_children() -> bool:
    """Whether this process has any, which is a quick question."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except (ChildProcessError, AttributeError):  # none; or a system that cannot say
        return False
    return True
