"""`status`, `best`, `export` and `pareto` look at a study file: they need nothing else and leave it as it is."""

from __future__ import annotations

import csv
import io
import json
import shlex
import sqlite3
import subprocess
import sys
from contextlib import chdir

import pytest

import farthing as ft
from called import FARTHING, PATIENCE, pids_in, until
from farthing.cli.arguments import parse_budget
from farthing.cli.group import group
from farthing.cli.run_commands import POLICIES
from farthing.policies import policy_names

READING = ["status", "best", "export", "pareto"]


def studied(folder, values=(3.0, 1.0, 2.0), **options) -> None:
    space = ft.Space(
        x=ft.Real(0, 1), kind=ft.Choice(["a b", 'q"c']), deep=ft.Integer(1, 9, when={"kind": "a b"})
    )  # fmt: skip
    with ft.Study(space, ft.Budget(cost=100), policy="sobol", seed=0, storage=folder.path / "s.db", **options) as study:
        for value in values:
            study.tell(study.ask(), value=value, cost=2 * value, note={"epochs": 3})
        study.tell(study.ask(), failed="out of memory,\nat last", cost=1.0)


class TestWhatIsShown:
    def test_best_in_text_and_json(self, folder):
        studied(folder)
        found = json.loads(folder.call("best", "s.db", "--json").stdout)
        assert (found["trial"], found["value"], found["cost"], found["steps"]) == (1, 1.0, 2.0, 0)
        with ft.Study.resume(folder.path / "s.db") as study:
            assert found["config"] == study.best.config
        text = folder.answer("best", "s.db")
        assert text.startswith("best        1  (trial 1, cost 2 cost)\n  x ")

    def test_the_largest_value_is_best_and_in_its_own_sign(self, folder):
        studied(folder, maximize=True)
        found = json.loads(folder.answer("best", "s.db", "--json"))
        assert (found["trial"], found["value"]) == (0, 3.0)

    def test_export_has_a_row_per_trial_in_both_forms(self, folder):
        studied(folder)
        rows = list(csv.DictReader(io.StringIO(folder.call("export", "s.db", "--csv").stdout)))
        trials = json.loads(folder.answer("export", "s.db", "--json"))
        assert list(rows[0]) == [
            "number", "status", "value", "cost", "predicted_cost", "steps", "config.x", "config.kind", "config.deep",
            "attributes.note", "began", "ended", "ended_by", "reason", "error",
        ]  # fmt: skip
        assert [row["status"] for row in rows] == ["complete"] * 3 + ["failed"]
        for row, trial in zip(rows, trials, strict=True):
            assert row["number"] == str(trial["number"])
            assert row["config.kind"] == trial["config"]["kind"]
            assert row["config.deep"] == str(trial["config"].get("deep", ""))
            assert row["error"] == (trial["error"] or "")
            assert float(row["config.x"]) == trial["config"]["x"]
        assert rows[3]["error"] == "out of memory,\nat last"
        assert (rows[3]["value"], rows[0]["attributes.note"]) == ("", '{"epochs": 3}')

    def test_export_into_files_but_not_into_the_study(self, folder):
        studied(folder)
        folder.call("export", "s.db", "--csv", "t.csv", "--json", "t.json")
        assert len(json.loads(folder.read("t.json"))) == 4
        assert folder.read("t.csv") == folder.answer("export", "s.db")
        assert "s.db: is the study itself" in folder.error("export", "s.db", "--csv", "s.db")
        assert folder.answer("best", "s.db")

    def test_status_looks_ahead_if_asked(self, folder):
        studied(folder)
        outlook = str(ft.Study.open(folder.path / "s.db").outlook())
        assert "outlook" not in folder.answer("status", "s.db")
        assert f"outlook     {outlook}\n" in folder.answer("status", "s.db", "--outlook")
        assert json.loads(folder.answer("status", "s.db", "--outlook", "--json"))["outlook"] == outlook

    def test_status_says_where_there_is_no_outlook(self, folder):
        studied(folder, values=())
        assert "outlook     not known\n" in folder.answer("status", "s.db", "--outlook")

    def test_status(self, folder):
        studied(folder)
        text = folder.call("status", "s.db").stdout
        for part in (
            "not running",
            "minimise, policy sobol, seed 0",
            "4: 3 complete, 1 failed",
            "budget      100 cost",
        ):
            assert part in text
        found = json.loads(folder.answer("status", "s.db", "--json"))
        assert found["trials"] == {"complete": 3, "failed": 1}
        assert found["ledger"]["spent"] == {"cost": 13.0}
        assert found["ledger"]["remaining"] == {"cost": 87.0}
        assert (found["runner"], found["run"], found["best"]["value"]) == (None, None, 1.0)

    def test_pareto_is_that_of_the_library(self, folder):
        studied(folder, values=(3.0, 1.0, 2.0, 4.0, 1.5))
        found = json.loads(folder.call("pareto", "s.db", "--json").stdout)
        with ft.Study.resume(folder.path / "s.db") as study:
            front, then = study.pareto(), study.pareto(4)
            configs = [study.space.decode(u) for u in front.U]
        assert [point["config"] for point in found["front"]] == configs
        assert [point["log_ei"] for point in found["front"]] == pytest.approx(front.log_ei.tolist())
        assert set(found["picks"]) == set(front.picks) == {"EI", "EIpu", "EI-cool", "CEI"}
        earlier = json.loads(folder.answer("pareto", "s.db", "--json", "--trial", "4"))
        assert [point["log_ei"] for point in earlier["front"]] == pytest.approx(then.log_ei.tolist())

    def test_what_became_of_a_front_and_the_alphas_are_those_of_the_library(self, folder):
        studied(folder, values=(3.0, 1.0, 2.0, 4.0, 1.5, 2.5, 0.5))
        found = json.loads(folder.answer("pareto", "s.db", "--json", "--persistence", "4"))
        alphas = json.loads(folder.answer("pareto", "s.db", "--json", "--alphas"))
        with ft.Study.open(folder.path / "s.db") as study:
            moved, implied = study.persistence(4), study.implied_alphas()
        assert found["share"] == moved.share
        assert [point["kept"] for point in found["points"]] == moved.kept.tolist()
        assert [point["log_ei"] for point in found["points"]] == pytest.approx(moved.log_ei.tolist())
        assert [point["log_ei_before"] for point in found["points"]] == pytest.approx(moved.before.log_ei.tolist())
        assert [(item["trial"], item["alpha"]) for item in alphas] == [
            (i.trial, pytest.approx(i.alpha)) for i in implied
        ]
        text = folder.answer("pareto", "s.db", "--persistence", "4", "--points", "2")
        assert text.startswith(f"{moved.kept.sum()} of {len(moved.kept)} points of the front before trial 4")
        assert len(text.splitlines()) == 4
        assert folder.answer("pareto", "s.db", "--alphas").split()[:5] == ["trial", "alpha", "from", "to", "5"]
        refused = folder.error("pareto", "s.db", "--alphas", "--trial", "4")
        assert "goes with neither --trial nor --persistence" in refused

    def test_options_and_functions_that_a_file_cannot_hold(self, folder):
        space = ft.Space(
            f=ft.Choice([min, max, lambda: 1, lambda: 2]), x=ft.Real(0, 1), forbid=lambda config: config["x"] > 2
        )  # fmt: skip
        options = {"known_cost": lambda config: 1.0 + config["x"], "seed": 0, "policy": "random"}
        with ft.Study(space, ft.Budget(cost=100), storage=folder.path / "s.db", **options) as study:
            for _ in range(8):
                proposal = study.ask()
                study.tell(proposal, value=proposal.config["x"], cost=1.0)
        best = json.loads(folder.answer("best", "s.db", "--json"))
        assert best["config"]["f"].startswith("<")
        assert "8 complete" in folder.answer("status", "s.db")
        assert folder.answer("export", "s.db").count("\n") == 9
        ended = folder.call("pareto", "s.db", "--points", "3")
        assert ended.stdout.splitlines()[1].split() == ["cost", "log", "EI", "config"]
        assert "pick     cost" in ended.stdout
        assert "EI / cost^alpha" in ended.stdout
        assert "a file cannot hold forbid" in ended.stderr
        assert "a file cannot hold known_cost" in ended.stderr


