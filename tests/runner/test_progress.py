"""How a run shows itself: a live line on a terminal, plain lines elsewhere, nothing when told so; never on stdout."""

from __future__ import annotations

import errno
import fcntl
import os
import pty
import re
import struct
import termios
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import pytest

from warm_python import WarmPython

PYTHON = WarmPython()
HIDDEN = ("NO_COLOR", "COLUMNS", "LINES", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE")

SCRIPT = """
    import sys, time
    import farthing as ft
    from farthing.runner import progress

    progress.REFRESH_PER_SECOND = 40  # so that every trial is drawn, on a busy machine too

    def objective(config):
        number = len(study.trials) - 1
        {body}
        return 10.0 - number

    study = ft.Study(ft.Space(x=ft.Real(0, 1)), "4 evaluations", policy="random", seed=0, **{options})
    try:
        study.run(objective, progress={progress})
    except KeyboardInterrupt:
        sys.exit(130)
    """
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


@dataclass(frozen=True)
class Seen:
    """What a script wrote, and how it ended."""

    stdout: str
    stderr: str
    status: int

    @property
    def lines(self) -> list[str]:
        return self.stderr.splitlines()


@pytest.fixture(scope="module", autouse=True)
def _close() -> Iterator[None]:
    yield
    PYTHON.close()


def script(body: str, progress: bool | None, options: dict[str, object]) -> str:
    return textwrap.dedent(SCRIPT).format(body=body, progress=progress, options=options)


def environment() -> dict[str, str]:
    """Nothing in it says how wide or colourful a terminal is."""
    return {**{name: value for name, value in os.environ.items() if name not in HIDDEN}, "TERM": "xterm-256color"}


def read_all(descriptor: int) -> str:
    """What is written until the other side closes."""
    found = b""
    while True:
        try:
            block = os.read(descriptor, 65536)
        except OSError as error:  # how a closed pseudo-terminal reads on Linux
            if error.errno != errno.EIO:
                raise
            block = b""
        if not block:
            os.close(descriptor)
            return found.decode()
        found += block


@cache
def piped(body: str = "pass", progress: bool | None = None, **options: object) -> Seen:
    """A run whose standard error is a pipe."""
    error, stderr = os.pipe()
    return ended(script(body, progress, options), error, stderr)


@cache
def on_terminal(
    body: str = "pass", progress: bool | None = None, columns: int = 160, both: bool = False, **options: object
) -> Seen:
    """A run whose standard error (and, with `both`, its output) is a pseudo-terminal."""
    master, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    return ended(script(body, progress, options), master, terminal, terminal if both else None)


def ended(text: str, error: int, stderr: int, stdout: int | None = None) -> Seen:
    """Run a script until it ends. It writes its errors to `stderr`, which we read from `error`."""
    output, pipe = os.pipe()
    with open(os.devnull) as nothing:
        running = PYTHON.start(
            text, stdin=nothing.fileno(), stdout=stdout or pipe, stderr=stderr, environment=environment()
        )
    os.close(pipe)
    os.close(stderr)
    shown = read_all(error)  # a few kilobytes on standard output fit into the pipe meanwhile
    return Seen(read_all(output), shown, running.wait())


class TestSilent:
    """progress=False writes nothing, whatever happens."""

    @pytest.mark.parametrize(
        "body", ["pass", "1 / 0", "if number == 2: raise KeyboardInterrupt"], ids=["values", "failures", "ctrl-c"]
    )
    def test_nothing_is_written_to_a_pipe(self, body):
        assert piped(body, progress=False) == Seen("", "", 130 if "KeyboardInterrupt" in body else 0)

    def test_nothing_is_written_to_a_terminal(self):
        assert on_terminal(progress=False) == Seen("", "", 0)

    def test_the_output_of_the_objective_is_left_alone(self):
        seen = piped("print('mine', number); print('also mine', file=sys.stderr)", progress=False)
        assert seen == Seen("mine 0\nmine 1\nmine 2\nmine 3\n", "also mine\n" * 4, 0)


class TestLines:
    """Where there is no terminal, one plain line says how each trial ended."""

    def test_one_line_for_each_trial_and_nothing_on_stdout(self):
        seen = piped()
        assert (seen.stdout, seen.status) == ("", 0)
        assert len(seen.lines) == 6
        assert seen.lines[-2] == "ended: the budget of 4 evaluations is spent"
        assert seen.lines[-1].startswith("the next evaluation is expected to bring ")
        for number, line in enumerate(seen.lines[:-2]):
            value = 10 - number
            assert line.startswith(f"trial {number}: value {value}, cost ")
            assert f"best {value}, {number + 1} done, {25 * (number + 1)}% of 4 evaluations used" in line
        assert "\x1b" not in seen.stderr
        assert "\r" not in seen.stderr

    def test_a_failure_is_one_line_with_its_reason(self):
        seen = piped("if number == 1: raise ValueError('boom')")
        assert len(seen.lines) == 6, seen.stderr
        assert seen.lines[1].startswith("trial 1: failed: ValueError: boom, cost ")
        assert "best 10, 1 done, 1 failed" in seen.lines[1]

    def test_before_a_success_there_is_no_best(self):
        assert "best none yet, 0 done, 1 failed" in piped("1 / 0").lines[0]

    def test_values_are_in_the_users_sign(self):
        lines = piped(maximize=True).lines
        assert "value 7," in lines[3]
        assert "best 10," in lines[3]

    def test_lines_appear_while_the_run_goes_on(self):
        """Each line is there before the next trial begins, not at the end."""
        (answers, stdin), (output, stdout), (error, stderr) = (os.pipe() for _ in range(3))
        text = script("assert number == 0 or input() == str(number - 1)", True, {})
        running = PYTHON.start(text, stdin=answers, stdout=stdout, stderr=stderr, environment=environment())
        for descriptor in (answers, stdout, stderr):
            os.close(descriptor)
        with open(error) as lines:
            for number in range(4):
                assert lines.readline().startswith(f"trial {number}: value")
                os.write(stdin, f"{number}\n".encode())
            assert lines.readline() == "ended: the budget of 4 evaluations is spent\n"
        assert (read_all(output), running.wait()) == ("", 0)
        os.close(stdin)

    def test_an_interruption_says_how_to_go_on(self, tmp_path):
        path = str(tmp_path / "study.db")
        seen = piped("if number == 2: raise KeyboardInterrupt", storage=path)
        assert seen.status == 130
        assert "the best is trial 1, value 9, {'x': " in seen.lines[-1]
        assert "interrupted" in seen.lines[-1]
        assert f"Study.resume({path!r})" in seen.lines[-1]


class TestLive:
    """On a terminal, one line is redrawn while trials run."""

    def test_it_shows_the_bar_the_share_and_the_best_value(self):
        seen = on_terminal("time.sleep(0.15)")
        assert (seen.stdout, seen.status) == ("", 0)
        shown = ESCAPES.sub("", seen.stderr)
        assert "━" * 24 in shown
        assert "25% of 4 evaluations  best 10, 1 done" in shown, "while it ran"
        assert "100% of 4 evaluations  best 7, 4 done" in shown, "at the end"
        assert "trial 2 running" in shown

    def test_the_bar_fills_as_the_budget_is_used(self):
        seen = on_terminal("time.sleep(0.15)")
        green = [len(run) for run in re.findall("\x1b\\[32m(━+)", seen.stderr)]
        assert green == sorted(green)
        assert {6, 12, 24} <= set(green)

    def test_the_line_is_redrawn_in_place(self):
        seen = on_terminal("time.sleep(0.15)")
        assert "\x1b[2K" in seen.stderr, "a line is cleared before it is drawn again"
        assert seen.stderr.count("\n") <= 2, "it does not scroll"

    def test_the_last_state_stays_and_the_cursor_comes_back(self):
        seen = on_terminal("time.sleep(0.15)")
        assert seen.stderr.rindex("\x1b[?25h") > seen.stderr.rindex("\x1b[?25l")
        assert "100%" in ESCAPES.sub("", seen.stderr).splitlines()[-1]

    def test_the_cursor_comes_back_after_an_error_too(self, tmp_path):
        path = str(tmp_path / "study.db")
        seen = on_terminal(f"import os; os.remove({path!r})", storage=path)
        assert seen.status == 1
        assert seen.stderr.rindex("\x1b[?25h") > seen.stderr.rindex("\x1b[?25l")

    def test_an_interruption_says_how_to_go_on(self, tmp_path):
        path = str(tmp_path / "study.db")
        seen = on_terminal("if number == 2: raise KeyboardInterrupt", columns=400, storage=path)
        assert seen.status == 130
        assert seen.stderr.rindex("\x1b[?25h") > seen.stderr.rindex("\x1b[?25l"), "and the cursor comes back"
        assert f"Study.resume({path!r})" in ESCAPES.sub("", seen.stderr)

    def test_a_narrow_terminal_still_shows_one_line(self):
        seen = on_terminal("time.sleep(0.15)", columns=40)
        assert seen.stderr.count("\n") <= 2
        shown = re.split("[\r\n]", ESCAPES.sub("", seen.stderr))
        assert all(len(line) <= 40 for line in shown if "expected to bring" not in line)

    def test_a_failure_shows(self):
        seen = on_terminal("if number == 1: raise ValueError('boom')")
        assert "best 7, 3 done, 1 failed" in ESCAPES.sub("", seen.stderr)

    def test_the_objectives_output_goes_where_it_was_sent(self):
        """python tune.py > results.txt: what the objective prints belongs into the file."""
        seen = on_terminal("print('mine', number)")
        assert seen.stdout == "mine 0\nmine 1\nmine 2\nmine 3\n"
        assert "mine" not in seen.stderr

    def test_the_objectives_output_on_the_same_terminal_is_not_overdrawn(self):
        seen = on_terminal("time.sleep(0.15); print('mine', number)", both=True)
        shown = ESCAPES.sub("", seen.stderr)
        for number in range(4):
            assert re.search(f"(^|[\r\n])mine {number}\r?\n", shown), shown
