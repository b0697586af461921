"""The end of `farthing run`: one summary on a terminal, and the plain result anywhere else."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from screens import Screen
from warm_python import WarmPython

PYTHON = WarmPython()
SCRIPT = """
def objective(config):
    if config["x"] > 60:
        raise ValueError("boom")
    return config["x"]
"""
RUN = (
    "run",
    "train.py:objective",
    "--space",
    "space.toml",
    "--policy",
    "sobol",
    "--seed",
    "1",
    "--budget",
    "6 evaluations",
)
RESULT = [
    "best",
    "x",
    "trials",
    "last",
    "ended",
    "budget",
    "evaluation",
    "failed",
    "start-up",
    "optimiser",
    "remaining",
]


@pytest.fixture(scope="module", autouse=True)
def _close() -> Iterator[None]:
    yield
    PYTHON.close()


@pytest.fixture
def screen(folder):
    folder.write("train.py", SCRIPT)

    def ran(*options: str, **how: object) -> Screen:
        found = Screen(PYTHON, str(folder.path), *RUN, *options, columns=120, **how)
        assert found.end() == 0, found.shown
        return found

    return ran


def names(text: str) -> list[str]:
    """What its lines begin with."""
    return [line.split()[0] for line in text.splitlines() if line.strip()]


def test_on_a_terminal_one_summary_says_all_and_nothing_twice(screen):
    shown = screen("--storage", "s.db").shown
    assert names(shown)[-8:] == ["best", "x", "trials", "last", "spent", "ended", "outlook", "next"]
    assert "━" not in shown, "the line is gone"
    assert shown.count("the budget of 6 evaluations is spent") == 1
    assert shown.count("expected to bring") == 1
    assert "spent       100% of 6 evaluations: evaluation " in shown
    assert "next        farthing report s.db; farthing resume s.db --budget TOTAL" in shown


def test_a_result_in_a_pipe_is_as_it_was_and_the_summary_is_on_the_terminal(screen):
    ended = screen(piped=True)
    output = ended.output
    assert [name for name in names(output) if name != "start-up"] == [name for name in RESULT if name != "start-up"]
    assert "next        --storage FILE keeps the study" in ended.shown
    assert names(ended.shown).count("best") == 1


def test_quiet_shows_the_result_alone(screen):
    shown = screen("--quiet").shown
    assert names(shown)[-1] == "remaining"
    assert not {"spent", "outlook", "next"} & set(names(shown))


def test_json_on_a_terminal_is_json_alone(screen):
    shown = screen("--json").shown
    assert json.loads(shown[shown.index("{") :])["trials"]
    assert not {"spent", "outlook", "next"} & set(names(shown))
