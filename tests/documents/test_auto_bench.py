"""The benchmark of `auto`: what is charged, who is compared with whom on which runs, and what the page then says."""

import json
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

ROOT = Path(__file__).parent.parent.parent
if str(ROOT) not in sys.path:  # `pytest` alone, in place of `python -m pytest`
    sys.path.append(str(ROOT))

from benchmarks.auto.findings import MOST_RATIO, Part, curves, fielded, part_of, ratio, resampled_means  # noqa: E402
from benchmarks.auto.methods import EVERY, INFORMED, UNINFORMED, named  # noqa: E402
from benchmarks.auto.page import document  # noqa: E402
from benchmarks.auto.peers.live import LiveRecord  # noqa: E402
from benchmarks.auto.peers.models import MODELS, Objective, guess_error  # noqa: E402
from benchmarks.auto.peers.spaces import as_described, described, levels  # noqa: E402
from benchmarks.auto.peers.task import Record, SearchOver, Tabled  # noqa: E402
from benchmarks.auto.problems import CHEAP, GROUPS, LIVE, Problem  # noqa: E402
from benchmarks.auto.runs import Result, Run  # noqa: E402
from benchmarks.auto.tables import from_grid  # noqa: E402
from benchmarks.common.documents import page  # noqa: E402
from benchmarks.common.tables import CHOOSING, Parameter, Table  # noqa: E402

RANDOM, TPE, FLAML, FLAML_UNINFORMED, HEBO = map(named, ("random", "tpe", "flaml", "flaml-uninformed", "hebo"))
PARAMETERS = (Parameter("width", (16, 64, 256)), Parameter("rule", ("sgd", "adam")))
TABLE = Table("small", PARAMETERS, np.arange(6.0).reshape(3, 2), 10.0 + np.arange(6.0).reshape(3, 2))


# -- what is charged ---------------------------------------------------------------------------------------------------


def test_an_evaluation_that_would_end_past_the_budget_is_cut_and_the_search_is_over():
    record = Record(Tabled(TABLE), budget=25.0, most=100)
    assert record.evaluate({"width": 0, "rule": "sgd"}) == (0.0, 10.0)
    assert record.evaluate({"width": 2, "rule": "adam"}) == (5.0, 15.0)
    with pytest.raises(SearchOver):
        record.evaluate({"width": 0, "rule": "sgd"})
    assert (record.columns["values"], record.columns["spent"]) == ([0.0, 5.0], [10.0, 25.0])


def test_a_search_ends_after_so_many_evaluations():
    record = Record(Tabled(TABLE), budget=1e9, most=2)
    for _ in range(2):
        record.evaluate({"width": 0, "rule": "sgd"})
    with pytest.raises(SearchOver):
        record.evaluate({"width": 0, "rule": "sgd"})


def live_record(budget=10.0):
    return LiveRecord({"problem": "live/tree", "budget": budget})


def test_live_evaluations_count_in_the_order_in_which_they_ended_and_not_past_the_budget():
    record = live_record()
    since = record._began
    ends = {3.0: 0.2, 1.0: 0.5, 10.5: 0.1}
    trials = [
        SimpleNamespace(value=value, attributes={"began": since + end - 0.5, "ended": since + end})
        for end, value in ends.items()
    ]
    failed = SimpleNamespace(value=None, attributes={})
    record.take(SimpleNamespace(trials=[*trials, failed]))
    assert record.columns["values"] == [0.5, 0.2]
    assert record.columns["spent"] == pytest.approx([1.0, 3.0], abs=1e-3)
    assert record.columns["own"] == pytest.approx([0.5, 2.0], abs=1e-3)


def test_a_live_search_is_over_when_an_evaluation_ends_past_the_budget():
    with pytest.raises(SearchOver):
        live_record(budget=0.0).evaluate({"depth": 3, "split": 0.5, "features": 0.5})


def test_the_value_of_a_model_is_the_same_every_time_and_better_than_a_guess():
    config = {"depth": 20, "split": 0.1, "features": 0.5}
    first, second = (Objective("tree")(config)["value"] for _ in range(2))
    assert first == second < guess_error("tree")


# -- spaces ------------------------------------------------------------------------------------------------------------


def test_ordered_parameters_are_levels_and_choices_are_names():
    space = [described(parameter) for parameter in PARAMETERS]
    assert [(one["type"], one.get("upper"), one.get("choices")) for one in space] == [
        ("uniform_int", 2, None),
        ("categorical", None, ["sgd", "adam"]),
    ]
    assert space[0]["values_log"]
    assert levels(PARAMETERS, {"width": 2, "rule": "adam"}) == [2, 1]
    assert as_described(space, {"width": 64, "rule": "sgd"}) == {"width": 1, "rule": "sgd"}


