"""Programs in any language, tuned by `farthing run --command`: here bash, which has loops and whole numbers."""

from __future__ import annotations

import ctypes
import json
import signal
import time
from contextlib import suppress

import pytest

import farthing as ft
from called import pids_in, require_gone, state_of, until
from farthing.cli.program import Program
from farthing.cli.program_process import ProgramProcess
from farthing.run_context import Run, inside
from farthing.runner.process_tree import adopt_orphans
from farthing.runner.processes import SUBREAPER
from farthing.runner.reports import Reports
from farthing.space.command_template import CommandTemplate

LOOP = [  # the distance of x from 70, counted by a loop
    "x=$1; distance=0",
    "while [ $((x + distance)) -ne 70 ] && [ $((x - distance)) -ne 70 ]; do distance=$((distance + 1)); done",
]
TRAINING = [
    "x=$1",
    "echo training with $x",
    "for step in $(seq $((FARTHING_START_STEP + 1)) $2); do echo $step $(((x - 70) * (x - 70) / step)) 1; done",
]

REPORTS = Reports(0, lambda report: ft.Decision.CONTINUE)  # a program yields its steps, and reports none


@pytest.fixture(autouse=True)
def _orphans_are_nobodys():
    """A program called in this process makes it adopt orphans, as workers do; other tests count its children."""
    yield
    with suppress(AttributeError):
        ctypes.CDLL(None).prctl(SUBREAPER, 0, 0, 0, 0)
    adopt_orphans.cache_clear()


def study_of(folder, name: str = "s.db") -> list[ft.Trial]:
    with ft.Study.resume(folder.path / name) as study:
        return study.trials


def tuned(folder, command: str, *more: str, budget: str = "3 evaluations", status: int = 0):
    """The trials of a short study of a command."""
    arguments = ["--space", "space.toml", "--budget", budget, "--storage", "s.db", "--seed", "0", "-q"]
    folder.call("run", "--command", command, *arguments, "--policy", "random", *more, status=status)
    return study_of(folder)


