"""A thread that does one thing after another, beside a loop of asyncio that waits for what comes of it."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from threading import Thread
from typing import Any, TypeVar

T = TypeVar("T")


class Lane:
    """One thread, which the end of the process does not wait for: a model may think for seconds.

    >>> Lane("sums").do(lambda: 1 + 1).result()
    2
    """

    def __init__(self, name: str) -> None:
        self._waiting = SimpleQueue[tuple[Future[Any], Callable[[], Any]]]()
        Thread(target=self._work, name=f"farthing-{name}", daemon=True).start()

    def do(self, work: Callable[[], T]) -> Future[T]:
        """Let this be done after what waits already."""
        future = Future[T]()
        self._waiting.put((future, work))
        return future

    def _work(self) -> None:
        while True:
            future, work = self._waiting.get()
            if not future.set_running_or_notify_cancel():  # whoever asked has gone away
                continue
            try:
                future.set_result(work())
            except BaseException as error:
                future.set_exception(error)
            del future, work  # what they hold is not kept until the next one comes
