"""A program in any language as an objective: it is started for each evaluation, and its output is read.

It runs in a process group of its own. A black box says its value in the last line it prints, or in a file; an iterative
one prints a line per step, and rests between two steps: it is stopped (SIGSTOP) when its line is read and goes on
(SIGCONT) when the next is asked for. However an evaluation ends, its group is ended, and nothing of it stays behind.
"""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from select import select
from typing import Any, Self

from farthing.cli.program_output import ProgramFailed, read_result, read_step, shown
from farthing.cli.template import Template, as_text
from farthing.run_context import Run, current_run
from farthing.runner.process_tree import open_pidfd, signal_name

CHUNK = 1 << 16  # bytes read at once
LONGEST = 1 << 20  # bytes of a line that are kept
TAIL, TAIL_LINES = 1 << 13, 20  # bytes and lines of standard error that are kept
CLOSING_SECONDS = 1.0  # that a program may take to end when it is told to
SAVING_SECONDS = 4.0  # and where it may write a checkpoint then
TOLD_SECONDS = 0.1  # and when its evaluation is being killed
FIRST_AGAIN, LONGEST_AGAIN = 0.01, 1.0  # seconds until a program that should go on is told again
POLL = 0.05  # seconds between two looks where the system does not tell of ends

SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER of prctl(2)


@dataclass(frozen=True)
class Program:
    """A command as an objective.

    command    with placeholders
    iterative  whether it prints a line per step
    steps      of a complete training, where that is known
    results    a folder for the files that FARTHING_RESULT names
    patience   seconds that it may take to end
    show       whether what it prints is shown
    """

    command: str
    iterative: bool = False
    steps: int | None = None
    results: str = ""
    patience: float = CLOSING_SECONDS
    show: bool = False

    @cached_property
    def template(self) -> Template:
        return Template.of(self.command)

    @property
    def own(self) -> list[str]:
        """The placeholders there are beside parameters."""
        own = ["farthing.trial", "farthing.config", "farthing.start_step", "farthing.checkpoint_dir"]
        return own + ["farthing.steps"] * (self.steps is not None) + ["farthing.result"] * (not self.iterative)

    @property
    def missing(self) -> dict[str, str]:
        """Placeholders there could be, and what they need."""
        needs = {"farthing.steps": "needs --max-steps", "farthing.result": "is for programs without --iterative"}
        return {name: why for name, why in needs.items() if name not in self.own}

    def __call__(self, config: dict[str, Any]) -> Any:
        run = current_run()
        return self._steps(config, run) if self.iterative else self._value(config, run)

    def _value(self, config: dict[str, Any], run: Run) -> Any:
        result = self._result(run)
        result.unlink(missing_ok=True)
        last = b""
        with self._started(config, run) as program:
            for line in program.lines():
                last = line if line.strip() else last
        program.require_success()
        try:
            written = result.read_text(errors="replace").strip()
            result.unlink()
        except OSError:
            written = ""
        if written:
            return read_result(written, "the file FARTHING_RESULT holds")
        return read_result(last.decode(errors="replace").strip(), "the last line it printed is")

    def _steps(self, config: dict[str, Any], run: Run) -> Iterator[Any]:
        expected, last = run.step + 1, b""
        with self._started(config, run) as program:
            for line in program.lines():
                found = read_step(line.decode(errors="replace").strip())
                last = line if line.strip() else last
                if found is None:
                    continue
                step, report = found
                if step != expected:
                    raise ProgramFailed(
                        f"expected a line of step {expected}, got that of step {step}; steps count from 1"
                    )
                expected += 1
                program.rest()
                yield report
        program.require_success()
        if expected == run.step + 1:
            seen = f"its last line is {shown(last.decode(errors='replace').strip())}" if last else "it printed nothing"
            raise ProgramFailed(f"the program printed no line such as '{expected} 0.5', a step and its value; {seen}")

    def _result(self, run: Run) -> Path:
        return Path(self.results) / f"trial-{run.trial}.json"

    def _started(self, config: dict[str, Any], run: Run) -> Started:
        _adopt_orphans()
        facts = self._facts(config, run)
        environment = {f"FARTHING_{name.upper()}": value for name, value in facts.items()}
        values = {
            **{name: as_text(value) for name, value in config.items()},
            **{f"farthing.{name}": value for name, value in facts.items()},
        }
        return Started(self.template.filled(values), {**os.environ, **environment}, self.patience, self.show)

    def _facts(self, config: dict[str, Any], run: Run) -> dict[str, str]:
        """What a program can know, by placeholder or, in capitals, in its environment."""
        facts = {"trial": str(run.trial), "config": json.dumps(config), "start_step": str(run.step)}
        if self.iterative or "farthing.checkpoint_dir" in self.template.names:
            facts["checkpoint_dir"] = str(run.checkpoint_dir)
        if self.steps is not None:
            facts["steps"] = str(self.steps)
        if not self.iterative:
            facts["result"] = str(self._result(run))
        return facts


