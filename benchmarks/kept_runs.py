"""Runs of peers, each done once: what was kept is taken, the rest is asked of child processes and kept."""

from __future__ import annotations

import json
import os
from argparse import ArgumentTypeError
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock, local
from typing import Any, Generic, Protocol, TypeVar

from children import Child, ChildStopped
from environments import ensure


class Searcher(Protocol):
    """Who searches: `system` is its environment, `script` the peer."""

    @property
    def system(self) -> str: ...
    @property
    def script(self) -> str: ...


class Run(Protocol):
    @property
    def method(self) -> Searcher: ...


def write(path: Path, answer: dict[str, Any]) -> None:
    """An answer to a file, whole or not at all."""
    path.parent.mkdir(exist_ok=True)
    partial = path.with_suffix(f".partial{os.getpid()}")
    partial.write_text(json.dumps(answer))
    partial.replace(path)


class Named(Protocol):
    @property
    def name(self) -> str: ...


N = TypeVar("N", bound=Named)


def by_name(methods: Sequence[N]) -> Callable[[str], N]:
    """Reads the name of a method, for a command line."""

    def method(name: str) -> N:
        found = next((method for method in methods if method.name == name), None)
        if found is None:
            raise ArgumentTypeError(f"no method {name!r}; there are {', '.join(m.name for m in methods)}")
        return found

    return method


R = TypeVar("R", bound=Run)
Result = TypeVar("Result")


@dataclass(frozen=True)
class Files(Generic[R, Result]):
    """Answers in files, by run."""

    path: Callable[[R], Path]
    read: Callable[[R, dict[str, Any]], Result]

    def kept(self, run: R) -> Result | None:
        """A run that was done before."""
        path = self.path(run)
        return self.read(run, json.loads(path.read_text())) if path.exists() else None

    def keep(self, run: R, answer: dict[str, Any]) -> Result:
        write(self.path(run), answer)
        return self.read(run, answer)


@dataclass(eq=False)
class Runner(Generic[R, Result]):
    """Does runs; each worker thread has one child per script."""

    files: Files[R, Result]
    begun: Callable[[R], Child]
    task: Callable[[R], dict[str, Any]]
    said: Callable[[R, Result], str]  # of a result, on the screen
    _total: int = 0
    _done: int = 0
    _lock: Lock = field(default_factory=Lock)
    _mine: local = field(default_factory=local)
    _children: list[Child] = field(default_factory=list)

    def measure(self, runs: Sequence[R], workers: int) -> dict[R, Result]:
        """The results of runs; those that failed are named on the screen and left out."""
        for system in sorted({run.method.system for run in runs if self.files.kept(run) is None}):
            ensure(system)
        self._total = len(runs)
        try:
            with ThreadPoolExecutor(workers) as pool:
                found = list(pool.map(self._result, runs))
        finally:
            for child in self._children:
                child.close()
        return {run: result for run, result in zip(runs, found, strict=True) if result is not None}

    def _result(self, run: R) -> Result | None:
        result = self.files.kept(run)
        note = " (kept)" if result else ""
        if result is None:
            try:
                answer = self._child(run).ask(self.task(run))
            except ChildStopped as stopped:
                self._mine.__dict__.pop(run.method.script, None)
                self._report(run, f"FAILED, {stopped}")
                return None
            result = self.files.keep(run, answer)
        self._report(run, self.said(run, result) + note)
        return result

    def _child(self, run: R) -> Child:
        mine: dict[str, Child] = self._mine.__dict__
        script = run.method.script
        if script not in mine:
            mine[script] = self.begun(run)
            with self._lock:
                self._children.append(mine[script])
        return mine[script]

    def _report(self, run: R, what: str) -> None:
        with self._lock:
            self._done += 1
            print(f"{self._done}/{self._total} {run}: {what}", flush=True)
