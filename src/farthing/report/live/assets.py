"""The files that make the page: a fixed list, so nothing else of the machine is ever read for a request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from farthing.report.live.answers import Answer
from farthing.report.page.page import asset, plotly_script

FILES = {
    "/": ("page.html", "text/html"),
    "/assets/page.css": ("page.css", "text/css"),
    "/assets/page.js": ("page.js", "text/javascript"),
}
PLOTLY = "/assets/plotly.min.js"
ICON = "/favicon.ico"  # there is none: browsers ask for it, and call it an error if nobody answers
PATHS = (*FILES, PLOTLY, ICON)
CHECKED_EACH_TIME = {"Cache-Control": "no-cache"}  # kept by the browser, which asks whether it is still the one


def assets() -> Mapping[str, Answer]:
    """What is answered for each path."""
    found = {path: _answer(asset(name), kind) for path, (name, kind) in FILES.items()}
    return {**found, PLOTLY: _answer(plotly_script(), "text/javascript"), ICON: Answer(b"", 204)}


def _answer(text: str, kind: str) -> Answer:
    answer = Answer(text.encode(), kind=f"{kind}; charset=utf-8").compressed()
    return replace(answer, headers={**CHECKED_EACH_TIME, "ETag": answer.etag})
