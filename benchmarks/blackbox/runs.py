"""The runs of the black-box benchmark: who searches, on which table, with which seed; done once and kept.

Finished runs lie in benchmarks/cache, see common/kept_runs.py; the twelve tables do too, see common/tables.py.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any

import numpy as np

from benchmarks.common.fingerprints import fingerprint
from benchmarks.common.kept_runs import Files, Runner
from benchmarks.common.tables import TABLES, table_of, tables_folder
from farthing.policies import policy_names

INITIAL = 5
LIMIT_SECONDS = 7_200.0  # of one run


@dataclass(frozen=True)
class Method:
    """A way to search. `system` is its environment, `module` the peer that runs it."""

    name: str
    title: str
    system: str
    module: str
    options: tuple[tuple[str, Any], ...] = ()

    @property
    def is_farthing(self) -> bool:
        return self.system == "farthing"

    @property
    def library(self) -> str:
        """Farthing, Optuna or SMAC."""
        return self.module.rpartition(".")[2].removesuffix("_peer")

    @property
    def policy(self) -> str:
        return self.name.partition(":")[0]

    @property
    def is_blind(self) -> bool:
        """Whether it ignores cost to the very end of the budget."""
        return self.policy == "ei" and ("end", "ignored") in self.options


def _peer(name: str, title: str, library: str) -> Method:
    return Method(name, title, "blackbox", f"blackbox.peers.{library}_peer")


def farthing_method(text: str) -> Method:
    """A policy by name, with options after a colon: `cei`, `cei:tradeoff=0.8,initial=8`."""
    policy, _, listed = text.partition(":")
    options = [part.partition("=")[::2] for part in listed.split(",") if part]
    read = tuple((name.strip(), _literal(value)) for name, value in options)
    return Method(text, f"`{text}`", "farthing", "blackbox.peers.farthing_peer", (("name", policy), *read))


def _literal(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (SyntaxError, ValueError):
        return text


PEER_METHODS = (
    _peer("random", "random search", "optuna"),
    _peer("tpe", "Optuna TPE", "optuna"),
    _peer("gpsampler", "Optuna GPSampler", "optuna"),
    _peer("smac", "SMAC3", "smac"),
)
BLIND = farthing_method("ei:end=ignored")  # by default, `ei` takes into account what the end of a budget can pay for
OWN_METHODS = (BLIND, *(farthing_method(name) for name in ("eipu", "ei_cool", "cei", "carbo")))
BATCH_METHODS = tuple(method for method in OWN_METHODS if method.policy in ("ei", "eipu", "carbo"))
METHODS = (*PEER_METHODS, *OWN_METHODS)


def method_of(text: str) -> Method:
    """A peer by its name, or one of Farthing's policies."""
    return next((peer for peer in PEER_METHODS if peer.name == text), None) or farthing_method(text)


def known(methods: Sequence[Method]) -> list[Method]:
    """The methods that exist; the others are named on the screen."""
    names = policy_names()
    for method in methods:
        if method.is_farthing and method.policy not in names:
            print(f"missing: Farthing has no policy {method.policy!r} yet", flush=True)
    return [method for method in methods if not method.is_farthing or method.policy in names]


@cache
def initial_levels(table: str, seed: int) -> list[list[int]]:
    """The configurations that every method starts from with this seed."""
    return table_of(table).draw(INITIAL, np.random.default_rng([seed, TABLES.index(table)]))


# -- runs --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Run:
    """One method on one table with one seed; `means` is the budget in mean costs of the table."""

    table: str
    method: Method
    seed: int
    means: float
    batch: int = 1
    most: int | None = None

    @property
    def budget(self) -> float:
        return self.means * table_of(self.table).mean_cost

    @property
    def _own_seed(self) -> int:
        """The method's own: another on every table, so that tables with the same grid get other random levels."""
        return self.seed + 1_000 * TABLES.index(self.table)

    @property
    def task(self) -> dict[str, Any]:
        task = {
            "table": self.table,
            "method": self.method.policy,
            "seed": self._own_seed,
            "budget": self.budget,
            "start": initial_levels(self.table, self.seed),
            "batch": self.batch,
        }
        if self.method.is_farthing:
            task.update(policy=dict(self.method.options), most=self.most)
        return task

    def __str__(self) -> str:
        batch = f" in batches of {self.batch}" if self.batch > 1 else ""
        return f"{self.table} {self.method.name} seed {self.seed}{batch}"


@dataclass(frozen=True)
class Result:
    """What a run found: the least value so far after each finished evaluation, and what was spent by then."""

    spent: tuple[float, ...]  # shares of the budget
    best: tuple[float, ...]
    evaluations: int
    seconds: float  # the method's own
    share: float  # of the budget that was used
    chosen_from: float  # the share after which the method chooses: the first configurations have ended by then
    versions: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, run: Run, answer: dict[str, Any]) -> Result:
        finished = [(s, v) for s, v in zip(answer["spent"], answer["values"], strict=True) if v is not None]
        spent = [s / run.budget for s, _ in finished]
        best = np.minimum.accumulate([v for _, v in finished]).tolist()
        share = answer["spent"][-1] / run.budget
        chosen_from = spent[INITIAL - 1] if len(spent) >= INITIAL else np.inf
        own = tuple(answer["versions"].items())
        return cls(tuple(spent), tuple(best), len(answer["values"]), sum(answer["seconds"]), share, chosen_from, own)

    def best_at(self, share: float) -> float:
        """The least value found with a share of the budget, infinite before the first evaluation has ended."""
        known = int(np.searchsorted(self.spent, share * (1 + 1e-12), side="right"))
        return self.best[known - 1] if known else np.inf


def _name(run: Run) -> str:
    return f"blackbox-{run.table}-{run.method.policy}-{run.seed}-{run.means:g}"


def _code(run: Run) -> str:
    return fingerprint(run.method.system, (run.method.module, "blackbox.peers.task", "common.tables"))


def _shown(run: Run, result: Result) -> str:
    table = table_of(run.table)
    regret = (result.best_at(1.0) - table.optimum) / (table.median - table.optimum)
    return f"regret {regret:.3g}, {result.evaluations} evaluations in {result.seconds:.1f} s"


FILES = Files(_name, _code, Result.of)


def measure(runs: Sequence[Run], workers: int) -> dict[Run, Result]:
    """The results of runs, several at a time. The program ends at the end if any failed."""
    return Runner(FILES, _shown, lambda run: (tables_folder(),), LIMIT_SECONDS).measure_all(runs, workers)


def planned(
    seeds: int, tables: Sequence[str], methods: Sequence[Method], means: float, batches: Sequence[int], most: int
) -> list[Run]:
    """Every method on every table; seeds outermost, so that a part is a fair part."""
    every = product(range(seeds), tables, batches, methods)
    return [Run(table, method, seed, means, batch, most) for seed, table, batch, method in every]
