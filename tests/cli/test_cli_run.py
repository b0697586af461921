"""`farthing run` and `farthing resume` of scripts and programs, whatever happens to them."""

from __future__ import annotations

import csv
import io
import json
import shutil
import signal
import subprocess
import sys
import time

import pytest

import farthing as ft
from called import PATIENCE, SPACE, Folder, pids_in, require_gone, until

SCRIPT = """
import farthing as ft

space = ft.Space(x=ft.Integer(0, 100))
number = 3
print("reading the script")


def objective(config):
    print("evaluating", config["x"])
    return {"value": abs(config["x"] - 70), "doubled": 2 * config["x"]}


def train(config):
    for step in range(1, 6):
        yield abs(config["x"] - 70) / step


def fails(config):
    raise ValueError("never mind")
"""
SHORT = ("--budget", "4 evaluations", "--policy", "random", "--seed", "1")
SLOW = [  # how a program shows that it is there
    "echo $$ >> pids",
    "sleep 0.03",
    "echo $(($1 - 70 < 0 ? 70 - $1 : $1 - 70))",
]


def trials_of(folder, name: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(folder.answer("export", name, "--csv"))))


SENSELESS = [
    (["train.py:nothing", "--space", "space.toml"], "train.py: does not define 'nothing'; it defines fails, ft"),
    (["train.py:number", "--space", "space.toml"], "train.py:number: expected a function of a config, got 3"),
    (["nowhere.py:f", "--space", "space.toml"], "nowhere.py: no such script"),
    (["train:objective_", "--space", "space.toml"], "train: does not define 'objective_'"),
    (["no.such.module:f", "--space", "space.toml"], "no.such.module: cannot be imported (No module named"),
    (["train.py", "--space", "space.toml"], "address: expected a script or module and a name in it, such as train.py:"),
    (["broken.py:f", "--space", "space.toml"], "broken.py:2: raised ZeroDivisionError: division by zero"),
    (["syntax.py:f", "--space", "space.toml"], "syntax.py:1: raised SyntaxError: '(' was never closed"),
    (["spaceless.py:f"], "--space is missing, and spaceless.py does not define 'space' either"),
    (["train.py:objective", "--space", "train.py:number"], "train.py:number: expected a farthing.Space"),
    (["train.py:objective", "--space", "nowhere.toml"], "nowhere.toml: cannot be read: No such file"),
    (["train.py:objective", "--space", "bad.toml"], "bad.toml:3: x.low: expected a number below high"),
    (["train.py:objective", "--iterative"], "--iterative and --pause are only for --command"),
    (["train.py:objective", "--command", "true"], "expected either an objective, as in `farthing run train.py:"),
    ([], "expected either an objective"),
    (["--command", "true"], "--space is missing: expected a TOML file, or script.py:name"),
    (["--command", "true", "--pause", "checkpoint", "--space", "space.toml"], "--pause is only for --iterative"),
    (["train.py:objective", "--policy", "bets"], "Invalid value for '--policy': 'bets' is not one of 'auto'"),
    (["train.py:objective", "--workers", "0"], "Invalid value for '--workers': 0 is not in the range x>=1"),
    (["train.py:objective", "--trial-memory", "much"], "trial_memory: expected a number of bytes"),
    (["train.py:objective", "--task", "rows"], "expected NAME=VALUE, such as rows=1000, got 'rows'"),
    (["train.py:objective", "--quick"], "No such option '--quick'"),
    (["train.py:objective", "--storage", "no/where.db"], "no/where.db: the folder no does not exist"),
    (["train.py:objective", "--budget", "soon"], "budget: expected text with a unit, such as"),
    (["train.py:objective", "--budget", "cost=x"], "budget: expected one of cost, usd"),
    (["train.py:objective", "--budget", "speed=3"], "budget: expected one of cost, usd"),
    (["train.py:objective", "--budget", "3s, seconds=4"], "budget: seconds is given twice in '3s, seconds=4'"),
    (["train.py:objective", "--budget", ""], "budget: expected text with a unit, such as"),
]  # fmt: skip
ALL_OF_THEM = """
import contextlib, io, json, sys
from farthing.cli import main

answers = {}
for arguments in json.load(sys.stdin):
    budget = [] if "--budget" in arguments else ["--budget", "4 evaluations"]
    with contextlib.redirect_stderr(io.StringIO()) as told:
        status = main(["run", *arguments, *budget])
    answers[" ".join(arguments)] = status, told.getvalue()
print(json.dumps(answers))
"""


