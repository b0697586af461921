"""Server-sent events: open pages hear that a study has changed, and fetch what they show.

A message holds no data of a study but how far it is, so one that comes late is as good as all that were missed: of each
study only the newest waits for a slow page.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import suppress
from threading import Lock
from typing import Any

MOST_LISTENERS = 100
STILL_HERE = 15.0  # seconds after which something is sent anyway: who has gone away shows, and a proxy keeps waiting

Message = Mapping[str, Any]  # with the "id" of its study


class _Listener:
    """One open page: what it has not been sent yet, by study."""

    def __init__(self) -> None:
        self._loop, self._news = asyncio.get_running_loop(), asyncio.Event()
        self._waiting: dict[str, Message] = {}

    def tell(self, message: Message) -> None:
        """From any thread."""
        self._waiting[message["id"]] = message
        self.wake()

    def wake(self) -> None:
        with suppress(RuntimeError):  # the loop has just ended
            self._loop.call_soon_threadsafe(self._news.set)

    async def next(self) -> list[Message]:
        """What there is to send; nothing if nothing has happened for long."""
        try:
            await asyncio.wait_for(self._news.wait(), STILL_HERE)
        except TimeoutError:
            return []
        self._news.clear()
        return [self._waiting.pop(study) for study in list(self._waiting)]


class Streams:
    """Everybody who listens."""

    def __init__(self) -> None:
        self._listeners, self._lock = set[_Listener](), Lock()
        self._closed = False

    @property
    def full(self) -> bool:
        return len(self._listeners) >= MOST_LISTENERS

    def tell(self, message: Message) -> None:
        """Send this to every open page; from any thread."""
        with self._lock:
            listeners = list(self._listeners)
        for listener in listeners:
            listener.tell(message)

    def close(self) -> None:
        """End all streams, and those that are asked for later; from any thread, also inside a signal handler."""
        self._closed = True
        for listener in list(self._listeners):
            listener.wake()

    async def events(self, now: Callable[[], Iterable[Message]]) -> AsyncIterator[str]:
        """What is sent to one page, beginning with how things are now."""
        listener = _Listener()
        with self._lock:
            self._listeners.add(listener)
        try:
            for message in now():
                listener.tell(message)
            while not self._closed:
                messages = await listener.next()
                yield "".join(map(_written, messages)) or ":\n\n"
        finally:
            with self._lock:
                self._listeners.discard(listener)


def _written(message: Message) -> str:
    return f"data: {json.dumps(message)}\n\n"
