"""The program of a nursery: a process that has loaded the objective, and forks a worker whenever one is wanted.

To import a user's libraries takes seconds, to fork a process that has imported them takes milliseconds. The supervisor
(supervisor.py) starts the nursery with the first worker. It loads the objective, which imports what that needs, calls
nothing of it, and waits for requests. What objectives import when they are called, workers tell it, and it imports that
before it forks the next one.

A fork has one thread: that which forked. If others were holding locks then, these stay locked for ever. So the nursery
loads libraries in such a way that they start none, and does not fork if one has started threads, or has opened a
graphics processor, which does not survive a fork. Then it becomes a worker itself, and the next ones are new processes.
"""

from __future__ import annotations

import gc
import os
import signal
import socket
import warnings

from farthing.numerics.threads import OpenBlas
from farthing.runner.evaluate import flush_output
from farthing.runner.learning import Lessons
from farthing.runner.processes import DEATH_SIGNAL, PROC, process_control
from farthing.runner.seeds import fresh_seeds
from farthing.runner.supervisor import AWAKE, FAILED, FORKED, RECORD, STAYS
from farthing.runner.worker import Birth, Loaded, joined, load, refusal, serve

FORK_SAFE_THREADS = {"jemalloc_bg_thd"}  # pyarrow's allocator ends it before a fork, and starts it again
GRAPHICS_PROCESSORS = ("/dev/nvidia", "/dev/kfd", "/dev/dri")


def main(payload: int, run: int, control: int) -> None:
    """Fork workers, given the file descriptor of what they load, the process of the run, and the file descriptor
    of the socket to the supervisor."""
    process_control(DEATH_SIGNAL, signal.SIGKILL)  # it ends with the supervisor, also while it imports
    os.set_inheritable(payload, False)
    supervisor = socket.socket(fileno=control)
    supervisor.set_inheritable(False)
    nursery = Nursery(supervisor)
    nursery.say(AWAKE, 0)
    nursery.load(payload)
    nursery.serve(run)


class Nursery:
    """Has the objective, and forks."""

    def __init__(self, supervisor: socket.socket) -> None:
        self._supervisor = supervisor
        self._loaded: Loaded | None = None
        self._refused: BaseException | None = None  # why the objective cannot be loaded
        self._blas = OpenBlas()
        self._lessons = Lessons()

    def say(self, what: int, ticket: int, number: int = 0) -> None:
        self._supervisor.sendall(RECORD.pack(what, ticket, number, 0))

    def load(self, payload: int) -> None:
        try:
            self._loaded = load(payload)
        except BaseException as error:
            self._refused = error
        self._settle()

    def _settle(self) -> None:
        """What is here now stays here: a collection of garbage in a fork need not look at it, and copy its pages."""
        if self._loaded is not None:
            self._blas = OpenBlas.loaded(self._loaded.surroundings.environment)
        gc.collect()
        gc.freeze()

    def serve(self, run: int) -> None:
        """Fork a worker for each request until the supervisor is gone. Returns only in processes that were workers."""
        while True:
            ticket, file = self._request()
            if self._refused is not None:
                joined(file).send(refusal(self._refused))
                os._exit(1)  # another may be able to: perhaps memory was short
            if names := self._lessons.taken():
                self._lessons.learn(names)
                self._settle()
            if obstacle := obstacle_to_forks():
                self.say(STAYS, ticket, os.getpid())
                process_control(DEATH_SIGNAL, 0)
            elif not self._fork(ticket):
                os.close(file)
                continue
            self._supervisor.close()
            self._work(file, run, obstacle)
            return

    def _request(self) -> tuple[int, int]:
        record, files, _, _ = socket.recv_fds(self._supervisor, RECORD.size, 1)
        if len(record) < RECORD.size or not files:
            os._exit(0)
        os.set_inheritable(files[0], False)
        return RECORD.unpack(record)[1], files[0]

    def _fork(self, ticket: int) -> bool:
        """Fork twice, so that the supervisor adopts the second fork; True in that."""
        flush_output()  # once, not in each of them
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # newer Pythons warn of forks beside threads; these are safe
            try:
                middle = os.fork()
            except OSError as error:
                self.say(FAILED, ticket, error.errno or 0)
                return False
            if middle:
                os.waitpid(middle, 0)
                return False
            try:
                worker = os.fork()
            except OSError as error:
                self.say(FAILED, ticket, error.errno or 0)
                os._exit(1)
            if worker:
                self.say(FORKED, ticket, worker)
                os._exit(0)
        os.setsid()
        fresh_seeds()
        return True

    def _work(self, file: int, run: int, obstacle: str) -> None:
        loaded = self._loaded
        assert loaded is not None
        self._loaded = None
        birth = Birth(obstacle, self._lessons.teach if not obstacle else lambda: None, self._blas.use_all_threads)
        serve(joined(file), run, lambda: loaded, birth)


def obstacle_to_forks() -> str:
    """Why this process must not fork; empty if it may."""
    threads = [thread for thread in _threads() if thread not in FORK_SAFE_THREADS]
    if len(threads) > 1:
        return f"a library has started threads ({', '.join(sorted(set(threads[1:])))})"
    for name in os.listdir(f"{PROC}/self/fd"):
        try:
            target = os.readlink(f"{PROC}/self/fd/{name}")
        except OSError:
            continue
        if target.startswith(GRAPHICS_PROCESSORS):
            return f"a library uses a graphics processor ({target})"
    return ""


def _threads() -> list[str]:
    """The names of this process's threads, the main one first."""
    names = []
    for thread in sorted(os.listdir(f"{PROC}/self/task"), key=int):
        try:
            with open(f"{PROC}/self/task/{thread}/comm", encoding="utf-8", errors="replace") as file:
                names.append(file.read().strip())
        except OSError:  # it has just ended
            continue
    return names
