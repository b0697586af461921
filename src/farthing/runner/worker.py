"""The program of a worker process. A run starts it (worker_process.py), never a user.

A thread reads the messages, so that the worker notices at once when the run is gone; then it kills itself and all it
started. Where the thread cannot run, the supervisor (supervisor.py) does that. A worker adopts what its children leave
running, so that it ends with the worker. The objective is called in the main thread, as objectives expect. SIGTERM is
how the run asks an evaluation to end: it is raised inside the objective, so that `finally` clauses have a moment to
clean up. This module imports little, so that a worker starts fast.
"""

from __future__ import annotations

import os
import pickle
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from mmap import ACCESS_READ, mmap
from queue import SimpleQueue
from threading import Thread
from time import perf_counter  # bound here: an objective may replace that of `time`
from types import FrameType
from typing import Any

from farthing.run_context import Run, inside
from farthing.runner.evaluate import (
    WorkerTerminated,
    as_outcome,
    close_steps,
    evaluate,
    failure,
    flush_output,
    next_step,
)
from farthing.runner.forks import TERMINATIONS, reset_in_forks
from farthing.runner.messages import SPAWNED_MAIN, Answer, AnswerKind, Begin, Channel, Close, Garbled, Payload, Step
from farthing.runner.orphans import Orphans
from farthing.runner.process_tree import adopt_orphans, is_running, kill_tree, open_pidfd, readable, signal_name
from farthing.runner.reports import OVER, Reports
from farthing.runner.surroundings import Surroundings
from farthing.text.plain import shown, text_of
from farthing.trial import Config, Decision, Outcome, Status

ORPHAN_POLL = 1.0  # seconds between checks that the run is there, where the system does not notify us
HARM = ("MemoryError", "out of memory", "CUDA error", "HIP error")  # in the last line of an error
PARTING_SECONDS = 2.0  # that a run with a closed channel has to end this process itself: it needs milliseconds
PARTING_POLL = 0.01  # seconds between checks that it is still there


@dataclass(frozen=True)
class Birth:
    """How a worker came to be."""

    why_not_forked: str = ""  # empty if it was
    teach: Callable[[], None] = lambda: None  # tell the nursery which modules were imported since
    settle: Callable[[], None] = lambda: None  # what has to be done before the first evaluation