class Started:
    """A program that runs."""

    def __init__(self, arguments: list[str], environment: Mapping[str, str], patience: float, show: bool) -> None:
        self._patience, self._show, self._errors = patience, show, b""
        self._rests, self._again = False, math.inf
        try:
            self._popen = subprocess.Popen(
                arguments, env=environment, process_group=0,
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            )  # fmt: skip
        except (OSError, ValueError) as error:
            raise ProgramFailed(f"the program {arguments[0]!r} cannot be started: {error}") from error
        assert self._popen.stdout is not None
        assert self._popen.stderr is not None
        self._pipes = [self._popen.stdout.fileno(), self._popen.stderr.fileno()]
        self._open = list(self._pipes)
        for pipe in self._pipes:
            os.set_blocking(pipe, False)
        self._end = open_pidfd(self._popen.pid)  # readable when the program has ended

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        closed = kind is None or issubclass(kind, Exception | GeneratorExit)
        self.end(self._patience if closed else TOLD_SECONDS)

    def lines(self) -> Iterator[bytes]:
        """What it prints, line by line as it comes, until it has ended; a child of its own that goes on printing is not
        waited for."""
        arriving = b""
        while True:
            ended = self._has_ended()  # before we look: what it wrote is there then
            printed, told = self._some()
            if printed:
                *whole, arriving = (arriving + printed).split(b"\n")
                arriving = arriving[-LONGEST:]
                yield from whole
            elif not told and ended:
                break
            elif not told:
                self._go_on()
                self._wait(math.inf)
        if arriving:
            yield arriving

    def _some(self) -> tuple[bytes, bytes]:
        """What is there of its output and of its errors."""
        printed, told = (self._read(pipe) for pipe in self._pipes)
        self._errors = (self._errors + told)[-TAIL:]
        if self._show and (printed or told):
            with suppress(OSError):
                sys.stderr.buffer.write(printed + told)
                sys.stderr.flush()
        return printed, told

    def _read(self, pipe: int) -> bytes:
        if pipe not in self._open:
            return b""
        try:
            some = os.read(pipe, CHUNK)
        except BlockingIOError:
            return b""
        if not some:
            self._open.remove(pipe)
        return some

    def _wait(self, seconds: float) -> None:
        """Until there is something to read, or it has ended, or so many seconds have passed."""
        seconds = min(seconds, self._again, math.inf if self._end is not None else POLL)
        signs = [*self._open, *([] if self._end is None else [self._end])]
        if not any(select(signs, [], [], None if math.isinf(seconds) else seconds)) and seconds == self._again:
            self._signal(signal.SIGCONT)
            self._again = min(2 * self._again, LONGEST_AGAIN)

    def _has_ended(self) -> bool:
        """Without waiting for it: as long as nobody has, its number and its group's are nobody else's."""
        return os.waitid(os.P_PID, self._popen.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def rest(self) -> None:
        """Stop it, until more is asked of it than it has printed."""
        self._signal(signal.SIGSTOP)
        self._rests = True

    def _go_on(self) -> None:
        """Let it go on. As long as nothing comes, it is told again: a process that is forked just then may be stopped
        by the one signal and, not being in the group yet, miss the other."""
        if self._rests:
            self._signal(signal.SIGCONT)
            self._rests, self._again = False, FIRST_AGAIN

    def _signal(self, number: int) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._popen.pid, number)

    def end(self, patience: float) -> None:
        """Tell it to end, wait that long, and kill what is left of its group."""
        if not self._has_ended():
            self._signal(signal.SIGTERM)
            self._signal(signal.SIGCONT)  # one that rests hears nothing else
            deadline = time.monotonic() + patience
            while not self._has_ended() and (left := deadline - time.monotonic()) > 0.0:
                self._wait(left)
                self._some()  # it may have much to say, and wait until somebody listens
        self._signal(signal.SIGKILL)
        self._popen.wait()
        with suppress(ChildProcessError):  # orphans of its group that became ours
            while os.waitpid(-self._popen.pid, os.WNOHANG)[0]:
                pass
        for pipe in (self._popen.stdout, self._popen.stderr):
            if pipe is not None:
                pipe.close()
        if self._end is not None:
            os.close(self._end)
            self._end = None

    def require_success(self) -> None:
        """Raise how it ended, if not well, with the end of what it said on standard error."""
        code = self._popen.returncode
        if code == 0:
            return
        how = f"ended with exit status {code}" if code > 0 else f"died of {signal_name(-code)}"
        tail = self._errors.decode(errors="replace").strip().splitlines()[-TAIL_LINES:]
        if not tail:
            raise ProgramFailed(f"the program {how} and said nothing on standard error")
        said = "\n".join(tail)
        raise ProgramFailed(f"the end of its standard error:\n{said}\nthe program {how}: {shown(tail[-1].strip())}")


@cache
def _adopt_orphans() -> None:
    """Where the system can, let processes whose parent has died become children of this one: whoever ends this process
    finds its descendants by their parents, and ends those too."""
    import ctypes

    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(SUBREAPER, 1, 0, 0, 0)
