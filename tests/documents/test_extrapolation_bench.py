"""The benchmark of extrapolation: models predict what they have not seen, in one scale, and losses are said."""

import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import trapezoid

ROOT = Path(__file__).parent.parent.parent
if str(ROOT) not in sys.path:  # `pytest` alone, in place of `python -m pytest`
    sys.path.append(str(ROOT))

from benchmarks.extrapolation.comparison import comparison_text, loss_table, rows_of, shown_table  # noqa: E402
from benchmarks.extrapolation.models import (  # noqa: E402
    BAPIS,
    LAST,
    METHODS,
    NETWORK,
    QUANTILES,
    bapi_guess,
    fitted_guesses,
    log_guess,
    log_slope,
    network_density,
    network_guesses,
    within_reach,
)
from benchmarks.extrapolation.scenes import Scene, Setting, scene_of  # noqa: E402
from benchmarks.extrapolation.scores import CUT, DENSITY, ERROR, NEW, SHARES, Scores, cells_of  # noqa: E402
from benchmarks.extrapolation.tasks import Task, recorded_tasks  # noqa: E402
from farthing.surrogates.curves.network import EDGES, unsquashed  # noqa: E402
from farthing.surrogates.curves.tokens import BUCKETS, Scale  # noqa: E402
from farthing.surrogates.outputs import Warp  # noqa: E402

T = 20


def task() -> Task:
    """Curves that fall at different rates to different ends, with two columns of a choice."""
    rng = np.random.default_rng(0)
    x, chosen = rng.random((40, 1)), rng.integers(2, size=40)
    X = np.column_stack([x, np.sqrt(0.5) * (chosen == 0), np.sqrt(0.5) * (chosen == 1)])
    Y = 0.1 + x + 0.2 * chosen[:, None] + np.exp(-np.arange(1, T + 1) / (2.0 + 4.0 * x)) + 0.01 * rng.random((40, T))
    return Task("made up", X, np.array([0, 1, 1]), Y)


def scene(one: Task) -> Scene:
    return scene_of(one, Setting(8, 2, 0.2), np.random.default_rng(1))


def guesses(one: Scene) -> dict:
    return {**fitted_guesses(one, np.random.default_rng(2)), **network_guesses(one)}


def test_a_scene_shows_complete_runs_and_beginnings_of_the_others():
    one = scene(task())
    assert [len(curve) for curve in one.curves] == [T, T, 4, 4, 4, 4, 4, 4]
    assert one.final.shape == (6 + len(one.new),)
    assert np.all(one.final[:6] <= one.reached[one.cut])


def test_no_model_has_seen_the_ends_that_it_predicts():
    """With other curves after the cut, and other curves of what was not begun, intervals are the same."""
    one = task()
    rows = np.random.default_rng(1).choice(len(one.X), 28, replace=False)  # as `scene_of` draws them
    Y = one.Y.copy()
    Y[rows[2:8], 4:] *= 0.5
    Y[rows[8:]] *= 3.0
    before, after = scene(one), scene(Task(one.title, one.X, one.groups, Y))
    assert not np.any(before.final == after.final)
    found, again = guesses(before), guesses(after)
    for method in METHODS:
        np.testing.assert_array_equal(found[method].low, again[method].low, method)
        assert method in (LAST, QUANTILES) or np.any(found[method].log_density != again[method].log_density)


@pytest.mark.parametrize("guess", [log_guess, bapi_guess])
def test_the_densities_of_transformed_values_are_densities_of_values(guess):
    """They integrate to 1 over the values of a run: without the derivative of the transform they would not."""
    one = scene(task())
    values = (
        np.exp(np.linspace(np.log(1e-3), np.log(100.0), 400)) if guess is log_guess else np.linspace(-4.0, 8.0, 400)
    )
    X = np.repeat(one.new[:1], len(values), axis=0)
    asked = Scene(one.X, one.groups, one.curves, one.complete, one.T, X, np.concatenate([one.final[:6], values]))
    density = np.exp(guess(asked, np.random.default_rng(2)).log_density[6:])
    assert trapezoid(density, values) == pytest.approx(1.0, abs=0.02)