class Worker:
    """Has the objective, and at most one evaluation of it. What the objective reports goes over the channel at once."""

    def __init__(self, loaded: Loaded, channel: Channel, messages: SimpleQueue[Any], birth: Birth) -> None:
        self._payload, self._surroundings = loaded.payload, loaded.surroundings
        self._channel, self._messages = channel, messages
        self._teach = birth.teach
        self._steps: Iterator[Any] | None = None
        self._run: Run | None = None
        self._left, self._speed, self._began = 0.0, 0.0, 0.0  # of the budget, when the current action began
        self._inside_objective = False
        self._told_by = ""  # the signal that was raised inside the objective
        self._orphans = Orphans()
        ignored = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN  # as under nohup
        self._heard = [signal.SIGTERM] if ignored else TERMINATIONS
        self._surroundings.enter()
        self._is_restored = False
        _define_in_main(self._payload.objective)

    @reset_in_forks
    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self._inside_objective:
            self._told_by = signal_name(number)
            raise WorkerTerminated(self._told_by)

    def answer(self, message: Begin | Step | Close) -> Answer:
        """Do what the message asks, and time it. Output is flushed, because the run may kill this process at any moment
        after the answer."""
        self._begin_action()
        reason = ""
        try:
            try:
                self._inside_objective = True
                kind, outcome = self._do(message)
            finally:
                self._inside_objective = False
        except KeyboardInterrupt:
            kind, outcome = AnswerKind.INTERRUPTED, None
        except WorkerTerminated as told:
            kind, outcome, reason = AnswerKind.TERMINATED, None, str(told)
        except BaseException as error:  # of what surrounds the objective, which it may have harmed
            kind, outcome = AnswerKind.RETURNED, failure(error)
        finally:
            self._inside_objective = False  # SIGTERM may have come just before the inner `finally` did this
        if kind is not AnswerKind.YIELDED:
            self._steps = None  # frees the model
        flush_output()
        seconds = perf_counter() - self._began
        self._teach()
        is_worn = suggests_harm(kind, outcome) or (kind is not AnswerKind.YIELDED and self._orphans.end())
        return Answer(kind, outcome, seconds, reason, is_worn, self._told_by)

    def _begin_action(self) -> None:
        """Time it from here on, and hear signals again: the objective may have set handlers of its own."""
        self._began, self._told_by = perf_counter(), ""
        for number in self._heard:
            signal.signal(number, self._on_signal)

    def restore(self) -> None:
        """Undo what an evaluation has changed around it, unless one goes on."""
        if self._steps is None and not self._is_restored:
            self._surroundings.restore()
            self._is_restored = True

    def _do(self, message: Begin | Step | Close) -> tuple[AnswerKind, Outcome | None]:
        match message:
            case Begin():
                self.restore()
                self._is_restored = False
                return self._begin(message)
            case Step(left):
                self._left = left
                return self._step()
            case Close():
                return AnswerKind.ENDED, self._close()

    def _begin(self, message: Begin) -> tuple[AnswerKind, Outcome | None]:
        self._left, self._speed = message.left, message.speed
        reports = Reports(message.step, self._report)
        self._run = Run(message.trial, message.step, message.folder, self._left_now, reports)
        with inside(self._run):
            called = evaluate(self._payload.objective, self._config(message.config), reports)
        if not isinstance(called, Outcome | None):
            self._steps = called
            return self._step()
        reports.refuse(OVER)
        if reports.is_stopped:
            return AnswerKind.ENDED, None if called is None else replace(called, error=called.error_line)
        return (AnswerKind.ENDED, None) if called is None else (AnswerKind.RETURNED, called)

    def _report(self, given: Mapping[str, Any]) -> Decision:
        """Answer with a step from inside the objective, and wait there for what comes next: while the run is paused
        too. That time is not the evaluation's, and signals are not for it."""
        outcome = as_outcome(given)
        flush_output()
        self._inside_objective = False
        seconds = perf_counter() - self._began
        self._teach()
        with suppress(OSError):  # then no message follows either: the thread that reads ends this process
            self._channel.send(Answer(AnswerKind.YIELDED, outcome, seconds, told_by=self._told_by))
        message = self._messages.get()
        self._begin_action()
        self._inside_objective = True
        if not isinstance(message, Step):
            return Decision.STOP
        self._left = message.left
        return Decision.CONTINUE

    def _config(self, stored: Mapping[str, float | int]) -> Config:
        options = self._payload.options
        return {name: options[name][int(value)] if name in options else value for name, value in stored.items()}

    def _left_now(self) -> float:
        return max(self._left - self._speed * (perf_counter() - self._began), 0.0)

    def _step(self) -> tuple[AnswerKind, Outcome | None]:
        assert self._steps is not None
        assert self._run is not None
        with inside(self._run):
            outcome = next_step(self._steps)
        return (AnswerKind.ENDED, None) if outcome is None else (AnswerKind.YIELDED, outcome)

    def _close(self) -> Outcome | None:
        """Close the learner. An error in its clean-up is sent to be logged; the trial's result stands."""
        assert self._run is not None
        with inside(self._run):
            error = close_steps(self._steps)
        return None if error is None else Outcome(Status.FAILED, error=shown(error))


def suggests_harm(kind: AnswerKind, outcome: Outcome | None) -> bool:
    """Whether an evaluation may have harmed its process. An exception is an answer like any other. But memory that ran
    out may be lost to what is left of the evaluation, and after an error of a graphics processor every further call in
    the process fails."""
    if kind is AnswerKind.TERMINATED or kind is AnswerKind.INTERRUPTED:
        return True
    last = (outcome.error or "").rpartition("\n")[2] if outcome is not None else ""
    return any(sign in last for sign in HARM)


