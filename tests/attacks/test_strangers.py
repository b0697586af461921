"""A study file of a stranger runs nothing unasked: `farthing resume` shows what it would run, and needs a yes.

In every file here the stranger's code leaves a file behind, `ran`. Unless the user said yes, it must not be there.
"""

from __future__ import annotations

import os
import pty
import shlex
import shutil
import subprocess
from contextlib import chdir, redirect_stderr, suppress
from io import StringIO
from pathlib import Path

import pytest

import farthing as ft
from called import FARTHING, PATIENCE, Folder
from farthing.cli import main

PROGRAM = "sh -c 'touch ran; echo {x}'"
SCRIPT = """
from pathlib import Path
import farthing as ft

Path("ran").touch()
space = ft.Space(x=ft.Integer(0, 100), f=ft.Choice([min, max]))


def objective(config):
    return config["x"]
"""
PLAIN = ft.Space(x=ft.Integer(0, 100))
WITH_FUNCTIONS = ft.Space(x=ft.Integer(0, 100), f=ft.Choice([min, max]))  # which a file cannot hold
BEFORE_THE_COMMAND = ("to do so: ", "to allow it: ")


def sent(folder: Folder, space: ft.Space = PLAIN, name: str = "s.db", /, **note: object) -> None:
    """A file as a stranger would send it."""
    with ft.Study(space, "2 evaluations", policy="random", seed=0, storage=folder.path / name) as study:
        study.note(cli=note)


def ran(folder: Folder) -> bool:
    return (folder.path / "ran").exists()


def own(folder: Folder, *more: str) -> None:
    """A study that this user has run."""
    folder.call(
        "run", "--command", PROGRAM, "--space", "space.toml", "--budget", "1 evaluations", "--policy", "random",
        "--storage", "s.db", "-q", *more,
    )  # fmt: skip
    (folder.path / "ran").unlink()


def refused(folder: Folder, *arguments: str, **environment: str) -> str:
    """What is said by a resume that must not run anything."""
    ended = subprocess.run(
        [str(FARTHING), "resume", *arguments], cwd=folder.path, env={**os.environ, **environment},
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE,
    )  # fmt: skip
    assert not ran(folder), "the stranger's code was run"
    assert ended.returncode == 2, (ended.returncode, ended.stderr)
    assert "Traceback" not in ended.stderr
    return ended.stderr


