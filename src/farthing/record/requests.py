"""What was asked of a study by somebody who looks at it, as far as its events say: which requests were answered and
how, which configurations are to be evaluated next, and whether the study is paused."""

from __future__ import annotations

from collections.abc import Container, Hashable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from farthing.history.persistent import KeySet
from farthing.record.mailbox import ENQUEUE, PAUSE, RESUME, STOP
from farthing.text.plain import plain
from farthing.trial import Config

MOST_SHOWN = 100  # requests, the last ones
MOST_QUEUED = 100  # configurations that wait to be evaluated

Queued = tuple[Hashable, Config]  # with what makes two configurations the same


class Answered(NamedTuple):
    """A request and what came of it: `refused` says why it was not done, None if it was."""

    id: str
    action: str
    answered: float | None  # when, in seconds since 1970
    budget: str | None = None
    config: Config | None = None  # of one that was done
    refused: str | None = None

    def as_json(self) -> dict[str, Any]:
        return {**self._asdict(), "config": None if self.config is None else plain(self.config)}


@dataclass(frozen=True)
class Requests:
    """The requests to a study so far."""

    recent: tuple[Answered, ...] = ()
    ids: KeySet = field(default_factory=KeySet)
    queue: tuple[Queued, ...] = ()  # some of them may have been evaluated since
    is_paused: bool = False

    def with_answer(self, answer: Answered, key: Hashable, taken: Container[Hashable]) -> Requests:
        """With one more; `key` is that of its configuration, and `taken` those of all that were asked for."""
        grown = replace(self, recent=(*self.recent, answer)[-MOST_SHOWN:], ids=self.ids.with_key(answer.id))
        if answer.refused is not None:
            return grown
        if answer.action == ENQUEUE and answer.config is not None:
            return replace(grown, queue=(*self.still_queued(taken), (key, answer.config)))
        if answer.action in (PAUSE, RESUME, STOP):
            return replace(grown, is_paused=answer.action == PAUSE)
        return grown

    def begun_anew(self) -> Requests:
        """A run has begun: it is not paused, whatever the one before was."""
        return replace(self, is_paused=False)

    def still_queued(self, taken: Container[Hashable]) -> tuple[Queued, ...]:
        """Configurations that wait; looked through only when there are many, as most were evaluated then."""
        if len(self.queue) < MOST_QUEUED:
            return self.queue
        return tuple(queued for queued in self.queue if queued[0] not in taken)

    def next_configs(self, n: int, taken: Container[Hashable]) -> list[Config]:
        """Up to n configurations to evaluate next."""
        return [config for key, config in self.queue if key not in taken][:n]
