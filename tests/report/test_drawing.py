"""Drawings are plain values that any browser can read, and thinning them hides nothing."""

from __future__ import annotations

import json

import numpy as np
import plotly.graph_objects as go

from farthing.report.drawing import Drawing, figure_of, label, with_extremes


def test_a_drawing_is_json_that_every_browser_reads():
    drawing = Drawing("n", "t", "c", [{"type": "scatter", "y": np.array([1.0, np.inf, np.nan])}], {"height": 3})
    assert json.loads(json.dumps(drawing.as_json(), allow_nan=False))["data"][0]["y"] == [1.0, None, None]


def test_a_drawing_is_a_figure_that_plotly_accepts():
    figure = figure_of(Drawing("n", "The title", "c", [{"type": "scatter", "y": np.arange(3.0)}]))
    assert isinstance(figure, go.Figure)
    assert figure.layout.title.text == "The title"


def test_thinning_keeps_every_peak():
    rng = np.random.default_rng(0)
    y = rng.normal(size=50_000)
    y[[17, 31_003]] = 99.0, -99.0
    kept = with_extremes(y)
    assert len(kept) <= 2_000
    assert {17, 31_003} <= set(kept.tolist())
    assert np.all(np.diff(kept) > 0)


def test_a_label_holds_no_tag_and_stays_short():
    assert "<" not in label("<script>alert(1)</script>")
    assert len(label("x" * 100_000)) <= 60
