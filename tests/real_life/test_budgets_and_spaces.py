"""Budgets and spaces as people write them, and what a loop of one's own is charged."""

from __future__ import annotations

import inspect
import warnings
from typing import ClassVar

import pytest
from sklearn.tree import DecisionTreeClassifier

import farthing as ft
from farthing.budget import amount_text
from farthing.errors import FarthingError, InvalidBudget


def read(budget: str) -> object:
    """The budget, or the error: an older reader refuses, and the assertion shows it."""
    try:
        return ft.Budget.of(budget)
    except InvalidBudget as error:
        return error


class TestDollarsAtARate:
    @pytest.mark.parametrize("text", ["$5 at $2.5/h", "$5 at $2.50 per hour", "$5 at $2.5/hour", "5 usd at 2.5 usd/h"])
    def test_a_text_may_name_the_rate(self, text):
        assert read(text) == ft.Budget(usd=5, usd_per_hour=2.5)

    @pytest.mark.parametrize("text", ["$5 at $2.5/h", "10m at $36/h, 5 evaluations", "30 cost", "10m of compute"])
    def test_what_is_shown_is_read_back_as_itself(self, text):
        budget = read(text)
        assert isinstance(budget, ft.Budget), budget
        assert read(str(budget)) == budget == ft.Budget.from_json(budget.as_json())

    @pytest.mark.parametrize("text", ["$5 at $2.5", "$5 at 2.5/h", "$5 at $2.5/parsec", "at $2/h"])
    def test_a_rate_that_cannot_be_read_is_refused_with_an_example(self, text):
        assert isinstance(error := read(text), InvalidBudget)
        assert '"$5 at $2.5/h"' in str(error)

    def test_a_rate_given_twice_is_refused(self):
        assert "usd_per_hour is given twice" in str(read("$5 at $2/h, 1h at $3/h"))


class TestOwnLoop:
    SPACE = ft.Space(x=ft.Real(0, 1))

    def told(self, budget: ft.Budget | str, **spent: float) -> ft.Study:
        assert "seconds" in inspect.signature(ft.Study.tell).parameters, "tell takes no seconds"
        study = ft.Study(self.SPACE, budget, seed=0)
        study.tell(study.ask(), value=1.0, **spent)
        return study

    def test_seconds_are_charged_at_the_rate_of_the_study(self):
        study = self.told(ft.Budget(usd=5, usd_per_hour=36), seconds=100.0)
        ledger = study.ledger
        assert ledger.total("seconds") == ledger.total("compute_seconds") == 100.0
        assert ledger.spent == pytest.approx(1.0)
        assert study.trials[0].cost == pytest.approx(1.0)
        assert "seconds" not in study.trials[0].attributes

    def test_under_a_budget_of_seconds_they_are_the_cost_and_end_the_study(self):
        study = self.told("10s", seconds=10.5)
        assert study.trials[0].cost == 10.5
        assert study.ended is not None

    def test_a_cost_given_besides_is_the_cost(self):
        study = self.told(ft.Budget(cost=10), seconds=3.0, cost=2.0)
        assert (study.trials[0].cost, study.ledger.spent, study.ledger.total("seconds")) == (2.0, 2.0, 3.0)

    def test_negative_seconds_are_refused(self):
        with pytest.raises(FarthingError, match="seconds: expected a"):
            self.told("10s", seconds=-1.0)

    def test_reports_are_charged_alike(self):
        assert "seconds" in inspect.signature(ft.Study.report).parameters, "report takes no seconds"
        study = ft.Study(self.SPACE, "60s", policy="ei", max_steps=3, seed=0)
        proposal = study.ask()
        for step in range(3):
            study.report(proposal, 1.0 / (step + 1), seconds=2.0)
        assert (study.trials[0].cost, study.ledger.spent) == (6.0, 6.0)

    @pytest.mark.parametrize("budget", ["1s", ft.Budget(usd=1, usd_per_hour=2), ft.Budget(cost=3)])
    def test_a_budget_that_never_ends_is_warned_of_once(self, budget):
        study = ft.Study(self.SPACE, budget, policy="random", seed=0)
        texts = self.warnings_of(study, tells=3)
        assert len(texts) == 1, texts
        assert "never ends" in texts[0]
        assert ("tell(..., seconds=...)" in texts[0]) == (budget != ft.Budget(cost=3)), "seconds are no such cost"
        assert "tell(..., cost=...)" in texts[0]
        ending = ft.Study(self.SPACE, "1s, 5 evaluations", policy="random", seed=0)
        assert self.warnings_of(ending) == self.warnings_of(ft.Study(self.SPACE, "1s", seed=0), cost=0.1) == []

    def warnings_of(self, study: ft.Study, tells: int = 1, **spent: float) -> list[str]:
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            for _ in range(tells):
                study.tell(study.ask(), value=1.0, **spent)
        return [str(warning.message) for warning in heard]


class TestPlainDicts:
    DICT: ClassVar = {
        "rate": (1e-4, 1e-1, "log"),
        "depth": (1, 10),
        "share": (0, 1.0),
        "kind": ["a", "b"],
        "x": ft.Real(0, 1),
    }
    SPACE = ft.Space(
        rate=ft.Real(1e-4, 1e-1, log=True), depth=ft.Integer(1, 10), share=ft.Real(0, 1), kind=ft.Choice(["a", "b"]),
        x=ft.Real(0, 1),
    )  # fmt: skip

    def test_tune_takes_a_dict(self):
        try:
            study = ft.tune(lambda config: config["x"], self.DICT, "3 evaluations", seed=0, progress=False)
        except FarthingError as error:
            pytest.fail(f"refused: {error}")
        assert study.space == self.SPACE
        assert len(study.trials) == 3

    def test_a_tuple_of_numbers_is_two_bounds_and_others_are_options(self):
        assert ft.Space.of(self.DICT) == self.SPACE
        options = {"kernel": ("rbf", "poly"), "bootstrap": (True, False), "leaf": (1, None)}
        assert ft.Space.of(options) == ft.Space.of({name: list(given) for name, given in options.items()})
        search = ft.FarthingSearchCV(DecisionTreeClassifier(), {"max_depth": (1, 9)}, budget="2 evaluations")
        assert search._space() == ft.Space(max_depth=ft.Choice([1, 9])), "as in scikit-learn"

    @pytest.mark.parametrize(
        ("given", "texts"),
        [((1, 10, 2), ["[1, 10, 2]", "step="]), (5, ["space: parameter 'depth'", "a list of options", "(1, 9)"])],
    )
    def test_what_cannot_be_read_is_refused_with_ways_to_write_it(self, given, texts):
        with pytest.raises(FarthingError) as refused:
            ft.Study({"depth": given}, "3 evaluations")
        assert all(text in str(refused.value) for text in texts), refused.value


def test_one_is_singular():
    assert amount_text("evaluations", 1) == "1 evaluation"
    assert str(ft.Budget(evaluations=1, joules=1)) == "1 joule, 1 evaluation"
