"""All items, each in a folder of its own: those that measure seconds one at a time, the others two at a time."""

from __future__ import annotations

import re
import tempfile
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks.attack.items import ITEMS, Answer, Item
from benchmarks.attack.results import Result

PATH = re.compile(r"\S*/(?:tmp|work|home|usr|shm)/\S*")  # of this machine: nobody else has it
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


def attack(quick: bool, only: str = "") -> list[Result]:
    chosen = [item for item in ITEMS if only in f"{item.topic}: {item.claim}"]
    if quick:
        chosen = [item for item in chosen if item.topic in QUICK_TOPICS and not item.alone]
    together = [item for item in chosen if not item.alone]
    with ThreadPoolExecutor(2) as pool:
        found = dict(zip(together, pool.map(asked, together), strict=True))
    found |= {item: asked(item) for item in chosen if item.alone}
    return [found[item] for item in chosen]
