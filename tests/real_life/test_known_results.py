"""Results that are known already come in, are learned from, and are not paid for. Tables say when, why and how."""

from __future__ import annotations

import math
import time

import pytest

import farthing as ft
from farthing.errors import InvalidArgument, InvalidConfig

SPACE = ft.Space(x=ft.Real(-1, 1), depth=ft.Integer(1, 9), kind=ft.Choice(["a", "b"]))
NOT_YET = "known results cannot be added"
POLICIES = [
    "auto", "carbo", "cei", "ei", "ei_alpha", "ei_cool", "eipu", "bapi", "bopt", "eqie", "pbgi", "thaw", "sobol",
    "random",
]  # fmt: skip


def known(k: int) -> dict[str, object]:
    return {"x": -1 + k / 6, "depth": 1 + k % 9, "kind": "ab"[k % 2]}


def value_of(config: dict[str, object]) -> float:
    return (float(config["x"]) - 0.4) ** 2


def with_known(budget: object, **options: object) -> ft.Study:
    study = ft.Study(SPACE, budget, seed=0, **options)
    for k in range(12):
        study.add(known(k), value=value_of(known(k)), cost=1.0 + k % 9)
    return study


def test_they_are_trials_that_cost_nothing_and_survive_in_the_file(tmp_path):
    assert hasattr(ft.Study, "add"), NOT_YET
    path = tmp_path / "study.db"
    with with_known(ft.Budget(cost=50, evaluations=9), maximize=True, storage=path) as study:
        failed = study.add({"x": 0.0, "depth": 2, "kind": "a"}, failed="out of memory", cost=3.0, gpu="A")
        assert (failed.number, failed.status, failed.error) == (12, ft.Status.FAILED, "out of memory")
        assert study.ledger.spent == study.ledger.total("evaluations") == 0.0
        assert study.best.value == max(value_of(known(k)) for k in range(12))
        trials = study.trials
    with ft.Study.resume(path) as study:
        assert study.trials == trials
        assert study.trials[12].attributes == {"gpu": "A"}
        assert study.ask().trial == 13
        study.tell(13, value=0.5, cost=2.0)
        assert (study.ledger.spent, study.ledger.total("evaluations")) == (2.0, 1.0)


@pytest.mark.parametrize("policy", ["ei", "carbo", "cei", "eipu"])
def test_a_policy_that_knows_enough_makes_no_design_again(policy):
    assert hasattr(ft.Study, "add"), NOT_YET
    proposal = with_known(ft.Budget(cost=50), policy=policy).ask()
    assert "initial design" not in proposal.reason
    assert proposal.reason != ft.Study(SPACE, ft.Budget(cost=50), policy=policy, seed=0).ask().reason


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("steps", [None, 4], ids=["values", "curves"])
def test_every_policy_goes_on_from_them(policy, steps):
    assert hasattr(ft.Study, "add"), NOT_YET
    study = ft.Study(SPACE, ft.Budget(cost=40), policy=policy, seed=0, max_steps=4)
    for k in range(6):
        value = value_of(known(k))
        outcome = {"value": value} if steps is None else {"curve": [value + 1 / step for step in (1, 2, 3, 4)]}
        study.add(known(k), cost=4.0, **outcome)
    for _ in range(3):
        proposal = study.ask()
        while study.report(proposal, value_of(proposal.config), cost=1.0) is ft.Decision.CONTINUE:
            pass
    assert study.count() > 6
    assert study.ledger.spent <= 12.0


def test_configurations_to_start_with_are_still_evaluated_unless_they_are_known():
    assert hasattr(ft.Study, "add"), NOT_YET
    start = [known(k) for k in (3, 4, 5)]
    study = ft.Study(SPACE, "9 evaluations", policy="random", seed=0, start=start)
    study.add(known(0), value=1.0)
    study.add(known(4), value=2.0)
    assert [study.ask().config for _ in range(2)] == [known(3), known(5)]
    assert study.ask().reason != "given by start"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "give one of value"),
        ({"value": 1.0, "failed": "x"}, "give one of value"),
        ({"value": math.nan}, "must be finite"),
        ({"value": "1"}, "must be a number"),
        ({"value": 1.0, "cost": -1.0}, "cost: expected"),
        ({"curve": []}, "curve: expected at least one value"),
        ({"curve": [1.0, None]}, "curve: the value must be"),
        ({"curve": [1.0] * 5}, "at most max_steps=4"),
    ],
)
def test_what_makes_no_sense_is_refused_and_nothing_is_written(given, message):
    assert hasattr(ft.Study, "add"), NOT_YET
    study = ft.Study(SPACE, "9 evaluations", max_steps=4)
    with pytest.raises(InvalidArgument, match=message):
        study.add(known(0), **given)
    with pytest.raises(InvalidConfig, match=r"add: .*'depth'"):
        study.add({**known(0), "depth": 99}, value=1.0)
    assert study.count() == 0


def test_tables_say_when_why_and_how(tmp_path):
    assert hasattr(ft.Study, "add"), NOT_YET
    before = time.time()
    study = ft.Study(SPACE, ft.Budget(cost=40), policy="sobol", seed=0, max_steps=3)
    study.add(known(0), curve=[3.0, 2.0])
    proposal = study.ask()
    for value in (3.0, 1.0, 2.0):
        study.report(proposal, value, cost=1.0)
    study.ask()
    frame = study.to_frame(curves=True)
    assert list(frame["curve"]) == [[3.0, 2.0], [3.0, 1.0, 2.0], []]
    assert list(frame["reason"])[1:] == ["next in the Sobol sequence"] * 2
    assert list(frame["ended_by"])[:2] == ["objective", "objective"]
    assert str(frame["began"].dt.tz) == "UTC"
    assert frame["began"].isna().tolist() == [True, False, False]
    assert frame["ended"].isna().tolist() == [True, False, True]
    trial = study.trials[1]
    assert before <= trial.began <= trial.ended <= time.time()
    assert study.trials[1].row["began"].endswith("+00:00")
    assert "curve" not in study.to_frame()


def test_times_are_those_of_the_file(tmp_path):
    assert hasattr(ft.Study, "add"), NOT_YET
    with ft.Study(SPACE, "2 evaluations", policy="sobol", seed=0, storage=tmp_path / "s.db") as study:
        study.tell(study.ask(), value=1.0)
        times = [(trial.began, trial.ended) for trial in study.trials]
    with ft.Study.resume(tmp_path / "s.db") as study:
        assert [(trial.began, trial.ended) for trial in study.trials] == times
