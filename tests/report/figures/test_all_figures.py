"""What holds for every figure: they draw any study or say why not, show no tag of a stranger's, and stay small."""

from __future__ import annotations

import json
import time

import numpy as np
import plotly.graph_objects as go
import plotly.io
import pytest

import farthing as ft
from browsers import HOW, find_browser
from farthing.errors import FarthingError
from farthing.report.drawing import figure_of
from farthing.report.figures.listed import FIGURES
from farthing.report.plots import Plots
from learners import iterative, learner, run_iterative
from studies import BOOSTER, line_study, tell_truth

NASTY = '<script>alert("1")</script>'


def booster():
    study = ft.Study(BOOSTER, ft.Budget(cost=5), policy="carbo", seed=0)
    for _ in range(8):
        tell_truth(study, study.ask())
    return study


def only_failures():
    study = line_study()
    study.tell(study.ask(), failed=NASTY, cost=1.0)
    return study


def one_trial():
    study = line_study()
    study.tell(study.ask(), value=0.0, cost=0.0)
    return study


def of_a_stranger():
    space = ft.Space({NASTY: ft.Choice([NASTY, "x" * 100_000]), "\u202eb": ft.Real(0, 1)})
    study = ft.Study(space, ft.Budget(cost=1e3), policy="random", seed=0)
    for value in (1.0, 2.0, 3.0):
        study.tell(study.ask(), value=value, cost=1.0, **{NASTY: NASTY})
    study.tell(study.ask(), failed=NASTY, cost=1.0)
    return study


STUDIES = {
    "no trial": line_study, "only failures": only_failures, "one trial": one_trial, "booster": booster,
    "a stranger's": of_a_stranger, "trainings": lambda: run_iterative(learner), "no training yet": iterative,
}  # fmt: skip


@pytest.mark.parametrize("name", STUDIES)
def test_every_figure_is_drawn_or_says_in_a_sentence_why_not(name):
    study = STUDIES[name]()
    for figure in FIGURES:
        drawing, why_not = made(figure, study)
        if drawing is None:
            assert 10 < len(why_not) < 200
            assert name != "booster" or figure.name in ("curves", "two_levels")
            continue
        assert (drawing.name, drawing.title) == (figure.name, figure.title)
        written = json.dumps(drawing.as_json(), allow_nan=False, ensure_ascii=False)
        assert "<script" not in written
        assert "\u202e" not in written
        assert len(written) < 300_000
        assert isinstance(figure_of(drawing), go.Figure)


def made(figure, study):
    """The drawing, or None and why there is none."""
    try:
        return figure.make(study._session, 5.0), ""
    except FarthingError as error:
        return None, str(error)


def test_each_listed_figure_is_a_plot_of_the_same_name():
    assert {figure.name for figure in FIGURES} <= set(dir(Plots))


def test_plots_are_plotly_figures_under_their_titles():
    study = booster()
    assert study.plot.cost_per_trial().layout.title.text == "Cost of each trial"
    assert study.plot.best_value().data[0].line.shape == "hv"


@pytest.fixture(scope="module")
def many():
    """A study of known results; fifty thousand would take most of the time of these tests to write."""
    study = line_study(ft.Budget(cost=1e9))
    rng = np.random.default_rng(0)
    for x, value in rng.uniform(-1, 1, (10_000, 2)).tolist():
        study.add({"x": x}, value=value, cost=1.0)
    return study


def test_ten_thousand_trials_make_small_drawings(many):
    """Figures of models have tests of their own: they take the time that they are given."""
    for figure in FIGURES:
        if figure.models:
            continue
        began = time.process_time()
        drawing, _ = made(figure, many)
        assert drawing is None or len(json.dumps(drawing.as_json())) < 400_000
        assert time.process_time() - began < 2.0


@pytest.mark.skipif(find_browser() is None, reason=HOW)
def test_a_figure_is_saved_as_png_and_as_svg(tmp_path, monkeypatch):
    """Both at once, as `write_image` saves one: starting the browser takes most of the time."""
    pytest.importorskip("kaleido")
    monkeypatch.setenv("BROWSER_PATH", find_browser())
    figure = booster().plot.best_value()
    plotly.io.write_images(fig=[figure, figure], file=[tmp_path / "f.png", tmp_path / "f.svg"])
    assert (tmp_path / "f.png").read_bytes().startswith(b"\x89PNG")
    assert "Best value over cost" in (tmp_path / "f.svg").read_text()
