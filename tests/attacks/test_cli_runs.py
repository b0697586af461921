"""Runs of the command line: what killed ones leave behind, what large space files take, and from when time counts."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from called import PATIENCE, until
from farthing.cli import main

ARGUMENTS = ("--space", "space.toml", "--budget", "1 evaluations", "--policy", "random", "-q")
OPTIONS = 30_000
AT_ONCE = 60.0  # seconds on a busy machine; a way that compares all options with each other takes minutes
LATE = 1.5  # seconds that a script takes to be imported


def folders_in(place: Path) -> set[str]:
    return {path.name for path in place.iterdir() if path.name.startswith("farthing-")}


class TestTemporaryFolders:
    def test_that_of_a_killed_run_is_removed_by_the_next_and_no_other(self, folder):
        place, other = folder.path / "tmp", folder.path / "other"
        for made in (place, other, other / "trial-0", place / "farthing-mine"):
            made.mkdir()
        environment = {**os.environ, "TMPDIR": str(place)}
        folder.script("slow.sh", "echo $FARTHING_RESULT > $1; while [ ! -e go ]; do sleep 0.02; done; echo 1")

        def started(name: str) -> subprocess.Popen[str]:
            process = folder.start("run", "--command", f"./slow.sh {name} {{x}}", *ARGUMENTS, env=environment)
            until((folder.path / name).exists)
            return process

        killed = started("killed")
        of_killed = folders_in(place) - {"farthing-mine"}
        lives = started("lives")
        of_lives = folders_in(place) - of_killed - {"farthing-mine"}
        left, kept = (Path(folder.read(name).strip()).parent for name in ("killed", "lives"))
        assert left.parent == kept.parent == place
        assert left.stat().st_mode & 0o777 == 0o700
        (left / "more").mkdir()
        (left / "more" / "linked").symlink_to(other)
        (place / "farthing-run-linked").symlink_to(other)
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        folder.call("run", "--command", "echo {x}", *ARGUMENTS, env=environment)
        assert folders_in(place) == {*of_lives, "farthing-mine", "farthing-run-linked"}
        assert (other / "trial-0").is_dir(), "no link is followed"
        folder.write("go", "")
        lives.communicate(timeout=PATIENCE)
        assert lives.returncode == 0
        assert folders_in(place) == {"farthing-mine", "farthing-run-linked"}


class TestLargeSpaceFiles:
    @pytest.mark.parametrize("option", ["[{0}, 'a']", "{{a = {0}}}"])
    def test_options_that_are_arrays_or_tables_are_read_at_once(self, folder, option):
        options = ", ".join(option.format(number) for number in range(OPTIONS))
        folder.write("space.toml", f"k = {{type = 'choice', options = [{options}]}}\n")
        code = "from farthing.cli.space_file import read_space; print(read_space('space.toml').params['k'].levels)"
        try:
            ended = subprocess.run(
                [sys.executable, "-c", code], cwd=folder.path, capture_output=True, text=True, timeout=AT_ONCE
            )
        except subprocess.TimeoutExpired:
            ended = None
        assert ended is not None, "it compares all options with each other"
        assert ended.stdout == f"{OPTIONS}\n", ended.stderr

    @pytest.mark.parametrize(
        ("value", "error"),
        [("[" * 2000 + "]" * 2000, "nested too deeply"), ("9" * 5001, "cannot be read: Exceeds the limit")],
        ids=["deep", "many digits"],
    )
    def test_what_python_cannot_read_is_an_error_of_the_file(self, folder, monkeypatch, capsys, value, error):
        monkeypatch.chdir(folder.path)
        folder.write("space.toml", f"k = {{type = 'choice', options = [{value}]}}\n")
        status = main(["run", "--command", "true", "--space", "space.toml", "--budget", "1s"])
        told = capsys.readouterr().err
        assert (status, error in told, told.startswith("farthing: error: space.toml: ")) == (2, True, True), told


def test_time_counts_from_the_start_of_the_process(folder):
    """That which a script takes to be imported is in the ledger."""
    folder.write("train.py", f"import time\ntime.sleep({LATE})\ndef objective(config): return 1.0\n")
    ended = folder.call("run", "train.py:objective", *ARGUMENTS, "--json", "--storage", "s.db")
    spent = json.loads(ended.stdout)["ledger"]["accounts"]["optimiser"]["seconds"]
    assert LATE < spent < LATE + 60.0
    ended = folder.call("resume", "s.db", "--budget", "2 evaluations", "-q", "--json")
    assert json.loads(ended.stdout)["ledger"]["accounts"]["optimiser"]["seconds"] > spent + LATE


def test_sighup_ends_a_run_as_sigterm_does(folder):
    folder.script("slow.sh", "touch there; sleep 300")
    process = folder.start("run", "--command", "./slow.sh {x}", *ARGUMENTS, "--storage", "s.db")
    until((folder.path / "there").exists)
    process.send_signal(signal.SIGHUP)
    process.communicate(timeout=PATIENCE)
    assert process.returncode == 129
    assert "1 interrupted" in folder.answer("status", "s.db")
