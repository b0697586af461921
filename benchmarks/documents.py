"""Writing results: Markdown tables, compact JSON, and what machine they were measured on."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from environments import DOCS


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table, first column to the left and the rest to the right."""
    rule = [":--", *["--:"] * (len(header) - 1)]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (header, rule, *rows))


def write(name: str, text: str, data: dict[str, Any]) -> None:
    """Print a result and keep it as docs/<name>.md and docs/data/<name>.json."""
    print("\n" + text)
    (DOCS / "data").mkdir(parents=True, exist_ok=True)
    (DOCS / f"{name}.md").write_text(text)
    (DOCS / "data" / f"{name}.json").write_text(json.dumps(data, separators=(",", ":")) + "\n")


def machine() -> dict[str, Any]:
    """What a reader needs to know of this machine, and nothing that names it."""
    return {
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
    return f"Measured on {where}. Libraries: {shown}."


def verdict(passed: bool) -> str:
    """The word for a bar that was met or not."""
    return "pass" if passed else "fall short"
