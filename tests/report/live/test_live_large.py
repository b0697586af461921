"""A study of 50,000 trials on the live page, from the command to the first figure, in a real browser."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from browsers import open_browser
from called import PATIENCE
from large_files import large_file

TRIALS = 50_000
SECONDS = 3.0  # on a machine that does nothing else
OTHERS = 3.0  # times as long where other tests use the machine
SERVE = "import sys; from farthing.cli import main; sys.exit(main(sys.argv[1:]))"
DRAWN = "document.querySelector('[data-figure=best_value] .plot.js-plotly-plot')?.data?.[0].y.length > 1"


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return large_file(tmp_path_factory.mktemp("large") / "large.db", TRIALS)


@pytest.fixture(scope="module")
def opened(large: Path) -> Any:
    """A tab with the page, the seconds until its first figure, and the address."""
    with open_browser() as browser:
        tab = browser.new_page(viewport={"width": 1180, "height": 800})
        began = time.monotonic()
        process = subprocess.Popen(
            [sys.executable, "-c", SERVE, "dashboard", large.name, "--port", "0"], cwd=large.parent,
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        try:
            assert process.stdout is not None
            found = re.match(r"page +(http://\S+)", process.stdout.readline())
            assert found is not None
            tab.goto(found[1])
            tab.wait_for_function(f"() => {DRAWN}", timeout=PATIENCE * 1000)
            yield tab, time.monotonic() - began
        finally:
            process.terminate()
            process.communicate(timeout=PATIENCE)


def test_the_first_figure_is_there_in_three_seconds(opened: Any):
    seconds = opened[1]
    assert seconds < SECONDS * (OTHERS if "PYTEST_XDIST_WORKER" in os.environ else 1.0)


def test_the_table_has_all_trials_and_shows_one_page(opened: Any):
    tab, _ = opened
    tab.wait_for_function("() => document.querySelector('#paging').textContent.includes('of 50,000')", timeout=60_000)
    assert tab.locator("tr.trial").count() == 25
    tab.click("[data-key='sort cost']")
    tab.click("[data-key='sort cost']")
    tab.wait_for_function(
        "() => (costs => costs.length === 25 && costs[0] > 0.999 && costs.every((c, i) => !i || c <= costs[i - 1]))"
        "([...document.querySelectorAll('#table tbody td:nth-child(4)')].map(cell => Number(cell.textContent)))"
    )


def test_figures_draw_a_part_of_the_trials_and_stay_smooth(opened: Any):
    """A click is answered, and the page moves, while all figures are there."""
    tab, _ = opened
    for figure in tab.query_selector_all(".figure:not([hidden])"):
        figure.evaluate("one => one.scrollIntoView()")
        tab.wait_for_function("one => !one.querySelector('.waiting') || one.hidden", arg=figure, timeout=60_000)
    points = tab.evaluate(
        "[...document.querySelectorAll('.figure:not([hidden]) .plot')].map(plot =>"
        "(plot.data || []).reduce((sum, trace) => sum + (trace.x?.length || 0), 0))"
    )
    assert 0 < max(points) <= 20_000
    frames = tab.evaluate(
        "new Promise(done => { const times = []; const step = time => { times.push(time); scrollBy(0, 40);"
        "times.length < 60 ? requestAnimationFrame(step) : done(times); }; requestAnimationFrame(step); })"
    )
    apart = sorted(later - earlier for earlier, later in pairwise(frames))
    assert apart[len(apart) // 2] < 100.0  # milliseconds; the median frame
