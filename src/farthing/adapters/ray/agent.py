"""The actor: it holds a node's resources for one worker at a time, and passes on what the run and the worker say.

It is not detached, so Ray ends it with the driver. Should nobody hear from it for a while, it ends itself: a node may
be cut off from the driver and the head. However this process ends, the supervisor of its worker ends all that the
worker started.
"""

from __future__ import annotations

import os
import socket
import threading
import time
import warnings
from typing import Any

from farthing import __version__
from farthing.adapters.ray.messages import Facts, Job, Order, Said
from farthing.adapters.ray.node_worker import NodeWorker
from farthing.runner.background import start_thread

HEARING_SECONDS = 5.0  # that `hear` waits for something to say: then the run asks again, which shows that it is there
SILENCE_SECONDS = 60.0  # without being asked, after which the driver must be gone: it asks from a thread of its own
SILENCE_POLL = 1.0


class Agent:
    """Methods are called by Ray, in several threads: so orders have numbers, and are obeyed in the order of these."""

    def __init__(self, job: Job, objective: bytes, silence: float = SILENCE_SECONDS) -> None:
        warnings.simplefilter("error", RuntimeWarning)  # then ours are logged, which the worker passes on to the run
        self._said: list[Said] = []
        self._changed = threading.Condition()
        self._early: dict[int, Order] = {}  # that came before others
        self._next, self._obeying = 0, threading.Lock()
        self._heard, self._silence = time.monotonic(), silence
        self._say(_facts(job))
        self._worker = NodeWorker(job, objective, _own_folder(), self._say)
        start_thread("farthing-worker", self._worker.run)
        start_thread("farthing-silence", self._end_in_silence)

    def order(self, number: int, order: Order) -> None:
        """Do that after what has a smaller number."""
        with self._obeying:
            self._early[number] = order
            while self._next in self._early:
                self._worker.order(self._early.pop(self._next))
                self._next += 1

    def hear(self) -> list[Said]:
        """What was said since it was heard last; waits a while for something."""
        with self._changed:
            self._heard = time.monotonic()
            self._changed.wait_for(lambda: self._said, HEARING_SECONDS)
            said, self._said = self._said, []
            return said

    def _say(self, said: Said) -> None:
        with self._changed:
            self._said.append(said)
            self._changed.notify_all()

    def _end_in_silence(self) -> None:
        while time.monotonic() - self._heard < self._silence:
            time.sleep(SILENCE_POLL)
        os._exit(1)  # the supervisor ends the worker


def _context() -> Any:
    import ray

    return ray.get_runtime_context()


def _own_folder() -> str | None:
    """Where Ray has put the files that the user sent along, if any."""
    return os.getcwd() if _context().runtime_env.get("working_dir") else None


def _facts(job: Job) -> Facts:
    import ray

    node = _context().get_node_id()
    found: dict[str, Any] = next((entry for entry in ray.nodes() if entry["NodeID"] == node), {})
    return Facts(
        node, socket.gethostname(), dict(found.get("Labels", {})), dict(found.get("Resources", {})), __version__,
        not job.probe or os.path.exists(job.probe),
    )  # fmt: skip
