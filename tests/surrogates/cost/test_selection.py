"""Selection of parameters by evidence, against the density it stands for."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.stats import multivariate_t

from farthing.surrogates.cost.lines import (
    NOISE_PRIOR,
    NOISE_STRENGTH,
    RIDGE,
    Evidence,
    fit,
    fit_sizes,
)
from oracles.lines import ONES, one_hot


def test_evidence_is_the_student_density_of_the_costs():
    """Up to a constant that all sets share: differences between sets are those of the marginal likelihood."""
    rng = np.random.default_rng(2)
    n = 6
    Z = rng.random((n, 3))
    b = 2.0 * Z[:, 1] + 0.3 * rng.standard_normal(n)
    evidence = Evidence.of(Z, b, ONES, np.ones(n))
    contrast = np.linalg.qr(np.column_stack([np.ones(n), np.eye(n)[:, 1:]]))[0][:, 1:].T  # the intercept drops out
    y = contrast @ b

    def marginal(S: tuple[int, ...]) -> float:
        A = contrast @ Z[:, S]
        shape = NOISE_PRIOR**2 * (np.eye(n - 1) + A @ A.T / RIDGE)
        return float(multivariate_t(np.zeros(n - 1), shape, df=NOISE_STRENGTH).logpdf(y))

    sets = [S for k in (1, 2, 3) for S in itertools.combinations(range(3), k)]
    ours = np.array([evidence(S) for S in sets])
    theirs = np.array([marginal(S) for S in sets])
    np.testing.assert_allclose(ours - ours[0], theirs - theirs[0], atol=1e-9)


def test_a_set_is_charged_for_how_many_there_are_of_its_size():
    """The prior splits evenly among sizes, and within a size among its sets."""
    rng = np.random.default_rng(6)
    Z = rng.random((12, 5))
    b = 2.0 * Z[:, 1] + 0.3 * rng.standard_normal(12)
    models = fit_sizes(Z, b)
    evidence = Evidence.of(Z, b, [np.array([j]) for j in range(5)], models[5].v)
    for size, sets in ((1, 5), (2, 10), (3, 10), (5, 1)):
        assert models[size].log_evidence == pytest.approx(evidence(models[size].selected) - np.log(sets))


@pytest.mark.parametrize("seed", range(5))
def test_selection_finds_what_matters_a_choice_among_it(seed):
    rng = np.random.default_rng(seed)
    options = rng.integers(4, size=40)
    Z = np.column_stack([rng.random((40, 3)), one_hot(options, 4), rng.random((40, 3))])
    groups = [0, 1, 2, 3, 3, 3, 3, 4, 5, 6]
    b = 4.0 * Z[:, 1] + np.array([0.0, 2.0, -2.0, 1.0])[options] - 1.5 * Z[:, 8] + 0.2 * rng.standard_normal(40)
    models = fit_sizes(Z, b, groups)
    assert set(models[3].selected) == {1, 3, 5}
    assert models[3].selected[-1] == 5  # the weakest comes last
    assert models[2].selected == models[3].selected[:2]
    assert models[7].selected[:3] == models[3].selected
    assert sorted(models[3].columns) == [1, 3, 4, 5, 6, 8]
    assert models[3].log_evidence > max(models[1].log_evidence, models[2].log_evidence, models[7].log_evidence)
    assert len(fit(Z, b, groups).selected) == 3
