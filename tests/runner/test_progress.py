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

import farthing as ft
from farthing.runner.closing import as_text, closing_rows
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
        assert seen.stderr.partition("best        ")[0].count("\n") <= 2, "it does not scroll"

    def test_the_cursor_comes_back(self):
        seen = on_terminal("time.sleep(0.15)")
        assert seen.stderr.rindex("\x1b[?25h") > seen.stderr.rindex("\x1b[?25l")

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
        assert seen.stderr.partition("best        ")[0].count("\n") <= 2
        assert all(len(line) <= 40 for line in re.split("[\r\n]", ESCAPES.sub("", seen.stderr)))

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


def closing(seen: Seen) -> list[str]:
    """The summary that is left on the terminal: what comes after the live line was erased."""
    after = seen.stderr[seen.stderr.rindex("\x1b[?25h") :]
    return ESCAPES.sub("", after).strip().splitlines()


class TestSummary:
    """On a terminal the last that a run shows is a short summary in the place of the line."""

    def test_it_says_each_thing_once_and_in_its_order(self, tmp_path):
        path = str(tmp_path / "s.db")
        seen = on_terminal("if number == 1: raise ValueError('boom')", columns=300, storage=path)
        lines = closing(seen)
        assert [line.split()[0] for line in lines] == [
            "best",
            "x",
            "trials",
            "last",
            "spent",
            "ended",
            "outlook",
            "next",
        ]
        assert re.fullmatch(r"best        7  \(trial 3, cost \S+s\)", lines[0])
        assert lines[2] == "trials      4: 3 complete, 1 failed"
        assert lines[3] == "last error  trial 1: ValueError: boom"
        assert re.fullmatch(
            r"spent       100% of 4 evaluations: evaluation \S+s, failed \S+s, (start-up \S+s, )?optimiser \S+s",
            lines[4],
        )
        assert lines[5] == "ended       the budget of 4 evaluations is spent"
        assert lines[6].startswith("outlook     the next evaluation is expected to bring ")
        assert lines[7] == f"next        farthing report {path}; Study.resume({path!r}, budget=...) continues it"
        assert seen.stderr.endswith("\r\n")

    def test_the_line_is_gone(self):
        seen = on_terminal("time.sleep(0.15)")
        assert "━" not in "".join(closing(seen))
        last = seen.stderr[: seen.stderr.index("best        7")].rpartition("━")[2]
        assert "\x1b[2K" in last, "it was erased after it was drawn for the last time"

    def test_a_study_without_a_file_is_told_of_files(self):
        assert closing(on_terminal(columns=300))[-1].startswith('next        storage="study.db" would keep the study')

    def test_after_ctrl_c_it_says_how_to_go_on_and_looks_not_ahead(self, tmp_path):
        path = str(tmp_path / "s.db")
        lines = closing(on_terminal("if number == 2: raise KeyboardInterrupt", columns=300, storage=path))
        assert "ended       interrupted after 3 trials" in lines
        assert lines[-1] == f"next        Study.resume({path!r}) continues it"
        assert not any(line.startswith("outlook") for line in lines)

    def test_without_a_success_it_says_that(self):
        lines = closing(on_terminal("1 / 0", columns=300))
        assert lines[0] == "best        none: no trial has succeeded"
        assert "last error  trial 3: ZeroDivisionError: division by zero" in lines

    def test_rows_are_wrapped_under_their_beginnings(self):
        lines = closing(on_terminal(columns=44))
        ended = lines.index("ended       the budget of 4 evaluations is")
        assert lines[ended + 1] == " " * 12 + "spent"


class TestClosingRows:
    """Of a study in memory, whose names and options may be a stranger's."""

    def rows(self, study: ft.Study) -> list[tuple[str, str]]:
        return closing_rows(study._session, "", "")

    def test_hostile_names_and_values_stay_on_their_line(self):
        evil = "a\x1b[2J\n\u202eb" + "x" * 100_000
        study = ft.Study(ft.Space.of({evil: ft.Choice([evil, "b"])}), ft.Budget(cost=5), start=[{evil: evil}])
        study.tell(study.ask(), value=1.0, cost=1.0)
        study.tell(study.ask(), failed=evil, cost=1.0)
        text = as_text(self.rows(study), 80)
        assert len(text) < 3000
        assert not set(text) & {"\x1b", "\u202e", "\r"}
        assert all(len(line) < 80 for line in text.split("\n"))

    def test_of_many_parameters_some_are_listed(self):
        study = ft.Study(ft.Space.of({f"p{i}": ft.Real(0, 1) for i in range(40)}), "9 evaluations")
        study.tell(study.ask(), value=1.0)
        rows = self.rows(study)
        assert ("  ", "... and 28 more") in rows
        assert len(rows) < 20

    def test_what_was_spent_is_all_that_was_spent(self):
        study = ft.tune(lambda config: config["x"], {"x": (0, 1.0)}, "1m, 5 evaluations", progress=False, seed=0)
        accounts = dict(self.rows(study))["spent       "].partition(": ")[2].split(", ")
        spent = sum(float(account.rpartition(" ")[2].removesuffix("s")) for account in accounts)
        assert spent == pytest.approx(study.ledger.spent, rel=0.01)