@pytest.mark.parametrize("name", LIVE)
def test_cheap_parts_of_live_problems_are_in_their_spaces(name):
    space = {one["name"]: one for one in MODELS[name.partition("/")[2]].space}
    for parameter, value in CHEAP[name].items():
        assert space[parameter]["lower"] <= value <= space[parameter]["upper"]


def test_a_grid_with_a_configuration_listed_twice_has_the_mean_of_both(tmp_path):
    space = {"kappa": [1.0, 0.5], "tau": [1, 4]}
    rows = [[0.5, 1, 3.0, 10.0], [0.5, 4, 2.0, 20.0], [1.0, 1, 1.0, 30.0], [1.0, 4, 6.0, 40.0], [1.0, 4, 8.0, 60.0]]
    columns = ["kappa", "tau", "perplexity", "time"]
    np.savez(tmp_path / "grid_lda.npz", values=rows, columns=columns, space=json.dumps(space))
    table = from_grid(tmp_path / "grid_lda.npz")
    assert table.parameters[0].values == (0.5, 1.0)
    assert table.values.tolist() == [[3.0, 2.0], [1.0, 7.0]]
    assert table.costs.tolist() == [[10.0, 20.0], [30.0, 50.0]]


def test_no_problem_of_b_and_c_is_one_that_defaults_were_chosen_on():
    assert not {*GROUPS["b"], *GROUPS["c"]} & set(CHOOSING)
    assert [Problem(name).is_held_out for name in CHOOSING] == [False] * len(CHOOSING)


# -- who is compared ---------------------------------------------------------------------------------------------------


def ran(*values, evaluations=40):
    """A run that improves at 5 %, 20 % and so on."""
    shares = [0.05, 0.2, 0.4, 0.9][: len(values)]
    return {"shares": shares, "values": list(values), "evaluations": evaluations, "seconds": 1.5}


def data_of(runs):
    """Kept data of one problem of each part; `runs` gives each method its values by seed."""
    of_problem = {method.name: {str(s): ran(*v) for s, v in by_seed.items()} for method, by_seed in runs.items()}
    names = {"a": ("mlp_car", "mlp_vehicle"), "b": ("nas_cifar10",), "c": ("live/tree",)}
    facts = {
        name: {"group": group, "is_held_out": name not in CHOOSING, "has_cheap": True, "median": 1.0, "lowest": 0.0,
               "budget": 40.0}
        for group, listed in names.items() for name in listed
    }  # fmt: skip
    machine = {"farthing": "0", "cpu": "one", "cores": 2, "system": "Linux", "python": "3.11"}
    return {
        "problems": facts, "runs": dict.fromkeys(facts, of_problem), "versions": {"optuna": {"optuna": "5.0.0"}},
        "machine": machine, "cheap": {"mlp": {"width": 16}},
    }  # fmt: skip


BOTH = {
    RANDOM: {0: (0.8, 0.5), 1: (0.7, 0.6)},
    FLAML: {0: (0.4, 0.2), 1: (0.5, 0.4)},
    FLAML_UNINFORMED: {0: (0.9, 0.8), 1: (0.9, 0.7)},
    UNINFORMED: {0: (0.6, 0.3), 1: (0.6, 0.3)},
    INFORMED: {0: (0.3, 0.1), 1: (0.3, 0.1)},
}


def test_only_one_of_each_pair_is_compared_and_who_is_not_told_is_compared_with_those_who_are_not():
    assert fielded(list(BOTH), is_informed=True) == (RANDOM, FLAML, INFORMED)
    assert fielded(list(BOTH), is_informed=False) == (RANDOM, FLAML_UNINFORMED, UNINFORMED)
    assert fielded([RANDOM, FLAML, FLAML_UNINFORMED, UNINFORMED], is_informed=True) == (RANDOM, FLAML, UNINFORMED)


def test_regret_is_that_of_the_best_value_bought_so_far():
    part = part_of(data_of(BOTH), "b")
    assert part.regret(INFORMED, 0.01).tolist() == [[1.0, 1.0]]
    assert part.regret(FLAML, 0.1) == pytest.approx(np.array([[0.4, 0.5]]))
    assert part.regret(FLAML, 1.0) == pytest.approx(np.array([[0.2, 0.4]]))
    assert part.best_peer(1.0) == FLAML
    assert {method: places.tolist() for method, places in part.places(1.0).items()} == {
        RANDOM: [[3.0, 3.0]],
        FLAML: [[2.0, 2.0]],
        INFORMED: [[1.0, 1.0]],
    }