def test_the_density_of_the_network_is_one_of_values():
    """It integrates to 1 over all that it can say: u is finer near the best value than far from it."""
    scale, p = Scale(0.3, 0.02), np.random.default_rng(0).dirichlet(np.ones(BUCKETS))
    values = scale.best + scale.spread * unsquashed(np.linspace(EDGES[0], EDGES[-1], 40 * BUCKETS + 1)[1:-1])
    density = np.exp(network_density(np.tile(p, (len(values), 1)), scale, values))
    assert trapezoid(density, values) == pytest.approx(1.0, abs=0.01)


def test_the_slope_of_a_warp_is_its_derivative():
    warp = Warp.of(np.array([1.0, 1.5, 2.0, 4.0, 9.0, 50.0]))
    y, h = np.array([0.3, 1.9, 3.0, 70.0]), 1e-6
    by_differences = (warp(y + h) - warp(y - h)) / (2 * h)
    np.testing.assert_allclose(np.exp(log_slope(warp, y)), by_differences, rtol=1e-5)


def test_beyond_what_the_network_can_say_its_density_is_0():
    p = np.full((2, BUCKETS), 1.0 / BUCKETS)
    assert np.all(network_density(p, Scale(0.0, 1.0), np.array([-1e3, 1e3])) == -np.inf)


def test_an_interval_that_ends_in_the_part_of_the_value_that_was_reached_includes_it():
    scale = Scale(0.0, 1.0)
    part = 80
    begins, ends = unsquashed(EDGES[part]), unsquashed(EDGES[part + 1])
    reached = np.array([0.9 * begins + 0.1 * ends] * 2)
    low, high = within_reach(np.array([0.0, 0.0]), np.array([begins + 1e-6, begins - 1e-6]), scale, reached)
    assert high[0] == reached[0]
    assert high[1] < begins
    assert np.all(low <= reached)


def test_scores_of_runs_and_of_configurations_not_begun_are_kept_apart():
    one = scene(task())
    guess = guesses(one)[NETWORK]
    cells = cells_of(guess, one, 2.0)
    error = np.abs(guess.value - one.final) / 2.0
    assert cells[CUT, ERROR] == pytest.approx(error[:6].mean())
    assert cells[NEW, ERROR] == pytest.approx(error[6:].mean())
    assert cells[NEW, DENSITY] == pytest.approx((guess.log_density[6:] + np.log(2.0)).mean())


def test_a_density_of_0_counts_as_the_least():
    one = scene(task())
    guess = guesses(one)[NETWORK]
    guess.log_density[:] = -np.inf
    assert np.all(cells_of(guess, one, 1.0)[:, DENSITY] == -10.0)


def test_recorded_sets_that_defaults_are_chosen_on_are_not_used():
    from benchmarks.curves.sets import names

    judged = {one.title for tasks in recorded_tasks().values() for one in tasks}
    assert not judged & set(names(is_for_choosing=True))


def scores(network: float, bapi: float) -> Scores:
    """Two tasks, three seeds: errors and densities of two models, the others far behind."""
    cells = np.full((2, 3, len(METHODS), 2, 3), 0.9)
    cells[..., ERROR], cells[..., DENSITY] = 9.0, -9.0
    for method, value in ((NETWORK, network), (BAPIS, bapi)):
        cells[:, :, METHODS.index(method), :, ERROR] = value
        cells[:, :, METHODS.index(method), :, DENSITY] = -value
    cells[:, :, METHODS.index(QUANTILES), :, :2] = np.nan
    return Scores(cells)


def test_the_page_says_where_the_network_loses():
    won, lost = scores(0.1, 0.2), scores(0.3, 0.2)
    rows = rows_of({"easy": dict.fromkeys(SHARES.values(), won), "hard": dict.fromkeys(SHARES.values(), lost)})
    text = comparison_text(rows)
    assert "in 4 of 8 rows, and the best of all models in 4. It is behind `bapi` on hard (" in text
    assert "above 0 in 4 rows, below it in 4" in text
    table = loss_table(rows, ERROR)
    assert table.startswith("Error: 4 of 8 rows:")
    assert "| hard, not begun | 0.300 | `bapi` | 0.200 |" in table
    assert "easy" not in table
    assert "| first tenth | -0.20 | -0.20 | 0.200 | 0.200 |" in shown_table(rows)  # the mean of both kinds
