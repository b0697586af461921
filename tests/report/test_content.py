"""What the report and the live page say of a study, checked against the study itself."""

from __future__ import annotations

import json
import math
import re
import shlex
import subprocess
from typing import Any

import pytest

import farthing as ft
from farthing.cli import main, run_note
from farthing.cli.run_note import RunNote
from farthing.errors import FarthingError, InvalidArgument, NoTrial
from farthing.numerics.deadline import OutOfTime
from farthing.report.content import overview, trial_rows
from farthing.report.copies import as_arguments, as_command, as_python, quoted
from farthing.report.figures.listed import Figure
from farthing.report.page.page import embedded
from farthing.report.rows import best_and_newest
from farthing.report.saving import Reported, drawn, report_of

TRAPS = [
    "'; rm -rf ~; '",
    "$(id)",
    "`id`",
    "a\nb",
    "\u202eabc",
    "--",
    "-x",
    "",
    "é 漢字",
    "\\'",
    "\x1b[2J",
    "{x}",
    "!!",
]


def studied(values: list[float | None], *, budget: Any = None, maximize: bool = False, cost: float = 2.0) -> ft.Study:
    space = ft.Space(x=ft.Real(0, 1), kind=ft.Choice(["a", "b"]), n=ft.Integer(1, 9, when={"kind": "b"}))
    study = ft.Study(space, budget or ft.Budget(usd=100), policy="random", seed=0, maximize=maximize)
    for value in values:
        failed = {"failed": "Traceback\nValueError: x"} if value is None else {"value": value}
        study.tell(study.ask(), cost=cost, **failed)
    return study


def said(study: ft.Study, **options: Any) -> dict[str, Any]:
    found = overview(study._session, "s", **{"seconds": 0.0, **options})
    json.dumps(found, allow_nan=False)
    return found


class TestHeadline:
    def test_it_says_the_best_value_its_price_and_when_most_of_the_gain_came(self):
        study = studied([9.0, 5.0, None, 1.5, 1.0, 3.0])
        assert said(study)["headline"] == [
            "Best value 1 for $12.00.", "94% of the gain came in the first 8% of the budget."
        ]  # fmt: skip

    def test_values_are_in_the_users_own_sign(self):
        study = studied([0.5, 0.75, 0.9], maximize=True)
        assert said(study)["headline"][0] == "Best value 0.9 for $6.00."
        assert said(study)["best"]["value"] == 0.9
        assert [row["cells"][2] for row in trial_rows(study._session, "value", True)["rows"]] == [0.9, 0.75, 0.5]

    def test_it_says_what_more_would_bring_as_the_outlook_does_unless_something_is_missing(self):
        space, rng = ft.Space(x=ft.Real(0, 1)), ft.Budget(evaluations=30)
        study = ft.Study(space, rng, policy="ei", seed=0)
        for _ in range(8):
            proposal = study.ask()
            study.tell(proposal, value=(proposal.config["x"] - 0.3) ** 2 + 0.1, cost=1.0)
        expected = str(study.outlook())
        assert said(study, seconds=60.0)["headline"][-1] == f"{expected[0].upper()}{expected[1:]}."
        assert "expected" not in " ".join(said(study, seconds=60.0, left_out=("known_cost",))["headline"])

    def test_a_study_without_values_says_so(self):
        assert said(studied([]))["headline"] == ["No trial has a value yet."]
        found = said(studied([None, None]))
        assert found["headline"] == ["No trial has a value yet."]
        assert found["best"] is None
        assert found["counts"] == {"failed": 2}


class TestCards:
    def test_they_show_what_the_ledger_and_the_trials_say(self):
        study = studied([3.0, None, 1.0])
        cards = {card["title"]: card for card in said(study)["cards"]}
        assert (cards["Best value"]["value"], cards["Best value"]["note"]) == ("1", "trial 2, cost $2.00")
        assert (cards["Spent"]["value"], cards["Spent"]["note"]) == ("$6.00", "of $100.00")
        assert cards["Spent"]["share"] == study.ledger.fraction
        assert (cards["Trials"]["value"], cards["Trials"]["note"]) == ("3", "2 complete, 1 failed")

    def test_the_state_is_said_in_words(self):
        study = studied([1.0])
        assert said(study)["state"] == {"kind": "idle", "text": "not running; 98% of the budget is left"}
        study.ask()
        assert said(study)["state"]["kind"] == "running"
        spent = studied([1.0, 2.0], budget=ft.Budget(evaluations=2))
        assert said(spent)["state"] == {"kind": "ended", "text": "ended: the budget of 2 evaluations is spent"}


