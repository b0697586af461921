"""How a run shows itself in a notebook: one bar, which is updated in place.

It is an output with a display id, which every front end of Jupyter can update; widgets are not needed. IPython is
never loaded: a kernel has loaded it.
"""

from __future__ import annotations

import sys
from collections import deque
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from threading import Event, Thread
from typing import Any, Self
from uuid import uuid4

from farthing.runner.background import start_thread
from farthing.runner.displays import Following, summary
from farthing.session import Session
from farthing.text.cards import RED, Html, bar, escaped, line

UPDATE_SECONDS = 0.5
LAST_WAIT = 1.0  # seconds for an update that is on its way
MESSAGES = 5  # that stay below the bar
LONGEST = 300  # characters of one text


def is_notebook() -> bool:
    """Whether a kernel of Jupyter runs this code."""
    ipython = sys.modules.get("IPython")
    try:
        return getattr(ipython.get_ipython(), "kernel", None) is not None  # type: ignore[union-attr]
    except Exception:  # IPython is not there, or is only about to be
        return False


class Notebook(Following):
    """A bar, and below it the first error of each kind."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._display_id = f"farthing-{uuid4().hex}"
        self._messages: deque[str] = deque(maxlen=MESSAGES)
        self._outlook = ""
        self._done = Event()
        self._shown: dict[str, str] = {}
        self._thread: Thread | None = None

    def __enter__(self) -> Self:
        self._show(update=False)
        # In a copy of this context, by which the kernel knows the cell that the bar belongs to.
        self._thread = start_thread("farthing-notebook", partial(copy_context().run, self._keep_up))
        return self

    def __exit__(self, *exception: object) -> None:
        self._done.set()
        self._running = {}
        if self._thread is not None:
            self._thread.join(LAST_WAIT)
        self._show()

    def _keep_up(self) -> None:
        while not self._done.wait(UPDATE_SECONDS):
            self._show()

    def interrupted(self, text: str) -> None:
        self.message(text)

    def message(self, text: str) -> None:
        self._messages.append(text[:LONGEST])

    def end(self, outlook: str) -> None:
        self._outlook = outlook

    def _show(self, update: bool = True) -> None:
        """Whatever becomes of the front end, the run goes on."""
        with suppress(Exception):
            from IPython.display import display

            bundle = self._bundle()
            if bundle != self._shown:
                given: dict[str, Any] = {"update": True} if update else {}
                display(bundle, raw=True, display_id=self._display_id, **given)
                self._shown = bundle

    def _bundle(self) -> dict[str, str]:
        """The bar in HTML, and in text for front ends that have no HTML."""
        ledger, used = self._session.ledger, self._fraction_now()
        shares = ledger.shares
        shares["evaluation"] = shares.get("evaluation", 0.0) + used - ledger.fraction
        ended = f"ended: {self._why_ended}" if self._why_ended else ""
        parts = (f"{used:.0%} of {ledger.budget}", summary(self._session, fraction=False), self._doing, ended)
        said, below = [text for text in parts if text], list(self._messages)
        style = "display:flex;flex-wrap:wrap;gap:2px 10px;align-items:center"
        row = f'<div style="{style}">{bar(shares, "14em")}<span>{escaped(" · ".join(said), LONGEST)}</span></div>'
        lines = "".join([*(line(text, RED) for text in below), line(self._outlook, longest=LONGEST)])
        page = f'<div style="font:13px/1.5 system-ui,-apple-system,sans-serif;color:inherit">{row}{lines}</div>'
        return {"text/html": Html(page), "text/plain": "\n".join(["  ".join(said), *below, self._outlook]).strip()}
