"""One actor, as the run sees it; and the thread that listens to all of them.

A call of `hear` is outstanding at every actor. When it returns, or fails because the actor is gone, the thread calls
again and wakes the run, which may be waiting for answers or for signals.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import count
from queue import Empty, SimpleQueue
from typing import Any

from farthing.adapters.ray.messages import Facts, Gone, Order, Said
from farthing.runner.background import start_thread

FIRST_NUMBER = 1 << 30  # of an actor: no process has such a number


class Actor:
    """An actor that was asked for. It is pending until it has said where it is."""

    def __init__(self, number: int, handle: Any) -> None:
        self.number, self._handle, self._orders = number, handle, count()
        self.asked = time.monotonic()
        self.facts: Facts | None = None
        self.is_ready = False  # its worker has loaded the objective
        self.trial: int | None = None
        self.turn = 0  # the number of the evaluation that it has, or had last
        self.is_waiting = False  # the evaluation waits after a step, or has ended
        self.has_ended = False  # the evaluation
        self.was_told = False  # the evaluation, to end
        self.left: Callable[[], float] = lambda: 0.0  # of the budget
        self.freeing_since: float | None = None  # when it was told that its evaluation is over
        self.free_since = self.asked

    @property
    def is_free(self) -> bool:
        """Whether it can be given an evaluation."""
        return self.is_ready and self.trial is None and self.freeing_since is None

    @property
    def place(self) -> str:
        """As messages name it."""
        return "an actor that has not started" if self.facts is None else self.facts.name

    def order(self, order: Order) -> None:
        with suppress(Exception):  # whatever Ray raises for one that is gone: listening shows that too
            self._handle.order.remote(next(self._orders), order)

    def hear(self) -> Any:
        """What it says next, as a future."""
        return self._handle.hear.remote().future()

    def kill(self) -> None:
        """The process of the actor; its supervisor ends what the worker left."""
        import ray

        with suppress(Exception):  # it is gone
            ray.kill(self._handle, no_restart=True)


class Ears:
    """What actors say, in order, or the error by which one is lost."""

    def __init__(self) -> None:
        self._done: SimpleQueue[tuple[Actor, Any] | None] = SimpleQueue()
        self._said: SimpleQueue[tuple[Actor, Said | BaseException]] = SimpleQueue()
        self._ends = socket.socketpair()
        for end in self._ends:
            end.setblocking(False)
        self._is_closed = False
        self._thread = start_thread("farthing-ears", self._listen_on)

    @property
    def waitable(self) -> socket.socket:
        """Becomes readable when something was said."""
        return self._ends[0]

    def listen(self, actor: Actor) -> None:
        """To an actor, from here on."""
        try:
            actor.hear().add_done_callback(lambda future: self._done.put((actor, future)))
        except Exception as error:  # the connection to the cluster is gone
            self._pass_on(actor, error)

    def _listen_on(self) -> None:
        while (done := self._done.get()) is not None:
            actor, future = done
            if self._is_closed:
                continue
            try:
                said = future.result()
            except BaseException as error:  # of Ray: the actor is gone
                self._pass_on(actor, error)
                continue
            self._pass_on(actor, *said)
            if not any(isinstance(one, Gone) for one in said):
                self.listen(actor)

    def _pass_on(self, actor: Actor, *said: Said | BaseException) -> None:
        for one in said:
            self._said.put((actor, one))
        if said:
            with suppress(OSError):  # full: the run is awake enough; closed: it has ended
                self._ends[1].send(b"\0")

    def heard(self) -> Iterator[tuple[Actor, Said | BaseException]]:
        """What was said since the last call."""
        with suppress(BlockingIOError):
            while self._ends[0].recv(4096):
                pass
        while True:
            try:
                yield self._said.get_nowait()
            except Empty:
                return

    def close(self) -> None:
        self._is_closed = True
        self._done.put(None)
        self._thread.join(1.0)
        for end in self._ends:
            end.close()
