"""`farthing status --watch` shows a study that runs, on a terminal and elsewhere, whatever its names are."""

from __future__ import annotations

import io
import json
import os
import signal
from collections.abc import Iterator
from contextlib import chdir

import pytest
from rich.console import Console

import farthing as ft
from farthing.cli import main, picture, watching
from farthing.cli.picture import ASCII, BLOCKS, drawn, picture_of, signs_for, staircase
from farthing.record.reader import read_study
from farthing.record.storage import SQLiteLog
from screens import Screen
from warm_python import WarmPython

PYTHON = WarmPython()
EVIL = "<script>\x1b[2J\x1b]0;title\x07\n\u202e\u2028\ud800"
LONG = "x" * 100_000
FAST = ("--watch", "--interval", "0.05")


@pytest.fixture(scope="module", autouse=True)
def _close() -> Iterator[None]:
    yield
    PYTHON.close()


def told(study: ft.Study, *values: float | str) -> None:
    """Trials of cost 2 that have these values, or fail with these texts."""
    for value in values:
        given = {"failed": value} if isinstance(value, str) else {"value": value}
        study.tell(study.ask(), cost=2.0, **given)


def opened(folder, **options) -> ft.Study:
    space = options.pop("space", {"x": (0.0, 1.0), "kind": ["a b", "c"]})
    return ft.Study(space, ft.Budget(cost=20), policy="sobol", seed=0, storage=folder.path / "s.db", **options)


class TestOnATerminal:
    def test_a_run_is_drawn_in_place_until_it_ends(self, folder):
        """Each trial is seen before the next one begins."""
        screens: list[Screen] = []

        def objective(config):
            if not screens:
                screens.append(Screen(PYTHON, str(folder.path), "status", "s.db", *FAST))
            number = len(study.trials) - 1
            screens[0].see(f"running     trial {number}, ")
            if number == 1:
                raise ValueError("boom")
            return 10.0 - number

        with ft.Study({"x": (0.0, 1.0)}, "4 evaluations", policy="random", storage=folder.path / "s.db") as study:
            study.run(objective, isolate=False, progress=False)
        (screen,) = screens
        assert screen.end() == 0
        lines = screen.shown.splitlines()
        assert [line[:12].strip() for line in lines if line[:12].strip()] == [
            "study", "search", "best", "over cost", "budget", "trials", "last error", "ended",
        ], "the last picture stays, and no other"  # fmt: skip
        for part in ("best        7  (trial 3, cost ", "100% of 4 evaluations used", "4: 3 complete, 1 failed",
                     "trial 1: ValueError: boom", "the budget of 4 evaluations is spent", "█", "■ failed ",
                     "from 10 to 7 over ", "s.db, not running"):  # fmt: skip
            assert part in screen.shown, screen.shown
        assert screen.written.rindex(b"\x1b[?25h") > screen.written.rindex(b"\x1b[?25l"), "the cursor is back"

    def test_ctrl_c_ends_the_view_and_not_the_study(self, folder):
        with opened(folder) as study:
            told(study, 1.0)
            screen = Screen(PYTHON, str(folder.path), "status", "s.db", *FAST)
            screen.see("Ctrl-C ends this view, not the study")
            os.kill(screen.process.pid, signal.SIGINT)
            assert screen.end() == -signal.SIGINT, "as any program that Ctrl-C ends"
            assert "best        1  (trial 0" in screen.shown
            assert screen.written.rindex(b"\x1b[?25h") > screen.written.rindex(b"\x1b[?25l")
            told(study, 0.5)

    def test_a_strangers_names_and_errors_stay_on_their_lines_of_a_narrow_terminal(self, folder):
        space = ft.Space.of({EVIL[:-1]: ft.Choice([EVIL, LONG]), LONG: ft.Choice(["a", LONG])})
        with opened(folder, space=space) as study:
            told(study, 1.0, EVIL + LONG, 0.5)
        screen = Screen(PYTHON, str(folder.path), "status", "s.db", "--watch", columns=50)
        assert screen.end() == 0, screen.shown
        lines = screen.shown.rstrip().splitlines()
        assert len(lines) < 16
        assert all(len(line) <= 50 for line in lines)
        assert b"\x1b[2J" not in screen.written
        assert b"\x1b]" not in screen.written
        assert "\u202e" not in screen.shown
        assert r"last error  trial 1: " in screen.shown

    def test_where_there_are_no_blocks_it_is_drawn_in_letters(self, folder):
        with opened(folder) as study:
            told(study, 3.0, "no", 1.0)
        screen = Screen(PYTHON, str(folder.path), "status", "s.db", "--watch", encoding="ascii")
        assert screen.end() == 0
        assert screen.shown.isascii()
        assert "eeee" in screen.shown
        assert "ff" in screen.shown
        assert "#" in screen.shown