def _define_in_main(objective: Any) -> None:
    """Make what a script defines available under the script's name, `__main__`: the objective arrives without its
    script, and multiprocessing looks for the script's functions there."""
    function = getattr(objective, "func", objective)  # inside a partial
    if not hasattr(function, "__globals__") and not hasattr(function, "__func__"):
        function = type(function).__call__
    defined = getattr(getattr(function, "__func__", function), "__globals__", {})
    spawned = defined.get("__name__") == SPAWNED_MAIN
    if spawned:
        sys.modules[SPAWNED_MAIN] = sys.modules["__main__"]
    for name, value in defined.items():
        if getattr(value, "__module__", None) in ("__main__", SPAWNED_MAIN) and not name.startswith("__"):
            setattr(sys.modules["__main__"], name, value)


@dataclass(frozen=True)
class Loaded:
    """What a worker has loaded."""

    payload: Payload
    surroundings: Surroundings  # of the run


def load(file: int) -> Loaded:
    """What is in the file of the setup, which is closed."""
    with mmap(file, 0, access=ACCESS_READ) as content:
        surroundings: Surroundings = pickle.load(content)
        payload: Payload = pickle.load(content)
    os.close(file)
    surroundings.prepare()
    return Loaded(payload, surroundings)


def refusal(error: BaseException) -> Answer:
    """That the objective cannot be loaded."""
    return Answer(AnswerKind.REFUSED, reason=f"{type(error).__name__}: {text_of(error)}")


def joined(channel: int) -> Channel:
    """The worker's end of the channel, which neither what it forks nor programs that it starts may hold open."""
    end = socket.socket(fileno=channel)
    end.set_inheritable(False)
    os.register_at_fork(after_in_child=end.close)
    return Channel(end)


def _say_nothing_of_signals() -> None:
    """Where libraries call Python from C, Python prints the exception by which an evaluation is told to end: to users
    that would look like an error."""
    say = sys.unraisablehook

    def hook(unraisable: Any) -> None:
        if not isinstance(unraisable.exc_value, WorkerTerminated):
            say(unraisable)

    sys.unraisablehook = hook


def serve(channel: Channel, run: int, loading: Callable[[], Loaded], birth: Birth) -> None:
    """Load the objective, and answer messages until the run is gone."""
    adopt_orphans()
    _say_nothing_of_signals()
    messages: SimpleQueue[Any] = SimpleQueue()
    Thread(target=_read_messages, args=(channel, messages, run), daemon=True).start()
    try:
        worker = Worker(loading(), channel, messages, birth)
    except BaseException as error:
        channel.send(refusal(error))
        messages.get()  # no message follows: the run kills this process
        return
    with suppress(OSError):  # the run is gone, or the objective closed the channel
        channel.send(Answer(AnswerKind.READY, reason=birth.why_not_forked))
        birth.settle()  # while the run decides what to evaluate
        while True:
            with suppress(Exception):  # then it is tried again, and is the answer
                worker.restore()  # while the run decides what to evaluate next
            channel.send(worker.answer(messages.get()))
    messages.get()  # no message follows: the thread that reads ends this process


def _read_messages(channel: Channel, messages: SimpleQueue[Any], run: int) -> None:
    """Pass messages on until the run is gone, then kill this process with all its children.

    The run is gone when the channel closes, or its process ends: a fork of the run may keep the channel open. If the
    channel closed while the run is still there, the objective closed it. Then the run has a moment to kill this process
    itself, because it records why.
    """
    end = open_pidfd(run)
    signs = [channel.fileno()] if end is None else [channel.fileno(), end]
    with suppress(EOFError, OSError, ValueError, Garbled):
        while is_running(run, end):
            if channel.fileno() in readable(signs, ORPHAN_POLL) and (message := channel.receive()) is not None:
                messages.put(message)
    for _ in range(round(PARTING_SECONDS / PARTING_POLL)):
        if not is_running(run, end):
            break
        time.sleep(PARTING_POLL)
    kill_tree(os.getpid())
    os._exit(1)


def main(payload: int, run: int, end: int) -> None:
    """Run a worker in a new process of its own, given the file descriptor of what it loads, the process of the
    run, and the file descriptor of its end of the channel."""
    channel = joined(end)
    os.set_inheritable(payload, False)
    channel.send(Answer(AnswerKind.AWAKE))
    serve(channel, run, lambda: load(payload), Birth(why_not_forked="it was not asked for"))