class TestCopies:
    def test_each_form_gives_the_configuration_back(self):
        study = studied([3.0, 1.0])
        forms = {form["title"]: form["text"] for form in said(study)["best"]["copies"]}
        assert json.loads(forms["JSON"]) == study.best.config
        assert eval(forms["Python"].removeprefix("config = ")) == study.best.config
        arguments = shlex.split(forms["Command line"])
        assert arguments[::2] == [f"--{name}" for name in study.best.config]
        assert arguments[1::2] == [str(value) for value in study.best.config.values()]

    def test_a_shell_takes_every_value_as_it_is(self):
        config = {f"n{i}": text for i, text in enumerate(TRAPS)} | dict.fromkeys(TRAPS, 1)
        expected = list[str]()
        for name, value in config.items():
            expected += [f"--{name}={value}"] if str(value).startswith("-") else [f"--{name}", str(value)]
        script = f"printf '%s\\0' {as_arguments(config)}"
        told = subprocess.run(["bash", "-c", script], capture_output=True, env={"LC_ALL": "C.UTF-8"}, check=True)
        assert told.stdout.decode().split("\0")[:-1] == expected

    def test_python_takes_every_value_as_it_is_and_objects_as_text(self):
        class Trap:
            def __repr__(self) -> str:
                return "__import__('os').abort()"

        config = dict.fromkeys(TRAPS, "x") | {"a": TRAPS, "b": (1, 2.5, None, True), "inf": math.inf, "o": Trap()}
        found = eval(as_python(config).removeprefix("config = "))
        assert found == {**config, "o": "__import__('os').abort()"}
        assert "\u202e" not in as_python(config)

    def test_the_command_that_was_run_is_filled_in(self):
        study = studied([3.0, 1.0])
        note = RunNote(command="./train.sh {x} --kind={kind} --n {n} --to {farthing.steps}", steps=7, iterative=True)
        study.note(**{run_note.NAME: note.as_json()})
        forms = {form["title"]: form["text"] for form in said(study)["best"]["copies"]}
        config = study.best.config
        number = [] if "n" not in config else ["--n", str(config["n"])]
        assert shlex.split(forms["Command"]) == [
            "./train.sh", str(config["x"]), f"--kind={config['kind']}", *number, "--to", "7"
        ]  # fmt: skip

    @pytest.mark.parametrize("note", [5, {"command": 5}, {"command": "'"}, {"command": ["a"]}, {"command": "{"}])
    def test_a_note_that_makes_no_sense_gives_no_command(self, note):
        study = studied([1.0])
        study.note(**{run_note.NAME: note})
        assert "Command" not in {form["title"] for form in said(study)["best"]["copies"]}

    def test_nothing_of_a_command_is_shown_otherwise_than_it_runs(self):
        assert "\u202e" not in (as_command("run {x} '\u202e'", {"x": "\u202e"}, {}) or "\u202e")
        assert quoted("plain") == "plain"


class TestReproduction:
    def test_the_python_begins_the_same_search(self):
        space = ft.Space(
            {
                "a b": ft.Real(1e-3, 1, log=True), "kind": ft.Choice(["a", (1, 2)]),
                "n": ft.Integer(1, 9, when={"kind": "a"}),
            },
            forbid=[{"kind": "a", "n": {3, 4}}],
        )  # fmt: skip
        policy = ft.policies.CEI(tradeoff=0.5)
        study = ft.Study(
            space, ft.Budget(usd=1.23456, evaluations=9), policy=policy, seed=5, maximize=True, stop_at=0.5
        )
        text = next(form["text"] for form in said(study)["reproduction"]["copies"] if form["title"] == "Python")
        given: dict[str, Any] = {}
        begin = text.replace("import Budget, policies, tune", "import Budget, policies")
        exec(begin, {"objective": None, "tune": lambda objective, space, **rest: given.update(rest, space=space)})
        assert given["space"] == space
        assert ft.Budget.of(given["budget"]) == study.ledger.budget
        assert (given["policy"], given["seed"], given["maximize"], given["stop_at"]) == (policy, 5, True, 0.5)

    def test_objects_among_the_options_are_text_in_it(self):
        space = ft.Space(act=ft.Choice([max, min]))
        study = ft.Study(space, "5 evaluations", seed=0, policy="random")
        text = said(study)["reproduction"]["copies"][0]["text"]
        assert "Choice(['<built-in function max>', '<built-in function min>'])" in text

    def test_versions_seed_and_policy_are_named(self):
        facts = dict(said(studied([1.0]))["reproduction"]["facts"])
        assert re.match(r"Farthing \S+, NumPy \d\S*, SciPy \d\S*, Python 3", facts["Versions"])
        assert facts["Search"] == "minimise, seed 0"
        assert facts["Policy"] == "random"


