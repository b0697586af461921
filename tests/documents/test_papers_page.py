"""The page on the papers' forms says what its data hold: ratios, intervals, verdicts, and which forms are compared."""

import sys
from pathlib import Path

import numpy as np
import pytest

from farthing.policies import BAPI, BY_NAME

ROOT = Path(__file__).parent.parent.parent
if str(ROOT) not in sys.path:  # `pytest` alone, in place of `python -m pytest`
    sys.path.append(str(ROOT))

from benchmarks.common.environments import ensure  # noqa: E402
from benchmarks.common.fingerprints import code_of  # noqa: E402
from benchmarks.papers.compared import MANY, Count, comparisons, ratio  # noqa: E402
from benchmarks.papers.forms import forms_of, selected  # noqa: E402
from benchmarks.papers.groups import lcbench_group  # noqa: E402
from benchmarks.papers.page import document  # noqa: E402

PROBLEMS, SEEDS = 6, 10


def drawn(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).lognormal(size=(PROBLEMS, SEEDS))


def group_of(ours: np.ndarray, theirs: np.ndarray, mean: str = "arithmetic") -> dict:
    """Data of one group with one comparison, problems in turn for choosing and held out."""
    problems = [f"p{i}" for i in range(len(ours))]

    def form(kind: str, shown: str, cells: np.ndarray) -> dict:
        scores = {name: [[score] for score in row] for name, row in zip(problems, cells.tolist(), strict=False)}
        return {"policy": "carbo", "kind": kind, "shown": shown, "seconds": 1.0, "scores": scores}

    return {
        "problems": problems, "choosing": problems[::2], "seeds": SEEDS, "measures": ["100 %"], "mean": mean,
        "machine": {"farthing": "1", "cpu": "a CPU", "cores": 2, "system": "Linux", "python": "3.12"},
        "versions": {"numpy": "2.0"}, "left_out": [],
        "forms": {"carbo": form("default", "", ours), "carbo-end": form("single", 'end="ignored"', theirs)},
    }  # fmt: skip


def test_the_ratio_is_of_means_over_all_runs():
    ours, theirs = drawn(0), drawn(1)
    assert ratio(ours, theirs, "arithmetic").value == pytest.approx(ours.sum() / theirs.sum())
    assert ratio(ours, theirs, "geometric").value == pytest.approx(np.prod((ours / theirs) ** (1 / ours.size)))


@pytest.mark.parametrize("mean", ["arithmetic", "geometric"])
def test_the_interval_is_paired(mean):
    """Runs that are all the same factor apart leave no doubt about it, however much the runs themselves differ."""
    found = ratio(0.8 * drawn(0), drawn(0), mean)
    assert (found.low, found.value, found.high) == pytest.approx((0.8, 0.8, 0.8))


def test_the_interval_is_as_wide_as_theory_has_it():
    """The log of the geometric ratio is a mean over problems of means over seeds: normal, and its variance is known."""
    gaps = np.random.default_rng(2).normal(0.1, 1.0, size=(40, 30))
    found = ratio(np.exp(gaps), np.ones_like(gaps), "geometric")
    error = np.sqrt(gaps.var(axis=1).sum() / gaps.shape[1]) / gaps.shape[0]
    width = (np.log(found.high) - np.log(found.low)) / (2 * 1.96)
    assert width == pytest.approx(error, rel=0.05)


def test_a_scale_of_one_problem_does_not_move_a_geometric_ratio():
    scales = np.array([1.0, 1e3, 1.0, 1e-3, 1.0, 1.0])[:, None]
    plain, scaled = (ratio(drawn(0) * s, drawn(1) * s, "geometric") for s in (np.ones_like(scales), scales))
    assert (plain.low, plain.value, plain.high) == pytest.approx((scaled.low, scaled.value, scaled.high))


def test_problems_that_are_solved_have_a_ratio_too():
    none, some = np.zeros((2, 3)), np.ones((2, 3))
    assert ratio(none, none, "arithmetic").value == 1.0
    assert ratio(some, none, "arithmetic").value == MANY
    assert ratio(none, some, "arithmetic").value == 0.0


