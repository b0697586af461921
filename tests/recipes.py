"""The recipes of the documentation, each of which is a program of its own."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parent.parent / "docs/recipes.md"
BUDGET, SHORT_BUDGET = '"10m"', '"10m, 2 evaluations"'
LARGE = {"torch", "keras", "lightning"}  # libraries that are in an environment of their own: make test-libraries


def recipes(large: bool) -> dict[str, str]:
    """Those that need a large library, or the others, by heading and number."""
    found = {}
    for section in PAGE.read_text().split("\n## ")[1:]:
        blocks = re.findall(r"```python\n(.*?)```", section, flags=re.DOTALL)
        for number, block in enumerate(blocks, start=1):
            if needs_large(block) == large:
                found[f"{section.splitlines()[0]} {number}"] = block
    return found


def needs_large(block: str) -> bool:
    return not LARGE.isdisjoint(re.findall(r"^import (\w+)", block, flags=re.MULTILINE))


def require_that_it_runs(recipe: str) -> None:
    """As a script, but only for two trials, each of which reports its steps."""
    names: dict[str, Any] = {"__name__": "__main__"}
    assert recipe.count(BUDGET) == 1
    exec(compile(recipe.replace(BUDGET, SHORT_BUDGET), PAGE.name, "exec"), names)
    trials = names["study"].trials
    assert [trial.error for trial in trials if trial.status == "failed"] == []
    assert [len(trial.curve) > 0 for trial in trials] == [True, True]