def test_a_value_below_what_was_known_is_the_new_zero():
    part = part_of(data_of({**BOTH, INFORMED: {0: (-1.0,), 1: (0.0,)}}), "b")
    assert part.regret(INFORMED, 1.0) == pytest.approx(np.array([[0.0, 0.5]]))


def test_a_method_with_few_runs_is_compared_on_those_alone_and_takes_no_seeds_from_the_others():
    many = {method: dict.fromkeys(range(4), values[0]) for method, values in BOTH.items()}
    part = part_of(data_of({**many, TPE: dict.fromkeys((0, 1, 3), (0.5,)), HEBO: {2: (0.35,)}}), "b")
    assert part.seeds == (0, 1, 3)
    assert HEBO not in part.methods
    assert TPE in part.methods
    assert part.behind == [HEBO]
    assert part.pairs_of(HEBO, INFORMED) == [("nas_cifar10", 2)]


def test_intervals_draw_problems_and_seeds_again():
    """Two problems, each always the same: seeds alone would leave no interval."""
    cells = np.repeat([[0.0], [1.0]], 5, axis=1)
    assert set(np.unique(resampled_means(cells)).tolist()) == {0.0, 0.5, 1.0}
    one_problem = np.arange(5.0)[None]
    assert np.std(resampled_means(one_problem)) == pytest.approx(np.sqrt(2.0 / 5.0), rel=0.05)
    assert ratio(cells + 1.0, 2.0 * cells + 2.0).high == pytest.approx(0.5)


def test_a_regret_of_nothing_is_as_good_as_another_and_better_than_any_other():
    nothing, some = np.zeros((2, 3)), np.ones((2, 3))
    assert ratio(nothing, nothing).value == ratio(nothing, nothing).high == 1.0
    assert ratio(some, nothing).value == ratio(some, nothing).low == MOST_RATIO


def test_the_page_says_who_is_first_and_by_how_much():
    data = data_of(BOTH)
    text = page(document(data), data)
    assert "Farthing has the lowest mean rank of 3 methods at 10 %" in text
    assert "the best peer is FLAML with a regret of 0.300. Farthing has 0.100: at most half (ratio 0.33" in " ".join(
        text.split()
    )
    assert "Without telling anyone what is cheap" in text
    assert "On the six tables that nothing was chosen on" in text


def test_a_page_without_runs_of_farthing_says_so_and_a_worse_farthing_is_said_to_be_worse():
    peers = {method: values for method, values in BOTH.items() if not method.is_farthing}
    data = data_of(peers)
    assert "Farthing's runs, or all runs of the peers, are missing." in page(document(data), data)
    data = data_of({**peers, UNINFORMED: {0: (0.9, 0.9), 1: (0.9, 0.9)}})
    text = " ".join(page(document(data), data).split())
    assert "does not have the lowest mean rank at 10 %" in text
    assert "not less (ratio 3.00" in text


def test_curves_are_drawn_part_by_part_with_the_peers_first():
    drawn = curves(data_of(BOTH))
    assert drawn["peers"] == ["random search", "FLAML"]
    assert drawn["curves"]["b"]["Farthing"][-1] == pytest.approx(0.1)
    assert drawn["curve_shares"][-1] == 1.0


# -- runs --------------------------------------------------------------------------------------------------------------


def test_methods_that_are_told_nothing_share_their_runs():
    problem = Problem("live/knn")
    told, untold = (Run(problem, method, 0).task for method in (FLAML, FLAML_UNINFORMED))
    assert (told["cheap"], untold["cheap"]) == ({"reduction": 1e-6}, {})
    assert {**told, "cheap": {}} == untold
    assert len({method.name for method in EVERY}) == len(EVERY)


def test_a_result_has_what_was_bought_with_a_share_of_the_budget():
    run = Run(Problem("live/knn"), RANDOM, 0)
    answer = {"values": [3.0, 4.0, 1.0], "spent": [2.0, 10.0, 20.0], "own": [0.1, 0.2, 0.3], "versions": {}}
    result = Result.of(run, answer)
    assert [result.best_at(share) for share in (0.05, 0.1, 0.5, 1.0)] == [np.inf, 3.0, 3.0, 1.0]
    assert (result.evaluations, result.seconds) == (3, 0.3)


def test_a_part_needs_problems_and_methods():
    assert part_of({"problems": {}, "runs": {}}, "a") is None
    assert isinstance(part_of(data_of(BOTH), "c"), Part)
