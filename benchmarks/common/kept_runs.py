"""Runs of peers, each done once: kept answers are read, the others are asked of child processes and kept.

Answers lie in benchmarks/cache under a hash of the task and of the code that did it. A benchmark that was interrupted
continues, and one whose code changed starts again.
"""

from __future__ import annotations

import json
import os
import sys
from argparse import ArgumentTypeError
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock, local
from typing import Any, Generic, Protocol, TypeVar

from benchmarks.common.children import Child, ChildStopped
from benchmarks.common.environments import BENCHMARKS, ensure
from benchmarks.common.fingerprints import short_hash

CACHE = BENCHMARKS / "cache"


def write(path: Path, answer: Any) -> None:
    """An answer to a file, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(f".partial{os.getpid()}")
    partial.write_text(json.dumps(answer))
    partial.replace(path)


def once(name: str, key: object, make: Callable[[], Any]) -> Any:
    """What `make` makes, done once for a name and a key (anything that JSON can hold) and then kept."""
    path = CACHE / f"{name}-{short_hash(key)}.json"
    if not path.exists():
        write(path, make())
    return json.loads(path.read_text())


class Searcher(Protocol):
    """A method: `system` is its environment, `module` the peer that runs it."""

    @property
    def system(self) -> str: ...
    @property
    def module(self) -> str: ...


class Run(Protocol):
    """`task` is what the peer is asked."""

    @property
    def method(self) -> Searcher: ...
    @property
    def task(self) -> dict[str, Any]: ...


class Named(Protocol):
    @property
    def name(self) -> str: ...


N = TypeVar("N", bound=Named)


def by_name(methods: Sequence[N]) -> Callable[[str], N]:
    """Reads the name of a method, for a command line."""

    def method(name: str) -> N:
        found = next((method for method in methods if method.name == name), None)
        if found is None:
            raise ArgumentTypeError(f"no method {name!r}; expected one of {', '.join(m.name for m in methods)}")
        return found

    return method


R = TypeVar("R", bound=Run)
Result = TypeVar("Result")


@dataclass(frozen=True)
class Files(Generic[R, Result]):
    """Answers in files. `code` is a hash of what an answer depends on besides its task."""

    name: Callable[[R], str]
    code: Callable[[R], str]
    read: Callable[[R, dict[str, Any]], Result]

    def path(self, run: R) -> Path:
        return CACHE / f"{self.name(run)}-{short_hash([run.task, self.code(run)])}.json"

    def kept(self, run: R) -> Result | None:
        """A run that was done before."""
        path = self.path(run)
        return self.read(run, json.loads(path.read_text())) if path.exists() else None

    def all_kept(self, runs: Sequence[R]) -> dict[R, Result]:
        """Those of the runs that were done before."""
        return {run: result for run in runs if (result := self.kept(run)) is not None}

    def keep(self, run: R, answer: dict[str, Any]) -> Result:
        write(self.path(run), answer)
        return self.read(run, answer)


@dataclass(eq=False)
class Runner(Generic[R, Result]):
    """Does runs; each worker thread has one child per peer.

    shown      what the screen says of a result
    arguments  of the command line of all peers
    """

    files: Files[R, Result]
    shown: Callable[[R, Result], str]
    arguments: Callable[[R], Sequence[object]] = lambda run: ()
    limit_seconds: float = 600.0  # of one run
    failed: list[str] = field(default_factory=list)
    _total: int = 0
    _done: int = 0
    _lock: Lock = field(default_factory=Lock)
    _mine: local = field(default_factory=local)
    _children: list[Child] = field(default_factory=list)

    def measure(self, runs: Sequence[R], workers: int) -> dict[R, Result]:
        """The results of runs; those that failed are named on the screen and left out."""
        for system in sorted({run.method.system for run in runs if not self.files.path(run).exists()}):
            ensure(system)
        self._total = len(runs)
        try:
            with ThreadPoolExecutor(workers) as pool:
                found = list(pool.map(self._result, runs))
        finally:
            for child in self._children:
                child.close()
        return {run: result for run, result in zip(runs, found, strict=True) if result is not None}

    def measure_all(self, runs: Sequence[R], workers: int) -> dict[R, Result]:
        """The results of runs. The program ends at the end if any of them failed."""
        found = self.measure(runs, workers)
        if self.failed:
            sys.exit(f"{len(self.failed)} runs failed, the others are kept: {'; '.join(self.failed)}")
        return found

    def _result(self, run: R) -> Result | None:
        result = self.files.kept(run)
        note = "" if result is None else " (kept)"
        if result is None:
            try:
                answer = self._child(run).ask(run.task)
            except ChildStopped as stopped:
                self._mine.__dict__.pop(run.method.module, None)
                self.failed.append(str(run))
                self._report(run, f"FAILED, {stopped}")
                return None
            result = self.files.keep(run, answer)
        self._report(run, self.shown(run, result) + note)
        return result

    def _child(self, run: R) -> Child:
        mine: dict[str, Child] = self._mine.__dict__
        system, module = run.method.system, run.method.module
        if module not in mine:
            mine[module] = Child(system, module, self.arguments(run), self.limit_seconds)
            with self._lock:
                self._children.append(mine[module])
        return mine[module]

    def _report(self, run: R, what: str) -> None:
        with self._lock:
            self._done += 1
            print(f"{self._done}/{self._total} {run}: {what}", flush=True)