class TestRows:
    def test_pages_put_together_are_all_trials_in_order(self):
        study = studied([float(i * 7 % 10) for i in range(10)] + [None])
        pages = [trial_rows(study._session, "value", True, offset, 4)["rows"] for offset in (0, 4, 8)]
        values = [row["cells"][2] for rows in pages for row in rows]
        assert values == [*(float(i) for i in reversed(range(10))), None]
        assert trial_rows(study._session)["total"] == 11

    @pytest.mark.parametrize("descending", [False, True])
    def test_what_has_no_value_comes_last(self, descending):
        study = studied([1.0] * 12)
        cells = [row["cells"][6] for row in trial_rows(study._session, "config.n", descending)["rows"]]
        there = [cell for cell in cells if cell is not None]
        assert cells == sorted(there, reverse=descending) + [None] * (len(cells) - len(there))
        assert 0 < len(there) < 12

    def test_an_unknown_column_is_refused(self):
        with pytest.raises(InvalidArgument, match=r"sort: expected one of number, .*got 'config.y'"):
            trial_rows(studied([1.0])._session, "config.y")

    def test_of_many_trials_the_best_and_the_newest_are_there(self):
        study = studied([float(i) for i in range(30)], budget=ft.Budget(usd=1000))
        table = best_and_newest(study._session, 10)
        assert [row["cells"][0] for row in table["rows"]] == [0, 1, 2, 3, 4, 25, 26, 27, 28, 29]
        assert table["total"] == 30

    def test_the_whole_error_is_in_the_details(self):
        row = trial_rows(studied([None])._session)["rows"][0]
        assert row["cells"][-1] == "ValueError: x"
        assert dict(row["more"])["error"] == "Traceback\nValueError: x"


class TestReport:
    def test_it_holds_a_thousand_trials_in_less_than_six_megabytes(self):
        study = studied([float(i % 97) for i in range(1_000)], budget=ft.Budget(usd=1e4))
        page = report_of([Reported("big", study._session)])
        assert len(page.encode()) < 6_000_000
        data = json.loads(re.search(r'id="data">(.*?)</script>', page)[1])
        assert len(data["studies"][0]["trials"]["rows"]) == 1_000

    def test_no_data_ends_its_script(self):
        held = {"a": "</script><!-- ]]> \u2028 \ud800 & 'x'"}
        assert not set(embedded(held)) & set("<>&\u2028")
        assert json.loads(embedded(held)) == held

    def test_whatever_a_figure_raises_its_reason_is_listed(self):
        def raises(error: Exception):
            def make(session: Any, seconds: float) -> Any:
                raise error

            return make

        errors = [NoTrial("nothing yet"), OutOfTime(), ZeroDivisionError("x" * 9000)]
        figures = [Figure(str(i), "T", raises(error)) for i, error in enumerate(errors)]
        found = drawn(studied([])._session, figures, 1.0)
        assert found["0"] == {"name": "0", "title": "T", "reason": "nothing yet"}
        assert found["1"]["reason"] == "there was not enough time to draw it"
        assert len(found["2"]["reason"]) < 700

    def test_figures_that_ask_models_share_the_time(self):
        given: list[float] = []

        def make(session: Any, seconds: float) -> Any:
            given.append(seconds)
            raise FarthingError

        drawn(studied([])._session, [Figure(str(i), "T", make, models=True) for i in range(4)], 8.0)
        assert given[0] == pytest.approx(2.0, abs=0.1)
        assert sum(given) > 8.0  # what one leaves is for the others

    def test_a_study_saves_its_report_and_a_file_has_the_same(self, tmp_path, monkeypatch, capsys):
        monkeypatch.chdir(tmp_path)
        with ft.Study({"x": (0.0, 1.0)}, "3 evaluations", policy="random", seed=0, storage="s.db") as study:
            study.tell(study.ask(), value=0.25)
            study.save_report("own.html")
        assert main(["report", "s.db"]) == 0
        assert capsys.readouterr().out == "report      s.html\n"
        assert main(["report", "s.db", "-o", "s.db"]) != 0
        pages = [(tmp_path / name).read_text() for name in ("own.html", "s.html")]
        data = [json.loads(re.search(r'id="data">(.*?)</script>', page)[1])["studies"] for page in pages]
        assert data[0] == data[1]
        assert str(tmp_path) not in pages[0]