class TestWhatIsLeftAlone:
    @pytest.mark.parametrize("command", READING)
    def test_a_file_that_is_not_there_is_not_made(self, folder, command):
        assert folder.error(command, "no.db", status=1) == "no.db: there is no such study file"
        assert sorted(path.name for path in folder.path.iterdir()) == ["space.toml"]

    @pytest.mark.parametrize("command", READING)
    def test_files_of_others_are_refused_and_unchanged(self, folder, command):
        folder.write("empty.db", "")
        folder.write("text.db", "not a database, but a text that is long enough to be one" * 20)
        with sqlite3.connect(folder.path / "other.db") as other:
            other.execute("CREATE TABLE t (x)")
        other.close()
        before = {path.name: path.read_bytes() for path in folder.path.iterdir()}
        assert "the file holds no study yet" in folder.error(command, "empty.db", status=1)
        assert "not a Farthing study" in folder.error(command, "other.db", status=1)
        assert "text.db: cannot be opened as a study file" in folder.error(command, "text.db", status=1)
        assert {path.name: path.read_bytes() for path in folder.path.iterdir()} == before

    def test_a_study_without_a_value(self, folder):
        studied(folder, values=())
        assert "no trial has succeeded yet (1 failed)" in folder.error("best", "s.db", status=3)
        assert "a front needs the values of" in folder.error("pareto", "s.db", status=3)
        assert "best        none yet" in folder.answer("status", "s.db")

    def test_a_study_that_runs_elsewhere_is_shown_and_not_disturbed(self, folder):
        folder.script("slow.sh", "echo $$ >> pids; while [ ! -e go ]; do sleep 0.02; done; echo $1")
        process = folder.start(
            "run", "--command", "./slow.sh {x}", "--space", "space.toml", "--budget", "4 evaluations",
            "--storage", "s.db", "--policy", "random", "--workers", "2",
        )  # fmt: skip
        until(lambda: len(pids_in(folder.path / "pids")) == 2)
        found = json.loads(folder.answer("status", "s.db", "--json"))
        assert found["runner"].startswith(f"process {process.pid} on ")
        assert found["trials"] == {"running": 2}
        text = folder.answer("status", "s.db")
        assert f"run by process {process.pid} on " in text
        assert "running  trial 1, x=" in text
        assert folder.answer("export", "s.db").count("running") == 2
        assert "is being run by process" in folder.error("resume", "s.db", "--budget", "9 evaluations", status=1)
        folder.write("go", "")
        out, told = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, told
        assert "4 complete" in out
        assert "not running" in folder.answer("status", "s.db")


