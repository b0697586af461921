"""One question each: does Farthing hold? An item is a small attack with a yes or no and some numbers."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.attack.processes import Ended, python, run


@dataclass(frozen=True)
class Answer:
    """Whether Farthing holds, what was measured, and what was seen, in words without paths."""

    holds: bool
    seen: str = ""
    numbers: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Item:
    """`claim` is what should be true; `attack` tries to make it false, in an empty folder."""

    topic: str
    claim: str
    attack: Callable[[Path], Answer]
    alone: bool = False  # measures seconds that other work would disturb


ITEMS: list[Item] = []

Attack = Callable[[Path], Answer]


def item(topic: str, claim: str, *, alone: bool = False) -> Callable[[Attack], Attack]:
    def add(attack: Attack) -> Attack:
        ITEMS.append(Item(topic, claim, attack, alone))
        return attack

    return add


PREAMBLE = """\
import json, os, signal, sys, threading, time
import farthing as ft
tune, Study = ft.tune, ft.Study  # looked up here: that loads the library
space = ft.Space(x=ft.Real(0, 1))
def say(**what):
    print(json.dumps(what), flush=True)
"""


def script(folder: Path, code: str, name: str = "program.py") -> Path:
    """A program that uses the public API."""
    path = folder / name
    path.write_text(PREAMBLE + textwrap.dedent(code))
    return path


def program(folder: Path, code: str, *arguments: object, **options: Any) -> Ended:
    """Run such a program to its end; see `processes.run`."""
    return run(python(script(folder, code), *arguments), cwd=folder, **options)


def said(ended: Ended) -> dict[str, Any]:
    """The last line of JSON that a program wrote; empty if there is none."""
    for line in reversed(ended.output.splitlines()):
        try:
            found = json.loads(line)
        except ValueError:
            continue
        if isinstance(found, dict):
            return found
    return {}


def error_of(ended: Ended) -> str:
    """The last line on standard error, without paths."""
    lines = [line for line in ended.errors.splitlines() if line.strip()]
    return " ".join(word for word in (lines[-1] if lines else "").split() if "/" not in word)[:120]
