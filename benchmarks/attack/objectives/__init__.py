"""Hostile objectives: each module is one way to be hostile. `ALL` holds every one of them by its name."""

from benchmarks.attack.objectives import answers, interpreter, memory_and_output, processes, training, waiting
from benchmarks.attack.objectives.registry import ALL, Hostile

__all__ = ["ALL", "Hostile", "answers", "interpreter", "memory_and_output", "processes", "training", "waiting"]