@pytest.fixture(scope="module")
def answers(tmp_path_factory) -> dict[str, tuple[int, str]]:
    """What the program says to each of SENSELESS, asked in one process."""
    folder = Folder(tmp_path_factory.mktemp("senseless"))
    folder.write("space.toml", SPACE)
    folder.write("train.py", SCRIPT)
    folder.write("broken.py", "x = 1\ny = x / 0\n")
    folder.write("syntax.py", "f(\n")
    folder.write("spaceless.py", "def f(config): return 1\n")
    folder.write("bad.toml", '[x]\ntype = "real"\nlow = "a"\nhigh = 1\n')
    asked = json.dumps([arguments for arguments, _ in SENSELESS])
    ended = subprocess.run(
        [sys.executable, "-c", ALL_OF_THEM], cwd=folder.path, input=asked, capture_output=True, text=True
    )
    found: dict[str, tuple[int, str]] = json.loads(ended.stdout.splitlines()[-1])
    return found


class TestScripts:
    def test_the_result_alone_is_on_standard_output(self, folder):
        folder.write("train.py", SCRIPT)
        ended = folder.call("run", "train.py:objective", "--space", "space.toml", *SHORT, "--storage", "s.db")
        assert ended.stdout.startswith("best  ")
        assert "4 complete" in ended.stdout
        assert "evaluating" not in ended.stdout
        assert "reading the script" in ended.stderr
        assert ended.stderr.count("evaluating") == 4
        assert ended.stderr.count("trial ") == 4
        assert [row["attributes.doubled"] for row in trials_of(folder, "s.db")] == [
            str(2 * int(row["config.x"])) for row in trials_of(folder, "s.db")
        ]

    def test_a_study_begins_with_the_best_of_earlier_ones_from_the_command_line_and_a_config_file(self, folder):
        """Each old file holds its best at 70; the config file is in another folder, and names them from there."""
        folder.write("train.py", SCRIPT)
        for name in ("a.db", "b.db"):
            with ft.Study(ft.Space(x=ft.Integer(0, 100)), "9 evaluations", storage=folder.path / name) as old:
                for x in (10, 70, 90):
                    old.add({"x": x}, value=float(abs(x - 70)))
        run = ("run", "train.py:objective", *SHORT, "-q")
        folder.call(*run, "--warm-start", "a.db", "--warm-start", "b.db", "--storage", "new.db")
        (folder.path / "below").mkdir()
        toml = 'warm-start = ["../a.db"]\nobjective = "../train.py:objective"\nspace = "../train.py:space"\n'
        folder.write("below/run.toml", toml)
        folder.call("run", "--config", "below/run.toml", *SHORT, "-q", "--storage", "filed.db")
        for name in ("new.db", "filed.db"):
            rows = trials_of(folder, name)
            assert rows[0]["reason"] == "warm start: good and cheap in earlier studies"
            assert "70" in [row["config.x"] for row in rows]
        assert "warm_start: none.db: there is no such study file" in folder.error(
            *run, "--warm-start", "none.db", status=1
        )

    def test_a_script_with_a_space_needs_no_file_and_one_that_yields_is_iterative(self, folder):
        folder.write("my-training.py", SCRIPT)  # no name of a module
        ended = folder.call("run", "my-training.py:train", *SHORT, "--max-steps", "5", "--json", "-q", "--workers", "2")
        found = json.loads(ended.stdout)
        assert found["best"]["steps"] == 5
        assert found["trials"] == {"complete": 4}

    def test_a_module_and_its_space_and_the_other_direction(self, folder):
        (folder.path / "package").mkdir()
        folder.write("package/tuned.py", SCRIPT)
        found = json.loads(
            folder.call(
                "run", "package.tuned:objective", "--space", "package.tuned:space", *SHORT, "--maximize",
                "--stop-at", "0", "--json", "-q", "--trial-seconds", "1m", "--task", "rows=1000",
            ).stdout
        )  # fmt: skip
        assert found["best"]["value"] >= 0
        assert found["ended"] == "trial 0 reached the value asked for by stop_at"

    def test_a_price_ends_a_run_and_a_higher_one_goes_on(self, folder):
        folder.write("train.py", SCRIPT)
        given = ("train.py:objective", "--budget", "30 evaluations", "--storage", "s.db", "--seed", "0", "--json", "-q")
        found = json.loads(folder.call("run", *given, "--stop-when-not-worth", "1 evaluation per 0.1").stdout)
        assert found["ended"].startswith("not worth more: the next evaluation is expected to bring ")
        resumed = json.loads(folder.call("resume", "s.db", "--stop-when-not-worth", "1e9", "--json", "-q").stdout)
        assert resumed["trials"]["complete"] > found["trials"]["complete"]

    def test_a_python_script_remembers_its_space_where_a_file_cannot(self, folder):
        folder.write(
            "train.py",
            "import farthing as ft\nspace = ft.Space(f=ft.Choice([min, max, object]), x=ft.Real(0, 1))\n"
            "def objective(config):\n    return config['x'] + (config['f'] is max)\n",
        )
        folder.call("run", "train.py:objective", *SHORT, "--storage", "s.db", "-q")
        folder.call("resume", "s.db", "--budget", "6 evaluations", "-q", "--workers", "2")
        rows = trials_of(folder, "s.db")
        assert len(rows) == 6
        assert {row["config.f"] for row in rows} <= {
            "<built-in function min>", "<built-in function max>", "<class 'object'>",
        }  # fmt: skip

    @pytest.mark.parametrize(("arguments", "error"), SENSELESS)
    def test_what_makes_no_sense_is_one_line(self, answers, arguments, error):
        status, told = answers[" ".join(arguments)]
        assert status == (1 if "no/where.db" in arguments else 2)
        assert told.splitlines()[-1].startswith("farthing: error: ")
        assert error in told.splitlines()[-1]
        assert "Traceback" not in told

    def test_debug_shows_where_and_failures_alone_are_status_three(self, folder):
        folder.write("train.py", SCRIPT)
        ended = folder.call("run", "nowhere.py:f", *SHORT, "--debug", "--space", "space.toml", status=2)
        assert "Traceback" in ended.stderr
        assert ended.stderr.strip().splitlines()[-1].startswith("farthing: error: ")
        ended = folder.call("run", "train.py:fails", *SHORT, "-q", status=3)
        assert ended.stderr.splitlines()[-1] == (
            "farthing: error: no trial has succeeded; the last error: ValueError: never mind"
        )