class TestValues:
    def test_a_bash_loop_is_tuned_end_to_end(self, folder):
        folder.script("distance.sh", *LOOP, "echo $distance")
        ended = folder.call(
            "run", "--command", "./distance.sh {x}", "--space", "space.toml", "--budget", "20s, 16 evaluations",
            "--storage", "s.db", "--seed", "0", "--json", "--policy", "ei",
        )  # fmt: skip
        best = json.loads(ended.stdout)["best"]
        assert best["value"] == abs(best["config"]["x"] - 70) <= 2
        assert len(study_of(folder)) == 16
        assert ended.stderr.count("trial ") == 16, "progress is on standard error"

    def test_values_costs_and_notes_in_every_form(self, folder):
        folder.script(
            "forms.sh",
            'echo "loading $FARTHING_TRIAL"',
            "case $FARTHING_TRIAL in",
            "0) echo 1.5; echo;;",
            "1) echo '  2.5   7  ';;",
            """2) echo '{"value": 3.5, "cost": 8, "note": "a b"}';;""",
            """3) echo '{"value": 4.5,' > "$FARTHING_RESULT"; echo '"cost": 9}' >> "$FARTHING_RESULT"; echo 17;;""",
            '4) echo 5.5 > "$1"; echo done;;',
            "esac",
        )
        folder.call(
            "run", "--command", "./forms.sh {farthing.result}", "--space", "space.toml", "--budget",
            "5 evaluations", "--storage", "s.db", "--policy", "random", "-q",
        )  # fmt: skip
        trials = study_of(folder)
        assert [trial.value for trial in trials] == [1.5, 2.5, 3.5, 4.5, 5.5]
        assert [trial.cost for trial in trials[1:4]] == [7.0, 8.0, 9.0]
        assert trials[2].attributes == {"note": "a b"}

    def test_what_a_program_may_know(self, folder):
        folder.script(
            "know.sh", 'echo "$@" >> seen; env | grep ^FARTHING_ | sort >> seen; ls -d "$4" >> seen; echo 1'
        )  # fmt: skip
        facts = ("trial", "steps", "start_step", "checkpoint_dir", "config")
        command = " ".join(["./know.sh", *(f"{{farthing.{fact}}}" for fact in facts)])
        (trial,) = tuned(folder, command, "--max-steps", "9", budget="1 evaluations")
        seen = folder.read("seen").splitlines()
        place = folder.path / "s.db.checkpoints" / "trial-0"
        assert seen[0] == f"0 9 0 {place} {json.dumps(trial.config)}"
        assert seen[1:5] == [
            f"FARTHING_CHECKPOINT_DIR={place}", f"FARTHING_CONFIG={json.dumps(trial.config)}",
            *[line for line in seen if line.startswith("FARTHING_RESULT=")], "FARTHING_START_STEP=0",
        ]  # fmt: skip
        assert seen[5:] == ["FARTHING_STEPS=9", "FARTHING_TRIAL=0", str(place)]
        assert trial.status is ft.Status.COMPLETE

    @pytest.mark.parametrize(
        ("lines", "error"),
        [
            (["echo 1; echo first >&2; echo 'no memory' >&2; exit 3"], "ended with exit status 3: 'no memory'"),
            (["exit 4"], "the program ended with exit status 4 and wrote nothing to standard error"),
            (["kill -SEGV $$"], "the program died of SIGSEGV and wrote nothing to standard error"),
            (["echo accuracy: 0.5"], "the last line it printed is 'accuracy: 0.5'; expected a number, a"),
            (["echo 1 2 3"], "the last line it printed is '1 2 3'; expected a number"),
            ([":"], "the last line it printed is ''; expected a number"),
            (["echo nan"], "the value must be finite, got nan"),
            (["echo '{\"loss\": 1}'"], "the objective's dict has no 'value', only 'loss'"),
            (["echo '{\"value\": 1'"], "the last line it printed is '{\"value\": 1'; expected a number"),
            (["echo x > $FARTHING_RESULT; echo 1"], "the file FARTHING_RESULT holds 'x'; expected a number"),
        ],
    )  # fmt: skip
    def test_failures_say_what_was_seen(self, tmp_path, folder, lines, error):
        path = folder.script("fails.sh", *lines)
        program = Program(f"{path}", results=str(tmp_path))
        evaluated = _evaluated(program, tmp_path)
        assert evaluated.status is ft.Status.FAILED
        assert error in evaluated.error.splitlines()[-1]
        assert "Traceback" not in evaluated.error

    def test_a_failure_keeps_the_end_of_standard_error(self, folder):
        folder.script("fails.sh", "seq 1 1000 >&2; exit 1")
        trial = tuned(folder, "./fails.sh {x}", budget="1 evaluations", status=3)[0]
        assert trial.error.splitlines()[1:-1] == [str(number) for number in range(981, 1001)]

    def test_gigantic_output_is_not_kept(self, folder, tmp_path):
        path = folder.script(
            "talks.sh", "head -c 30000000 /dev/zero | tr '\\0' 'a'; echo; head -c 3000000 /dev/zero >&2; echo 5"
        )
        program = Program(f"{path}", results=str(tmp_path))
        assert _evaluated(program, tmp_path).value == 5.0

    def test_a_child_that_keeps_the_output_open_is_not_waited_for_and_is_ended(self, folder):
        folder.script("leaves.sh", "sleep 1000 & echo $! >> pids; echo 1")
        began = time.monotonic()
        tuned(folder, "./leaves.sh {x}", budget="2 evaluations")
        assert time.monotonic() - began < 300
        require_gone(folder.path / "pids")


def _evaluated(program: Program, folder):
    from farthing.runner.evaluate import evaluate

    with inside(Run(0, 0, folder / "checkpoints", lambda: 1.0, REPORTS)):
        return evaluate(program, {"x": 1}, REPORTS)