class TestAStrangersFile:
    def test_its_command_is_shown_and_runs_only_when_the_command_that_is_named_is_given(self, folder):
        sent(folder, command=PROGRAM)
        told = refused(folder, "s.db", "--budget", "3 evaluations", "-q")
        assert f"  command   {PROGRAM}\n  folder    {folder.path}\n" in told
        again = next(told.partition(start)[2] for start in BEFORE_THE_COMMAND if start in told)
        assert shlex.split(again)[0] == "farthing"
        folder.call(*shlex.split(again)[1:])
        assert ran(folder)
        assert "3 complete" in folder.answer("status", "s.db")

    def test_its_script_is_not_even_imported(self, folder):
        folder.write("train.py", SCRIPT)
        sent(folder, WITH_FUNCTIONS, objective="train.py:objective", space="train.py:space")
        told = refused(folder, "s.db")
        assert "  function  train.py:objective\n" in told
        folder.call("resume", "s.db", "--yes", "-q")
        assert ran(folder)

    def test_with_a_command_of_the_users_its_script_of_the_space_still_needs_a_yes(self, folder):
        folder.write("train.py", SCRIPT)
        sent(folder, WITH_FUNCTIONS, objective="other.py:f", space="train.py:space")
        told = refused(folder, "s.db", "--objective", "mine.py:objective")
        assert "  space     train.py:space\n" in told
        assert "other.py" not in told, "that is replaced by the user's own words"

    def test_with_a_command_of_the_users_it_does_not_say_how_many_workers_there_are(self, folder):
        many = (os.cpu_count() or 1) + 1
        sent(folder, command="true", workers=many)
        assert f"asks for {many} workers" in refused(folder, "s.db", "--command", "sh -c 'touch ran; echo {x}'")

    def test_code_outside_of_the_current_folder_needs_a_flag_of_its_own(self, folder):
        inner, elsewhere = folder.path / "inner", folder.path / "elsewhere"
        inner.mkdir()
        elsewhere.mkdir()
        folder.script("elsewhere/run.sh", f"touch {folder.path}/ran; echo $1")
        (inner / "linked.py").symlink_to(folder.write("elsewhere/train.py", SCRIPT))
        (inner / "linked").symlink_to(elsewhere)
        notes = {
            "folder": {"command": "./run.sh {x}", "folder": "../elsewhere"},
            "linked folder": {"command": "./run.sh {x}", "folder": "linked"},
            "program": {"command": "../elsewhere/run.sh {x}"},
            "script": {"objective": "../elsewhere/train.py:objective"},
            "linked script": {"objective": "linked.py:objective"},
            "installed module": {"objective": "farthing.problems.demo:objective"},
        }
        here = Folder(inner)
        for name, note in notes.items():
            sent(here, PLAIN, f"{name}.db", **note)
            with chdir(inner), redirect_stderr(StringIO()) as told:
                assert main(["resume", f"{name}.db", "--yes"]) == 2, (name, told.getvalue())
            assert "--outside" in told.getvalue(), name
            assert not ran(folder), name
        here.call("resume", "linked folder.db", "--yes", "--outside", "-q")
        assert ran(folder)

    @pytest.mark.parametrize(("answer", "status"), [("y", 0), ("", 2)])
    def test_at_a_terminal_it_is_asked_and_the_default_is_no(self, folder, answer, status):
        sent(folder, command=PROGRAM)
        pid, terminal = pty.fork()
        if pid == 0:
            os.chdir(folder.path)
            os.execv(FARTHING, [str(FARTHING), "resume", "s.db", "-q"])
        said = b""
        with suppress(OSError):  # EIO: it has ended
            while b"[y/N]" not in said and (some := os.read(terminal, 4096)):
                said += some
            if b"[y/N]" in said:
                os.write(terminal, f"{answer}\n".encode())
            while some := os.read(terminal, 4096):
                said += some
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        os.close(terminal)
        assert b"Run this? [y/N]" in said
        assert (code, ran(folder)) == (status, answer == "y"), said

    def test_notes_that_make_no_sense_are_refused_by_name(self, folder):
        notes = {
            "a list": ["touch ran"],
            "command": {"command": ["touch", "ran"]},
            "objective": {"objective": 7},
            "workers": {"command": PROGRAM, "workers": "9999999"},
            "9999999": {"command": PROGRAM, "workers": 9999999},
            "steps": {"command": PROGRAM, "steps": -1},
            "iterative": {"command": PROGRAM, "iterative": "yes"},
            "pause": {"command": PROGRAM, "iterative": True, "pause": "rm"},
            "trial_seconds": {"command": PROGRAM, "trial_seconds": {"a": 1}},
            "folder": {"command": PROGRAM, "folder": "a\0b"},
            "space": {"objective": "x.py:f", "space": []},
            "nothing": {},
        }
        for name, note in notes.items():
            path = folder.path / f"{name}.db"
            with ft.Study(PLAIN, "2 evaluations", storage=path) as study:
                study.note(cli=note)
            with chdir(folder.path), redirect_stderr(StringIO()) as told:
                assert main(["resume", path.name]) == 2, (name, told.getvalue())
                assert main(["status", path.name]) == 0, (name, told.getvalue())
            said = told.getvalue()
            assert f"farthing: error: {path.name}: " in said or name in ("pause", "nothing"), said
            assert name in said or name in ("a list", "nothing"), said
            assert "unexpected" not in said


