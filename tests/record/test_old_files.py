"""Study files of earlier versions open, say what they said, and go on.

`files/` holds studies as version 0.1.0 wrote them before events said by a value who ended a trial, with what that
version showed of each: `told` (own loop, two trials running at the end), `run` (worker processes: failures, a trial
that was killed at its limit), `steps` (bapi under a budget of seconds) and `paused` (bopt, own loop). Those named
`schema1` are the last of schema version 1, before events had checksums: `rested` (bapi, paused runs), and `unclean`
(carbo) and `cut` (bopt), which a killed process left with all of their events in the log. `test_old_options.py` has
those from before policies had the options of their papers.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from study_files import FILES, old_file, pragma, shown

import farthing as ft
from farthing.record.reader import read_study
from farthing.record.storage import SCHEMA_VERSION
from farthing.trial import EndedBy

SEEN = {
    f"{name}-{version}": seen
    for version in ("0.1", "schema1")
    for name, seen in json.loads((FILES / f"seen-{version}.json").read_text()).items()
}
MORE = {
    "told-0.1": ft.Budget(cost=900.0), "run-0.1": "20s", "steps-0.1": "20s", "paused-0.1": ft.Budget(cost=60),
    "rested-schema1": ft.Budget(cost=300), "unclean-schema1": ft.Budget(cost=300), "cut-schema1": ft.Budget(cost=300),
}  # fmt: skip


# That `bapi` has changed since is said of `steps` and `rested`; what is said is tested in `test_old_options.py`.
pytestmark = pytest.mark.filterwarnings("ignore:.*policy bapi has changed since the study was begun")


@pytest.fixture(params=sorted(SEEN))
def old(request, tmp_path) -> tuple[str, Path]:
    return request.param, old_file(request.param, tmp_path / "old.db")


def test_its_trials_and_its_ledger_are_what_they_were(old):
    name, path = old
    with ft.Study.resume(path) as study:
        assert [shown(trial) for trial in study.trials] == SEEN[name]["trials"]
        assert study.ledger.accounts == SEEN[name]["accounts"]
        assert study.best.number == SEEN[name]["best"]
        assert study.notes == SEEN[name]["notes"]


def test_looking_at_it_changes_nothing_and_what_is_written_migrates_it(old):
    name, path = old
    before = {entry.name: entry.read_bytes() for entry in path.parent.iterdir()}
    assert len(read_study(path).trials) == len(SEEN[name]["trials"])
    ft.Study.resume(path).close()
    assert {entry.name: entry.read_bytes() for entry in path.parent.iterdir()} == before
    with ft.Study.resume(path) as study:
        study.note(mine=1)
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]
    assert pragma(path, "user_version") == SCHEMA_VERSION
    with ft.Study.resume(path) as study:
        assert [shown(trial) for trial in study.trials] == SEEN[name]["trials"]
        assert study.ledger.accounts == SEEN[name]["accounts"]


def test_who_ended_a_trial_is_read_from_its_words(old):
    name, path = old
    with ft.Study.resume(path) as study:
        for trial in study.trials:
            text = trial.error or ""
            match trial.status:
                case ft.Status.COMPLETE | ft.Status.FAILED:
                    expected = EndedBy.OBJECTIVE
                case ft.Status.INTERRUPTED:
                    expected = EndedBy.INTERRUPT
                case ft.Status.KILLED:
                    expected = EndedBy.BUDGET if text == "killed: the budget is spent" else EndedBy.TRIAL_LIMIT
                case _:
                    expected = EndedBy.BUDGET if "budget" in text else EndedBy.POLICY
            assert trial.ended_by is expected, (name, trial.number)


def test_it_goes_on_where_it_was(old):
    """A trial that was cut short comes first, as it was; else what a policy chooses, which may differ in its last
    digits between machines: a new trial, or a paused one from where it can go on."""
    name, path = old
    expected, known = SEEN[name]["next"], len(SEEN[name]["trials"])
    with ft.Study.resume(path, budget=MORE[name]) as study:
        before = study._history
        proposal = study.ask()
        if expected["trial"] < known:
            asked = {"trial": proposal.trial, "config": proposal.config}
            assert {**asked, "start": proposal.start_step, "until": proposal.until_step} == expected
        elif proposal.trial < known:
            assert before.trials[proposal.trial].status is ft.Status.PAUSED
            assert proposal.start_step == before.trials[proposal.trial].kept_step
        else:
            assert (proposal.trial, proposal.start_step) == (known, 0)
        study.tell(proposal, value=0.5, cost=1.0)


def test_what_is_added_to_it_is_read_with_the_rest(old):
    name, path = old
    with ft.Study.resume(path, budget=MORE[name]) as study:
        number = study.ask().trial
        study.tell(number, failed="planted", cost=0.5)
    file = read_study(path)
    assert file.trial(number).ended_by is EndedBy.OBJECTIVE
    assert len(file.trials) == max(len(SEEN[name]["trials"]), number + 1)
