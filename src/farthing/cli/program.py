"""A program in any language as an objective: it is started for each evaluation, and its output is read.

A program that is evaluated at once gives its value in the last line it prints, or in a file. An iterative one prints a
line per step, and is suspended between two steps.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from farthing.cli.program_output import ProgramFailed, quoted, read_result, read_step
from farthing.cli.program_process import Arrival, ProgramProcess
from farthing.cli.streams import warn
from farthing.run_context import Run, current_run
from farthing.runner.process_tree import adopt_orphans
from farthing.runner.temporary import subfolder_of_process
from farthing.space.command_template import CommandTemplate, as_text

UNBUFFERED = {"PYTHONUNBUFFERED": "1"}  # for Python programs that print steps, unless the user has set it
BUFFERED_SECONDS = 1.0  # of silence before many steps at once: with less, little training can be spared
ENDING_SECONDS = 0.5  # from the last flush to the end of a program; Python takes some hundredths, large ones longer
CLOSING_SECONDS = 1.0  # for a program to end after SIGTERM: cleaning up takes less
SAVING_SECONDS = 4.0  # the same, if it may write a checkpoint first


@cache
def _own_folder(pid: int) -> str:
    """Of this process: on another machine the folder of the run is not there."""
    return str(subfolder_of_process())


@dataclass(frozen=True)
class Program:
    """A command as an objective.

    command    the program and its arguments, with placeholders
    iterative  whether it prints a line per step
    steps      the number of steps of a complete training, if known
    results    a folder for the files that FARTHING_RESULT names
    patience   seconds it may take to end when it is told to
    show       whether its output is shown
    """

    command: str
    iterative: bool = False
    steps: int | None = None
    results: str = ""
    patience: float = CLOSING_SECONDS
    show: bool = False

    @cached_property
    def template(self) -> CommandTemplate:
        return CommandTemplate.of(self.command)

    @property
    def placeholders(self) -> list[str]:
        """The placeholders that are not parameters."""
        always = ["farthing.trial", "farthing.config", "farthing.start_step", "farthing.checkpoint_dir"]
        return always + ["farthing.steps"] * (self.steps is not None) + ["farthing.result"] * (not self.iterative)

    @property
    def unavailable(self) -> dict[str, str]:
        """The placeholders that this program does not have, and why."""
        needs = {"farthing.steps": "needs --max-steps", "farthing.result": "is for programs without --iterative"}
        return {name: why for name, why in needs.items() if name not in self.placeholders}

    def __call__(self, config: dict[str, Any]) -> Any:
        run = current_run()
        return self._steps(config, run) if self.iterative else self._value(config, run)

    def _value(self, config: dict[str, Any], run: Run) -> Any:
        result = self._result_file(run)
        result.unlink(missing_ok=True)
        last = b""
        with self._start(config, run) as program:
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
        with self._start(config, run) as program:
            for line in program.lines():
                found = read_step(line.decode(errors="replace").strip())
                last = line if line.strip() else last
                if found is None:
                    continue
                step, report = found
                if step != expected:
                    raise ProgramFailed(
                        f"expected the line of step {expected}, got that of step {step}; steps count from 1"
                    )
                expected += 1
                self._warn_if_buffered(program)
                program.suspend()
                yield report
        program.require_success()
        if expected == run.step + 1:
            seen = f"its last line is {quoted(last.decode(errors='replace').strip())}" if last else "it printed nothing"
            raise ProgramFailed(f"the program printed no line such as '{expected} 0.5', a step and its value; {seen}")

    def _warn_if_buffered(self, program: ProgramProcess) -> None:
        """Say once in a run that steps come all at once, after they were trained: then none can be spared."""
        arrived, program.arrived = program.arrived, Arrival()
        count = sum(read_step(line.decode(errors="replace").strip()) is not None for line in arrived.lines)
        if count < 2 or arrived.silence < BUFFERED_SECONDS:
            return
        if (arrived.is_block or program.ends_within(ENDING_SECONDS)) and self._is_first("buffered"):
            warn(
                f"the program trained for {arrived.silence:.1f}s and then printed {count} steps at once: its output is "
                "buffered, so it cannot be paused or stopped in between. Flush each line (in Python print(..., "
                "flush=True), in C fflush(stdout)), or start the program with: stdbuf -oL"
            )

    def _is_first(self, what: str) -> bool:
        """Whether this is the first time in this run, over all workers."""
        try:
            Path(self.results, what).touch(exist_ok=False)
        except OSError:
            return False
        return True

    def _result_file(self, run: Run) -> Path:
        folder = self.results if os.path.isdir(self.results) else _own_folder(os.getpid())
        return Path(folder) / f"trial-{run.trial}.json"

    def _start(self, config: dict[str, Any], run: Run) -> ProgramProcess:
        adopt_orphans()
        facts = self._facts(config, run)
        environment = {f"FARTHING_{name.upper()}": value for name, value in facts.items()}
        values = {
            **{name: as_text(value) for name, value in config.items()},
            **{f"farthing.{name}": value for name, value in facts.items()},
        }
        inherited = {**(UNBUFFERED if self.iterative else {}), **os.environ}
        return ProgramProcess(self.template.filled(values), {**inherited, **environment}, self.patience, self.show)

    def _facts(self, config: dict[str, Any], run: Run) -> dict[str, str]:
        """What a program is told, by placeholder and, in capitals, in its environment."""
        facts = {"trial": str(run.trial), "config": json.dumps(config), "start_step": str(run.step)}
        if self.iterative or "farthing.checkpoint_dir" in self.template.names:
            facts["checkpoint_dir"] = str(run.checkpoint_dir)
        if self.steps is not None:
            facts["steps"] = str(self.steps)
        if not self.iterative:
            facts["result"] = str(self._result_file(run))
        return facts