class TestArguments:
    def test_a_hostile_value_arrives_as_one_argument(self, folder):
        hostile = """it's "a" $(touch hacked) `touch hacked`; touch hacked & rm -rf * \\ {x} | * ? ~ #!\n\ttab"""
        folder.write(
            "space.toml",
            f"text = {{type = 'choice', options = [{json.dumps(hostile)}]}}\n"
            "x = {type = 'integer', low = 0, high = 9}",
        )
        folder.script("seen.sh", "printf '%s\\0' \"$@\" > arguments; echo 1")
        tuned(folder, "./seen.sh {text} --text={text} '{text} and {x}'", budget="1 evaluations")
        first, second, third, end = folder.read("arguments").split("\0")
        assert (first, second, end) == (hostile, f"--text={hostile}", "")
        assert third.startswith(f"{hostile} and ")
        assert not (folder.path / "hacked").exists()
        assert (folder.path / "seen.sh").exists()

    def test_what_is_not_active_is_left_out(self):
        template = CommandTemplate.of(
            "train --lr {lr} -v --drop {drop} --rate={rate} mode-{drop} {rate} {{literal}} ''"
        )
        assert template.filled({"lr": "1", "drop": "2", "rate": "3"}) == [
            "train", "--lr", "1", "-v", "--drop", "2", "--rate=3", "mode-2", "3", "{literal}", "",
        ]  # fmt: skip
        assert template.filled({"lr": "1"}) == ["train", "--lr", "1", "-v", "{literal}", ""]

    def test_a_program_gets_only_what_is_active(self, folder):
        folder.write(
            "space.toml",
            "kind = {type = 'choice', options = ['plain']}\nother = {type = 'choice', options = ['a', 'b']}\n"
            "drop = {type = 'real', low = 0, high = 1, when = {other = 'a'}}",
        )
        folder.script("seen.sh", 'echo "$*" >> arguments; echo 1')
        tuned(folder, "./seen.sh {kind} {other} --drop {drop}", budget="8 evaluations")
        seen = [line.split() for line in folder.read("arguments").splitlines()]
        assert {len(line) for line in seen} == {2, 4}
        assert all((line[1] == "a") == (len(line) == 4) for line in seen)

    @pytest.mark.parametrize(
        ("command", "error"),
        [
            ("./p.sh {y}", "command: unknown placeholder {y}; expected one of {x}, {farthing.trial}, {farthing"),
            ("./p.sh {farthing.trail}", "unknown placeholder {farthing.trail}; did you mean {farthing.trial}?"),
            ("./p.sh {farthing.steps}", "command: {farthing.steps} needs --max-steps"),
            ("./p.sh {x", "command: '{x' has a brace that is not a placeholder; write {{ or }} for a literal brace"),
            ("./p.sh {}", "command: '{}' has a brace that is not a placeholder"),
            ("./p.sh 'x", "command: cannot be split into arguments (No closing quotation): ./p.sh 'x"),
            ("  ", "command: expected a program and its arguments, such as 'train --lr {lr}', got '  '"),
            ("./nowhere.sh {x}", "command: expected a program that can be found, got './nowhere.sh'"),
            ("./space.toml {x}", "command: expected an executable file, got './space.toml'"),
        ],
    )  # fmt: skip
    def test_a_command_that_cannot_be_filled_is_refused_before_anything_runs(self, folder, command, error):
        folder.script("p.sh", "touch ran; echo 1")
        found = folder.error(
            "run", "--command", command, "--space", "space.toml", "--budget", "9 evaluations", "--storage", "s.db"
        )
        assert error in found
        assert sorted(path.name for path in folder.path.iterdir()) == ["p.sh", "space.toml"]

    def test_a_parameter_without_a_placeholder_is_warned_of(self, folder):
        folder.script("p.sh", "echo 1")
        ended = folder.call("run", "--command", "./p.sh", "--space", "space.toml", "--budget", "1 evaluations", "-q")
        assert (
            "farthing: warning: the command has no placeholder for x; the values are only in FARTHING_CONFIG"
            in ended.stderr
        )


