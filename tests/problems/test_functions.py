"""The synthetic problems reach the optimum they name, and nothing lies below it."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize

from farthing.problems.functions import FUNCTIONS, Problem
from farthing.space import Choice, Integer, Real

problems = pytest.mark.parametrize("problem", FUNCTIONS.values(), ids=lambda problem: problem.name)


def _random_configs(problem: Problem, n: int) -> list[dict[str, object]]:
    rng = np.random.default_rng(20)
    return problem.space.decode_many(rng.random((n, len(problem.space))))


@problems
def test_the_minimizer_reaches_the_optimum(problem):
    assert problem.space.validate(problem.minimizer) == dict(problem.minimizer)
    assert problem.regret(problem.objective(problem.minimizer)) == pytest.approx(0.0, abs=1e-14)


@problems
def test_no_random_point_is_better_than_the_optimum(problem):
    values = [problem.objective(config) for config in _random_configs(problem, 10_000)]
    assert min(values) > problem.optimum


@problems
def test_no_neighbour_of_the_minimizer_is_better(problem):
    around = problem.space.encode(problem.minimizer)
    rng = np.random.default_rng(5)
    cloud = np.clip(around + 1e-3 * rng.standard_normal((2_000, len(around))), 0.0, 1.0)
    values = [problem.objective(config) for config in problem.space.decode_many(cloud)]
    assert min(values) >= problem.optimum - 1e-14


@problems
def test_a_problem_is_named_by_its_key(problem):
    assert FUNCTIONS[problem.name] is problem


def test_branin_has_three_global_minima():
    branin = FUNCTIONS["branin"]
    for x1, x2 in [(-math.pi, 12.275), (math.pi, 2.275), (3 * math.pi, 2.475)]:
        assert branin.objective({"x1": x1, "x2": x2}) == pytest.approx(branin.optimum, abs=1e-12)


def test_local_searches_of_hartmann_never_end_below_its_optimum():
    hartmann = FUNCTIONS["hartmann6"]

    def at(x):
        return hartmann.objective({f"x{i}": float(value) for i, value in enumerate(x, start=1)})

    starts = np.random.default_rng(1).random((10, 6))
    ends = [minimize(at, start, bounds=[(0.0, 1.0)] * 6, method="L-BFGS-B").fun for start in starts]
    assert min(ends) == pytest.approx(hartmann.optimum, abs=1e-8)
    assert min(ends) >= hartmann.optimum - 1e-14


def test_ackley_is_not_solved_by_the_centre_of_its_box():
    ackley = FUNCTIONS["ackley5"]
    assert ackley.objective(ackley.space.decode([0.5] * 5)) > 5.0


def test_mixed_covers_every_kind_of_parameter():
    kinds = [(type(p), p.log) for p in FUNCTIONS["mixed6"].space.params.values()]
    assert kinds == [
        (Real, True),
        (Real, False),
        (Real, False),
        (Integer, False),
        (Integer, True),
        (Choice, False),
    ]


def test_the_best_learning_rate_of_mixed_depends_on_its_other_parameters():
    """Moving two parameters at once differs from the sum of moving each: they interact."""
    mixed = FUNCTIONS["mixed6"]
    best = dict(mixed.minimizer)
    rate, width, both = (
        mixed.objective({**best, **moved})
        for moved in ({"learning_rate": 3e-3}, {"units": 32}, {"learning_rate": 3e-3, "units": 32})
    )
    assert both < rate + width
