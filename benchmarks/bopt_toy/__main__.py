"""The two-level surrogates of BOPT-HPO on the toy of the paper's Figure 3 and on its synthetic functions.

    python -m benchmarks.bopt_toy              writes docs/bopt-toy.md, .svg and docs/data/bopt-toy.json (one minute)
    QUICK=1 python -m benchmarks.bopt_toy      3 designs instead of 20; prints only
    python -m benchmarks.bopt_toy --page       the page again, from its data

One process, one thread.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from benchmarks.common.command import parser
from benchmarks.common.documents import kept_data, machine, machine_text, table, write, write_page
from benchmarks.common.environments import DOCS, quick, run_module
from benchmarks.common.statistics import percent
from benchmarks.common.two_level_functions import (
    currin,
    currin_cheap,
    park,
    park_cheap,
    rosenbrock,
    rosenbrock_2,
    rosenbrock_3,
)
from farthing.designs.nested import nested_latin_hypercube
from farthing.surrogates import two_fidelity

Array = NDArray[np.float64]
Predicted = tuple[Array, Array]

DESIGNS, QUICK_DESIGNS = 20, 3
TESTS = 500
REPEATS = 15
KERNELS = {"gaussian": "Gaussian (the paper's)", "matern52": "Matern-5/2 (ours)"}


# -- the toy -----------------------------------------------------------------------------------------------------------


TOY_LOW = np.array([0.0, 0.16, 0.6, 0.73, 0.86, 1.0])[:, None]
TOY_COMPLETE = np.array([0.0, 0.73, 1.0])[:, None]
TOY_BOUNDS = (-10.0, -2.0)
GRID = np.linspace(0.0, 1.0, 201)[:, None]


def toy_low(X: Array) -> Array:
    return np.asarray((6.0 * X[:, 0] - 2.0) ** 2 * np.sin(12.0 * X[:, 0] - 4.0))


def toy_complete(X: Array) -> Array:
    return np.asarray(toy_low(X) + 8.0 * X[:, 0] - 10.0)


def toy_models(kernel: Any) -> dict[str, Predicted]:
    """Predictions on the grid."""
    data = TOY_LOW, toy_low(TOY_LOW), TOY_COMPLETE, toy_complete(TOY_COMPLETE)
    truncated = two_fidelity.fit(*data, bounds=TOY_BOUNDS, kernel=kernel)
    lognormal = two_fidelity.fit(*data, bounds=TOY_BOUNDS, kernel=kernel, bias="lognormal")
    free = two_fidelity.fit(*data, kernel=kernel)
    alone = two_fidelity.fit_plain(data[2], data[3], np.arange(1), kernel, None)
    return {
        "GP-TGP": truncated.predict(GRID),
        "DGP": free.predict(GRID),
        "log-normal bias": lognormal.predict(GRID),
        "GP, complete runs only": alone.predict(GRID),
        "bias of GP-TGP": truncated.predict_bias(GRID),
        "bias of DGP": free.predict_bias(GRID),
    }


def toy_errors(models: dict[str, Predicted]) -> dict[str, tuple[float, float]]:
    """Root mean square and mean absolute error on the grid."""
    bias = 8.0 * GRID[:, 0] - 10.0
    gaps = {name: mean - (bias if "bias of" in name else toy_complete(GRID)) for name, (mean, _) in models.items()}
    return {name: (float(np.sqrt((gap**2).mean())), float(np.abs(gap).mean())) for name, gap in gaps.items()}


# -- the synthetic functions, all to be minimised in the unit cube -----------------------------------------------------


@dataclass(frozen=True)
class Problem:
    title: str
    complete: Callable[[Array], Array]
    low: Callable[[Array], Array]
    p: int
    n: int  # complete runs of the design; twice as many eighty-percent ones
    bounds: tuple[float, float]  # of the bias, a little wider than measured


PROBLEMS = [
    Problem("Currin, 5 + 10 runs", currin, currin_cheap, 2, 5, (-1.1, 0.1)),
    Problem("Park, 5 + 10 runs", park, park_cheap, 4, 5, (-1.3, 2.5)),
    Problem("Park, 15 + 30 runs", park, park_cheap, 4, 15, (-1.3, 2.5)),
    Problem("Rosenbrock-10 (f2), 30 + 60 runs", rosenbrock, rosenbrock_2, 10, 30, (-200.0, 2e4)),
    Problem("Rosenbrock-10 (f3), 30 + 60 runs", rosenbrock, rosenbrock_3, 10, 30, (0.0, 4e4)),
]


def scores(problem: Problem, seed: int, lone: int, carry: bool) -> tuple[float, float, float]:
    """Relative RMSE, median negative log density and share inside 95 % at new points; `lone` complete runs are without
    their eighty-percent run."""
    rng = np.random.default_rng(seed)
    X, T = nested_latin_hypercube(problem.n, 2 * problem.n, problem.p, rng), rng.random((TESTS, problem.p))
    seen, done, true = X[lone:], X[: problem.n], problem.complete(T)
    model = two_fidelity.fit(
        seen, problem.low(seen), done, problem.complete(done), bounds=problem.bounds, carry=carry
    )  # fmt: skip
    mean, variance = model.predict(T)
    sd, unit = np.sqrt(variance), float(true.std())
    z = (true - mean) / sd
    density = 0.5 * z * z + np.log(sd / unit)
    rmse = float(np.sqrt(((true - mean) ** 2).mean())) / unit
    return rmse, float(np.median(density)), float((np.abs(z) < 1.96).mean())


def carried(designs: int) -> dict[str, dict[str, list[float]]]:
    """Medians over designs, with what is not known of imputed values carried and plugged in."""
    found = {}
    for problem in PROBLEMS:
        for lone, how in ((0, "nested"), (round(problem.n / 3), "a third not nested")):
            found[f"{problem.title}, {how}"] = {
                "carried" if carry else "plugged in": [
                    float(np.median(part))
                    for part in zip(*(scores(problem, seed, lone, carry) for seed in range(designs)), strict=True)
                ]
                for carry in (True, False)
            }
    return found


# -- seconds -----------------------------------------------------------------------------------------------------------


def seconds() -> dict[str, float]:
    """Medians of a warm fit (one run more at each level) and of predictions: 60 + 30 runs, 6 dimensions."""
    rng = np.random.default_rng(1)
    X, P = rng.random((60, 6)), rng.random((500, 6))
    low = np.sin(2.0 * X @ rng.normal(size=6)) + 0.3 * X[:, 0]
    done, values = X[:30], low[:30] - 0.1 - 0.3 * X[:30, 1] ** 2
    found = {}
    for name, options in (
        ("GP-TGP", {"bounds": (-1.0, 0.0)}),
        ("DGP", {}),
        ("log-normal bias", {"bounds": (-1.0, 0.0), "bias": "lognormal"}),
    ):
        before: Any = two_fidelity.fit(X[:-1], low[:-1], done[:-1], values[:-1], **options)  # type: ignore[arg-type]
        warm = {**options, "warm": before.hyperparameters}
        found[f"{name}, warm fit"] = median_of(lambda warm=warm: two_fidelity.fit(X, low, done, values, **warm))
        found[f"{name}, cold fit"] = median_of(
            lambda options=options: two_fidelity.fit(X, low, done, values, **options)
        )
        found[f"{name}, predict 500"] = median_of(lambda model=before: model.predict(P))
        found[f"{name}, predict 500 with gradients"] = median_of(lambda model=before: model.predict_with_gradient(P))
    return found


def median_of(action: Callable[[], object]) -> float:
    taken = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        action()
        taken.append(time.perf_counter() - start)
    return float(np.median(taken))


# -- the page ----------------------------------------------------------------------------------------------------------


def toy_table(errors: dict[str, dict[str, tuple[float, float]]]) -> str:
    names = list(next(iter(errors.values())))
    rows = [[name, *(f"{number:.3f}" for kernel in errors for number in errors[kernel][name])] for name in names]
    return table(["error on [0, 1]", *(f"{KERNELS[k]}, {what}" for k in errors for what in ("RMS", "mean"))], rows)


def carry_table(found: dict[str, dict[str, list[float]]]) -> str:
    rows = [
        [name, *(f"{of[how][k]:.{2 if k == 2 else 3}f}" for k in range(3) for how in ("carried", "plugged in"))]
        for name, of in found.items()
    ]
    whats = ("relative RMSE", "median neg. log density", "inside 95 %")
    return table(["", *(f"{what}, {how}" for what in whats for how in ("carried", "plugged in"))], rows)


def seconds_table(found: dict[str, float]) -> str:
    return table(["60 + 30 runs, 6 dimensions", "ms"], [[name, f"{1e3 * s:.1f}"] for name, s in found.items()])


PAGE = """\
# The model of two levels of training: its accuracy

