"""Policy `bopt` where the two levels have values of different sizes or signs, and with bounds that a user gives."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import farthing as ft
from benchmarks.common.two_level_functions import FUNCTIONS
from farthing.errors import InvalidArgument
from farthing.policies import BOPT, EQIE, policy_as_json, policy_from_json
from farthing.policies.bopt.next_run import NextRun
from farthing.policies.bopt.stopping import Share

PLANE = ft.Space(a=ft.Real(0.0, 1.0), b=ft.Real(0.0, 1.0))
HALF = Share(share=0.5)
EXACT = {"values": "plain", "kernel": "gaussian", "fit": "mle", "noise": "none"}  # as the paper estimates


def bowl(config: dict[str, Any]) -> float:
    return 1.0 + 4.0 * (config["a"] - 0.3) ** 2 + 2.0 * (config["b"] - 0.6) ** 2


def studied(levels, cost: float = 12.0, seed: int = 0, space: ft.Space = PLANE, **options: Any) -> ft.Study:
    """Trained in two steps, of which `levels` gives the values; the fast one costs 1/5."""
    options = {"s": 2, "fast_ends": HALF, "ends": None, "level": "last", **options}
    study = ft.Study(space, ft.Budget(cost=cost), policy=BOPT(**options), seed=seed, max_steps=2)
    while study.ended is None:
        proposal = study.ask()
        fast, complete = levels(proposal.config)
        value, price = (complete, 0.8) if proposal.start_step else (fast, 0.2)
        study.report(proposal, value, cost=price)
    return study


def complete_runs(study: ft.Study) -> list[ft.Trial]:
    return [trial for trial in study.trials if trial.status is ft.Status.COMPLETE]


def levels_of(study: ft.Study):
    """What the policy makes of the study's runs."""
    ledger = ft.Ledger(ft.Budget(cost=1e6))
    return NextRun.of(study.policy, study.space, study._history, ledger, np.random.default_rng(0)).levels


@pytest.mark.parametrize("factor", [10.0, 0.1, 1000.0])
@pytest.mark.parametrize("seed", [0, 1])
def test_a_factor_between_the_levels_is_found_and_used(factor, seed):
    """y_c = factor y_e: the factor is found, and the last trainings are near the best."""
    study = studied(lambda config: (bowl(config), factor * bowl(config)), seed=seed, rho=None)
    assert levels_of(study).model.hyperparameters.rho == pytest.approx(factor, rel=0.05)
    last = complete_runs(study)[-3:]
    assert min(bowl(trial.config) for trial in last) < 1.02


@pytest.mark.parametrize(("factor", "seen"), [(10.0, 1.0), (0.1, 0.1)])
def test_the_best_so_far_shows_no_factor_above_1(factor, seen):
    """With level="best" a complete value is at most the fast one: what docs/bopt.md says of rho=None. In the median of
    five seeds: with few complete runs, what one study finds depends on the last digits of the processor."""
    found = [
        levels_of(studied(lambda config: (bowl(config), factor * bowl(config)), seed=seed, rho=None, level="best"))
        for seed in range(5)
    ]
    assert np.median([levels.model.hyperparameters.rho for levels in found]) == pytest.approx(seen, rel=0.05)


