"""What people met at the command line. Each test calls the installed program, in a terminal where that matters."""

from __future__ import annotations

import csv
import io
import json
import os
import pty
import select
import sys
import time

import pytest

from called import FARTHING, PATIENCE

DEFAULTS = """
[x]
type = "integer"
low = 0
high = 100
default = 70

[kind]
type = "choice"
options = ["a", "b"]
default = "b"

[momentum]
type = "real"
low = 0.0
high = 1.0
when = {kind = "a"}
"""
SCRIPT = """
def objective(config):
    return abs(config["x"] - 70)


def odd(config):
    if config["x"] % 2:
        raise ValueError(f"{config['x']} is odd")
    return config["x"]


def learner(config):
    for step in range(1, 4):
        yield config["x"] / step
"""
CONFIG = """
command = "./train.sh {x}"
budget = "3 evaluations"
storage = "s.db"
seed = 0
policy = "random"
trial-seconds = 60
task = {rows = 1000}

[[start]]
x = 12

[space.x]
type = "integer"
low = 0
high = 100
default = 34
"""
RANDOM = ("--policy", "random", "--seed", "1", "-q")
OBJECTIVE = ("train.py:objective", "--space", "space.toml", *RANDOM)


@pytest.fixture
def work(folder):
    """A folder with a script and a program in it."""
    folder.write("train.py", SCRIPT)
    folder.script("train.sh", "echo $1")
    return folder


def rows_of(folder, name: str, *options: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(folder.answer("export", name, *options))))


def budget_of(folder, name: str) -> dict[str, float]:
    budget: dict[str, float] = json.loads(folder.answer("status", name, "--json"))["ledger"]["budget"]
    return budget


class Terminal:
    """A shell in a terminal of its own."""

    def __init__(self, folder, script: str) -> None:
        self._pid, self._terminal = pty.fork()
        if self._pid == 0:
            os.chdir(folder.path)
            os.execvp("bash", ["bash", "-c", script])
        self.shown = ""

    def read_until(self, text: str) -> str:
        """All that was shown, once a text is among it, or the shell has ended."""
        deadline = time.monotonic() + PATIENCE
        while text not in self.shown and time.monotonic() < deadline:
            if select.select([self._terminal], [], [], 0.1)[0]:
                try:
                    self.shown += os.read(self._terminal, 4096).decode(errors="replace")
                except OSError:  # the other end is closed
                    break
        return self.shown

    def type(self, text: str) -> None:
        os.write(self._terminal, text.encode())

    def end(self) -> int:
        """The exit status of the shell, as Python knows it."""
        self.read_until("\0")
        return os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])


class TestNothingIsStoredBeforeAllIsChecked:
    def test_a_plain_number_of_seconds_is_one_and_a_bad_one_stores_nothing(self, work):
        bad = work.call("run", *OBJECTIVE, "--budget", "1 evaluation", "--trial-seconds", "soon", "--storage", "s.db",
                        status=2)  # fmt: skip
        assert "trial_seconds: expected a number of seconds above 0" in bad.stderr
        assert not (work.path / "s.db").exists()
        work.call("run", *OBJECTIVE, "--budget", "1 evaluation", "--trial-seconds", "5", "--storage", "s.db")
        assert json.loads(work.answer("status", "s.db", "--json"))["run"]["trial_seconds"] == "5s"

    def test_a_run_that_is_refused_leaves_the_budget_as_it_was(self, work):
        work.call("run", *OBJECTIVE, "--budget", "2 evaluations", "--storage", "s.db")
        more = ("--budget", "3 evaluations", "-q")
        other = ("train.py:odd", *OBJECTIVE[1:])
        assert "objective is 'train.py:objective' in the file" in work.error("run", *other, *more, "--storage", "s.db")
        assert budget_of(work, "s.db") == {"evaluations": 2}
        assert "a program that can be found" in work.error("resume", "s.db", "--command", "no-such-program", *more)
        assert budget_of(work, "s.db") == {"evaluations": 2}

    def test_a_budget_below_what_is_spent_is_an_error_and_the_same_one_is_not(self, work):
        work.call("run", *OBJECTIVE, "--budget", "3 evaluations", "--storage", "s.db")
        error = work.error("resume", "s.db", "--budget", "2 evaluations")
        assert "budget: expected more than the 3 evaluations that s.db has used" in error
        assert budget_of(work, "s.db") == {"evaluations": 3}
        assert "expected more than the 3 evaluations" in work.error(
            "run", *OBJECTIVE, "--budget", "1 evaluation", "--storage", "s.db"
        )
        work.call("resume", "s.db", "--budget", "3 evaluations", "-q")
        work.call("resume", "s.db", "-q")


