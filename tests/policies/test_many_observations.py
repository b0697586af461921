"""Studies of thousands of observations: exact up to a thousand, then some of them are known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import farthing as ft
from farthing.history import History, TrackedTrial, Way, units, values
from farthing.history.history import Place
from farthing.numerics.rows import EXACT, MOST_KNOWN, MOST_PENDING
from farthing.policies.candidates import FreshSpace
from farthing.policies.cost_models import chosen_cost_model, linear_cost_model
from farthing.policies.fits import FittedModels, rows_known, success_model, value_model
from farthing.surrogates import fitting, gp
from farthing.surrogates.outputs import Warp
from farthing.trial import Status

CUBE = ft.Space({name: ft.Real(0, 1) for name in "abc"})


def value(x: np.ndarray) -> float:
    return float(((x - 0.4) ** 2).sum() + 0.05 * np.sin(9.0 * x[0]))


def log_cost(X: np.ndarray) -> np.ndarray:
    return 2.0 * X[:, 0] + np.sin(5.0 * X[:, 1])


def history(n: int, failing: float = 2.0) -> History:
    """n known results; those whose first coordinate is above `failing` have failed."""
    study = ft.Study(CUBE, ft.Budget(cost=1e9), seed=0)
    for x in np.random.default_rng(1).random((n, 3)):
        cost = float(np.exp(log_cost(x[None, :])[0]))
        told = {"failed": "too large"} if x[0] > failing else {"value": value(x)}
        study.add(CUBE.decode(x), cost=cost, **told)
    return study._history


@pytest.fixture(scope="module")
def long() -> History:
    return history(MOST_KNOWN + 300)


def test_up_to_a_limit_the_model_of_values_is_the_exact_fit(monkeypatch):
    """One more, and hyperparameters are found from fewer, while all are still known. The limit is lowered here."""
    monkeypatch.setattr("farthing.policies.fits.EXACT", 80)
    monkeypatch.setattr("farthing.numerics.rows.EXACT", 80)
    monkeypatch.setattr("farthing.numerics.rows.MOST_FITTED", 40)
    some = history(81)
    U, y = units(some.complete, 3), values(some.complete)
    exact = gp.fit(CUBE.features(U[:-1]), Warp.of(y[:-1])(y[:-1]), CUBE.groups, None, fitting.MEDIUM)
    model = value_model(CUBE, U[:-1], y[:-1], some)
    assert model.hyperparameters == exact.hyperparameters
    assert np.array_equal(model.alpha, exact.alpha)
    more = value_model(CUBE, U, y, some)
    assert len(more.y) == more.hyperparameters.cold_at == 81
    of_all = gp.fit(CUBE.features(U), Warp.of(y)(y), CUBE.groups, None, fitting.MEDIUM)
    assert more.hyperparameters != of_all.hyperparameters


@pytest.mark.parametrize("way", [Way.FULL, Way.KEPT])
def test_beyond_that_the_model_knows_the_best_and_predicts_like_the_exact_one_around_them(long, way):
    U, y = units(long.complete, 3), values(long.complete)
    model = value_model(CUBE, U, y, replace(long, way=way))
    assert len(model.y) == MOST_KNOWN
    z = Warp.of(y)(y)
    assert model.y.min() == z.min()
    exact = gp.from_hyperparameters(U, z, model.hyperparameters, CUBE.groups)
    near = U[np.argsort(y)[:100]] + 0.01
    assert np.abs(model.mean_at(near) - exact.mean_at(near)).max() < 0.02 * z.std()


def test_the_model_of_success_still_knows_where_trials_fail():
    model = success_model(CUBE, history(EXACT + 200, failing=0.8))
    chance = np.exp(model.log_success(np.array([[0.95, 0.5, 0.5], [0.3, 0.5, 0.5]])))
    assert chance[0] < 0.05
    assert chance[1] > 0.95


def test_the_model_of_cost_is_accurate_and_its_contests_go_by_all_observations(long):
    model, fits = chosen_cost_model(CUBE, long)
    X = np.random.default_rng(2).random((200, 3))
    assert np.abs(model.mean_at(X) - log_cost(X)).max() < 0.02
    assert fits["cost"]["n"] == fits["cost"]["contest_at"] == len(long.trials)
    assert fits["cost"]["processes"]["gp"]["hyperparameters"]["cold_at"] == len(long.trials)


def test_what_an_ask_takes_is_predicted_from_what_models_know(long):
    assert rows_known(long) == MOST_KNOWN
    assert rows_known(history(5)) == 5


def test_a_given_start_of_thousands_is_looked_through_once():
    """Not once for every ask, which took minutes for ten thousand configurations."""
    space, looked = ft.Space(x=ft.Real(0, 1)), []
    study = ft.Study(space, "400 evaluations", policy="random", start=[{"x": i / 300} for i in range(300)], seed=0)
    key = study._session.space.key
    study._session.space.key = lambda config: looked.append(config) or key(config)  # type: ignore[method-assign]
    asked = [study.ask().config["x"] for _ in range(300)]
    assert asked == [i / 300 for i in range(300)]
    assert len(looked) <= 10 * 300  # once for every ask would be 45,000


def test_of_thousands_of_running_evaluations_the_last_are_expected():
    """What an ask takes would grow with the cube of them."""
    known, running = history(20), np.random.default_rng(3).random((MOST_PENDING + 30, 3))
    for number, u in enumerate(running, start=20):
        known = known.with_trial(
            TrackedTrial(number, CUBE.decode(u), Status.RUNNING, place=Place((number,), u))
        )  # fmt: skip
    models = fitted(known, 0)
    assert np.array_equal(models.fantasies.process.X[20:], CUBE.features(running[30:]))


class TestBatches:
    def test_later_searches_of_a_batch_find_as_much_as_first_ones(self):
        """They begin with the points that the first one ranked: the improvement they find is not smaller than that of a
        search of its own by more than a tenth, in the median of ten, and never by more than half."""
        lost = []
        for seed in range(10):
            models = fitted(history(40), seed)
            ranking = models.by_improvement()
            later = models.with_pending(CUBE.features(ranking.U[:1]), None, ranking.U)
            own = replace(later, found=None, rng=np.random.default_rng(seed + 100))
            lost.append(own.by_improvement().utility[0] - later.by_improvement().utility[0])
        assert np.median(lost) < 0.1
        assert max(lost) < np.log(2.0)


def fitted(known: History, seed: int) -> FittedModels:
    study = ft.Study(CUBE, ft.Budget(cost=1e9), seed=seed)
    return FittedModels.of(
        ft.policies.EI(), CUBE, FreshSpace(CUBE, known), known, study.ledger, 5, np.random.default_rng(seed),
        linear_cost_model,
    )  # fmt: skip