@pytest.mark.parametrize("height", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("surrogate", ["tgp", "dgp"])
def test_a_factor_is_found_next_to_a_bias_that_varies(surrogate, height):
    """y_c = 10 y_e + height sin(5 a), as the paper estimates: bounds learned around the slope of y_c on y_e, which is
    9.7 to 7, would hold the factor there."""

    def levels(config):
        return bowl(config), 10.0 * bowl(config) + height * np.sin(5.0 * config["a"])

    study = studied(levels, seed=1, rho=None, surrogate=surrogate, **EXACT)
    assert levels_of(study).model.hyperparameters.rho == pytest.approx(10.0, rel=0.005)


def test_a_factor_is_found_where_one_training_diverges_after_its_fast_period():
    def levels(config):
        return bowl(config), 1e300 if config["a"] > 0.8 else 10.0 * bowl(config)

    study = studied(levels, rho=None)
    assert max(trial.curve.values[-1] for trial in complete_runs(study)) == 1e300
    assert levels_of(study).model.hyperparameters.rho == pytest.approx(10.0, rel=0.3)
    assert min(bowl(trial.config) for trial in complete_runs(study)) < 1.02


def diverging(policy: BOPT | EQIE, largest: float) -> ft.Study:
    """Three in ten configurations diverge from their first step on."""
    study = ft.Study(PLANE, ft.Budget(cost=12.0), policy=policy, seed=3, max_steps=9)
    while study.ended is None:
        proposal = study.ask()
        for step in range(proposal.start_step, 9):
            good = bowl(proposal.config) + np.exp(-step / 2.0)
            value = largest * (step + 1) if proposal.config["a"] > 0.7 else good
            if study.report(proposal, value, cost=0.1) is not ft.Decision.CONTINUE:
                break
    return study


@pytest.mark.parametrize("largest", [1e200, 1e300])
@pytest.mark.parametrize("rho", [1.0, None])
@pytest.mark.parametrize("level", ["best", "last"])
@pytest.mark.parametrize("kind", [BOPT, EQIE])
def test_how_far_a_training_diverges_does_not_matter(kind, level, rho, largest):
    """It is cut: the others do not become one number next to it, with a variance of 0."""
    study = diverging(kind(level=level, rho=rho), largest)
    runs = [trial for trial in study.trials if trial.config["a"] <= 0.7]
    assert len(runs) < len(study.trials)
    assert min(bowl(trial.config) for trial in runs) < 1.01
    policy = study.policy.levels if isinstance(study.policy, EQIE) else study.policy
    ledger, rng = ft.Ledger(ft.Budget(cost=1e6)), np.random.default_rng(0)
    found = NextRun.of(policy, study.space, study._history, ledger, rng).levels
    fast = np.array([run.fast for run in found.runs])
    ordinary, scaled = fast < 10.0, found.scaled(fast)
    shares = (np.diff(values[ordinary]) / np.ptp(values[ordinary]) for values in (scaled, fast))
    np.testing.assert_allclose(*shares, atol=1e-9)
    assert np.std(scaled) == pytest.approx(1.0)
    assert np.isfinite(found.model.predict(rng.random((50, 2)))).all()


@pytest.mark.parametrize("rho", [1.0, None])
@pytest.mark.parametrize("name", ["rosenbrock-f2", "rosenbrock-f3"])
def test_complete_values_of_rosenbrock_stay_apart(name, rho):
    """The cheap f3 is about a tenth of the complete level, f2 about a half."""
    function = FUNCTIONS[name]
    space = ft.Space({f"x{i}": ft.Real(0.0, 1.0) for i in range(function.p)})

    def levels(config):
        x = np.array([list(config.values())])
        return float(function.cheap(x)[0]), float(function.complete(x)[0])

    study = studied(levels, cost=36.0, space=space, initial=30, rho=rho)
    found = levels_of(study)
    modelled = found._data(found.runs)[3]
    assert len(modelled) == 30
    assert len(np.unique(modelled)) >= 25


def test_levels_of_one_size_have_one_cut():
    """As ever: a diverged training is cut where diverged fast periods are, also when half of them diverge."""

    def levels(config):
        wild = config["a"] > 0.5
        return bowl(config), 1e6 if wild else bowl(config) - 0.5

    found = levels_of(studied(levels, initial=4, cost=5.0))
    assert found.has_one_size
    assert found.scaled_complete([1e6])[0] == found.scaled([1e6])[0]


@pytest.mark.parametrize("rho", [0.5, 2.0])
def test_a_factor_other_than_1_needs_no_bounds(rho):
    """0 <= y_c <= y_e: then y_c - rho y_e can be positive, and is between bounds that hold every run."""
    study = studied(lambda config: (bowl(config), rho * 0.4 * bowl(config)), rho=rho, level="best")
    assert study.ledger.fraction >= 1.0
    assert min(bowl(trial.config) for trial in complete_runs(study)) < 1.05


@pytest.mark.parametrize("shift", [-3.0, 0.0, 3.0])
def test_a_log_normal_bias_of_unknown_sign_lasts_a_whole_study(shift):
    """The last value may be better or worse than that of the fast period; of both signs if the shift is 0."""

    def levels(config):
        return bowl(config), bowl(config) + shift + np.sin(9.0 * config["b"])

    study = studied(levels, bias="lognormal")
    assert study.ledger.fraction >= 1.0
    best = min(bowl(c) + np.sin(9.0 * c["b"]) for c in (trial.config for trial in complete_runs(study)))
    assert best < 1.0  # the least is 0.71; the bowl alone has 1 at its best


class TestGivenBounds:
    """`bounds` are in the units of the value, and hold the bias y_c - rho y_e."""

    @pytest.mark.parametrize("rho", [1.0, 2.0, None])
    def test_the_bias_is_predicted_within_them(self, rho):
        """A bias of -5 + 4 a, known to lie in (-5, -1)."""
        factor = rho or 2.0

        def levels(config):
            return bowl(config), factor * bowl(config) - 5.0 + 4.0 * config["a"]

        options = {} if rho else EXACT  # a cut is no line, so that no single factor is right
        study = studied(levels, rho=rho, bounds=(-5.0, -1.0), level="last", **options)
        found = levels_of(study)
        h, scale = found.model.hyperparameters, found._scale
        unit = scale.unit * scale.spread
        lower, upper = (b * unit + (1.0 - h.rho) * scale.centre * scale.unit for b in h.bounds)
        assert h.rho == pytest.approx(factor, rel=0.02)
        assert (lower, upper) == (pytest.approx(-5.0), pytest.approx(-1.0))
        P = np.random.default_rng(0).random((50, 2))
        assert (found.model.predict_bias(P)[0] <= h.bounds[1]).all()
        assert (found.model.predict_bias(P)[0] >= h.bounds[0]).all()

    def test_a_training_outside_of_them_widens_them(self):
        study = studied(lambda config: (bowl(config), bowl(config) + config["a"]), bounds=(-1.0, 0.0))
        upper = levels_of(study).model.hyperparameters.bounds[1]
        assert study.ledger.fraction >= 1.0
        assert upper > 0.0

    @pytest.mark.parametrize("bounds", [(-1, 0), [-1.0, 0.0], (None, 0), (-1, None), (np.float64(-1), np.int64(0))])
    def test_a_file_holds_them(self, bounds, tmp_path):
        policy, path = BOPT(bounds=bounds), tmp_path / "study.db"
        assert policy_from_json(json.loads(json.dumps(policy_as_json(policy)))) == policy
        for _ in range(2):
            with ft.Study(PLANE, ft.Budget(cost=1), policy=policy, max_steps=2, storage=path) as study:
                assert study.policy.bounds == tuple(bounds)

    @pytest.mark.parametrize(
        "bounds", [(0, -1), (1, 1), (None, None), (-1,), (-1, 0, 1), ("a", 0), (float("nan"), 0), (-np.inf, 0), True]
    )
    def test_others_are_refused(self, bounds):
        with pytest.raises(InvalidArgument, match=r"bopt: bounds: expected a pair \(b1, b2\) with b1 < b2"):
            BOPT(bounds=bounds)

    def test_a_bias_without_bounds_cannot_have_any(self):
        with pytest.raises(InvalidArgument, match="bopt: bounds: expected None with surrogate 'dgp'"):
            BOPT(surrogate="dgp", bounds=(-1, 0))


@pytest.mark.parametrize(("ratio", "s", "runs"), [(2, None, 6), (None, None, 6), (None, 3, 9), (4, 3, 12), (1, 3, 3)])
def test_the_design_has_a_ratio_of_fast_to_complete_runs(ratio, s, runs):
    policy = BOPT(ratio=ratio, s=s, initial=3, fast_ends=HALF)
    study = ft.Study(PLANE, ft.Budget(cost=1e6), policy=policy, seed=0, max_steps=2)
    proposals = study.ask(runs)
    assert all("initial design" in proposal.reason for proposal in proposals)
    U = np.array([list(proposal.config.values()) for proposal in proposals])
    for points, count in ((U, runs), (U[:3], 3)):
        cells = np.sort((points * count).astype(int), axis=0)
        np.testing.assert_array_equal(cells, np.arange(count)[:, None].repeat(2, axis=1))


@pytest.mark.parametrize(
    "options",
    [{"kernel": "gaussian"}, {"fit": "mle"}, {"noise": "none"}, {"imputation": "plug-in"}, {"values": "plain"},
     {"end": "ignored"}, {"ratio": 3}, {"bounds": (-1.0, None)}],
    ids=str,
)  # fmt: skip
def test_every_option_alone_lasts_a_whole_study(options):
    study = studied(lambda c: (bowl(c), bowl(c) - 0.5 * c["a"]), **options)
    assert study.ledger.fraction >= 0.9
    assert min(bowl(c) - 0.5 * c["a"] for c in (t.config for t in complete_runs(study))) < 0.9  # the least is 0.85
