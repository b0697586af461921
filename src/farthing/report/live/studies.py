"""The studies that a live page shows, and what it asks of them, as answers.

Each study has three threads that compute: one for what is cheap, one for figures that ask its models, and one for the
words, which say what more budget would bring. So a figure that takes some seconds keeps no table waiting, and however
many pages are open, one thing of each kind is computed at a time.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from farthing.errors import FarthingError, InvalidArgument
from farthing.numerics.deadline import OutOfTime
from farthing.policies.outlook import QUICK
from farthing.report import content
from farthing.report.drawing import Drawing
from farthing.report.figures.listed import Figure
from farthing.report.live.answers import Answer, error_answer, json_answer, not_yet
from farthing.report.live.kept import KeptAnswers
from farthing.report.live.lane import Lane
from farthing.report.live.streams import Message, Streams
from farthing.report.live.watching import Look, WatchedFile, words_of
from farthing.text.escaping import on_one_line
from farthing.text.plain import cut_text, logger

FIGURE_SECONDS = 2.0  # that a figure may take, about
REST, WORDS_REST, MODEL_REST = 0.5, 1.0, 5.0  # seconds that figures, words and figures of models rest at least
BEAT = 5.0  # seconds between two messages while nothing changes but what running trials have spent: each has a number
MOST_ROWS = 500  # of the table in one answer
LONGEST_NAME = 80  # characters

Glance = Callable[[str], Drawing]  # a first drawing of the best value of a file, in a fraction of what reading takes


@dataclass(frozen=True)
class Rows:
    """Which part of the table of trials is asked for."""

    sort: str = "number"
    descending: bool = False
    offset: int = 0
    count: int = 50

    @classmethod
    def of(cls, query: Mapping[str, str]) -> Rows:
        """From the query of an address.

        >>> Rows.of({"sort": "value", "count": "20"})
        Rows(sort='value', descending=False, offset=0, count=20)
        """
        if query.get("descending", "0") not in ("0", "1"):
            raise InvalidArgument("descending: expected 0 or 1")
        if len(sort := query.get("sort", "number")) > 1_000:
            raise InvalidArgument("sort: expected the name of a column")
        offset, count = _whole(query, "offset", 0, 10**9), _whole(query, "count", 50, MOST_ROWS)
        return cls(sort, query.get("descending") == "1", offset, count)


def _whole(query: Mapping[str, str], name: str, default: int, most: int) -> int:
    text = query.get(name, str(default))
    if not (text.isascii() and text.isdecimal() and len(text) < 11 and int(text) <= most):
        raise InvalidArgument(f"{name}: expected a whole number from 0 to {most}")
    return int(text)


class LiveStudy:
    """One study that is shown."""

    def __init__(self, number: str, path: str, name: str, streams: Streams, glance: Glance | None = None) -> None:
        self.id, self.path, self.name = number, path, name
        self.file = WatchedFile(path, name, self._looked)
        self._streams, self._glance = streams, glance
        self._first: Drawing | None = None
        self._kept = KeptAnswers()
        self._cheap, self._models, self._words = Lane("cheap"), Lane("models"), Lane("words")
        self._told: tuple[Message, Look | None, float] = ({}, None, 0.0)
        self._beats = 0
        self._spoken_of = 0  # the opening of the file that words were made of last
        self.file.follow(self._glance_at_it)

    @property
    def message(self) -> Message:
        """How far it is."""
        return {"id": self.id, **self.file.condition.message, "beat": self._beats}

    def overview(self) -> Future[Answer]:
        """The headline and all that the page says in words. At first without what more budget would bring, which takes
        a moment: then there is `more` to come."""

        def made(look: Look) -> Answer:
            more, self._spoken_of = self._spoken_of != look.opened, look.opened
            seconds = 0.0 if more else QUICK
            found = content.overview(look.session, self.name, left_out=look.left_out, seconds=seconds)
            return json_answer({**found, **self.message, "more": more})

        def stage_of(look: Look) -> object:
            return look.moment, self.message, self._spoken_of

        def answer() -> Answer:
            return self._answer("overview", made, stage_of, rest=WORDS_REST)

        return self._words.do(answer)

    def rows(self, asked: Rows) -> Future[Answer]:
        """A part of the table of trials."""

        def made(look: Look) -> Answer:
            return json_answer(
                content.trial_rows(look.session, asked.sort, asked.descending, asked.offset, asked.count)
            )

        return self._cheap.do(lambda: self._answer(asked, made, stage_of=lambda look: look.moment))

    def figure(self, figure: Figure) -> Future[Answer]:
        """A figure, or why there is none."""

        def made(look: Look) -> Answer:
            return json_answer({**self._drawn(figure, look), "events": look.events}).compressed()

        def answer() -> Answer:
            return self._at_first(figure) or self._answer(
                figure.name, made, stage_of=lambda look: look.stage, rest=MODEL_REST if figure.models else REST
            )

        return (self._models if figure.models else self._cheap).do(answer)

    def _answer(
        self, name: Hashable, make: Callable[[Look], Answer], stage_of: Callable[[Look], object], rest: float = 0.0
    ) -> Answer:  # fmt: skip
        condition = self.file.condition
        look = condition.look
        if look is None:
            return not_yet(condition.reading, condition.trouble)
        try:
            return self._kept.answer(name, stage_of(look), lambda: make(look), rest)
        except FarthingError as error:
            return error_answer(400, words_of(error, self.path, self.name))
        except Exception as error:
            return error_answer(500, self._unexpected(str(name), error))

    def _drawn(self, figure: Figure, look: Look) -> dict[str, Any]:
        try:
            return figure.make(look.session, FIGURE_SECONDS).as_json()
        except FarthingError as error:
            reason = words_of(error, self.path, self.name)
        except OutOfTime:
            reason = "there was not enough time to draw it"
        except Exception as error:
            reason = self._unexpected(figure.name, error)
        return {"name": figure.name, "title": figure.title, "reason": reason}

    def _unexpected(self, what: str, error: Exception) -> str:
        """What the page says of an error that nobody thought of, and the terminal more of it."""
        logger.warning("%s: %s: %s", self.name, on_one_line(what[:100]), on_one_line(cut_text(repr(error), 500)))
        return f"cannot be shown ({type(error).__name__}); the terminal of farthing dashboard says more"

    def _glance_at_it(self) -> None:
        if self._glance is not None:
            with suppress(Exception):  # reading will say what is wrong
                self._first = self._glance(self.path)
                self._streams.tell(self.message)

    def _at_first(self, figure: Figure) -> Answer | None:
        """What a glance at the file has shown, while it is being read."""
        if self._first is None or self._first.name != figure.name or self.file.condition.look is not None:
            return None
        return json_answer({**self._first.as_json(), "reading": True}).compressed()

    def _looked(self) -> None:
        """Tell open pages, if there is something new for them."""
        look, now = self.file.condition.look, time.monotonic()
        told, shown, at = self._told
        if self.message == told:
            if look is shown or now < at + BEAT:
                return
            self._beats += 1
        self._told = self.message, look, now
        self._streams.tell(self.message)


class Studies:
    """All that are shown, by their number in the order in which they were named."""

    def __init__(self, paths: Sequence[str], glance: Glance | None = None) -> None:
        self.streams = Streams()
        once: dict[str, str] = {}
        for path in paths:
            once.setdefault(os.path.realpath(path), path)
        files = list(once.values())
        self.by_id = {
            str(number): LiveStudy(str(number), path, name, self.streams, glance)
            for number, (path, name) in enumerate(zip(files, names_of(files), strict=True))
        }

    @property
    def listed(self) -> list[dict[str, Any]]:
        """Each with its name and how far it is."""
        return [{**study.message, "name": study.name} for study in self.by_id.values()]

    def messages(self) -> list[Message]:
        return [study.message for study in self.by_id.values()]

    def close(self) -> None:
        """End all streams, and read no more; also inside a signal handler."""
        for study in self.by_id.values():
            study.file.end()
        self.streams.close()


def names_of(paths: Sequence[str]) -> list[str]:
    """The ends of paths that tell them apart, safe to show.

    >>> names_of(["/home/ann/a/s.db", "b/s.db", "t.db"])
    ['a/s.db', 'b/s.db', 't.db']
    """
    parts = [Path(os.path.realpath(path)).parts[1:] for path in paths]
    ends = [parts_of_one[-1:] for parts_of_one in parts]
    for length in range(2, 1 + max(map(len, parts), default=0)):
        ends = [whole[-length:] if ends.count(end) > 1 else end for whole, end in zip(parts, ends, strict=True)]
    return [_shortened(on_one_line("/".join(end))) for end in ends]


def _shortened(name: str) -> str:
    return name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME // 2]}…{name[-LONGEST_NAME // 2 :]}"
