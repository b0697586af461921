"""What strangers wrote is shown without control codes, and what cannot be written ends nothing."""

from __future__ import annotations

import csv
import fcntl
import io
import json
import os
import subprocess
import sys
import unicodedata

import pytest

import farthing as ft
from called import FARTHING, PATIENCE, Folder

EVIL = "\x1b[2J\x1b]0;title\x07 \x9b31m \x7f \u202e\u2066 \u2028\u2029 \ud800 \r\n"
BAD = "bad \x1b[2J \x9b31m \u202e \ud800"  # on one line
FORGED = "\ntrials      1000: 1000 complete"
HANGS = 30.0  # seconds after which a program that has nothing to do is taken to hang


def evil_study(folder: Folder) -> None:
    """Escape codes in everything that a file can hold as text."""
    space = ft.Space({f"n{EVIL}{FORGED}": ft.Choice([f"o{EVIL}{FORGED}", "other"]), "x": ft.Real(0, 1)})
    with ft.Study(space, ft.Budget(cost=100), policy="sobol", seed=0, storage=folder.path / "s.db") as study:
        for number in range(4):
            study.tell(study.ask(), value=float(number), cost=1.0, **{f"a{EVIL}": EVIL})
        study.tell(study.ask(), failed=f"e{EVIL}{FORGED}", cost=1.0)
        shown = f"{EVIL}{FORGED}".replace("\ud800", "")  # no path can hold that one
        study.note(cli={"command": f"c{shown}", "folder": f"f{shown}"})
        study.ask()
    folder.write("s.db.lock", f"process 1 on elsewhere{EVIL.encode(errors='replace').decode()}{FORGED}")


def unsafe(text: str) -> set[str]:
    """The characters of a text that a terminal may obey, and those that no encoding has."""
    kinds = {"Cc", "Cs", "Zl", "Zp"}
    directions = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
    return {
        char for char in text if unicodedata.category(char) in kinds or unicodedata.bidirectional(char) in directions
    }


def said(folder: Folder, *arguments: str) -> tuple[int, str, str]:
    ended = subprocess.run(
        [str(FARTHING), *arguments], cwd=folder.path, capture_output=True, timeout=PATIENCE, stdin=subprocess.DEVNULL
    )
    return ended.returncode, ended.stdout.decode(errors="surrogateescape"), ended.stderr.decode()


class TestEscapes:
    @pytest.mark.parametrize("command", ["status", "best", "pareto", "resume"])
    def test_no_command_shows_a_control_code_or_a_forged_line(self, folder, command):
        assert len(unsafe(EVIL)) == 11, "an empty answer below is not for want of looking"
        evil_study(folder)
        status, out, told = said(folder, command, "s.db")
        assert status == {"resume": 2}.get(command, 0), (out, told)
        for text in (out, told):
            assert unsafe(text) <= {"\n"}
            assert not any(line.startswith("trials      1000") for line in text.splitlines())
        assert "\\x1b[2J" in out + told, "what is there is shown"

    def test_json_is_valid_and_says_what_the_file_does(self, folder):
        evil_study(folder)
        (status, out, told) = said(folder, "export", "s.db", "--json")
        assert (status, unsafe(out)) == (0, {"\n"}), told
        trials = json.loads(out)
        assert set(trials[0]["config"]) == {f"n{EVIL}{FORGED}", "x"}
        assert trials[0]["attributes"] == {f"a{EVIL}": EVIL}
        assert trials[4]["error"] == f"e{EVIL}{FORGED}".replace("\ud800", "\\ud800")  # as the file has it: for people

    def test_an_export_is_whole_or_not_there(self, folder):
        """A lone surrogate used to leave an empty file in the place of the last export."""
        evil_study(folder)
        folder.write("t.csv", "the export before\n")
        status, _, told = said(folder, "export", "s.db", "--csv", "t.csv", "--json", "t.json")
        assert status == 0, told
        assert len(json.loads(folder.read("t.json"))) == 6
        text = folder.path.joinpath("t.csv").read_bytes().decode()
        assert unsafe(text) <= {"\n"}
        rows = list(csv.reader(io.StringIO(text)))
        assert len(rows) == 7, "a row for each trial and the header"
        assert {path.name for path in folder.path.iterdir()} == {"s.db", "s.db.lock", "space.toml", "t.csv", "t.json"}

    def test_a_file_that_cannot_be_written_leaves_the_one_before(self, folder):
        """As on a full disk, after 500 bytes."""
        with ft.Study(ft.Space(x=ft.Real(0, 1)), "9 evaluations", storage=folder.path / "s.db") as study:
            for _ in range(9):
                study.tell(study.ask(), value=1.0)
        folder.write("t.json", "the export before\n")
        code = (
            "import resource, signal, sys\nfrom farthing.cli import main\nfrom farthing.record import reader\n"
            "read = reader.read_study\ndef limited(path):\n"
            "    study = read(path)\n"
            "    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
            "    resource.setrlimit(resource.RLIMIT_FSIZE, (500, 500))\n"
            "    return study\nreader.read_study = limited\nsys.exit(main(['export', 's.db', '--json', 't.json']))"
        )
        ended = subprocess.run([sys.executable, "-c", code], cwd=folder.path, capture_output=True, text=True)
        assert (ended.returncode, "File too large" in ended.stderr) == (1, True), ended.stderr
        assert folder.read("t.json") == "the export before\n"
        assert not list(folder.path.glob("*.part"))

    def test_errors_of_objectives_are_escaped_in_progress_and_at_the_end(self, folder):
        folder.write("train.py", f"def objective(config):\n    raise ValueError({BAD!a})\n")
        arguments = ["--space", "space.toml", "--budget", "1 evaluations"]
        status, _, told = said(folder, "run", "train.py:objective", *arguments)
        assert (status, told.count("bad")) == (3, 2), told
        assert unsafe(told) <= {"\n"}

    def test_what_a_spreadsheet_would_run_is_text(self, folder):
        formulas = ["=cmd|'/c calc'!A0", "+1+2", "-2+3", "@SUM(A1)", "\t=1", "\r=1"]
        with ft.Study(
            ft.Space(f=ft.Choice(formulas), low=ft.Integer(-9, -1)), "54 evaluations", policy="random", seed=0,
            storage=folder.path / "s.db",
        ) as study:  # fmt: skip
            for _ in range(54):
                study.tell(study.ask(), value=-1.5, note="-5")
        text = folder.answer("export", "s.db")
        assert "\r" not in text
        rows = list(csv.DictReader(io.StringIO(text)))
        assert len({row["config.f"] for row in rows}) == len(formulas)
        assert all(row["config.f"].startswith("'") for row in rows)
        assert all(float(row["value"]) == -1.5 and int(row["config.low"]) < 0 for row in rows), "numbers are numbers"
        assert {row["attributes.note"] for row in rows} == {"-5"}


