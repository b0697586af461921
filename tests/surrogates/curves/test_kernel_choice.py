"""Which kernel over time is chosen for some curves, and by what."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from farthing.surrogates.curves import choice
from farthing.surrogates.curves.choice import Choice, CutCurves, choose, log_density
from farthing.surrogates.curves.paths import Mixture

T_MAX = 40.0
LENGTHS = (8, 8, 40, 16, 8, 40, 8, 24, 40, 16, 40, 8)


def power_law(x: np.ndarray, t: np.ndarray) -> np.ndarray:
    return 0.2 * x[1] + t ** -(0.4 + 0.4 * x[0])


def flat_then_falling(x: np.ndarray, t: np.ndarray) -> np.ndarray:
    """Most of the fall comes late, and when it comes depends on the configuration."""
    return 0.2 * x[1] + 1.0 / (1.0 + np.exp(0.5 * (t - 8.0 - 12.0 * x[0])))


def curves_of(shape, seed: int = 0, lengths=LENGTHS) -> tuple[np.ndarray, list[np.ndarray]]:
    rng = np.random.default_rng(seed)
    R = rng.random((len(lengths), 2))
    curves = [shape(x, np.arange(1.0, n + 1.0)) + 0.003 * rng.normal(size=n) for x, n in zip(R, lengths, strict=True)]
    return R, [np.minimum.accumulate(curve) for curve in curves]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("shape", "kernel"), [(power_law, "decay"), (flat_then_falling, "rbf")])
def test_the_kernel_is_the_one_that_predicts_the_curves(shape, kernel, seed):
    assert choose(*curves_of(shape, seed), [0, 1], T_MAX, "auto", True).kernel == kernel


def test_what_is_given_stays():
    R, curves = curves_of(flat_then_falling)
    assert choose(R, curves, [0, 1], T_MAX, "decay", "auto").kernel == "decay"
    assert choose(R, curves, [0, 1], T_MAX, "auto", False).falling is False


def test_ends_are_held_back():
    """Whatever comes after the cut, the fits are the same, and only the scores of those curves differ."""
    R, curves = curves_of(power_law)
    other = [np.append(curve[:-1], curve[-1] - 0.3) if i == 2 else curve for i, curve in enumerate(curves)]
    ours, theirs = (CutCurves.of(R, some, [0, 1], T_MAX) for some in (curves, other))
    fit, same = ours.fitted("decay"), theirs.fitted("decay")
    assert fit.hyperparameters == same.hyperparameters
    changed = ours.scores(fit, False) != theirs.scores(same, False)
    np.testing.assert_array_equal(np.flatnonzero(changed), [2])


@pytest.mark.parametrize("falling", [True, False])
def test_scores_are_densities_of_the_ends(falling):
    """Without the constraint, the normal of the fitted process; with it, nothing is more than the bound below."""
    R, curves = curves_of(power_law)
    cut = CutCurves.of(R, curves, [0, 1], T_MAX)
    plain = cut.fitted("decay")
    mean, variance = plain.predict(R, np.array(LENGTHS, dtype=float))
    ends = np.array([curve[-1] for curve in curves])
    expected = np.maximum(norm.logpdf(ends, mean, np.sqrt(variance + plain.noise)), choice.LEAST)
    found = cut.scores(plain, falling)
    assert np.allclose(found, expected, rtol=1e-6) is not falling
    assert np.all(found >= choice.LEAST)


def test_the_density_of_a_mixture_is_that_of_its_parts():
    rng = np.random.default_rng(0)
    weights = rng.dirichlet(np.ones(5), size=3).T
    mixture = Mixture(weights, rng.normal(size=(5, 3)), np.array([0.5, 1.0, 2.0]))
    y, noise = rng.normal(size=3), 0.25
    parts = norm.pdf(y, mixture.means, np.sqrt(mixture.variance + noise))
    np.testing.assert_allclose(log_density(mixture, y, noise), np.log((weights * parts).sum(axis=0)))


def test_one_surprising_curve_does_not_decide():
    gain = np.array([10.0, -0.1, 0.0, 0.1, -0.1])
    assert not choice._is_better(gain, np.zeros(5))
    assert choice._is_better(np.full(5, 0.2) + 0.01 * gain, np.zeros(5))


@pytest.mark.parametrize("lengths", [(40, 40, 40), (2,) * 10, (40, 40, 40, 2, 1)])
def test_few_or_short_curves_say_nothing(lengths):
    R, curves = curves_of(flat_then_falling, lengths=lengths)
    found = choose(R, curves, [0, 1], T_MAX, "auto", "auto")
    assert found == Choice("decay", True, sum(lengths))


def test_only_the_longest_of_many_curves_are_cut():
    lengths = [6] * 100 + [40] * 10
    cut = CutCurves.of(*curves_of(power_law, lengths=lengths), [0, 1], T_MAX)
    assert len(cut.curves) == choice.MOST
    assert sorted(cut.lengths)[-10:] == [40] * 10


def test_a_choice_is_made_again_when_steps_have_grown_by_a_half():
    made = Choice("rbf", True, 100)
    assert Choice().is_old(1)
    assert not made.is_old(149)
    assert made.is_old(150)
    assert Choice.from_json(made.as_json()) == made
