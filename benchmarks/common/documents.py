"""Writing results: pages in Markdown, data as compact JSON, and the machine they were measured on."""

from __future__ import annotations

import json
import os
import platform
import re
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.common.environments import DOCS
from benchmarks.common.versions import version

WIDTH = 100
GLUE = "\x1f"  # stands for a space at which a line must not be broken
UNBROKEN = re.compile(
    r" ([-+*=<>]|[-+*=<>]=|\d+[.)]) "
)  # at the start of a line these would begin a list or a quotation


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table, the first column aligned to the left and the others to the right."""
    rule = [":--", *["--:"] * (len(header) - 1)]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (header, rule, *rows))


def listed(names: Sequence[str]) -> str:
    """Names in a sentence: `a, b and c`."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


# -- pages -------------------------------------------------------------------------------------------------------------


def wrapped(text: str) -> str:
    """Markdown with its paragraphs and list items filled to lines of 100 characters; tables and code stay."""
    return "\n\n".join(_wrapped_block(block) for block in re.split(r"\n{2,}", text.strip("\n"))) + "\n"


def _wrapped_block(block: str) -> str:
    if block.startswith(("|", "#", "!", "    ", "```")):
        return block
    items = re.split(r"\n(?=- )", block)
    return "\n".join(_filled(item) for item in items)


def _filled(item: str) -> str:
    text = " ".join(line.strip() for line in item.splitlines())
    marker, body = ("- ", text[2:]) if text.startswith("- ") else ("", text)
    glued = body.replace(" %", GLUE + "%")
    for _ in range(2):  # twice, because matches that share a space are found one at a time
        glued = UNBROKEN.sub(lambda found: GLUE + found[1] + GLUE, glued)
    lines = textwrap.fill(
        glued, WIDTH, initial_indent=marker, subsequent_indent=" " * len(marker),
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip
    return lines.replace(GLUE, " ")


def page(text: str, data: dict[str, Any]) -> str:
    """A page as it is written: filled lines, and the note of its data, if there is one, below the title."""
    title, _, rest = text.partition("\n")
    note = [data["note"], ""] if "note" in data else []
    return wrapped("\n".join([title, "", *note, rest.lstrip("\n")]))


def write(name: str, text: str, data: dict[str, Any]) -> None:
    """Print a result and keep it as docs/<name>.md and docs/data/<name>.json."""
    (DOCS / "data").mkdir(parents=True, exist_ok=True)
    (DOCS / "data" / f"{name}.json").write_text(json.dumps(data, separators=(",", ":")) + "\n")
    write_page(name, text, data)


def publish(name: str, text: str, data: dict[str, Any], is_whole: bool) -> None:
    """Write the page and its data if the whole experiment was done, else only print the page."""
    if is_whole:
        write(name, text, data)
    else:
        print("\n" + page(text, data))


def write_page(name: str, text: str, data: dict[str, Any]) -> None:
    """Print a page and keep it as docs/<name>.md."""
    text = page(text, data)
    print("\n" + text)
    (DOCS / f"{name}.md").write_text(text)


def kept_data(name: str) -> dict[str, Any]:
    """The data of a page, as it was kept when the page was measured."""
    data: dict[str, Any] = json.loads((DOCS / "data" / f"{name}.json").read_text())
    return data


# -- the machine -------------------------------------------------------------------------------------------------------


def machine() -> dict[str, Any]:
    """What a reader needs to know of this machine, and nothing that names it."""
    return {
        "farthing": version("farthing"),
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
    }


def _cpu() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or "unknown CPU"


def machine_text(facts: dict[str, Any], versions: dict[str, dict[str, str]]) -> str:
    """The machine and the libraries in two sentences."""
    shown = "; ".join(
        f"{system}: " + ", ".join(f"{library} {number}" for library, number in found.items())
        for system, found in versions.items()
    )
    where = f"{facts['cores']} cores of {facts['cpu']} ({facts['system']}), Python {facts['python']}"
    return f"Measured with Farthing {facts['farthing']} on {where}. Libraries: {shown}."
