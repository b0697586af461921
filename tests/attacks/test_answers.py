"""Attacks by answers: whatever an objective returns or raises, the study goes on, and what can be kept is kept."""

from __future__ import annotations

import asyncio
import os
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import pytest

import farthing as ft
from farthing.errors import StorageError
from learners import LINE

pytestmark = [
    pytest.mark.skipif(os.name != "posix", reason="worker processes need POSIX"),
    pytest.mark.usefixtures("logged"),
]

HUGE = 10**5001


class Own(BaseException):
    """Derives from no Exception."""


class Mute:
    """Raises whatever is asked of it."""

    def __repr__(self) -> str:
        raise ValueError("no repr")

    def __float__(self) -> float:
        raise KeyError("no float")

    def __len__(self) -> int:
        raise OSError("no length")


def raised(error: BaseException) -> Any:
    raise error


def cyclic() -> list[Any]:
    found: list[Any] = []
    found += [found, found]
    return found


def deep() -> list[Any]:
    found: list[Any] = []
    for _ in range(100_000):
        found = [found]
    return found


def without_output() -> float:
    del sys.stdout
    return 1.0


ANSWERS = {  # what the second trial does, its status, and the end of its error
    "huge value": (lambda: HUGE, "failed", "the value must be a finite number, got int a whole number of about"),
    "huge attribute": (lambda: {"value": 1.0, "n": HUGE}, "complete", ""),
    "mute value": (Mute, "failed", "the value must be a finite number, got Mute a Mute"),
    "mute attribute": (lambda: {"value": 1.0, "mute": Mute()}, "complete", ""),
    "cycle": (lambda: {"value": 1.0, "cycle": cyclic()}, "complete", ""),
    "deep": (lambda: {"value": 1.0, "deep": deep()}, "complete", ""),
    "cancelled": (lambda: raised(asyncio.CancelledError("no more")), "failed", "CancelledError: no more"),
    "generator exit": (lambda: raised(GeneratorExit("enough")), "failed", "GeneratorExit: enough"),
    "own": (lambda: raised(Own("mine")), "failed", "Own: mine"),
}


def run(answer: Any, storage: Path, isolate: bool) -> ft.Study | str:
    """A study whose second trial gives that answer; the error if it raises one."""

    def objective(config: dict[str, Any]) -> Any:
        return answer() if ft.current_run().trial == 1 else 1.0

    study = ft.Study(LINE, "3 evaluations", policy="random", seed=0, storage=storage)
    try:
        return study.run(objective, isolate=isolate, progress=False)
    except BaseException as error:
        return f"the study ended with {type(error).__name__}"


@pytest.mark.parametrize("isolate", [False, True], ids=["here", "worker"])
@pytest.mark.parametrize("name", ANSWERS)
def test_no_answer_ends_a_study_and_it_can_be_read_again(tmp_path, name, isolate):
    answer, status, error = ANSWERS[name]
    study = run(answer, tmp_path / "study.db", isolate)
    assert isinstance(study, ft.Study), study
    study.close()
    with ft.Study.resume(tmp_path / "study.db") as again:
        assert [trial.status.value for trial in again.trials] == ["complete", status, "complete"]
        last_line = (again.trials[1].error or "\n").splitlines()[-1]
        assert error in last_line if error else last_line == ""


@pytest.mark.parametrize("isolate", [False, True], ids=["here", "worker"])
def test_of_a_note_that_is_too_large_only_that_is_kept(tmp_path, isolate):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        study = run(lambda: {"value": 2.0, "small": 3, "note": "x" * 50_000_000}, tmp_path / "study.db", isolate)
    assert isinstance(study, ft.Study), study
    kept = study.trials[1].attributes
    assert len(kept["note"]) < 100
    assert kept["small"] == 3
    assert any("note" in str(warning.message) for warning in said)
    assert (tmp_path / "study.db").stat().st_size < 1_000_000


@pytest.mark.parametrize("isolate", [False, True], ids=["here", "worker"])
def test_an_error_is_kept_with_its_beginning_and_its_end(tmp_path, isolate):
    study = run(lambda: raised(ValueError("a" * 3_000_000 + " the end")), tmp_path / "study.db", isolate)
    assert isinstance(study, ft.Study), study
    error = study.trials[1].error
    assert error.startswith("Traceback")
    assert error.endswith("the end")
    assert len(error) < 200_000


def test_a_worker_without_standard_output_goes_on(tmp_path):
    study = run(without_output, tmp_path / "study.db", isolate=True)
    assert isinstance(study, ft.Study), study
    assert [trial.status.value for trial in study.trials] == ["complete"] * 3


@pytest.mark.parametrize("call", ["tell", "report"])
@pytest.mark.parametrize("value", [HUGE, Mute()], ids=["huge", "mute"])
def test_a_value_given_by_hand_that_is_no_number_is_a_failed_trial(tmp_path, call, value):
    with ft.Study(LINE, "3 evaluations", policy="random", seed=0, storage=tmp_path / "study.db") as study:
        proposal, said = study.ask(), ""
        try:
            study.tell(proposal, value=value) if call == "tell" else study.report(proposal, value)
        except Exception as error:
            said = type(error).__name__
        assert (said, study.trial(0).status.value) == ("", "failed")


def test_attributes_given_by_hand_can_be_anything(tmp_path):
    with ft.Study(LINE, "3 evaluations", policy="random", seed=0, storage=tmp_path / "study.db") as study:
        said = ""
        try:
            study.tell(study.ask(), value=1.0, n=HUGE, mute=Mute(), cycle=cyclic())
        except Exception as error:
            said = type(error).__name__
        assert (said, study.trial(0).status.value) == ("", "complete")
    with ft.Study.resume(tmp_path / "study.db") as again:
        assert set(again.trial(0).attributes) == {"n", "mute", "cycle"}


def _turns_back_the_clock(config: dict[str, float]) -> float:
    time.perf_counter = time.monotonic = time.time = lambda: -15_000.0
    return config["x"]


@pytest.mark.parametrize("isolate", [True, False])
def test_an_objective_that_turns_back_the_clocks_leaves_a_file_that_opens(
    tmp_path: Path, isolate: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for clock in ("perf_counter", "monotonic", "time"):
        monkeypatch.setattr(time, clock, getattr(time, clock))  # put back what the objective changes here
    space, file = ft.Space(x=ft.Real(0, 1)), tmp_path / "s.db"
    with ft.Study(space, "3 evaluations", seed=0, storage=file) as study:
        study.run(_turns_back_the_clock, isolate=isolate, progress=False)
    refused = None
    try:
        again = ft.Study.resume(file)
    except StorageError as error:
        refused = error
    assert refused is None
    with again:
        assert [trial.status.value for trial in again.trials] == ["complete"] * 3
        assert all(amount >= 0.0 for account in again.ledger.accounts.values() for amount in account.values())
