"""`BAPI(kernel="auto")`: the kernel over time is chosen from a study's own curves, rarely, and kept with proposals."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import islice, pairwise
from typing import Any

import numpy as np
import pytest

import farthing as ft
from farthing.errors import InvalidArgument, StorageError
from farthing.history import Way
from farthing.policies import BAPI
from farthing.policies.bapi import curves
from farthing.record import stored_fits
from farthing.surrogates.curves.choice import Choice
from learners import proposals_of, train_steps

SPACE = ft.Space(rate=ft.Real(0.0, 1.0), drop=ft.Real(0.0, 1.0))
STEPS = 30
AUTO = BAPI(kernel="auto", initial=12, initial_training="complete")


def falls_late(config: dict[str, Any], step: int) -> float:
    return 0.2 * config["drop"] + 1.0 / (1.0 + math.exp(0.7 * (step - 6.0 - 9.0 * config["rate"])))


def falls_early(config: dict[str, Any], step: int) -> float:
    return 0.2 * config["drop"] + step ** -(0.4 + 0.4 * config["rate"])


def searched(policy: BAPI, value_at: Any = falls_late, asks: int = 12, **options: Any) -> ft.Study:
    study = ft.Study(SPACE, ft.Budget(cost=1e4), policy=policy, seed=0, max_steps=STEPS, **options)
    for proposal in islice(proposals_of(study), asks):
        train_steps(study, proposal, value_at, lambda config: 1.0)
    return study


@pytest.mark.parametrize(("value_at", "kernel"), [(falls_late, "rbf"), (falls_early, "decay")])
def test_a_study_is_modelled_with_the_kernel_of_its_curves(value_at, kernel):
    study = searched(AUTO, value_at)
    proposal = study.ask()
    assert proposal.fits["bapi"]["kernel"] == kernel
    assert proposal.fits["curve_choice"]["kernel"] == kernel
    assert proposal.reason.endswith(f"by the {kernel} kernel")


def test_a_kernel_that_was_named_is_not_chosen():
    proposal = searched(BAPI(kernel="decay", initial=8)).ask()
    assert "curve_choice" not in proposal.fits
    assert "kernel" not in proposal.reason


def test_it_is_chosen_at_few_asks_and_never_while_a_run_trains(monkeypatch):
    at, choose = [], curves.choose

    def counted(X, some, *rest):
        at.append(sum(map(len, some)))
        return choose(X, some, *rest)

    monkeypatch.setattr(curves, "choose", counted)
    study = searched(BAPI(kernel="auto"), asks=25)
    asked = sum("planned runs" in trial.reason for trial in study.trials)
    assert asked > 10
    assert 2 <= len(at) <= 6
    assert all(later >= 1.5 * sooner for sooner, later in pairwise(at))


def test_a_study_that_was_closed_goes_on_with_its_choice(tmp_path):
    """As one that was not: what was chosen is in the file, and nowhere else."""
    searched(AUTO, asks=14, storage=tmp_path / "study.db").close()
    with ft.Study.resume(tmp_path / "study.db") as study:
        resumed = study.ask()
    whole = searched(AUTO, asks=14).ask()
    assert resumed.fits["curve_choice"]["at"] == 12 * STEPS
    assert (resumed.config, resumed.reason, resumed.fits) == (whole.config, whole.reason, whole.fits)


@pytest.mark.parametrize("way", [Way.KEPT, Way.FEW])
def test_in_a_hurry_the_last_choice_stays(way):
    """Or the default, if there is none."""
    history = searched(AUTO, falls_early)._history
    rbf = Choice("rbf", True, 1).as_json()
    for fits, kernel in (({"curve_choice": rbf}, "rbf"), ({}, "decay")):
        known = curves.TrainingCurves.of(AUTO, SPACE, replace(history, way=way, fits=fits), np.random.default_rng(0))
        assert known is not None
        assert known.model.hyperparameters.kernel == kernel


@pytest.mark.parametrize("kernel", ["decay", "rbf", "rbf-plain", "auto"])
def test_a_study_with_any_kernel_can_be_resumed(kernel, tmp_path):
    path = tmp_path / "study.db"
    policy = BAPI(kernel=kernel, initial=4)
    searched(policy, storage=path, asks=6).close()
    with ft.Study.resume(path) as study:
        assert study.policy == policy
        assert study.ask().fits["bapi"]["time"]


@pytest.mark.parametrize(
    "wrong", [{"kernel": "matern"}, {"kernel": 3}, {"falling": 1}, {"at": -1}, {"at": 0.5}], ids=str
)
def test_a_choice_that_no_fit_would_have_left_is_refused(wrong):
    good = Choice("rbf", True, 12).as_json()
    stored_fits.check({"curve_choice": good}, {"name": "bapi"}, 2)
    with pytest.raises((ValueError, TypeError, StorageError)):
        stored_fits.check({"curve_choice": {**good, **wrong}}, {"name": "bapi"}, 2)


@pytest.mark.parametrize("options", [{"kernel": "Auto"}, {"monotone": "Auto"}, {"monotone": 1}])
def test_other_words_are_refused(options):
    with pytest.raises(InvalidArgument, match="auto"):
        BAPI(**options)