class TestWhereToBegin:
    def test_known_configurations_are_tried_first(self, work):
        work.write("good.json", '[{"x": 3}, {"trial": 7, "value": 0.5, "config": {"x": 4}}]')
        work.call(
            "run",
            *OBJECTIVE,
            "--budget",
            "4 evaluations",
            "--storage",
            "s.db",
            "--start",
            "x=70",
            "--start",
            "good.json",
        )
        assert [row["config.x"] for row in rows_of(work, "s.db")][:3] == ["70", "3", "4"]

    @pytest.mark.parametrize(
        ("start", "error"),
        [
            ("x=170", "--start x=170: parameter 'x': expected an integer from 0 to 100, got 170"),
            ("y=1", "--start y=1: unknown parameter 'y'; parameters are 'x'"),
            ("nowhere.json", "--start: there is no file 'nowhere.json'; expected a JSON or TOML file, or values such"),
        ],
    )
    def test_what_is_not_in_the_space_is_said(self, work, start, error):
        assert error in work.error("run", *OBJECTIVE, "--budget", "2 evaluations", "--start", start)

    def test_defaults_of_a_space_are_tried_first_if_all_that_are_active_have_one(self, work):
        work.write("defaults.toml", DEFAULTS)
        arguments = ["run", "train.py:objective", *RANDOM, "--budget", "2 evaluations"]
        work.call(*arguments, "--space", "defaults.toml", "--storage", "s.db")
        first = rows_of(work, "s.db")[0]
        assert (first["config.x"], first["config.kind"], first["config.momentum"]) == ("70", "b", "")
        work.write("some.toml", DEFAULTS.replace("default = 70\n", ""))
        told = work.call(*arguments, "--space", "some.toml").stderr
        assert "some.toml: the defaults are not tried first, because not all have one: parameter 'x'" in told
        work.write("wrong.toml", DEFAULTS.replace("70", "170"))
        error = work.error(*arguments, "--space", "wrong.toml")
        assert error == "wrong.toml:6: x.default: expected an integer from 0 to 100, got 170"


class TestConfigFile:
    def test_a_file_says_it_all_for_its_own_folder_and_the_command_line_wins(self, work):
        (work.path / "exp").mkdir()
        work.write("exp/farthing.toml", CONFIG)
        work.script("exp/train.sh", "pwd >> where; echo $1")
        work.call("run", "--config", "exp/farthing.toml", "-q")
        assert [row["config.x"] for row in rows_of(work, "exp/s.db")][:2] == ["12", "34"]
        assert set(work.read("exp/where").split()) == {str((work.path / "exp").resolve())}
        work.call("run", "--config", "exp/farthing.toml", "-q", "--budget", "4 evaluations")
        assert len(rows_of(work, "exp/s.db")) == 4
        work.call("resume", "exp/s.db", "-q")
        work.call("run", "train.py:objective", "--config", "exp/farthing.toml", "-q", "--storage", "other.db")
        noted = json.loads(work.answer("status", "other.db", "--json"))["run"]
        assert (noted.get("objective"), noted.get("command")) == ("train.py:objective", None)

    @pytest.mark.parametrize(
        ("line", "error"),
        [
            ('budgt = "1m"', 'farthing.toml:2: budgt: unknown key; did you mean "budget"?'),
            ('workers = "two"', 'farthing.toml:2: workers: expected a whole number, got "two"'),
            ("workers = 0", "farthing.toml:2: workers: 0 is not in the range x>=1"),
            ("space = {x = {type = 'reel'}}", 'space.x.type: no type is called "reel"; did you mean "real"?'),
        ],
    )
    def test_what_is_wrong_is_said_with_its_line(self, work, line, error):
        work.write("farthing.toml", f'command = "true"\n{line}\n')
        assert error in work.error("run", "--config", "farthing.toml")


