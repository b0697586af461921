"""Every other attack, one function each. `ITEMS` holds all of them."""

from benchmarks.attack.items import answers, budgets, choices, orphans, paths, progress, strangers
from benchmarks.attack.items.registry import ITEMS, Answer, Item

__all__ = [
    "ITEMS", "Answer", "Item", "answers", "budgets", "choices", "orphans", "paths", "progress", "strangers",
]  # fmt: skip
