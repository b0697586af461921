"""The runs of the benchmark of `bapi`: who searches, on which task of LCBench, with which budget and seed."""

from __future__ import annotations

from pathlib import Path

from benchmarks.curves.methods import PEERS, Method, own
from benchmarks.curves.runs import LCBENCH_TASKS, Run, lcbench

TASKS = LCBENCH_TASKS
WIDE = TASKS[::3]  # with all three budgets
STEPS = 52  # of a training
USUAL = 8.0  # mean costs of a training
MULTIPLES = (4.0, USUAL, 16.0)

PEER_NAMES = ("random", "hyperband", "bohb", "tpe-median", "tpe-hyperband", "smac")
METHODS = (
    own("bapi", "subject"),
    own("bapi-last", "ablation", '`BAPI(points="last")`', name="bapi", points="last"),
    own("bapi-plain", "ablation", "`BAPI(monotone=False)`", name="bapi", monotone=False),
    own("bopt"),
    own("ei", "own", "`ei`", name="ei", end="ignored"),  # blind to cost, also at the end of the budget
    own("eipu"),
    *(method for method in PEERS if method.name in PEER_NAMES),
)


def run_of(folder: Path, task: int, method: Method, multiple: float, seed: int) -> Run:
    """Whoever does not know the budget is run once with the largest of the task, and cut."""
    longest = max(multiple, *MULTIPLES) if task in WIDE else multiple
    return Run(lcbench(folder, task), method, multiple, seed, longest)