class TestTheShell:
    def test_version_help_and_the_module(self, folder):
        assert folder.call("--version").stdout == f"farthing {ft.__version__}\n"
        for command in [[], *([name] for name in ["run", "resume", "demo", *READING])]:
            text = folder.answer(*command, "--help")
            assert text.startswith("Usage: farthing")
            assert max(map(len, text.splitlines())) <= 100
        again = subprocess.run([sys.executable, "-m", "farthing", "--version"], capture_output=True, text=True)
        assert (again.returncode, again.stdout) == (0, f"farthing {ft.__version__}\n")

    def test_the_examples_of_all_help_texts_are_valid(self, folder):
        examples = [
            shlex.split(line)[1:]
            for command in [[], *([name] for name in ["run", "resume", "demo", *READING])]
            for line in folder.answer(*command, "--help").splitlines()
            if line.startswith("  farthing ")
        ]
        assert {name for name, *_ in examples} == {"run", "resume", *READING}
        folder.write("farthing.toml", 'budget = "10m"\n')
        for name, *arguments in examples:
            with chdir(folder.path):
                context = group.commands[name].make_context(name, list(arguments))  # raises what is wrong with them
            if context.params.get("budget"):
                parse_budget(context.params["budget"])

    def test_usage_errors_are_one_line_and_status_two(self, folder):
        assert folder.error("tune") == "No such command 'tune' (see farthing --help)"
        assert folder.error("best") == "Missing argument 'STUDY' (see farthing best --help)"
        assert folder.error("run", "x.py:f") == "Missing option '--budget' (see farthing run --help)"

    def test_policies_are_those_there_are(self):
        assert sorted(POLICIES) == sorted(policy_names())

    @pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
    def test_completion_is_offered(self, folder, shell):
        script = folder.call(env={"_FARTHING_COMPLETE": f"{shell}_source", "PATH": "/usr/bin:/bin"}, status=None).stdout
        assert "_FARTHING_COMPLETE" in script

    def test_completion_completes(self, folder):
        def completed(words: str, number: int) -> list[str]:
            environment = {
                "_FARTHING_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(number), "PATH": "/bin",
            }  # fmt: skip
            found = folder.call(env=environment, status=None).stdout.split()
            return [item.partition(",")[2] for item in found]

        assert completed("farthing re", 1) == ["report", "resume"]
        assert completed("farthing run --policy ei_", 3) == ["ei_alpha", "ei_cool", "ei_alpha-paper", "ei_cool-paper"]
        assert "--trial-seconds" in completed("farthing resume s.db --", 3)

    def test_looking_is_quick_because_little_is_imported(self, folder):
        studied(folder)
        code = (
            "import sys\nfrom farthing.cli import main\n"
            "for command in (['--help'], ['best', 's.db'], ['status', 's.db'], ['export', 's.db']):\n"
            "    assert main(command) == 0\n"
            "heavy = ('scipy', 'rich', 'sklearn', 'pandas', 'farthing.study')\n"
            "print(*[name for name in heavy if name in sys.modules])"
        )
        ended = subprocess.run([sys.executable, "-c", code], cwd=folder.path, capture_output=True, text=True)
        assert ended.returncode == 0, ended.stderr
        assert ended.stdout.splitlines()[-1] == ""

    def test_of_a_reader_that_goes_away_nothing_is_said(self, folder):
        studied(folder)
        ended = subprocess.run(
            f"{FARTHING} export s.db --json | true; exit ${{PIPESTATUS[0]}}",
            shell=True, executable="/bin/bash", cwd=folder.path, capture_output=True, text=True,
        )  # fmt: skip
        assert ended.returncode in (0, 1)
        assert ended.stderr == ""

    def test_the_demo_runs_and_goes_on(self, folder):
        ended = folder.call("demo", "--budget", "3 evaluations", "-q")
        assert "n_estimators" in ended.stdout
        assert "3 complete" in folder.call("resume", "farthing-demo.db", "-q").stdout

    def test_the_demo_says_what_it_needs(self, folder):
        code = "import sys; sys.modules['sklearn'] = None; from farthing.cli import main; sys.exit(main(['demo']))"
        ended = subprocess.run([sys.executable, "-c", code], cwd=folder.path, capture_output=True, text=True)
        assert ended.returncode == 1
        assert ended.stderr == "farthing: error: the demo tunes a scikit-learn model: pip install 'farthing[demo]'\n"
