"""What a notebook shows of a study, a ledger, a trial and a search, read as a browser reads it."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

import farthing as ft
from farthing.text.cards import EDGE, HEIGHT, WIDTH, escaped, sparkline
from farthing.text.escaping import on_one_line

EVIL = '<script>alert("1")</script><img src=x onerror=alert(1)>\x1b[31m\u202e\u2028 \ud800'
LONG = "x" * 100_000
TAGS = {"div", "span", "strong", "table", "tbody", "tr", "td", "svg", "path", "circle"}
PLAIN = {"style", "role", "aria-label"}
DRAWN = {"d", "fill", "stroke", "stroke-width", "stroke-linejoin", "stroke-opacity", "cx", "cy", "r", "width", "height",
         "viewbox"}  # fmt: skip


class Page(HTMLParser):
    """The tags, attributes and texts of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.open: list[str] = []
        self.texts: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if not self.get_starttag_text().endswith("/>"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        if not self.rawdata or tag not in ("path", "circle"):
            assert self.open.pop() == tag, "what is opened is closed"

    def handle_startendtag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_data(self, text):
        self.texts.append(text)

    @property
    def text(self) -> str:
        return "\n".join(text for text in self.texts if text.strip())

    @property
    def widths(self) -> list[float]:
        """Of the coloured pieces of its bar, in percent."""
        styles = [attributes.get("style", "") for _, attributes in self.tags]
        return [float(found[1]) for style in styles if (found := re.search(r";width:([\d.]+)%;background", style))]


def page_of(thing: object) -> Page:
    """A card that is harmless, whatever is on it."""
    written = thing._repr_html_()
    page = Page(written)
    assert page.open == []
    for tag, attributes in page.tags:
        assert tag in TAGS
        assert set(attributes) <= PLAIN | DRAWN
        assert "url(" not in attributes.get("style", "")
    assert on_one_line(written) == written, "no control code, no mark that turns the direction of writing"
    assert len(written) < 30_000
    written.encode()
    return page


def studied(values, **options) -> ft.Study:
    study = ft.Study({"x": (0.0, 1.0), "kind": ["a", "b"]}, ft.Budget(cost=20), policy="sobol", seed=0, **options)
    for value in values:
        study.tell(study.ask(), value=value, cost=2.0, epochs=7)
    return study


class TestStudy:
    def test_it_shows_the_best_its_configuration_the_budget_and_the_last_error(self):
        study = studied([3.0, 1.25, 2.0])
        study.tell(study.ask(), failed="Traceback ...\nValueError: no", cost=1.0)
        text = page_of(study).text
        for part in (
            "Study", "sobol · minimise · 4 trials: 3 complete, 1 failed", "1.25", "best value, trial 1",
            f"{study.best.config['x']:.6g}", repr(study.best.config["kind"]), "35% of 20 cost used",
            "evaluation 6 cost", "failed 1 cost", "last error, trial 3: ValueError: no",
            "from 3 to 1.25 over 7 cost of trials",
        ):  # fmt: skip
            assert part in text, text
        assert "ended" not in text

    def test_values_are_in_the_users_sign(self):
        text = page_of(studied([3.0, 1.0, 5.5], maximize=True)).text
        assert "maximise" in text
        assert "from 3 to 5.5" in text

    def test_the_bar_is_as_long_as_the_used_part_and_divided_as_what_was_spent(self):
        study = studied([1.0, 2.0])
        study.tell(study.ask(), failed="no", cost=6.0)
        assert page_of(study).widths == pytest.approx([100 * 4 / 20, 100 * 6 / 20])

    def test_without_trials_and_without_costs_it_is_shown_all_the_same(self):
        study = ft.Study({"x": (0.0, 1.0)}, "9 evaluations", seed=0)
        assert "none yet" in page_of(study).text
        for value in (2.0, 1.0):
            study.tell(study.ask(), value=value)
        page = page_of(study)
        assert "trial 1" in page.text
        assert page.widths == pytest.approx([100 * 2 / 9], abs=0.01)
        assert not [tag for tag, _ in page.tags if tag == "svg"], "over which cost is not known"

    def test_why_it_ended_is_said(self):
        study = ft.tune(lambda config: config["x"], {"x": (0.0, 1.0)}, "3 evaluations", policy="random", progress=False)
        assert "ended: the budget of 3 evaluations is spent" in page_of(study).text

    def test_a_file_that_is_opened_to_look_at_shows_the_same(self, tmp_path):
        study = studied([3.0, 1.0], storage=tmp_path / "s.db")
        shown = study._repr_html_()
        study.close()
        assert ft.Study.open(tmp_path / "s.db")._repr_html_() == shown


class TestLedgerAndTrial:
    def test_a_ledger_shows_its_accounts_and_what_remains(self):
        ledger = ft.Ledger(ft.Budget(cost=10)).charged({"evaluation": {"cost": 4.0}, "optimiser": {"cost": 1.0}})
        page = page_of(ledger.promised(2.0, 1))
        for part in ("50% of 10 cost used", "evaluation", "4 cost", "optimiser", "1 cost", "2 cost in 1 running",
                     "5 cost  (50% used)"):  # fmt: skip
            assert part in page.text
        assert page.widths == pytest.approx([40.0, 10.0])

    def test_a_ledger_that_is_printed_is_as_it_was(self):
        ledger = ft.Ledger(ft.Budget(cost=10)).charged({"evaluation": {"cost": 4.0, "evaluations": 1}})
        assert str(ledger) == "budget      10 cost\nevaluation  4 cost\nremaining   6 cost  (40% used)"

    def test_a_trial_shows_its_configuration_cost_and_attributes(self):
        text = page_of(studied([0.5]).best).text
        for part in ("Trial 0", "complete", "0.5", "kind", "cost\n2", "epochs\n7"):
            assert part in text, text

    def test_a_trained_one_shows_its_curve(self):
        trial = ft.Trial(3, {}, ft.Status.PAUSED, value=1.0, curve=ft.Curve((3.0, 1.0, 2.0)))
        assert "value over 3 steps" in page_of(trial).text

    def test_a_failed_one_shows_its_error_and_no_value(self):
        text = page_of(ft.Trial(3, {}, ft.Status.FAILED, error="ValueError: boom")).text
        assert "ValueError: boom" in text
        assert "no value" in text


class TestSparkline:
    def corners(self, drawn: str) -> list[tuple[float, float]]:
        """Of a staircase."""
        path = re.search(r'd="M([\d.]+) ([\d.]+)(H[^"]*)" fill', drawn)
        corners = [(float(path[1]), float(path[2]))]
        for x, y in re.findall(r"H([\d.]+)V([\d.]+)", path[3]):
            corners += [(float(x), float(y))]
        return corners

    def test_a_value_is_at_its_cost_and_the_largest_is_on_top(self):
        corners = self.corners(sparkline([(1.0, 8.0), (2.0, 8.0), (5.0, 2.0), (10.0, 0.0)], ""))
        inside = (WIDTH - 2 * EDGE, HEIGHT - 2 * EDGE)
        expected = [(0.1, 0.0), (0.5, 0.75), (1.0, 1.0)]  # where the value changes
        assert corners == [
            pytest.approx((EDGE + x * inside[0], EDGE + y * inside[1]), abs=0.06) for x, y in expected
        ]  # fmt: skip

    def test_many_values_and_huge_ones_are_drawn_inside_the_picture(self):
        points = [(float(i + 1), 1e308 - i * 1e304) for i in range(10_000)]
        corners = self.corners(sparkline([*points, (10_001.0, -1e308)], ""))
        assert len(corners) < 400
        assert corners[-1] == pytest.approx((WIDTH - EDGE, HEIGHT - EDGE))
        assert all(0 <= x <= WIDTH and 0 <= y <= HEIGHT for x, y in corners)

    @pytest.mark.parametrize("points", [[], [(1.0, 2.0)], [(1.0, 2.0), (2.0, 2.0)], [(0.0, 1.0), (0.0, 2.0)]])
    def test_where_there_is_nothing_to_see_nothing_is_drawn(self, points):
        assert sparkline(points, "") == ""


class Hostile:
    """An option whose repr is a stranger's, or no text at all."""

    def __init__(self, shown: object) -> None:
        self.shown = shown

    def __repr__(self) -> str:
        return self.shown


class TestStrangers:
    def test_names_values_attributes_and_errors_are_escaped_and_cut(self):
        space = ft.Space.of({EVIL: ft.Choice([EVIL, LONG]), LONG: ft.Choice([EVIL + "2", LONG])})
        study = ft.Study(space, ft.Budget(cost=9), start=[{EVIL: EVIL, LONG: LONG}])
        study.tell(study.ask(), value=1.0, cost=1.0, **{EVIL: EVIL, LONG: LONG})
        study.tell(study.ask(), failed=EVIL + LONG, cost=1.0)
        for shown in (study, study.best, study.trial(1), study.ledger):
            text = page_of(shown).text
            assert LONG[:200] not in text
        assert "<script>alert" in page_of(study.best).text, "as text"

    @pytest.mark.parametrize("shown", [EVIL, None, LONG])
    def test_options_of_ones_own_are_shown_whatever_their_repr(self, shown):
        config = {"x": Hostile(shown), "y": 10**5000, "z": float("nan")}
        assert "nan" in page_of(ft.Trial(0, config, ft.Status.COMPLETE, value=float("inf"))).text

    def test_of_very_many_parameters_the_first_are_shown(self):
        text = page_of(ft.Trial(0, {f"p{i}": i for i in range(1000)}, ft.Status.COMPLETE)).text
        assert "and 976 more" in text

    def test_cutting_keeps_both_ends(self):
        assert escaped("a" * 1000 + "é" * 99 + "z", longest=11) == "aaaaa…ééééz"


class TestSearch:
    def search(self, **options) -> ft.FarthingSearchCV:
        from sklearn.dummy import DummyClassifier

        space = {"constant": [0, 1], "strategy": ["constant"]}
        return ft.FarthingSearchCV(
            DummyClassifier(), space, budget="2 evaluations", policy="random", cv=2, random_state=0, **options
        )

    def test_a_fitted_one_shows_its_card_before_the_diagram(self):
        search = self.search().fit([[0], [1], [2], [3]] * 2, [0, 1, 1, 1] * 2)
        shown = search._repr_mimebundle_()
        assert shown["text/plain"] == repr(search)
        mine, diagram = shown["text/html"].split("<style>", 1)
        text = Page(mine).text
        for part in ("FarthingSearchCV", "2 trials: 2 complete", "0.75", "best cross-validated score", "constant",
                     "100% of 2 evaluations used"):  # fmt: skip
            assert part in text, text
        assert "sk-container" in diagram
        assert search._repr_html_().startswith(mine)

    def test_one_with_several_metrics_and_no_choice_shows_what_was_spent(self):
        search = self.search(scoring=["accuracy", "f1"], refit=False).fit([[0], [1]] * 4, [0, 1] * 4)
        assert "100% of 2 evaluations used" in search._repr_html_()

    def test_an_unfitted_one_and_one_shown_as_text_are_scikit_learns(self):
        from sklearn import config_context

        search = self.search()
        assert search._repr_html_().startswith("<style>")
        with config_context(display="text"):
            assert set(search._repr_mimebundle_()) == {"text/plain"}
            assert not hasattr(search, "_repr_html_")
