"""Medians and quartiles are those of the studies at every cost, by looking at each study by itself."""

from __future__ import annotations

import numpy as np
import pytest

import farthing as ft
from farthing.errors import InvalidArgument, NoTrial
from farthing.report.figures import comparison
from studies import line_study


def told(*results, budget=None, **options):
    """A study of these values and costs."""
    study = line_study(budget or ft.Budget(cost=100), **options)
    for value, cost in results:
        study.tell(study.ask(), value=value, cost=cost)
    return study


def sides(unit=None, **studies):
    held = {name: some if isinstance(some, list) else [some] for name, some in studies.items()}
    return comparison.numbers({name: [one._session for one in some] for name, some in held.items()}, unit)


def best_at(study, cost):
    """The best value of the trials that had ended when that much was spent."""
    ends = np.cumsum([trial.cost for trial in study.trials])
    known = [trial.value for trial, end in zip(study.trials, ends, strict=True) if end <= cost]
    return min(known, default=np.inf)


SEEDS = [
    told((9.0, 1.0), (4.0, 2.0), (3.0, 2.0)),
    told((8.0, 2.0), (5.0, 2.0), (1.0, 9.0)),
    told((7.0, 4.0), (6.0, 1.0)),
    told((10.0, 0.5), (2.0, 3.0)),
]


def test_the_band_is_that_of_the_seeds_at_every_cost():
    (side,) = sides(a=SEEDS).sides
    assert side.cost.tolist() == [0.5, 1.0, 2.0, 3.0, 3.5, 4.0, 5.0, 13.0]
    for cost, low, median, high in zip(side.cost, side.low, side.median, side.high, strict=True):
        values = [best_at(study, cost) for study in SEEDS]
        for found, share in ((low, 0.25), (median, 0.5), (high, 0.75)):
            place = share * 3
            around = sorted(values)[int(place)], sorted(values)[min(int(place) + 1, 3)]
            expected = around[0] if around[0] == around[1] else around[0] + (place % 1.0) * (around[1] - around[0])
            assert np.isnan(found) if np.isinf(expected) else found == pytest.approx(expected)


def test_one_study_is_its_own_staircase():
    (side,) = sides(a=SEEDS[0]).sides
    assert (side.cost.tolist(), side.median.tolist()) == ([1.0, 3.0, 5.0], [9.0, 4.0, 3.0])
    assert np.array_equal(side.low, side.median)
    assert np.array_equal(side.high, side.median)


def test_the_common_value_is_reached_by_all_and_costs_what_it_took():
    found = sides(a=SEEDS[1], b=SEEDS[0], c=SEEDS[2])
    assert found.common == 6.0  # c came no further
    assert {side.name: side.cost_to_common for side in found.sides} == {"a": 4.0, "b": 3.0, "c": 5.0}
    assert {side.name: side.final for side in found.sides} == {"a": 1.0, "b": 3.0, "c": 6.0}


def test_half_of_the_seeds_are_enough_to_reach_it():
    found = sides(a=SEEDS, b=told((2.5, 1.0)))
    assert found.common == 3.0  # 1, 2 and 3 of 1, 2, 3, 6
    assert found.sides[0].cost_to_common == 5.0  # of 3.5, 5, 13 and never: the second


def test_values_that_are_maximised_keep_their_sign():
    found = sides(a=told((1.0, 1.0), (3.0, 1.0), maximize=True), b=told((2.0, 5.0), maximize=True))
    assert [side.median.tolist() for side in found.sides] == [[1.0, 3.0], [2.0]]
    assert (found.common, found.sides[0].cost_to_common, found.maximize) == (2.0, 2.0, True)
    with pytest.raises(InvalidArgument, match="got both"):
        sides(a=told((1.0, 1.0), maximize=True), b=told((1.0, 1.0)))


def test_budgets_of_different_units_are_compared_by_what_both_count():
    studies = {"dollars": told((1.0, 1.0), budget="$5"), "cost": told((2.0, 1.0), (1.0, 1.0))}
    with pytest.raises(InvalidArgument, match="'dollars' usd, 'cost' cost"):
        sides(**studies)
    found = sides("evaluations", **studies)
    assert [side.cost.tolist() for side in found.sides] == [[1.0], [1.0, 2.0]]


def test_a_study_without_values_has_nothing_to_compare():
    with pytest.raises(NoTrial, match="no trial has a value"):
        sides(a=told())


def test_compare_takes_studies_lists_and_files(tmp_path):
    stored = told((5.0, 1.0), (4.0, 1.0), storage=tmp_path / "s.db")
    stored.close()
    with ft.Study.open(tmp_path / "s.db") as opened:
        figure = ft.compare({"<b>": SEEDS, "file": tmp_path / "s.db", "both": [opened, str(tmp_path / "s.db")]})
    names = [trace.name for trace in figure.data if trace.name]
    assert names == ["&lt;b&gt; (4 studies)", "file", "both (2 studies)"]
    table = figure.data[-1]
    assert list(table.cells["values"][2]) == ["2.5", "4", "4"]
    assert figure.layout.shapes[0].x0 == 100.0


@pytest.mark.parametrize("given", [None, {}, {"a": 3}, {"a": []}, {"a": [3]}, ["s.db"]])
def test_what_is_no_study_is_refused(given):
    with pytest.raises(InvalidArgument, match="studies by name"):
        ft.compare(given)


def test_another_unit_is_refused():
    with pytest.raises(InvalidArgument, match="'evaluations'"):
        ft.compare({"a": SEEDS}, unit="miles")
