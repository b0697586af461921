"""Studies that begin from earlier ones: what is taken over, and that the old files are needed only once."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import farthing as ft
from farthing.errors import InvalidArgument, StorageError, StudyMismatch

SPACE = ft.Space(x=ft.Real(0, 1), rate=ft.Real(1e-3, 1, log=True), kind=ft.Choice(["a", "b"]))


def loss(config):
    return (config["x"] - 0.3) ** 2 + (np.log10(config["rate"]) + 1) ** 2 / 4 + (config["kind"] == "a")


def played(space=SPACE, n=20, sign=1.0, storage=None, seed=0, unit="cost", f=loss, **options):
    study = ft.Study(space, ft.Budget(**{unit: 1e9}), policy="sobol", seed=seed, storage=storage, **options)
    for _ in range(n):
        proposal = study.ask()
        study.tell(proposal, value=sign * f(proposal.config), cost=1.0 + proposal.config.get("x", 0.0))
    return study


def told(study, n, f=loss):
    """n more evaluations; the configurations, with their reasons."""
    found = []
    for _ in range(n):
        proposal = study.ask()
        study.tell(proposal, value=f(proposal.config), cost=1.0 + proposal.config.get("x", 0.0))
        found.append((proposal.config, proposal.reason, proposal.predicted_cost))
    return found


def test_a_study_begins_with_good_configurations_of_the_earlier_one_and_ends_better() -> None:
    old = played(n=40)
    best = sorted(trial.value for trial in old.trials)
    cold, warm = (ft.Study(SPACE, ft.Budget(cost=200), policy="eipu", seed=1, warm_start=given) for given in ((), old))
    first = told(warm, 12, lambda c: 7 + 100 * loss(c))
    assert "earlier studies" in first[0][1]
    assert loss(first[0][0]) <= best[9]
    told(cold, 12, lambda c: 7 + 100 * loss(c))
    assert warm.best.value < cold.best.value


@pytest.mark.parametrize("policy", ["auto", "ei", "eipu", "ei_cool", "cei", "carbo", "random", "thaw", "bapi"])
def test_every_policy_begins_with_them_and_replays_without_the_old_file(tmp_path, policy) -> None:
    """The same proposals in memory and after every evaluation from the file, when the old one is gone."""
    played(storage=tmp_path / "old.db").close()
    before = (tmp_path / "old.db").read_bytes()
    options = {"seed": 3, "policy": policy, "max_steps": 1 if policy in ("thaw", "bapi") else None}
    whole = ft.Study(SPACE, ft.Budget(cost=60), warm_start=[tmp_path / "old.db"], **options)
    expected = told(whole, 7)
    new = tmp_path / "new.db"
    ft.Study(SPACE, ft.Budget(cost=60), warm_start=[tmp_path / "old.db"], storage=new, **options).close()
    assert (tmp_path / "old.db").read_bytes() == before
    (tmp_path / "old.db").unlink()
    found = []
    for _ in range(7):
        with ft.Study.resume(new) as study:
            found += told(study, 1)
    assert found == expected
    assert "earlier studies" in found[0][1]


def test_the_same_script_continues_a_file_though_the_old_one_is_gone(tmp_path) -> None:
    played(storage=tmp_path / "old.db").close()
    options = {"storage": tmp_path / "new.db", "warm_start": [str(tmp_path / "old.db")]}
    with ft.Study(SPACE, ft.Budget(cost=60), **options) as study:
        told(study, 2)
    (tmp_path / "old.db").unlink()
    with ft.Study(SPACE, ft.Budget(cost=60), **options) as study:
        assert len(study.trials) == 2
    with ft.Study(SPACE, ft.Budget(cost=60), storage=tmp_path / "cold.db"):
        pass
    with pytest.raises(StudyMismatch, match="begun without warm_start"):
        ft.Study(SPACE, ft.Budget(cost=60), storage=tmp_path / "cold.db", warm_start=[tmp_path / "new.db"])


def test_better_stays_better_where_one_study_maximises_and_the_other_minimises() -> None:
    ways = [played(n=30), played(n=30, sign=-1.0, maximize=True)]
    first = [ft.Study(SPACE, "9 evaluations", seed=0, warm_start=[old]).ask().config for old in ways]
    assert first[0] == first[1]


def test_costs_are_taken_over_where_the_unit_is_the_same() -> None:
    same, other = played(), played(unit="joules")
    known = ft.Study(SPACE, ft.Budget(cost=1e3), policy="eipu", seed=0, warm_start=[same])
    assert known._history.cost_knowledge.prior is not None
    told(known, 4)
    assert told(known, 1)[0][2] == pytest.approx(1.5, abs=0.6)
    assert ft.Study(SPACE, ft.Budget(cost=1e3), warm_start=[other])._history.cost_knowledge.prior is None
    own = ft.CostPrior.from_studies([played(seed=5)])
    assert ft.Study(SPACE, ft.Budget(cost=9), warm_start=[same], cost_prior=own)._history.cost_knowledge.prior is own
    assert ft.Study(SPACE, ft.Budget(cost=9), warm_start=[same], known_cost=lambda c: 1.0) is not None


def test_what_is_begun_with_costs_only_a_part_of_the_budget() -> None:
    old = played(n=30)
    study = ft.Study(SPACE, ft.Budget(cost=48.0), seed=0, warm_start=[old])
    reasons = [reason for _, reason, _ in told(study, 6)]
    assert 1 <= sum("earlier studies" in reason for reason in reasons) <= 3  # 1/16 of 48 pays for two or three


def test_another_space_is_used_for_what_it_shares() -> None:
    """Another range and scale, a parameter that only the old space has, and one that only the new one has."""
    older = ft.Space(x=ft.Real(-1, 3), rate=ft.Real(1e-3, 2), kind=ft.Choice(["c", "b", "a"]), gone=ft.Integer(1, 9))
    old = played(older, 60, f=lambda c: loss(c) + (c["kind"] == "c"))
    space = ft.Space(new=ft.Real(0, 1), kind=ft.Choice(["a", "b"]), x=ft.Real(0, 1), rate=ft.Real(1e-3, 1, log=True))
    study = ft.Study(space, "12 evaluations", seed=0, warm_start=[old])
    (earlier,) = study._history.warm_start.studies
    assert earlier.names == ("kind", "x", "rate")
    first = [config for config, reason, _ in told(study, 4) if "earlier studies" in reason]
    assert {config["kind"] for config in first} == {"b"}
    assert abs(first[0]["x"] - 0.3) < 0.35
    assert len({config["new"] for config in first}) == len(first)  # spread over its range
    assert len(told(study, 3)) == 3


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: played(n=0), "has no complete trial"),
        (lambda: played(ft.Space(other=ft.Real(0, 1)), 3, f=lambda c: 1.0), "shares no parameter"),
        (lambda: played(ft.Space(kind=ft.Choice(["z"])), 1, f=lambda c: 1.0), "shares no parameter"),
    ],
)  # fmt: skip
def test_a_study_of_no_use_is_left_out_with_a_warning(make, why) -> None:
    with pytest.warns(RuntimeWarning, match=why):
        study = ft.Study(SPACE, "5 evaluations", seed=0, warm_start=[make()])
    cold = ft.Study(SPACE, "5 evaluations", seed=0)
    assert study.ask() == cold.ask()


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("value", [0.0, 1e308])
def test_few_or_equal_values_are_no_obstacle(n, value) -> None:
    study = ft.Study(SPACE, "9 evaluations", seed=0, warm_start=[played(n=n, f=lambda c: value)])
    assert len(told(study, 9, lambda c: -1e308 + loss(c))) == 9


def test_wrong_arguments_and_files_are_refused_and_no_file_is_made(tmp_path) -> None:
    (tmp_path / "damaged.db").write_bytes(b"SQLite format 3\0" + bytes(200))
    (tmp_path / "text.db").write_text("no study")
    new = tmp_path / "new.db"
    for given, error, text in (
        ([tmp_path / "none.db"], StorageError, "warm_start: .*none.db: there is no such study file"),
        ([tmp_path / "damaged.db"], StorageError, "warm_start: .*damaged.db"),
        (str(tmp_path / "text.db"), StorageError, "warm_start: .*text.db"),
        (5, InvalidArgument, "warm_start: expected paths of study files, or studies, got 5"),
        ([None], InvalidArgument, "warm_start: expected paths of study files, or studies, got None"),
    ):
        with pytest.raises(error, match=text):
            ft.Study(SPACE, "5 evaluations", storage=new, warm_start=given)
        assert not new.exists()


def test_a_shuffled_study_loses_its_say() -> None:
    """After 25 values of a smooth function, nothing of it is left in the model."""
    old, rng = ft.Study(SPACE, "40 evaluations", seed=0), np.random.default_rng(0)
    values = rng.permutation([loss(trial.config) for trial in played(n=40).trials])
    for trial, value in zip(played(n=40).trials, values, strict=True):
        old.add(trial.config, value=value)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        study = ft.Study(SPACE, "40 evaluations", policy="ei", seed=0, warm_start=[old])
        told(study, 25)
    study.ask()
    assert "residual" not in study._session.record.history.fits or study.best.value < 0.01


def test_a_stranger_cannot_hide_nonsense_in_what_was_taken_over(tmp_path) -> None:
    from farthing.record.stored_settings import check

    study = ft.Study(SPACE, "5 evaluations", seed=0, warm_start=[played(n=5)])
    body = study._session.record.settings.body()
    check(body)
    (earlier,) = body["warm_start"]["studies"]
    for change in (
        {"names": ["x", "rate", "other"]}, {"names": ["x", "x", "kind"]}, {"values": earlier["values"][:3]},
        {"values": [float("nan")] * 5}, {"places": [[0.5, 0.5, 2]] * 5}, {"places": [[0.5, 0.5, 0.5]] * 5},
        {"places": [[1e9, 0.5, 0]] * 5}, {"places": [[0.5, 0.5]] * 5}, {"study": 5},
    ):  # fmt: skip
        with pytest.raises(ValueError, match="earlier"):
            check({**body, "warm_start": {"studies": [{**earlier, **change}], "first": []}})
