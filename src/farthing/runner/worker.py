"""A worker process, started by a run, never by hand.

It reads messages in a thread, so that it knows at once when the run is gone: then it ends itself and all it started.
The objective is called in the main thread, as objectives expect. SIGTERM there is how the run tells an evaluation to
come to its end: it is raised inside the objective, whose `finally` clauses then have a moment. It imports little, so
that it is soon ready.
"""

from __future__ import annotations

import json
import os
import pickle
import signal
import socket
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from mmap import ACCESS_READ, mmap
from multiprocessing.connection import wait
from queue import SimpleQueue
from threading import Thread
from types import FrameType
from typing import Any

from farthing.run_context import Run, inside
from farthing.runner.evaluate import Evaluation, evaluate, next_step
from farthing.runner.forks import only_here
from farthing.runner.messages import Answer, Begin, Channel, Close, Garbled, Kind, Load, Step
from farthing.runner.process_tree import kill_tree
from farthing.trial import Config, Outcome, Status

ORPHAN_POLL = 1.0  # seconds between two looks whether the run is still our parent
PARTING_SECONDS, PARTING_POLL = 2.0, 0.01  # that a run may take to end after its channel, or to end this process


class ToldToEnd(BaseException):
    """SIGTERM arrived inside the objective."""


class Worker:
    """Has an objective, and at most one evaluation of it."""

    def __init__(self, load: Load) -> None:
        self._load, self._environment = load, dict(os.environ)
        self._steps: Iterator[Any] | None = None
        self._run: Run | None = None
        self._left, self._speed, self._since = 0.0, 0.0, 0.0  # of the budget, at the beginning of an action
        self._inside = False
        sys.argv[:] = load.arguments
        _introduce(load.objective)

    @only_here
    def _told(self, number: int, frame: FrameType | None) -> None:
        if self._inside:
            raise ToldToEnd

    def answer(self, message: Begin | Step | Close) -> Answer:
        """Do it, timed. What it printed is written: the run may end this process at any moment from then on."""
        began = self._since = time.perf_counter()
        signal.signal(signal.SIGTERM, self._told)  # an objective may have one of its own
        try:
            try:
                self._inside = True
                kind, evaluation = self._done(message)
            finally:
                self._inside = False
        except KeyboardInterrupt:
            kind, evaluation = Kind.INTERRUPTED, None
        except ToldToEnd:
            kind, evaluation = Kind.TOLD, None
        finally:
            self._inside = False  # SIGTERM may have come just before it was
        if kind is not Kind.YIELDED:
            self._steps = None  # a model may be large
        _flush()
        return Answer(kind, evaluation and _sendable(evaluation), time.perf_counter() - began)

    def _done(self, message: Begin | Step | Close) -> tuple[Kind, Evaluation | None]:
        match message:
            case Begin():
                self._tidy()
                return self._begun(message)
            case Step(left):
                self._left = left
                return self._stepped()
            case Close():
                return Kind.ENDED, self._closed()

    def _tidy(self) -> None:
        """Folder and environment as they were, whatever an evaluation before did."""
        with suppress(OSError):
            os.chdir(self._load.folder)
        if self._environment != os.environ:
            os.environ.clear()
            os.environ.update(self._environment)

    def _begun(self, message: Begin) -> tuple[Kind, Evaluation | None]:
        self._left, self._speed = message.left, message.speed
        self._run = Run(message.trial, message.step, message.folder, self._left_now)
        with inside(self._run):
            called = evaluate(self._load.objective, self._config(message.config), self._load.maximize)
        if isinstance(called, Evaluation):
            return Kind.RETURNED, called
        self._steps = called
        return self._stepped()

    def _config(self, stored: Mapping[str, float | int]) -> Config:
        options = self._load.options
        return {name: options[name][int(value)] if name in options else value for name, value in stored.items()}

    def _left_now(self) -> float:
        return max(self._left - self._speed * (time.perf_counter() - self._since), 0.0)

    def _stepped(self) -> tuple[Kind, Evaluation | None]:
        assert self._steps is not None
        assert self._run is not None
        with inside(self._run):
            evaluation = next_step(self._steps, self._load.maximize)
        return (Kind.ENDED, None) if evaluation is None else (Kind.YIELDED, evaluation)

    def _closed(self) -> Evaluation | None:
        """What it raises on its way out is told, and is its own affair."""
        assert self._run is not None
        try:
            with inside(self._run):
                getattr(self._steps, "close", lambda: None)()
        except (Exception, SystemExit) as error:
            return Evaluation(Outcome(Status.FAILED, error=repr(error)))
        return None


def _introduce(objective: Any) -> None:
    """Let what was defined beside an objective in a script be found under the script's name, `__main__`: it is shipped
    without its script, and multiprocessing looks for its functions there."""
    function = getattr(objective, "func", objective)  # of a partial
    if not hasattr(function, "__globals__") and not hasattr(function, "__func__"):
        function = type(function).__call__
    beside = getattr(getattr(function, "__func__", function), "__globals__", {})
    for name, thing in beside.items():
        if getattr(thing, "__module__", None) == "__main__" and not name.startswith("__"):
            setattr(sys.modules["__main__"], name, thing)


def _sendable(evaluation: Evaluation) -> Evaluation:
    """Attributes as JSON has them: a text may be of a class that only the objective knows."""
    return replace(evaluation, attributes=json.loads(json.dumps(evaluation.attributes)))


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):  # closed, or not there, or replaced by anything
            stream.flush()


def serve(channel: Channel, load: int) -> None:
    """Answer until the run is gone."""
    messages: SimpleQueue[Any] = SimpleQueue()
    Thread(target=_read, args=(channel, messages), daemon=True).start()
    try:
        worker = Worker(_loaded(load))
    except (Exception, SystemExit) as error:
        channel.send(Answer(Kind.REFUSED, reason=f"{type(error).__name__}: {error}"))
        messages.get()  # never comes: the run ends this process
        return
    with suppress(OSError):  # nobody is there, or the objective closed the channel
        channel.send(Answer(Kind.READY))
        while True:
            channel.send(worker.answer(messages.get()))
    messages.get()  # never comes: the thread that reads ends this process


def _loaded(file: int) -> Load:
    with mmap(file, 0, access=ACCESS_READ) as content:
        load: Load = pickle.loads(content)
    os.close(file)
    return load


def _read(channel: Channel, messages: SimpleQueue[Any]) -> None:
    """Pass messages on. The end of the channel is the end of the run, and of this process with all its children; so is
    a new parent, where a fork of the run keeps the channel open. A run that is still there saw the channel close
    without its doing: it ends this process itself, and says why."""
    run = os.getppid()
    with suppress(EOFError, OSError, ValueError, Garbled):
        while os.getppid() == run:
            if wait([channel.fileno()], ORPHAN_POLL) and (message := channel.arrived()) is not None:
                messages.put(message)
    for _ in range(round(PARTING_SECONDS / PARTING_POLL)):
        if os.getppid() != run:
            break
        time.sleep(PARTING_POLL)
    kill_tree(os.getpid())
    os._exit(1)


def main(channel: int, load: int) -> None:
    """With the numbers of the channel's end and of the file that holds the objective."""
    end = socket.socket(fileno=channel)
    end.set_inheritable(False)  # what the objective starts has no business with it
    os.set_inheritable(load, False)
    os.register_at_fork(after_in_child=end.close)
    serve(Channel(end), load)