class TestElsewhere:
    """There is one line for each change. Time passes only as the test says."""

    @pytest.fixture
    def seen(self, folder, monkeypatch, capsys):
        """Runs `status --watch` while a study goes on: at each look the next of some steps."""

        def watched(study: ft.Study, steps: list[object], *options: str) -> list[str]:
            left = iter(steps)
            monkeypatch.setattr(watching.time, "sleep", lambda seconds: (waits.append(seconds), next(left)()))
            with chdir(folder.path):
                assert main(["status", "s.db", "--watch", *options]) == 0
            assert next(left, None) is None
            return capsys.readouterr().out.splitlines()

        waits: list[float] = []
        watched.waits = waits
        return watched

    def test_a_line_for_each_change_and_none_for_no_change(self, folder, seen):
        study = opened(folder)
        told(study, 3.0)
        lines = seen(
            study, [lambda: None, lambda: told(study, 1.0), lambda: None, lambda: told(study, "no"), study.close]
        )  # fmt: skip
        assert lines == [
            "trials 1: 1 complete; best 3; 10% of 20 cost used",
            "trials 2: 2 complete; best 1; 20% of 20 cost used",
            "trials 3: 2 complete, 1 failed; best 1; 30% of 20 cost used",
            "trials 3: 2 complete, 1 failed; best 1; 30% of 20 cost used; not running",
        ]
        assert seen.waits == [1.0] * 5

    def test_json_is_a_line_for_each_change_and_the_same_as_of_status(self, folder, seen):
        study = opened(folder)
        told(study, 3.0)
        steps = [lambda: told(study, EVIL), lambda: None, lambda: told(study, 1.0), study.close]
        lines = seen(study, steps, "--json", "--interval", "0.5")
        assert [json.loads(line)["trials"] for line in lines] == [
            {"complete": 1}, {"complete": 1, "failed": 1}, {"complete": 2, "failed": 1}, {"complete": 2, "failed": 1},
        ]  # fmt: skip
        assert json.loads(lines[-1]) == json.loads(folder.answer("status", "s.db", "--json"))
        assert all(line.isascii() for line in lines)
        assert [json.loads(line)["runner"] is None for line in lines] == [False, False, False, True]

    def test_only_what_is_new_is_read(self, folder, seen, monkeypatch):
        whole = []
        read = SQLiteLog.read
        monkeypatch.setattr(SQLiteLog, "read", lambda log: (whole.append(log), read(log))[1])
        study = opened(folder)
        told(study, 3.0)
        before = len(whole)
        seen(study, [lambda: told(study, 2.0), lambda: told(study, 1.0), study.close])
        assert len(whole) == before + 1

    def test_a_study_that_nobody_runs_is_shown_once(self, folder, seen):
        study = opened(folder)
        told(study, 3.0)
        study.close()
        assert seen(study, []) == ["trials 1: 1 complete; best 3; 10% of 20 cost used; not running"]

    def test_options_that_make_no_sense_together_are_refused(self, folder):
        opened(folder).close()
        assert "--interval goes with --watch" in folder.error("status", "s.db", "--interval", "1")
        assert "not with --watch" in folder.error("status", "s.db", "--watch", "--outlook")
        assert "0" in folder.error("status", "s.db", "--watch", "--interval", "0")
        assert "there is no such study file" in folder.error("status", "no.db", "--watch", status=1)


class TestPicture:
    def picture(self, folder, *values, **options) -> picture.Picture:
        with opened(folder, **options) as study:
            told(study, *values)
        return picture_of(read_study(folder.path / "s.db"))

    def test_its_points_are_the_best_values_after_each_cost_in_the_users_sign(self, folder):
        found = self.picture(folder, 3.0, 5.0, "no", 4.0, 7.0, maximize=True)
        assert found.points == ((2.0, 3.0), (4.0, 5.0), (6.0, 5.0), (8.0, 5.0), (10.0, 7.0))

    @pytest.mark.parametrize("width", [40, 80, 500])
    def test_it_is_as_wide_as_the_terminal_and_not_wider(self, folder, width):
        found = self.picture(folder, 3.0, "no" * 99, 1.0)
        for signs in (BLOCKS, ASCII):
            console = Console(file=io.StringIO(), width=width)
            console.print(drawn(found, width, 0.0, signs))
            lines = [line.rstrip() for line in console.file.getvalue().splitlines()]
            assert max(map(len, lines)) <= width
            assert max(len(line) for line in lines if "over" in line or line.startswith("budget")) > min(width, 110) - 8

    def test_the_bar_is_as_long_as_the_used_part(self, folder):
        text = drawn(self.picture(folder, 3.0, "no", 1.0), 133, 0.0, ASCII).plain
        bar = next(line for line in text.splitlines() if line.startswith("budget"))[12:].split("  ")[0]
        used, failed = bar.count("e") + bar.count("f"), bar.count("f")
        assert used / len(bar) == pytest.approx(0.3, abs=0.01)
        assert failed / len(bar) == pytest.approx(0.1, abs=0.01)

    def test_of_many_running_trials_some_are_listed(self, folder):
        with opened(folder) as study:
            study.ask(9)
            text = drawn(picture_of(read_study(folder.path / "s.db")), 100, 0.0).plain
        assert text.count("running     trial") == 5
        assert "... and 4 more" in text

    @pytest.mark.parametrize("levels", [BLOCKS.levels, ASCII.levels])
    def test_a_staircase_is_as_high_as_the_best_value_at_each_cost(self, levels):
        points = [(10.0, 8.0), (30.0, 6.0), (60.0, 2.0), (100.0, 1.0)]
        full, rows, width = len(levels) - 1, 3, 20
        lines = staircase(points, width, rows, levels)
        for column in range(width):
            at = 100.0 * (column + 1) / width
            known = [value for cost, value in points if cost <= at]
            height = sum(levels.index(line.ljust(width)[column]) for line in lines)
            assert height == (1 + round((min(known) - 1.0) / 7.0 * (rows * full - 1)) if known else 0)

    @pytest.mark.parametrize("points", [[], [(1.0, 2.0)], [(1.0, 2.0), (3.0, 2.0)], [(0.0, 2.0), (0.0, 1.0)]])
    def test_where_nothing_changes_nothing_is_drawn(self, points):
        assert staircase(points, 20, 3, BLOCKS.levels) == []

    def test_blocks_are_for_terminals_that_have_them(self):
        assert signs_for("utf-8") is BLOCKS
        assert {signs_for(name) for name in ("ascii", "latin-1", None, "no such encoding")} == {ASCII}
