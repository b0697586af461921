"""The page as HTML: as a server sends it, or as one file with its data, which loads nothing.

The browser is told so, too: the policy of a report allows the two scripts in it by their hash and nothing else, so that
whatever a study holds, nothing of it can run, and nothing can be sent anywhere. The page's data is JSON that any
program can read: `<script type="application/json" id="data">`. Plotly is packed, which makes the file a third as large.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import html
import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

STYLE = '<link rel="stylesheet" href="assets/page.css">'
SCRIPT = '<script src="assets/page.js" defer></script>'
TITLE = "<title>Farthing</title>"
FIRST = '<meta charset="utf-8">'
NEED_EVAL = frozenset({"parcoords", "scattergl", "splom"})  # types of traces: Plotly makes code to draw them quickly
ESCAPED = {ord(letter): f"\\u{ord(letter):04x}" for letter in "<>&\u2028\u2029"}


@cache
def asset(name: str) -> str:
    """The text of page.html, page.css or page.js."""
    return (files(__package__) / name).read_text(encoding="utf-8")


@cache
def plotly_script() -> str:
    """Plotly for browsers, as its Python package brings it."""
    try:
        from plotly.offline import get_plotlyjs
    except ImportError as error:
        raise ImportError("figures need plotly: pip install 'farthing[report]'") from error
    return str(get_plotlyjs())


def report_page(data: Mapping[str, Any], title: str) -> str:
    """One file with everything in it."""
    policy = (
        f"default-src 'none'; script-src {_hash(asset('page.js'))} {_hash(plotly_script())}{_eval_for(data)}; "
        "style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; form-action 'none'"
    )  # Plotly makes style sheets, and pictures to save
    parts = {
        FIRST: f'{FIRST}\n<meta http-equiv="Content-Security-Policy" content="{policy}">',
        TITLE: f"<title>{html.escape(title)}</title>",
        STYLE: f"<style>{asset('page.css')}</style>",
        SCRIPT: f'<script type="application/json" id="data">{embedded(data)}</script>\n'
        f'<script type="text/plain" id="plotly">{_packed_plotly()}</script>\n'
        f"<script>{asset('page.js')}</script>",
    }
    before, page = "", asset("page.html")
    for marker, part in parts.items():
        passed, found, page = page.partition(marker)
        assert found, marker
        before += passed + part
    return before + page


def _eval_for(data: Mapping[str, Any]) -> str:
    """What the policy allows for some figures: the scripts that are allowed anyway may make code."""
    figures = [figure for study in data["studies"] for figure in study["figures"].values()]
    types = {trace.get("type") for figure in figures for trace in figure.get("data", ())}
    return "" if types.isdisjoint(NEED_EVAL) else " 'unsafe-eval'"


def embedded(data: Mapping[str, Any]) -> str:
    """Data as JSON that no browser takes for the end of a script, whatever it holds.

    >>> embedded({"a": "</script>"})
    '{"a":"\\\\u003c/script\\\\u003e"}'
    """
    return json.dumps(data, allow_nan=False, separators=(",", ":")).translate(ESCAPED)


@cache
def _packed_plotly() -> str:
    return base64.b64encode(gzip.compress(plotly_script().encode(), 6, mtime=0)).decode()


@cache
def _hash(script: str) -> str:
    """A script as a policy names it."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"