class TestGoingOn:
    def test_killed_and_resumed_it_comes_to_the_same_end(self, folder):
        """Any trial that was announced is there, once, and the rest is what it would have been."""
        folder.script("slow.sh", *SLOW)
        arguments = ["run", "--command", "./slow.sh {x}", "--space", "space.toml", "--budget", "9 evaluations"]
        arguments += ["--policy", "ei", "--seed", "3"]
        folder.call(*arguments, "--storage", "whole.db", "-q")
        process = folder.start(*arguments, "--storage", "killed.db")
        announced = [process.stderr.readline() for _ in range(4)]
        process.send_signal(signal.SIGKILL)
        process.wait()
        require_gone(folder.path / "pids")
        before = {row["number"]: row for row in trials_of(folder, "killed.db")}
        for line in announced:
            assert before[line.removeprefix("trial ").partition(":")[0]]["status"] == "complete"
        folder.call("resume", "killed.db", "-q")
        whole, resumed = trials_of(folder, "whole.db"), trials_of(folder, "killed.db")
        same = ["number", "status", "value", "config.x"]
        assert [[row[key] for key in same] for row in resumed] == [[row[key] for key in same] for row in whole]
        assert {row["number"]: row["value"] for row in resumed}.items() >= {
            number: row["value"] for number, row in before.items() if row["status"] == "complete"
        }.items()
        require_gone(folder.path / "pids")

    def test_killed_while_programs_rest_nobody_stays_behind(self, folder):
        folder.script(
            "train.sh", "trap '' TERM HUP; echo $$ >> pids",
            "for step in $(seq 1 9); do echo $step $step; sleep 0.02; done",
        )  # fmt: skip
        process = folder.start(
            "run", "--command", "./train.sh {x}", "--iterative", "--max-steps", "9", "--space", "space.toml",
            "--budget", "60s", "--seed", "0", "--policy", "bapi",
        )  # fmt: skip
        lines = [process.stderr.readline() for _ in range(4)]
        assert any("paused" in line for line in lines), lines
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert len(pids_in(folder.path / "pids")) >= 3
        require_gone(folder.path / "pids")

    @pytest.mark.parametrize(
        ("times", "signal_number", "status"),
        [(1, signal.SIGINT, -signal.SIGINT), (2, signal.SIGINT, -signal.SIGINT), (1, signal.SIGTERM, 143)],
    )
    def test_ended_by_a_signal_nothing_is_left_and_it_goes_on(self, folder, times, signal_number, status):
        seconds = "300" if times == 2 or signal_number == signal.SIGTERM else "0.3"
        folder.script(
            "slow.sh", "echo $$ >> pids", f'[ "$FARTHING_TRIAL" != 1 ] || [ -e on ] || sleep {seconds}', "echo $1"
        )
        process = folder.start(
            "run", "--command", "./slow.sh {x}", "--space", "space.toml", "--budget", "3 evaluations",
            "--storage", "s.db", "--policy", "random",
        )  # fmt: skip
        until(lambda: len(pids_in(folder.path / "pids")) == 2)
        for _ in range(times):
            process.send_signal(signal_number)
            time.sleep(0.1)
        _, told = process.communicate(timeout=PATIENCE)  # far less than the program sleeps
        assert process.returncode == status, told
        assert "Traceback" not in told
        require_gone(folder.path / "pids")
        folder.write("on", "")
        folder.call("resume", "s.db", "-q")
        assert [row["status"] for row in trials_of(folder, "s.db")] == ["complete"] * 3

    def test_a_budget_of_seconds_ends_a_program_that_hangs_with_all_it_started(self, folder):
        folder.script(
            "hangs.sh",
            "trap '' TERM; echo $$ >> pids; (setsid sleep 100 & echo $! >> pids)",
            "while :; do sleep 1; done",
        )
        ended = folder.call(
            "run", "--command", "./hangs.sh {x}", "--space", "space.toml", "--budget", "10s", "--json", "-q", status=3
        )  # fmt: skip
        assert 10.0 <= json.loads(ended.stdout)["ledger"]["spent"]["seconds"] <= 60.0, "it would hang for ever"
        assert len(pids_in(folder.path / "pids")) >= 2
        require_gone(folder.path / "pids")

    def test_the_folder_may_move_with_all_that_is_in_it(self, folder):
        (folder.path / "here" / "runs").mkdir(parents=True)
        folder.script("here/slow.sh", "echo $1")
        Folder(folder.path / "here").call(
            "run", "--command", "./slow.sh {x}", "--space", "../space.toml", *SHORT, "--storage", "runs/s.db", "-q"
        )
        shutil.move(folder.path / "here", folder.path / "there")
        assert "not run" in folder.error("resume", "there/runs/s.db", "--budget", "5 evaluations", "-q")
        folder.call("resume", "there/runs/s.db", "--budget", "6 evaluations", "-q", "--yes")
        folder.call("resume", "there/runs/s.db", "--budget", "7 evaluations", "-q")  # it is marked anew
        assert len(trials_of(folder, "there/runs/s.db")) == 7

    def test_run_goes_on_with_the_same_study_and_refuses_another(self, folder):
        folder.script("slow.sh", "echo $1")
        arguments = ["run", "--space", "space.toml", "--policy", "random", "--seed", "1", "--storage", "s.db", "-q"]
        folder.call(*arguments, "--command", "./slow.sh {x}", "--budget", "2 evaluations")
        folder.call(*arguments, "--command", "./slow.sh {x}", "--budget", "3 evaluations")
        assert len(trials_of(folder, "s.db")) == 3
        error = folder.error(*arguments, "--command", "./slow.sh 1{x}", "--budget", "4 evaluations")
        assert "s.db: command is './slow.sh {x}' in the file and './slow.sh 1{x}' here" in error
        folder.call("resume", "s.db", "--command", "./slow.sh 1{x}", "--budget", "4 evaluations", "-q")
        assert json.loads(folder.answer("status", "s.db", "--json"))["run"]["command"] == "./slow.sh 1{x}"
        error = folder.error(
            *arguments[:-3],
            "--storage",
            "s.db",
            "--command",
            "./slow.sh 1{x}",
            "--budget",
            "5 evaluations",
            "--seed",
            "2",
        )
        assert "s.db: seed is 1 in the file and 2 here" in error

    def test_a_study_of_the_library_is_told_what_to_evaluate(self, folder):
        folder.write("train.py", SCRIPT)
        with ft.Study(ft.Space(x=ft.Integer(0, 100)), "2 evaluations", storage=folder.path / "s.db") as study:
            study.tell(study.ask(), value=1.0)
        error = folder.error("resume", "s.db")
        assert "s.db: was not started by `farthing run`" in error
        assert "farthing resume s.db --objective script.py:name" in error
        folder.call("resume", "s.db", "--objective", "train.py:objective", "-q")
        folder.call("resume", "s.db", "--budget", "3 evaluations", "-q")
        assert len(trials_of(folder, "s.db")) == 3
        assert "there is no such study file" in folder.error("resume", "nowhere.db", status=1)
        assert not (folder.path / "nowhere.db").exists()

    def test_with_a_command_of_the_users_nothing_that_the_file_says_is_run(self, folder):
        with ft.Study(ft.Space(x=ft.Integer(0, 100)), "2 evaluations", storage=folder.path / "s.db") as study:
            study.note(cli={"command": "touch ran", "folder": "/"})
        folder.call("resume", "s.db", "--command", "echo {x}", "-q")
        assert not (folder.path / "ran").exists()
        assert len(trials_of(folder, "s.db")) == 2

    def test_modules_in_the_folder_of_a_study_are_not_imported_instead_of_installed_ones(self, folder):
        for name in ("click", "numpy", "json", "farthing"):
            folder.write(f"{name}.py", "open('hacked', 'w')")
        folder.call("run", "--command", "echo {x}", "--space", "space.toml", *SHORT, "--storage", "s.db", "-q")
        folder.call("resume", "s.db", "--budget", "5 evaluations", "-q")
        assert not (folder.path / "hacked").exists()
