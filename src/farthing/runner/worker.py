"""A worker process: `python -m farthing.runner.worker FD`, started by a run, never by hand.

It reads messages from the pipe with that number, in a thread, so that it knows at once when the run is gone: then it
ends itself and all it started. The objective is called in the main thread, as objectives expect. SIGTERM there is how
the run tells an evaluation to come to its end: it is raised inside the objective, whose `finally` clauses then have a
moment. It imports little, so that it is soon ready.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from multiprocessing.connection import Connection
from queue import SimpleQueue
from threading import Thread
from types import FrameType
from typing import Any

from farthing.current import Run, inside
from farthing.runner.evaluate import Evaluation, evaluate, failure, next_step
from farthing.runner.messages import Answer, Begin, Close, Kind, Load, Step
from farthing.trial import Config, Outcome, Status


class ToldToEnd(BaseException):
    """SIGTERM arrived inside the objective."""


class Worker:
    """Has an objective, and at most one evaluation of it."""

    def __init__(self, load: Load) -> None:
        sys.path[:] = load.path
        os.environ.pop("PYTHONPATH", None)
        if load.python_path is not None:
            os.environ["PYTHONPATH"] = load.python_path
        with suppress(OSError):
            os.chdir(load.folder)
        self._objective: Callable[[Config], Any] = pickle.loads(load.objective)
        self._maximize = load.maximize
        self._steps: Iterator[Any] | None = None
        self._run: Run | None = None
        self._left, self._speed, self._since = 0.0, 0.0, 0.0  # of the budget, at the beginning of an action
        self._inside = False
        signal.signal(signal.SIGTERM, self._told)

    def _told(self, number: int, frame: FrameType | None) -> None:
        if self._inside:
            raise ToldToEnd

    def answer(self, message: Begin | Step | Close) -> Answer:
        """Do it, timed."""
        began = self._since = time.perf_counter()
        try:
            self._inside = True
            kind, evaluation = self._done(message)
        except KeyboardInterrupt:
            return Answer(Kind.INTERRUPTED, seconds=time.perf_counter() - began)
        except ToldToEnd:
            return Answer(Kind.DIED, seconds=time.perf_counter() - began, reason="was told to end")
        finally:
            self._inside = False
        return Answer(kind, evaluation, time.perf_counter() - began)

    def _done(self, message: Begin | Step | Close) -> tuple[Kind, Evaluation | None]:
        match message:
            case Begin():
                return self._begun(message)
            case Step(left):
                self._left = left
                return self._stepped()
            case Close():
                return Kind.ENDED, self._closed()

    def _begun(self, message: Begin) -> tuple[Kind, Evaluation | None]:
        self._left, self._speed = message.left, message.speed
        self._run = Run(message.trial, message.step, message.folder, self._left_now)
        with inside(self._run):
            called = evaluate(self._objective, message.config, self._maximize)
        if isinstance(called, Evaluation):
            return Kind.RETURNED, called
        self._steps = called
        return self._stepped()

    def _left_now(self) -> float:
        return max(self._left - self._speed * (time.perf_counter() - self._since), 0.0)

    def _stepped(self) -> tuple[Kind, Evaluation | None]:
        assert self._steps is not None
        assert self._run is not None
        with inside(self._run):
            evaluation = next_step(self._steps, self._maximize)
        return (Kind.ENDED, None) if evaluation is None else (Kind.YIELDED, evaluation)

    def _closed(self) -> Evaluation | None:
        """What it raises on its way out is told, and is its own affair."""
        assert self._steps is not None
        assert self._run is not None
        try:
            with inside(self._run):
                getattr(self._steps, "close", lambda: None)()
        except (Exception, SystemExit) as error:
            return Evaluation(Outcome(Status.FAILED, error=repr(error)))
        return None


def serve(pipe: Connection) -> None:
    """Answer until the run is gone."""
    messages: SimpleQueue[Any] = SimpleQueue()
    Thread(target=_read, args=(pipe, messages), daemon=True).start()
    try:
        worker = Worker(messages.get())
    except (Exception, SystemExit) as error:
        pipe.send(Answer(Kind.REFUSED, failure(error), reason=f"{type(error).__name__}: {error}"))
        messages.get()  # never comes: the run ends this process
    pipe.send(Answer(Kind.READY))
    while True:
        pipe.send(worker.answer(messages.get()))


def _read(pipe: Connection, messages: SimpleQueue[Any]) -> None:
    """Pass messages on. The end of the pipe is the end of the run, and of this process with all its children."""
    with suppress(EOFError, OSError):
        while True:
            messages.put(pipe.recv())
    with suppress(OSError):
        os.killpg(0, signal.SIGKILL)
    os._exit(1)


if __name__ == "__main__":
    serve(Connection(int(sys.argv[1])))
