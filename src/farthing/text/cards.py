"""Small pieces of HTML that a notebook shows: a card, a table of facts, a bar, a line.

They are readable on light and on dark ground: text has the colour of what is around it, grounds are transparent, and
bars and lines have colours that stand out on both. Styles are inline and there are no scripts, so what a notebook
leaves of them where it does not trust a file is still text in its order.

Functions take text and numbers and return `Html`; only what is `Html` is put into other HTML as it is, and everything
else is escaped and cut to a sane length.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NewType

from farthing.text.escaping import on_one_line
from farthing.text.plain import shown

Html = NewType("Html", str)

LONGEST = 80  # characters of one text
MOST_FACTS = 24  # rows of a table
MOST_STEPS = 300  # of a line
WIDTH, HEIGHT, EDGE = 240.0, 44.0, 3.0  # of a line, in pixels
BLUE, RED, OTHER = "#2f7ed8", "#d64545", "#8a8f98"
COLOUR_OF = {
    "evaluation": BLUE, "retrained": "#56b4e9", "failed": RED, "killed": "#e07b00", "interrupted": "#c9a400",
    "start-up": "#9b5fc0", "optimiser": "#1f9d6b",
}  # fmt: skip

_CARD = (
    "display:inline-block;box-sizing:border-box;min-width:min(100%,22em);max-width:min(100%,46em);margin:2px 0;"
    "padding:12px 16px;border:1px solid rgba(128,128,128,.35);border-radius:8px;background:transparent;color:inherit;"
    "font:13px/1.5 system-ui,-apple-system,'Segoe UI',sans-serif;text-align:left;overflow-wrap:anywhere"
)
_QUIET = "opacity:.7"
_CELL = (
    "padding:1px 14px 1px 0;border:none;background:transparent;text-align:left;vertical-align:top;font-size:13px;"
    "line-height:1.5"
)
_VALUE = "font-family:ui-monospace,Menlo,Consolas,monospace;white-space:normal;max-width:34em"


def escaped(thing: object, longest: int = LONGEST) -> Html:
    """Text for a page: on one line, without control codes, cut in the middle if it is long.

    >>> escaped("<b>x</b>"), escaped("abcdefghij", longest=5)
    ('&lt;b&gt;x&lt;/b&gt;', 'ab…ij')
    """
    text = str(thing)
    if len(text) > longest:  # cut before it is escaped: escaping 100 kB takes a while
        text = f"{text[: 2 * longest]}{text[-2 * longest :]}"
    line = on_one_line(text)
    if len(line) > longest:
        half = (longest - 1) // 2
        line = f"{line[: longest - 1 - half]}…{line[len(line) - half :]}"
    return Html(html.escape(line))


def option(value: Any) -> str:
    """A value of a configuration, short enough to read.

    >>> option(0.123456789), option("adam"), option(3)
    ('0.123457', "'adam'", '3')
    """
    return f"{value:.6g}" if isinstance(value, float) else shown(value)


def card(title: str, about: str, *parts: Html) -> Html:
    """A frame with a title, a few quiet words beside it, and what is to be seen."""
    head = f'<strong style="font-weight:600">{escaped(title)}</strong> <span style="{_QUIET}">{escaped(about, 200)}'
    rest = "".join(f'<div style="margin-top:8px">{part}</div>' for part in parts if part)
    return Html(f'<div style="{_CARD}"><div>{head}</span></div>{rest}</div>')


def beside(*parts: Html) -> Html:
    """Parts in a row, which wraps where there is no room."""
    held = "".join(f"<div>{part}</div>" for part in parts if part)
    return Html(f'<div style="display:flex;flex-wrap:wrap;gap:8px 28px;align-items:center">{held}</div>')


def large(value: str, about: str) -> Html:
    """A number that is meant to be seen first, and what it is."""
    number = f'<div style="font-size:22px;line-height:1.25;font-weight:600">{escaped(value)}</div>'
    return Html(f'{number}<div style="{_QUIET}">{escaped(about)}</div>')


def line(text: str, colour: str = "inherit", longest: int = 160) -> Html:
    """One sentence; nothing for none."""
    return Html(f'<div style="color:{colour}">{escaped(text, longest)}</div>' if text else "")


def facts(rows: Iterable[tuple[str, str]], *, marked: bool = False, most: int = MOST_FACTS) -> Html:
    """A table of names and values; of many, the first. `marked` are names of accounts, by their colour in a bar.

    >>> facts([])
    ''
    """
    listed = list(rows)
    more = [("…", f"and {len(listed) - most} more")] if len(listed) > most else []
    held = "".join(_row(name, value, marked) for name, value in [*listed[:most], *more])
    table = "border-collapse:collapse;border:none;margin:0;width:auto;background:transparent;color:inherit"
    return Html(f'<table style="{table}"><tbody>{held}</tbody></table>' if listed else "")


def _row(name: str, value: str, marked: bool) -> str:
    mark = _mark(name) if marked and name in COLOUR_OF else ""
    cells = f'<td style="{_CELL}">{mark}<span style="{_QUIET}">{escaped(name, 40)}</span></td>'
    return f'<tr style="background:transparent">{cells}<td style="{_CELL};{_VALUE}">{escaped(value)}</td></tr>'


def _mark(account: str) -> str:
    return f'<span style="color:{_colour(account)}">■</span> '


def legend(texts: Mapping[str, str]) -> Html:
    """What the colours of a bar stand for: a text for each account."""
    named = f'<span style="{_QUIET}"> · </span>'.join(
        f'{_mark(name)}<span style="{_QUIET}">{escaped(name)} {escaped(text)}</span>' for name, text in texts.items()
    )
    return Html(f"<div>{named}</div>" if named else "")


def bar(shares: Mapping[str, float], width: str = "100%") -> Html:
    """Shares of a whole, from 0 to 1, each in the colour of its account."""
    pieces = "".join(
        f'<span style="display:block;flex:none;min-width:1px;width:{100 * min(max(share, 0.0), 1.0):.2f}%;'
        f'background:{_colour(name)}"></span>'
        for name, share in shares.items()
        if share > 0.0
    )
    style = f"display:flex;width:{width};height:8px;margin:4px 0;border-radius:4px;overflow:hidden"
    return Html(f'<div style="{style};background:rgba(128,128,128,.25)">{pieces}</div>')


def _colour(account: str) -> str:
    return COLOUR_OF.get(account, OTHER)


def sparkline(points: Sequence[tuple[float, float]], about: str, *, stairs: bool = True) -> Html:
    """Values over cost (or over steps), as a staircase or as a line from point to point; nothing for a single value.

    points  (cost, value), by ascending cost
    """
    low, high = (end((value for _, value in points), default=0.0) for end in (min, max))
    if not low < high or not points[-1][0] > 0.0:
        return Html("")

    def place(cost: float, value: float) -> tuple[str, str]:
        height = (high / 2 - value / 2) / (high / 2 - low / 2)  # the difference itself may be beyond all numbers
        x, y = (WIDTH - 2 * EDGE) * (cost / points[-1][0]), (HEIGHT - 2 * EDGE) * height
        return f"{EDGE + x:.1f}", f"{EDGE + y:.1f}"

    kept = _thinned(points) if stairs else points[:: math.ceil(len(points) / MOST_STEPS)]
    (x, y), *rest = [place(*point) for point in kept]
    path = f"M{x} {y}" + "".join(f"H{x}V{y}" if stairs else f"L{x} {y}" for x, y in rest)
    last = place(*points[-1])
    drawn = (
        f'<path d="M{EDGE} {HEIGHT}H{WIDTH - EDGE}" stroke="currentColor" stroke-opacity=".25"/>'
        f'<path d="{path}" fill="none" stroke="{BLUE}" stroke-width="2" stroke-linejoin="round"/>'
        f'<circle cx="{last[0]}" cy="{last[1]}" r="3" fill="{BLUE}"/>'
    )
    style = "display:block;max-width:100%;overflow:visible"
    size = f'width="{WIDTH:.0f}" height="{HEIGHT:.0f}" viewBox="0 0 {WIDTH:.0f} {HEIGHT:.0f}"'
    label = escaped(about, 200)
    picture = f'<svg role="img" aria-label="{label}" {size} style="{style}">{drawn}</svg>'
    return Html(f'{picture}<div style="{_QUIET};font-size:12px">{label}</div>')


def _thinned(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Where the value changes, and both ends; of very many changes some."""
    turns = [
        point for i, point in enumerate(points) if i in (0, len(points) - 1) or point[1] != points[i - 1][1]
    ]  # fmt: skip
    every = math.ceil(len(turns) / MOST_STEPS)
    return [*turns[:-1:every], turns[-1]]