class TestWhereNothingCanBeWritten:
    RUN = "run --command 'echo {x}' --space space.toml --budget '2 evaluations' --storage s.db --policy random"

    @pytest.mark.parametrize(
        ("streams", "status"),
        [(">&-", 0), ("<&- >&- 2>&-", 0), (">/dev/full", 1), (">/dev/full 2>/dev/full", 1)],
    )
    def test_a_run_is_whole_whatever_becomes_of_its_streams(self, folder, streams, status):
        ended = subprocess.run(
            ["bash", "-c", f"exec {FARTHING} {self.RUN} {streams}"], cwd=folder.path, capture_output=True, text=True,
            timeout=PATIENCE,
        )  # fmt: skip
        assert (ended.returncode, "Traceback" in ended.stderr, "Exception" in ended.stderr) == (status, False, False)
        if streams == ">/dev/full":
            assert "the result cannot be written to standard output: No space left on device" in ended.stderr
            assert "the study is stored: farthing best s.db" in ended.stderr
        assert "2: 2 complete" in folder.answer("status", "s.db")

    def test_looking_says_that_it_cannot_write_and_no_more(self, folder):
        with ft.Study(ft.Space(x=ft.Real(0, 1)), "2 evaluations", storage=folder.path / "s.db") as study:
            study.tell(study.ask(), value=1.0)
        for command in ("best", "export"):
            ended = subprocess.run(
                ["bash", "-c", f"exec {FARTHING} {command} s.db >/dev/full"], cwd=folder.path, capture_output=True,
                text=True, timeout=PATIENCE,
            )  # fmt: skip
            assert ended.returncode == 1
            assert ended.stderr == "farthing: error: [Errno 28] No space left on device: 'standard output'\n"

    def test_an_error_that_nobody_reads_is_not_waited_for(self, folder):
        reader, writer = os.pipe()
        fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
        os.write(writer, b"x" * 4096)
        try:
            status = subprocess.run(
                [str(FARTHING), "best", "nowhere.db"], cwd=folder.path, stderr=writer, timeout=HANGS
            ).returncode
        except subprocess.TimeoutExpired:
            status = None
        os.close(reader)
        os.close(writer)
        assert status == 1, "it waits for ever"

    def test_json_is_valid_in_every_encoding(self, folder):
        with ft.Study(ft.Space(ü=ft.Choice(["日本", "𝄞"])), "2 evaluations", storage=folder.path / "s.db") as study:
            study.tell(study.ask(), value=1.0)
        ended = subprocess.run(
            [str(FARTHING), "best", "s.db", "--json"], cwd=folder.path, capture_output=True, timeout=PATIENCE,
            env={**os.environ, "PYTHONIOENCODING": "latin-1"},
        )  # fmt: skip
        assert ended.returncode == 0, ended.stderr
        assert set(json.loads(ended.stdout.decode("latin-1"))["config"].values()) <= {"日本", "𝄞"}