class TestWords:
    def test_bare_farthing_prints_help(self, work):
        called = work.call(status=None)
        assert (called.returncode, called.stderr) == (0, "")
        assert called.stdout.startswith("Usage: farthing ")

    def test_the_end_of_a_run_says_why_it_ended_and_what_failed_last(self, work):
        arguments = ["run", "train.py:odd", "--space", "space.toml", *RANDOM, "--budget", "6 evaluations"]
        shown = work.call(*arguments, "--storage", "s.db", "--max-failures", "none").stdout
        failed = [row for row in rows_of(work, "s.db") if row["status"] == "failed"]
        assert 0 < len(failed) < 6
        last = f"last error  trial {failed[-1]['number']}: ValueError: {failed[-1]['config.x']} is odd"
        assert f"{last}  (all: farthing export s.db)\n" in shown
        assert "\nended       the budget of 6 evaluations is spent\n" in shown
        status = work.answer("status", "s.db")
        assert f"{last}\n" in status
        assert "\nended       the budget of 6 evaluations is spent\n" in status

    def test_a_program_that_fails_is_told_of_in_a_sentence(self, work):
        work.script("fails.sh", "echo out of memory >&2; exit 3")
        arguments = ["run", "--command", "./fails.sh {x}", "--space", "space.toml", *RANDOM, "--budget", "1 evaluation"]
        work.call(*arguments, "--storage", "s.db", status=3)
        assert rows_of(work, "s.db")[0]["error"] == "the program ended with exit status 3: 'out of memory'"

    def test_a_hint_names_options_that_there_are(self, work):
        work.write(
            "once.py",
            "import sys\nif 'farthing.cli.run_commands' not in sys.modules:\n    raise RuntimeError('not here')\n"
            "def objective(config):\n    return config['x']\n",
        )
        arguments = ["run", "once.py:objective", "--space", "space.toml", *RANDOM, "--budget", "60s, 2 evaluations"]
        error = work.error(*arguments)
        assert "--isolate no runs the objective here" in error
        assert "isolate=" not in error
        assert "2 complete" in work.call(*arguments, "--isolate", "no").stdout

    @pytest.mark.parametrize("words", ["run --space", "run --config", "run", "run --start", "export s.db --csv"])
    def test_shells_complete_files(self, work, words):
        environment = {
            **os.environ, "_FARTHING_COMPLETE": "bash_complete", "COMP_WORDS": f"farthing {words} ",
            "COMP_CWORD": str(1 + len(words.split())),
        }  # fmt: skip
        assert work.call(env=environment, status=None).stdout.split() == ["file,"]


class TestMeasuring:
    def test_a_meter_counts_cpu_time_where_the_clock_counts_waiting(self, work):
        work.script("sleeps.sh", "sleep 0.5; echo $1")
        arguments = ["run", "--command", "./sleeps.sh {x}", "--space", "space.toml", *RANDOM]
        spent = []
        for options in ([], ["--meter", "cpu"]):
            shown = work.call(*arguments, "--budget", "compute_seconds=60, 1 evaluation", "--json", *options).stdout
            spent.append(json.loads(shown)["ledger"]["spent"]["compute_seconds"])
        assert spent[0] >= 0.5
        assert spent[1] < 0.4
        error = work.error(*arguments, "--budget", "60s", "--meter", "cpu")
        assert "--meter cpu measures compute_seconds, which the budget (1m) does not limit" in error

    def test_curves_and_reasons_are_exported(self, work):
        work.call(
            "run", "train.py:learner", "--space", "space.toml", *RANDOM, "--max-steps", "3", "--storage", "s.db",
            "--budget", "2 evaluations",
        )  # fmt: skip
        trial, step = rows_of(work, "s.db")[1], rows_of(work, "s.db", "--curves")[4]
        assert (trial["reason"], trial["ended_by"]) == ("drawn at random", "objective")
        assert (step["number"], step["step"], float(step["value"])) == ("1", "2", int(trial["config.x"]) / 2)