def test_pairs_are_counted():
    assert Count.of(np.array([1.0, 2.0, 3.0, 4.0]), np.array([2.0, 1.0, 3.0, 5.0])) == Count(2, 1, 1)


@pytest.mark.parametrize(("factor", "verdict"), [(0.7, "better"), (1.4, "worse"), (1.0, "open")])
def test_a_verdict_needs_an_interval_on_one_side_of_one(factor, verdict):
    noise = 1.0 + 0.1 * np.random.default_rng(3).normal(size=(PROBLEMS, SEEDS))
    (found,) = comparisons(group_of(factor * drawn(0) * noise, drawn(0)))
    assert found.verdict == verdict


def test_a_verdict_needs_both_halves():
    """Far better on one half, a little worse on the other: the mean is better, and the verdict stays open."""
    factors = np.array([0.3, 1.02] * (PROBLEMS // 2))[:, None]
    (found,) = comparisons(group_of(factors * drawn(0), drawn(0)))
    assert found.main.high < 1.0
    assert found.held_out is not None
    assert found.held_out.value == pytest.approx(1.02)
    assert found.verdict == "open"


def test_forms_are_compared_on_the_problems_that_both_were_run_on():
    ours, theirs = drawn(0), drawn(1)[:2]
    (found,) = comparisons(group_of(ours, theirs))
    assert found.main.value == pytest.approx(ours[:2].sum() / theirs.sum())


@pytest.mark.parametrize(
    ("factor", "head"),
    [(0.5, "Our choice is better than the paper's: `carbo`"), (2.0, "The paper's choice is better than ours: `carbo`")],
)
def test_losses_are_said_as_plainly_as_gains(factor, head):
    text = document({"groups": {"tables": group_of(factor * drawn(0), drawn(0))}})
    assert head in text
    assert "Not measured: it needs the surrogate of LCBench" in text


@pytest.mark.parametrize("policy", ["ei", "eipu", "ei_cool", "cei", "carbo", "bapi", "bopt"])
def test_the_forms_are_those_that_the_class_names(policy):
    """The default, the paper's form, and every option of the paper's by itself."""
    kind = BY_NAME[policy]
    forms = forms_of(policy, with_singles=True)
    assert forms[0].made == kind()
    assert kind.paper() in [form.made for form in forms]
    for option, value in kind.PAPER.items():
        assert kind(**{option: value}) in [form.made for form in forms]
    assert len({repr(form.as_json) for form in forms}) == len(forms)


def test_on_errors_between_0_and_1_the_papers_form_has_the_tolerance_of_its_experiments(tmp_path):
    """LCBench's values are such errors, and eps = 0.01 there."""
    forms = {form.name: form.made for form in lcbench_group(tmp_path).forms}
    assert forms["bapi-paper"] == BAPI.paper(eps=0.01)
    assert forms["bapi-eps"] == BAPI(eps=0.01)
    assert forms["bapi"] == BAPI()


def test_a_form_is_selected_with_the_default_that_it_is_compared_with():
    forms = forms_of("ei") + forms_of("cei", with_singles=True)
    assert [form.name for form in selected(forms, ["cei-end"])] == ["cei", "cei-end"]
    assert [form.name for form in selected(forms, ["ei"])] == ["ei", "ei-paper"]


def test_the_hash_of_code_is_of_what_it_does(tmp_path):
    def code(text: str) -> str:
        (tmp_path / "one.py").write_text(text)
        return code_of(tmp_path / "one.py")

    assert code('def f(x):\n    """Says."""\n    return x + 1  # why\n') == code("def f(x):\n    return x+1\n")
    assert code("def f(x):\n    return x + 1\n") != code("def f(x):\n    return x + 2\n")
    assert "type_params" not in code("def f(x):\n    return x\n")  # which Python 3.12 and newer add


def test_one_python_can_stand_for_all_systems(monkeypatch):
    monkeypatch.setenv("BENCHMARK_PYTHON", "/somewhere/python")
    assert ensure("a system without a requirement file") == Path("/somewhere/python")
