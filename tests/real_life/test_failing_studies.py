"""A study whose trials fail says so: the run ends with the error, on a terminal the reason is shown, and so on."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
import textwrap
import time
from typing import Any

import pytest

import farthing as ft
from farthing import errors
from farthing.errors import FarthingError, NoTrial

SPACE = ft.Space(x=ft.Real(0, 1))


def wrong_type(config: dict[str, Any]) -> float:
    return config["x"] + "1"


def ended_with(objective: Any, budget: str = "12 evaluations", **options: Any) -> tuple[ft.Study, BaseException | None]:
    """The study after a run, and what the run raised."""
    study = ft.Study(SPACE, budget, policy="random", seed=0)
    try:
        study.run(objective, progress=False, **options)
    except Exception as error:
        return study, error
    return study, None


class TestEveryTrialFails:
    def test_the_run_ends_with_the_error_and_the_study_is_usable(self):
        study, error = ended_with(wrong_type)
        assert type(error).__name__ == "EveryTrialFailed", error
        assert isinstance(error, FarthingError | RuntimeError)
        assert str(error).startswith("the first 5 trials all failed with TypeError: unsupported operand type")
        assert str(error).endswith("; max_failures=None goes on all the same")
        assert error.study is study
        assert study.count(ft.Status.FAILED) == len(study.trials) == 5
        assert study.why_ended.startswith("the first 5 trials all failed with TypeError")
        study.run(lambda config: config["x"], progress=False)
        assert study.count(ft.Status.COMPLETE) == 7

    def test_in_worker_processes_all_of_them_end(self):
        study, error = ended_with(wrong_type, "30s", workers=2)
        assert type(error).__name__ == "EveryTrialFailed", error
        assert study.ledger.total("seconds") < 20.0
        assert not study.count(ft.Status.RUNNING)

    def test_trials_at_their_limit_fail_alike_whatever_the_numbers(self):
        study, error = ended_with(lambda config: time.sleep(30), trial_seconds=0.1, isolate=True)
        assert type(error).__name__ == "EveryTrialFailed", error
        assert "the first 5 trials all failed: killed: it took longer than 0.1s" in str(error)
        assert study.count(ft.Status.KILLED) == 5

    @pytest.mark.parametrize("kind", ["None", "three", "a value", "another error"])
    def test_it_goes_on_where_it_should(self, kind):
        assert hasattr(errors, "EveryTrialFailed"), "no run ends because its trials fail"
        seen = []

        def objective(config: dict[str, Any]) -> float:
            seen.append(config)
            if (kind == "a value" and len(seen) == 4) or (kind == "three" and len(seen) == 3):
                return 1.0
            raise KeyError(len(seen)) if kind == "another error" and len(seen) == 3 else ValueError(len(seen))

        most = {"None": None, "three": 3}.get(kind, 5)
        study, error = ended_with(objective, max_failures=most)
        assert error is None
        assert len(study.trials) == 12


class TestWords:
    def test_the_best_before_a_success_quotes_the_last_error(self):
        study = ft.Study(SPACE, "5 evaluations", seed=0)
        study.tell(study.ask(), failed="ValueError: out of \x1b[2J memory")
        with pytest.raises(NoTrial) as refused:
            _ = study.best
        assert str(refused.value) == (
            r"no trial has succeeded yet (1 failed); the last error: ValueError: out of \x1b[2J memory"
        )

    def test_the_line_of_an_error_is_the_one_that_names_it(self):
        """The last line of a message with several lines says the least."""

        def objective(config: dict[str, Any]) -> float:
            raise ValueError("the learning rate is too large\n  at step 3\nstack trace: 0x1")

        study, _ = ended_with(objective, "1 evaluation")
        with pytest.raises(NoTrial) as refused:
            _ = study.best
        assert str(refused.value).endswith("the last error: ValueError: the learning rate is too large")

    def test_a_killed_trial_is_killed_once(self):
        shown = on_terminal("time.sleep(9)", '"2 evaluations"', "trial_seconds=0.1, isolate=True")
        assert "killed: it took longer" in shown
        assert "killed: killed" not in shown
        piped = in_pipe("time.sleep(9)", '"1 evaluation"', "trial_seconds=0.1, isolate=True")
        assert "trial 0: killed: it took longer" in piped, piped

    def test_a_terminal_shows_each_kind_of_error_once_and_counts_the_rest(self):
        body = "raise KeyError('gone') if number == 3 else ValueError(f'no {number} \\x1b[2J')"
        shown = on_terminal(body, '"6 evaluations"', "max_failures=None")
        above = re.findall(r"trial \d failed: [^\r\n]*", shown)
        assert sorted(set(above)) == [r"trial 0 failed: ValueError: no 0 \x1b[2J", "trial 3 failed: KeyError: 'gone'"]
        assert r"last failed: ValueError: no 5 \x1b[2J (5 times)" in shown

    @pytest.mark.parametrize("where", ["terminal", "pipe"])
    def test_the_end_of_a_run_is_said(self, where):
        shown = (on_terminal if where == "terminal" else in_pipe)("pass", '"3 evaluations"', "")
        assert "ended: the budget of 3 evaluations is spent" in shown

    def test_a_finished_study_that_is_run_again_says_that_nothing_was_run(self, tmp_path, capsys):
        """As a cell of a notebook with another objective: what it shows is not what that objective does."""
        for objective in (lambda config: 1.0, lambda config: 2.0):
            study = ft.tune(objective, SPACE, "3 evaluations", seed=0, storage=tmp_path / "study.db")
            study.close()
        assert study.best.value == 1.0
        said = capsys.readouterr().err.splitlines()
        assert (
            said[-1] == "ended: the budget of 3 evaluations is spent; nothing was run, the 3 trials are of earlier runs"
        )


class TestWhyEnded:
    """`study.why_ended` in the words of each way to end."""

    def why(self, study: ft.Study) -> Any:
        return getattr(study, "why_ended", None)

    def test_it_is_empty_while_the_study_goes_on(self):
        study = ft.Study(SPACE, "2 evaluations", seed=0)
        assert self.why(study) == ""

    @pytest.mark.parametrize(
        ("budget", "said"),
        [
            ("2 evaluations", "the budget of 2 evaluations is spent"),
            (ft.Budget(cost=2), "the budget of 2 cost is spent"),
        ],
    )
    def test_a_budget_names_its_limit(self, budget, said):
        study = ft.Study(SPACE, budget, seed=0).run(lambda config: {"value": 1.0, "cost": 1.0}, progress=False)
        assert self.why(study) == said

    def test_a_target_names_the_trial_that_reached_it(self):
        study = ft.Study(SPACE, "9 evaluations", seed=0, maximize=True, stop_at=0.5)
        study.run(lambda config: 0.75, progress=False)
        assert self.why(study) == "trial 0 reached the value asked for by stop_at"

    def test_a_space_says_how_much_it_held(self):
        study = ft.Study(ft.Space(k=ft.Choice(["a", "b"])), "9 evaluations", seed=0).run(len, progress=False)
        assert self.why(study) == "all 2 allowed configurations were proposed"

    def test_a_stop_says_who(self):
        study = ft.Study(SPACE, "9 evaluations", seed=0)
        study.run(lambda config: 1.0, progress=False, callbacks=[lambda study, trial: study.stop()])
        assert self.why(study) == "stopped by study.stop() after 1 trial"


class TestMistakes:
    @pytest.mark.parametrize(
        "space",
        [
            ft.Space(x=ft.Real(0, 1), forbid=lambda config: True),
            ft.Space(n=ft.Integer(1, 10**9), forbid=lambda config: True),
            ft.Space(k=ft.Choice(["a", "b"]), forbid=[{"k": {"a", "b"}}]),
        ],
        ids=["real", "large", "listed"],
    )
    def test_a_space_with_everything_forbidden_is_an_error(self, space, monkeypatch):
        """In `run` too, where the end of a study is not one; and soon, however large the space is."""
        asked, forbid = [], space._forbid

        def counting(config: dict[str, Any]) -> bool:
            asked.append(config)
            assert len(asked) < 10**6, "an endless search"  # which the space wraps into an error that says so
            return bool(forbid is None or forbid(config))

        if forbid is not None:
            monkeypatch.setattr(space, "_forbid", counting)
        for attempt in (lambda study: study.ask(), lambda study: study.run(lambda config: 1.0, progress=False)):
            try:
                attempt(ft.Study(space, "5 evaluations", seed=0))
                refused = "nothing"
            except FarthingError as error:
                refused = f"{type(error).__name__}: {error}"
            assert refused.startswith("InvalidSpace: forbid: every configuration that was looked at is forbidden")

    def test_a_new_total_below_what_is_spent_is_an_error(self, tmp_path):
        path = tmp_path / "study.db"
        with ft.Study(SPACE, "4 evaluations", storage=path, seed=0) as study:
            study.run(lambda config: config["x"], progress=False)
        try:
            ft.Study.resume(path, budget="2 evaluations").close()
            refused = "nothing"
        except FarthingError as error:
            refused = f"{type(error).__name__}: {error}"
        assert refused == (
            "InvalidBudget: budget: 2 evaluations is less than what is spent already, 4 evaluations; `budget` is the "
            "new total, 4 evaluations until now"
        )
        with ft.Study.resume(path, budget="4 evaluations") as same:
            assert same.ended is not None, "the budget it has is accepted"


SCRIPT = """
    import time
    import farthing as ft
    from farthing.runner import progress
    progress.REFRESH_PER_SECOND = 40

    def objective(config):
        number = ft.current_run().trial
        time.sleep(0.05)
        {body}
        return 1.0

    try:
        ft.tune(objective, ft.Space(x=ft.Real(0, 1)), {budget}, policy="random", seed=0, {options})
    except ft.errors.FarthingError:
        pass
    """


def in_pipe(body: str, budget: str, options: str) -> str:
    text = textwrap.dedent(SCRIPT).format(body=body, budget=budget, options=options)
    return subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=120).stderr


def on_terminal(body: str, budget: str, options: str) -> str:
    """What a run shows on a terminal, without the codes that draw it."""
    text = textwrap.dedent(SCRIPT).format(body=body, budget=budget, options=options)
    master, terminal = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "300"}
    child = subprocess.Popen([sys.executable, "-c", text], stderr=terminal, env=environment)
    os.close(terminal)
    found = b""
    while True:
        try:
            block = os.read(master, 65536)
        except OSError:  # how a closed pseudo-terminal reads on Linux
            break
        if not block:
            break
        found += block
    os.close(master)
    child.wait(timeout=60)
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", found.decode())
