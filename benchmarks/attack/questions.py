"""All items, each in a folder of its own: those that measure seconds one at a time, the others two at a time.

Each answer is kept by itself, as long as neither the module of its attack nor Farthing changes.
"""

from __future__ import annotations

import inspect
import re
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import farthing
from benchmarks.attack.items import ITEMS, Answer, Item
from benchmarks.attack.results import Result
from benchmarks.common.fingerprints import code_hash
from benchmarks.common.kept_runs import CACHE, once

PATH = re.compile(r"\S*/(?:tmp|work|home|usr|shm)/\S*")  # of this machine: nobody else has it
KEPT = "attack-question"  # how the files of kept answers begin
QUICK_TOPICS = ("progress", "strangers", "paths", "answers", "orphans")


def asked(item: Item) -> Result:
    """The answer to one item. An attack that fails itself is a no, and says so."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="attack-item-", ignore_cleanup_errors=True) as folder:
        try:
            answer = item.attack(Path(folder))
        except Exception as error:
            traceback.print_exc()
            answer = Answer(False, f"the attack itself failed: {type(error).__name__}")
    seen = PATH.sub("...", answer.seen)
    result = Result.answered(f"{item.topic}: {item.claim}", answer.holds, seen, **answer.numbers)
    print(f"item, {time.monotonic() - began:.0f} s, {result}", flush=True)
    return result


def kept(item: Item) -> Result:
    """The answer to one item, asked once."""
    modules = [Path(inspect.getfile(item.attack)), Path(inspect.getfile(Item))]
    key = {"claim": item.claim, "code": code_hash(modules), "farthing": library_code()}
    return Result(**once(KEPT, key, lambda: asked(item).as_json()))


def forget() -> None:
    """Ask all again."""
    for path in CACHE.glob(f"{KEPT}-*.json"):
        path.unlink()


@cache
def library_code() -> str:
    return code_hash(sorted(Path(farthing.__file__).parent.rglob("*.py")))


def attack(quick: bool) -> list[Result]:
    """All items; in quick mode some of them, and nothing is kept."""
    if not quick:
        return in_turn(ITEMS, kept)
    return in_turn([item for item in ITEMS if item.topic in QUICK_TOPICS and not item.alone], asked)


def only(text: str) -> list[Result]:
    """The items whose topic and claim hold this text; nothing is kept."""
    return in_turn([item for item in ITEMS if text in f"{item.topic}: {item.claim}"], asked)


def in_turn(chosen: Sequence[Item], answer: Callable[[Item], Result]) -> list[Result]:
    together = [item for item in chosen if not item.alone]
    with ThreadPoolExecutor(2) as pool:
        found = dict(zip(together, pool.map(answer, together), strict=True))
    found |= {item: answer(item) for item in chosen if item.alone}
    return [found[item] for item in chosen]