class TestTheMark:
    def test_ones_own_study_goes_on_without_a_question(self, folder, tmp_path):
        config = tmp_path / "home" / ".config"
        environment = {**os.environ, "HOME": str(tmp_path / "home")}
        del environment["XDG_CONFIG_HOME"]
        arguments = ["--space", "space.toml", "--budget", "1 evaluations", "--storage", "s.db", "-q"]
        folder.call("run", "--command", PROGRAM, *arguments, env=environment)
        folder.call("resume", "s.db", "--budget", "2 evaluations", "-q", env=environment)
        key = config / "farthing" / "key"
        assert key.exists(), "there is no key"
        assert (key.stat().st_mode & 0o777, len(key.read_bytes())) == (0o600, 32)
        assert key.parent.stat().st_mode & 0o777 == 0o700

    def test_it_is_worth_nothing_for_anything_else(self, folder):
        """A stranger alters one thing in a file that carries the user's mark."""
        own(folder)
        (folder.path / "other").mkdir()
        with ft.Study.resume(folder.path / "s.db") as study:
            note = study.notes["cli"]
        changes = {
            "command": {"command": PROGRAM.replace("echo", "echo 1; echo")}, "folder": {"folder": "other"},
            "steps": {"steps": 3}, "iterative": {"iterative": True}, "space": {"space": "space.py:space"},
            "workers": {"workers": 9},
        }  # fmt: skip
        for name, change in changes.items():
            with ft.Study(PLAIN, "9 evaluations", storage=folder.path / f"{name}.db") as study:
                study.note(cli={**note, **change})
        other_space = ft.Space(x=ft.Choice(["; touch ran"]))
        with ft.Study(other_space, "9 evaluations", storage=folder.path / "values.db") as study:
            study.note(cli=note)
        for name in (*changes, "values"):
            with chdir(folder.path), redirect_stderr(StringIO()) as told:
                assert main(["resume", f"{name}.db", "-q"]) == 2, (name, told.getvalue())
            assert "does not carry your mark" in told.getvalue()
            assert not ran(folder), name

    def test_it_does_not_move_to_another_folder_or_to_another_key(self, folder, tmp_path_factory):
        own(folder)
        refused(folder, "s.db", "--budget", "3 evaluations", XDG_CONFIG_HOME=str(tmp_path_factory.mktemp("other")))
        copy = Folder(tmp_path_factory.mktemp("copy"))
        shutil.copytree(folder.path, copy.path, dirs_exist_ok=True)
        refused(copy, "s.db", "--budget", "3 evaluations")

    def test_a_key_that_may_be_anothers_is_not_used(self, folder, tmp_path_factory, monkeypatch):
        config = tmp_path_factory.mktemp("config")
        monkeypatch.setenv("XDG_CONFIG_HOME", str(config))
        own(folder)
        key = config / "farthing" / "key"
        assert key.exists(), "there is no key"
        kept = key.read_bytes()

        def elsewhere() -> None:
            key.symlink_to(key.rename(config / "elsewhere"))

        def pipe() -> None:
            key.unlink()
            os.mkfifo(key, 0o600)

        spoilt = {
            "others may read it": lambda: key.chmod(0o644), "is a symbolic link": elsewhere, "is not a file": pipe,
            "expected 32 bytes, got 5": lambda: key.write_bytes(b"short"),
            "farthing: others may write to it": lambda: key.parent.chmod(0o777),
        }  # fmt: skip
        for why, spoil in spoilt.items():
            key.unlink()
            key.touch(0o600)
            key.write_bytes(kept)
            spoil()
            with chdir(folder.path), redirect_stderr(StringIO()) as told:
                assert main(["resume", "s.db", "--budget", "3 evaluations"]) == 2, why
            assert f"farthing: warning: the mark of the file cannot be checked: {config}/farthing" in told.getvalue()
            assert why in told.getvalue()
            assert not ran(folder), why

    def test_without_a_place_for_a_key_it_says_so_once_and_runs_unmarked(self, folder):
        environment = {**os.environ, "XDG_CONFIG_HOME": "/dev/null"}
        ended = folder.call(
            "run", "--command", PROGRAM, "--space", "space.toml", "--budget", "1 evaluations", "--storage", "s.db",
            "-q", env=environment,
        )  # fmt: skip
        assert ended.stderr.count("farthing: warning: the study is stored without your mark") == 1
        (folder.path / "ran").unlink()
        refused(folder, "s.db", "--budget", "3 evaluations", XDG_CONFIG_HOME="/dev/null")

    def test_a_relative_config_folder_is_not_used(self, folder):
        """It could be the stranger's, sent with the file."""
        environment = {**os.environ, "XDG_CONFIG_HOME": "config", "HOME": str(folder.path / "home")}
        folder.call(
            "run", "--command", PROGRAM, "--space", "space.toml", "--budget", "1 evaluations", "--storage", "s.db",
            "-q", env=environment,
        )  # fmt: skip
        assert not (folder.path / "config").exists()
        assert Path(folder.path, "home/.config/farthing/key").exists()