class TestStepsOfPrograms:
    STEPS = "import time\nfor step in (1, 2, 3, 4):\n    time.sleep(0.4)\n    print(step, 1 / step)\n"

    def run(self, work, **environment: str) -> tuple[str, list[float]]:
        """What is said of a Python program that does not flush, and the costs of its steps."""
        work.write("steps.py", self.STEPS)
        kept = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
        ended = work.call(
            "run", "--command", f"{sys.executable} steps.py {{x}}", "--iterative", "--max-steps", "4", "--space",
            "space.toml", *RANDOM, "--budget", "2 evaluations", "--storage", "s.db", env={**kept, **environment},
        )  # fmt: skip
        return ended.stderr, [float(row["cost"]) for row in rows_of(work, "s.db", "--curves")]

    def test_steps_of_a_python_program_arrive_as_they_are_printed(self, work):
        said, costs = self.run(work)
        assert "buffered" not in said
        assert sum(cost >= 0.2 for cost in costs) == 8, "each of the two trainings takes 0.4 s per step"

    def test_steps_that_arrive_all_at_once_are_noticed(self, work):
        said, _ = self.run(work, PYTHONUNBUFFERED="")
        assert said.count("its output is buffered") == 1
        assert "stdbuf -oL" in said


class TestCtrlC:
    def test_it_ends_a_loop_over_seeds_and_what_was_done_is_kept(self, work):
        work.script(
            "slow.sh", "[ $FARTHING_TRIAL = 0 ] || echo waiting >&2; [ $FARTHING_TRIAL = 0 ] || sleep 1; echo $1"
        )
        loop = (
            f"for seed in 1 2; do echo seed $seed; {FARTHING} run --command './slow.sh {{x}}' --space space.toml "
            "--policy random --seed $seed --budget '9 evaluations' --storage s$seed.db --show-output -q; done; "
            "echo over"
        )
        terminal = Terminal(work, loop)
        assert "waiting" in terminal.read_until("waiting")
        terminal.type("\x03")
        status = terminal.end()
        assert "seed 2" not in terminal.shown
        assert "over" not in terminal.shown
        assert status == -2, "the shell, too, was ended by the signal"
        assert "interrupted; to continue: farthing resume s1.db" in terminal.shown
        assert rows_of(work, "s1.db")[0]["status"] == "complete"


class TestCheckpoints:
    @pytest.mark.parametrize(("options", "kept"), [((), 1), (("--keep-checkpoints", "2"), 2)])
    def test_those_of_trials_that_lose_are_removed(self, work, options, kept):
        work.script("train.sh", "echo $1 > $FARTHING_CHECKPOINT_DIR/state; echo 1 $1")
        work.call(
            "run", "--command", "./train.sh {x}", "--iterative", "--max-steps", "1", "--space", "space.toml", *RANDOM,
            "--budget", "4 evaluations", "--storage", "s.db", *options,
        )  # fmt: skip
        assert len(list((work.path / "s.db.checkpoints").glob("trial-*/state"))) == kept

    def test_nonsense_is_refused_and_stores_nothing(self, work):
        error = work.error("run", *OBJECTIVE, "--budget", "1m", "--storage", "s.db", "--keep-checkpoints", "0")
        assert "expected a whole number of at least 1, or best or all, got '0'" in error
        assert not (work.path / "s.db").exists()
