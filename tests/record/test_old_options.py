"""Files from before policies had the options of their papers: a study goes on with exactly what it ran with.

`files/*-options.db.gz` are one study for each policy, with its default options unless the name ends in `_own`, as they
were before `values`, `end`, `cost_model` and all that came with them; `seen-options.json` is what there was to see, and
what that version proposed next. `auto_steps` is a study of trainings that go step by step. All of them have used more
than half of their budget, where what is left counts, except those that train step by step.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from study_files import FILES, old_file, rewritten, shown

import farthing as ft
from farthing.cli import main
from farthing.errors import StudyMismatch
from farthing.policies import BY_NAME, policy_as_json, policy_from_json
from farthing.policies.auto import CHANGES, EDITION, Auto
from farthing.policies.earlier import BEFORE
from farthing.policies.protocol import Published

SEEN: dict[str, dict[str, Any]] = json.loads((FILES / "seen-options.json").read_text())
DEFAULT = sorted(name for name in SEEN if not name.endswith("_own"))
BLACK_BOX = ("ei", "ei_alpha", "eipu", "ei_cool", "cei", "cei_own", "carbo", "auto")
SPACE = ft.Space(rate=ft.Real(1e-4, 1.0, log=True), units=ft.Integer(4, 64, log=True), kind=ft.Choice(["relu", "tanh"]))


@pytest.fixture(params=sorted(SEEN))
def old(request, tmp_path) -> tuple[str, Path]:
    return request.param, unpacked(request.param, tmp_path)


def unpacked(name: str, folder: Path) -> Path:
    return old_file(f"{name}-options", folder / "old.db")


def policy_name(name: str) -> str:
    return SEEN[name]["policy"]["name"]


def said_of(name: str) -> AbstractContextManager[Any]:
    """What is said when a file is opened: only of `auto` and `bapi` (warnings are errors here)."""
    policy = policy_name(name)
    if policy in ("auto", "bapi"):
        return pytest.warns(RuntimeWarning, match=f"policy {policy} has changed since the study was begun")
    return nullcontext()


@contextmanager
def resumed(name: str, path: Path, **given: Any) -> Iterator[ft.Study]:
    with said_of(name):
        study = ft.Study.resume(path, **given)
    with study:
        yield study


def test_every_policy_with_options_has_a_file():
    before = {policy_name(name) for name in SEEN}
    later = {"eqie", "pbgi", "thaw"}  # which came with the options, or after them
    assert before == {name for name, kind in BY_NAME.items() if fields(kind)} - later


@pytest.mark.parametrize("name", sorted(SEEN))
def test_every_option_that_a_file_lacks_has_a_value_that_it_ran_with(name):
    """One that was forgotten would be the default of today, or an error."""
    stored = SEEN[name]["policy"]
    options = {field.name for field in fields(BY_NAME[stored["name"]])}
    assert stored.keys() - {"name"} <= options, "an option was renamed: files hold the old name"
    assert options - stored.keys() == BEFORE.get(stored["name"], {}).keys() - stored.keys()


def test_values_of_before_are_those_of_options_that_there_are():
    for name, options in BEFORE.items():
        policy = policy_from_json({"name": name})
        assert options.keys() <= {field.name for field in fields(policy)}
        assert {option: getattr(policy, option) for option in options} == options


def test_what_there_was_to_see_is_there_to_see(old):
    name, path = old
    with resumed(name, path) as study:
        assert [shown(trial) for trial in study.trials] == SEEN[name]["trials"]
        assert study.ledger.accounts == SEEN[name]["accounts"]
        assert study.best.number == SEEN[name]["best"]
        assert study.notes == SEEN[name]["notes"]


def test_looking_needs_no_policy_and_says_nothing(old, capsys):
    name, path = old
    view = ft.Study.open(path)
    assert [shown(trial) for trial in view.trials] == SEEN[name]["trials"]
    for command in ("status", "best", "export"):
        assert main([command, str(path)]) == 0
    assert policy_name(name) in capsys.readouterr().out


def test_it_goes_on_with_exactly_the_options_it_ran_with(old):
    name, path = old
    stored = SEEN[name]["policy"]
    with resumed(name, path) as study:
        assert policy_as_json(study.policy) == {**BEFORE.get(stored["name"], {}), **stored}
        study.note(mine=1)  # written by this version
    with resumed(name, path) as study:
        assert policy_as_json(study.policy) == {**BEFORE.get(stored["name"], {}), **stored}


@pytest.mark.parametrize("name", BLACK_BOX)
def test_what_comes_next_is_what_came_next(name, tmp_path):
    """What has changed since the proposals of default policies does not touch these studies: all are past their design,
    where ties are broken in another way, and none has counts of operations. A search ends where a step gains less than
    1e-4 of log EI, which leaves some thousandths of the range."""
    expected = SEEN[name]["next"]
    with resumed(name, unpacked(name, tmp_path)) as study:
        proposal = study.ask()
    assert (proposal.trial, proposal.start_step, proposal.until_step) == (
        expected["trial"], expected["start"], expected["until"],
    )  # fmt: skip
    found, before = SPACE.encode_many([proposal.config, expected["config"]])
    np.testing.assert_allclose(found, before, atol=5e-3)


@pytest.mark.parametrize("name", sorted(SEEN))
def test_it_goes_on(name, tmp_path):
    with resumed(name, unpacked(name, tmp_path), budget=ft.Budget(cost=200.0)) as study:
        proposal = study.ask()
        study.tell(proposal, value=0.5, cost=1.0)
        assert study.trials[proposal.trial].value is not None


class TestScripts:
    """A script says again what it said when the study was begun."""

    @staticmethod
    def run_again(name: str, path: Path, policy: Any) -> ft.Study:
        budget, steps = ft.Budget(cost=SEEN[name]["budget"]), None if name in BLACK_BOX else 8
        return ft.Study(SPACE, budget, policy=policy, seed=7, storage=path, max_steps=steps)

    @pytest.mark.parametrize("name", DEFAULT)
    def test_the_name_means_what_it_meant(self, name, tmp_path):
        path, stored = unpacked(name, tmp_path), SEEN[name]["policy"]
        kind = BY_NAME[stored["name"]]
        for policy in (stored["name"], kind()):
            with said_of(name), self.run_again(name, path, policy) as study:
                assert policy_as_json(study.policy) == {**BEFORE.get(stored["name"], {}), **stored}
            with resumed(name, path, policy=policy) as study:
                assert policy_as_json(study.policy) == {**BEFORE.get(stored["name"], {}), **stored}

    @pytest.mark.parametrize("name", sorted({*SEEN} - {*DEFAULT}))
    def test_options_are_to_be_said_again(self, name, tmp_path):
        path, stored = unpacked(name, tmp_path), SEEN[name]["policy"]
        with self.run_again(name, path, policy_from_json(stored)) as study:
            assert len(study.trials) == len(SEEN[name]["trials"])
        with pytest.raises(StudyMismatch, match=r"policy is .* in the file and .* here"):
            self.run_again(name, path, stored["name"])

    @pytest.mark.parametrize("name", sorted({*SEEN} - {"auto", "auto_steps"}))
    def test_another_option_is_refused(self, name, tmp_path):
        """Of those that a file holds, and of those that came later."""
        path, stored = unpacked(name, tmp_path), SEEN[name]["policy"]
        policy: Any = policy_from_json(stored)
        assert isinstance(policy, Published)
        for other in (replace(policy, initial=(policy.initial or 5) + 1), type(policy).paper()):
            with pytest.raises(StudyMismatch, match=r"policy is .* in the file and .* here"):
                self.run_again(name, path, other)
            with pytest.raises(StudyMismatch, match=r"policy is .* in the file and .* here"):
                ft.Study.resume(path, policy=other)


class TestAuto:
    """`auto` has no options: a study goes on with what it chooses now, and that is said."""

    def test_what_changed_is_said_once(self, tmp_path):
        path = unpacked("auto_steps", tmp_path)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            study = ft.Study.resume(path, budget=ft.Budget(cost=200.0))
            for _ in range(2):
                study.tell(study.ask(), value=0.5, cost=1.0)
            study.close()
        assert [warning.category for warning in caught] == [RuntimeWarning]
        for change in CHANGES.values():
            assert change in str(caught[0].message)
        assert "old.db" in str(caught[0].message)

    def test_nothing_is_said_of_a_new_study(self, tmp_path):
        path = tmp_path / "new.db"
        for _ in range(2):
            with ft.Study(SPACE, ft.Budget(cost=40), seed=7, storage=path) as study:
                study.tell(study.ask(), value=0.5, cost=1.0)
        ft.Study.resume(path).close()

    def test_a_new_study_is_of_the_present_edition_whatever_was_given(self, tmp_path):
        path = tmp_path / "new.db"
        with ft.Study(SPACE, ft.Budget(cost=40), policy=Auto(edition=1), seed=7, storage=path) as study:
            assert study.policy == Auto()
        ft.Study.resume(path, policy=Auto(edition=1)).close()  # nothing has changed since, and nothing is said

    def test_a_newer_edition_is_refused(self, tmp_path):
        """It would go on as another `auto` without a word."""
        path = unpacked("auto", tmp_path)
        rewritten(path, lambda first: first["policy"].update(edition=EDITION + 1))
        for opener in (lambda: ft.Study.resume(path), lambda: TestScripts.run_again("auto", path, "auto")):
            with pytest.raises(StudyMismatch, match=rf"old\.db: its policy auto .* \(edition {EDITION + 1}\)"):
                opener()
        assert len(ft.Study.open(path).trials) == len(SEEN["auto"]["trials"])
        with pytest.raises(ValueError, match=rf"auto: edition: expected .* from 1 to {EDITION}, got {EDITION + 1}"):
            policy_from_json({"name": "auto", "edition": EDITION + 1})


class TestBapi:
    """How `bapi` decides about trainings has changed, and no option brings it back: that is said of old files only."""

    @staticmethod
    def said(opener: Callable[[], ft.Study]) -> str:
        with pytest.warns(RuntimeWarning) as caught:
            opener().close()
        (warning,) = caught
        return str(warning.message)

    def test_what_changed_is_said_once(self, tmp_path):
        path = unpacked("bapi", tmp_path)
        for opener in (lambda: ft.Study.resume(path), lambda: TestScripts.run_again("bapi", path, "bapi")):
            message = self.said(opener)
            assert "old.db: policy bapi has changed since the study was begun" in message
            assert "the stop of a training moves with its own curve" in message
            assert "process" not in message

    def test_the_process_of_costs_is_said_where_it_is_used(self, tmp_path):
        path = unpacked("bapi", tmp_path)
        rewritten(path, lambda first: first["policy"].update(cost="process"))
        assert "the process of costs has noise on total costs" in self.said(lambda: ft.Study.resume(path))

    @pytest.mark.parametrize("policy", ["bapi", "bapi-paper"])
    def test_nothing_is_said_of_a_new_study(self, policy, tmp_path):
        path = tmp_path / "new.db"
        for _ in range(2):
            with ft.Study(SPACE, ft.Budget(cost=40), policy=policy, seed=7, storage=path, max_steps=8) as study:
                study.tell(study.ask(), value=0.5, cost=1.0)
        ft.Study.resume(path).close()


def test_a_study_with_options_of_a_newer_version_is_refused(tmp_path):
    """Named, with what to do: without the option, the study would go on with another method."""
    path = unpacked("cei", tmp_path)
    rewritten(path, lambda first: first["policy"].update(patience=3))
    for opener in (lambda: ft.Study.resume(path), lambda: TestScripts.run_again("cei", path, "cei")):
        with pytest.raises(StudyMismatch, match=r"old\.db: its policy cei has options .* \(patience\).* a newer one"):
            opener()
    assert len(ft.Study.open(path).trials) == len(SEEN["cei"]["trials"])