class TestSteps:
    def test_a_bash_loop_is_trained_step_by_step(self, folder):
        folder.script("train.sh", *TRAINING)
        ended = folder.call(
            "run", "--command", "./train.sh {x} {farthing.steps}", "--iterative", "--max-steps", "8",
            "--space", "space.toml", "--budget", "cost=40", "--storage", "s.db", "--seed", "0", "-q", "--json",
        )  # fmt: skip
        best = json.loads(ended.stdout)["best"]
        trials = study_of(folder)
        assert best["steps"] == len(trials[best["trial"]].curve) > 0
        assert {trial.status for trial in trials} <= {ft.Status.PAUSED, ft.Status.COMPLETE}
        for trial in trials:
            distance = (trial.config["x"] - 70) ** 2
            assert list(trial.curve.values) == [distance // step for step in range(1, len(trial.curve) + 1)]
            assert trial.cost >= len(trial.curve)

    def test_between_steps_a_program_is_stopped_and_afterwards_gone(self, tmp_path, folder):
        path = folder.script(
            "train.sh", f"echo $$ > {tmp_path}/pids", "for step in 1 2 3 4 5; do echo $step 0.$step; sleep 0.05; done"
        )  # fmt: skip
        with inside(Run(0, 0, tmp_path / "checkpoints", lambda: 1.0, REPORTS)):
            steps = Program(f"{path}", iterative=True)({"x": 1})
            assert next(steps) == 0.1
            (pid,) = pids_in(tmp_path / "pids")
            until(lambda: state_of(pid) == "T")
            time.sleep(0.3)  # six of its steps
            assert state_of(pid) == "T"
            began = time.monotonic()
            assert [next(steps) for _ in range(3)] == [0.2, 0.3, 0.4]
            assert time.monotonic() - began > 0.1, "it had not gone on by itself"
            until(lambda: state_of(pid) == "T")
            steps.close()
        assert state_of(pid) is None

    def test_a_process_that_is_forked_while_its_program_is_stopped_goes_on_too(self, tmp_path, folder):
        """One in some hundred programs, whose loop forks at once, used to hang here."""
        path = folder.script("train.sh", "for step in $(seq 1 40); do echo $step $step; /bin/true; done")
        for _ in range(8):
            with inside(Run(0, 0, tmp_path / "checkpoints", lambda: 1.0, REPORTS)):
                assert list(Program(f"{path}", iterative=True)({})) == list(range(1, 41))

    def test_a_program_that_misses_the_signal_to_continue_is_sent_it_again(self, tmp_path, folder, monkeypatch):
        """As a process does that is being forked just then: without the second signal it would stay stopped."""
        path = folder.script("train.sh", "for step in 1 2 3; do echo $step $step; sleep 0.01; done")
        sent = []

        def lossy(process, number):
            sent.append(number)
            if number != signal.SIGCONT or sent[-2:] == [signal.SIGCONT] * 2:
                send(process, number)

        send = ProgramProcess._signal
        monkeypatch.setattr(ProgramProcess, "_signal", lossy)
        with inside(Run(0, 0, tmp_path / "checkpoints", lambda: 1.0, REPORTS)):
            assert list(Program(f"{path}", iterative=True)({})) == [1.0, 2.0, 3.0]
        assert sent.count(signal.SIGCONT) >= 2 * sent.count(signal.SIGSTOP) >= 2

    @pytest.mark.parametrize(
        ("lines", "error"),
        [
            (["echo loss 3"], "printed no line such as '1 0.5', a step and its value; its last line is 'loss 3'"),
            ([":"], "printed no line such as '1 0.5', a step and its value; it printed nothing"),
            (["echo 0 3"], "expected the line of step 1, got that of step 0; steps count from 1"),
            (["echo 1 3; echo 3 4"], "expected the line of step 2, got that of step 3"),
            (["echo 1 3; echo bad >&2; exit 9"], "the program ended with exit status 9: 'bad'"),
            (["echo 1 nan"], "the value must be finite, got nan"),
        ],
    )
    def test_steps_that_fail(self, tmp_path, folder, lines, error):
        from farthing.runner.evaluate import next_step

        path = folder.script("train.sh", *lines)
        with inside(Run(0, 0, tmp_path / "checkpoints", lambda: 1.0, REPORTS)):
            steps = Program(f"{path}", iterative=True)({})
            while (step := next_step(steps)) is not None and step.value is not None:
                pass
        assert step is not None
        assert error in step.error.splitlines()[-1]

    def test_lines_that_are_no_steps_are_passed_over(self, tmp_path, folder):
        path = folder.script(
            "train.sh", "echo epoch 1", "echo 1 0.5", "echo '{\"loss\": 2}'",
            'echo \'{"step": 2, "value": 0.25, "loss": 2}\'',
            "echo 3 days", "echo", "echo 3 0.125 7", "printf '4 0.0625'",
        )  # fmt: skip
        with inside(Run(0, 0, tmp_path / "checkpoints", lambda: 1.0, REPORTS)):
            steps = list(Program(f"{path}", iterative=True)({}))
        assert steps == [0.5, {"value": 0.25, "loss": 2}, {"value": 0.125, "cost": 7.0}, 0.0625]

    def test_by_checkpoints_a_program_is_ended_at_a_pause_and_goes_on_where_it_was(self, folder):
        folder.script(
            "train.sh",
            "echo $$ >> pids; echo $FARTHING_TRIAL $FARTHING_START_STEP >> starts",
            '[ "$FARTHING_START_STEP" = 0 ] || [ -f "$FARTHING_CHECKPOINT_DIR/$FARTHING_START_STEP" ] || exit 7',
            "x=$1",
            "for step in $(seq $((FARTHING_START_STEP + 1)) $2); do",
            '  touch "$FARTHING_CHECKPOINT_DIR/$step"; echo $step $((1000 + (x - 70) * (x - 70) / step)) 1',
            "done",
        )
        ended = folder.call(
            "run", "--command", "./train.sh {x} {farthing.steps}", "--iterative", "--pause", "checkpoint",
            "--max-steps", "9", "--space", "space.toml", "--budget", "cost=80",
            "--storage", "s.db", "--seed", "0", "-q", "--json",
        )  # fmt: skip
        starts = [tuple(map(int, line.split())) for line in folder.read("starts").splitlines()]
        again = [start for start in starts if start[1] > 0]
        assert again, "none was paused and resumed"
        accounts = json.loads(ended.stdout)["ledger"]["accounts"]
        ahead = accounts.get("retrained", {}).get("cost", 0.0)
        assert ahead <= len(again), "a step, where it got further before it was stopped"
        assert not [trial for trial in study_of(folder) if trial.status is ft.Status.FAILED]
        require_gone(folder.path / "pids")