The policy [`bopt`](bopt.md) models two levels of training at once. The complete level is rho times the eighty-percent
level (training to the end of the fast period) plus a bias. GP-TGP keeps the bias within known bounds, DGP does not;
both are from BOPT-HPO (Yang, Deng and Zhu). This page measures how well they predict, and how long that takes.

## The example of the paper's Figure 3

Six eighty-percent and three complete runs are known; the bias lies in [-10, -2].

![the example of the paper's Figure 3](bopt-toy.svg)

{errors}

{both_levels} Bounds make the bias itself {bias_gain} times more accurate, but not the sum of the two: the error of
the eighty-percent level, which both models share, is much larger than that of the bias, and here it happens to have the
opposite sign.

## Unknown eighty-percent values

A configuration may have a complete run without an eighty-percent one. Its value there is then estimated. The paper
treats the estimate as known; Farthing carries its uncertainty into the complete level (`carry=True`). Medians over
{designs} nested Latin hypercube designs, at {tests} new points each. RMSE and density are in units of the function's
spread; GP-TGP has bounds a little wider than the bias. "A third not nested": a third of the complete runs have no
eighty-percent run.

{carry}

With uncertainty carried, {inside} designs have more points inside their 95 % interval, and {denser} have a better
(lower) negative log density. The intervals are still too narrow in most designs: {covered} of the points are inside.
The mean is the same for nested data. `carry=True` is the default.

## Time

{seconds}

{machine}

Reproduce with `make bench-bopt-toy`. The numbers are in [data/bopt-toy.json](data/bopt-toy.json).
"""


def document(data: dict[str, Any]) -> str:
    """The page."""
    errors, carry = data["errors"], data["carry"]
    alone = [of["GP, complete runs only"][0] / of["GP-TGP"][0] for of in errors.values()]
    gains = [of["bias of DGP"][0] / of["bias of GP-TGP"][0] for of in errors.values()]
    inside = sum(of["carried"][2] > of["plugged in"][2] for of in carry.values())
    denser = sum(of["carried"][1] < of["plugged in"][1] for of in carry.values())
    covered = [of["carried"][2] for of in carry.values()]
    return PAGE.format(
        errors=toy_table(errors),
        both_levels=f"GP-TGP has {percent(1 / max(alone))} to {percent(1 / min(alone))} of the RMS error of a model "
        "of complete runs only.",
        bias_gain=f"{min(gains):.1f} to {max(gains):.1f}",
        designs=DESIGNS,
        tests=TESTS,
        carry=carry_table(carry),
        inside=f"{inside} of {len(carry)}",
        denser=f"{denser} of {len(carry)}",
        covered=f"{percent(min(covered))} to {percent(max(covered))}",
        seconds=seconds_table(data["seconds"]),
        machine=machine_text(data["machine"], data["versions"]),
    )


def plain(models: dict[str, Predicted]) -> dict[str, list[list[float]]]:
    return {
        name: [np.round(mean, 4).tolist(), np.round(np.sqrt(variance), 4).tolist()]
        for name, (mean, variance) in models.items()
    }


def measure(designs: int) -> dict[str, Any]:
    with threadpool_limits(1):
        models = {kernel: toy_models(kernel) for kernel in KERNELS}
        errors = {kernel: toy_errors(of) for kernel, of in models.items()}
        found, taken = carried(designs), seconds()
    return {
        "machine": machine(), "versions": {"farthing": {name: version(name) for name in ("numpy", "scipy")}},
        "errors": errors, "carry": found, "seconds": taken, "x": GRID[:, 0].tolist(),
        "low": np.round(toy_low(GRID), 4).tolist(), "complete": np.round(toy_complete(GRID), 4).tolist(),
        "low_runs": [TOY_LOW[:, 0].tolist(), toy_low(TOY_LOW).tolist()],
        "complete_runs": [TOY_COMPLETE[:, 0].tolist(), toy_complete(TOY_COMPLETE).tolist()],
        "kernels": KERNELS, "curves": {kernel: plain(of) for kernel, of in models.items()},
    }  # fmt: skip


def main() -> None:
    if parser(__doc__, has_page=True).parse_args().page:
        data = kept_data("bopt-toy")
        write_page("bopt-toy", document(data), data)
    elif quick():
        data = measure(QUICK_DESIGNS)
        print("\n\n".join((toy_table(data["errors"]), carry_table(data["carry"]), seconds_table(data["seconds"]))))
    else:
        data = measure(DESIGNS)
        write("bopt-toy", document(data), data)
        run_module("blackbox", "bopt_toy.figure", DOCS / "data" / "bopt-toy.json", DOCS / "bopt-toy.svg")


if __name__ == "__main__":
    main()
