"""Running a study again with an edited objective says so, and a run that evaluates nothing says why."""

from __future__ import annotations

import functools
import subprocess
import sys
import textwrap
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import farthing as ft

SPACE = ft.Space(x=ft.Real(0, 1))
EDITED = "the objective is not the one of trials 0 to 2, whose results are kept"


def said(run: Callable[[], object]) -> str:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run()
    return "\n".join(str(one.message) for one in caught)


def tuned(objective: Any, path: Path | None, trials: int) -> str:
    study = ft.Study(SPACE, f"{trials} evaluations", policy="random", seed=0, storage=path)
    found = said(lambda: study.run(objective, isolate=False, progress=False))
    study.close()
    return found


class Learner:
    def __init__(self, scale: float) -> None:
        self.scale = scale

    def __call__(self, config):
        return self.scale * config["x"]

    def method(self, config):
        return config["x"]


class Edited(Learner):
    def __call__(self, config):
        return -self.scale * config["x"]


PAIRS = {
    "a function": (lambda config: config["x"], lambda config: 2 * config["x"]),
    "a partial": (functools.partial(lambda s, c: c["x"], 1), functools.partial(lambda s, c: c["x"] + 1, 1)),
    "an object": (Learner(1.0), Edited(1.0)),
    "a method": (Learner(1.0).method, Edited(1.0).__call__),
}


@pytest.mark.parametrize("kind", PAIRS)
def test_a_changed_objective_is_said(tmp_path, kind):
    first, second = PAIRS[kind]
    path = tmp_path / "study.db"
    assert tuned(first, path, 3) == ""
    assert EDITED in tuned(second, path, 5)
    assert tuned(second, path, 6) == "", "it is said once per change"


SCRIPT = """
    {above}
    import sys, warnings
    import farthing as ft

    def inner(config):
        {doc}
        return config["x"] in {{1.0, 2.0}} or {body}

    def objective(config):
        return float(inner(config))

    study = ft.Study(ft.Space(x=ft.Real(0, 1)), sys.argv[2], policy="random", seed=0, storage=sys.argv[1])
    study.run(objective, isolate=False, progress=False)
    """


def test_a_script_that_goes_on_is_silent_wherever_its_lines_are_and_an_edit_of_what_it_calls_is_seen(tmp_path):
    def run(evaluations: int, above: str = "", doc: str = "'One.'", body: str = "config['x']") -> str:
        script = tmp_path / f"script{len(above)}.py"
        script.write_text(textwrap.dedent(SCRIPT).format(above=above, doc=doc, body=body))
        budget = f"{evaluations} evaluations"
        done = subprocess.run(
            [sys.executable, str(script), str(tmp_path / "study.db"), budget], capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return done.stderr

    assert run(3) == ""
    assert run(4, above="# a comment", doc="'What it does.'") == ""
    assert "the objective is not the one of trials 0 to 3" in run(5, body="-config['x']")


def test_a_closure_over_other_data_is_the_same_objective(tmp_path):
    def made(data: float) -> Callable[[dict[str, float]], float]:
        return lambda config: config["x"] + data

    path = tmp_path / "study.db"
    assert tuned(made(1.0), path, 3) == ""
    assert tuned(made(2.0), path, 4) == ""


def test_a_finished_study_that_is_run_again_says_that_nothing_was_evaluated(tmp_path):
    path = tmp_path / "study.db"
    tuned(PAIRS["a function"][0], path, 3)
    again = tuned(PAIRS["a function"][0], path, 3)
    assert "nothing was evaluated: the budget of 3 evaluations is spent" in again
    assert "Study.resume(file, budget=...)" in again
    edited = tuned(PAIRS["a function"][1], path, 3)
    assert EDITED in edited
    assert "nothing was evaluated" in edited
