"""The page of the benchmark of extrapolation."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.common.documents import table
from benchmarks.extrapolation.properties import Draws, Rises
from benchmarks.extrapolation.scores import METHODS, Scores

Array = NDArray[np.float64]


def setting_title(runs: int, complete: int) -> str:
    return f"{runs} runs, {complete} complete"


def score_table(scores: dict[tuple[int, int], Scores]) -> str:
    header = ["setting", *METHODS, "monotone / plain GP", "monotone / unconstrained"]
    rows = []
    for setting, one in scores.items():
        ratios = [one.ratio("decay, monotone", other) for other in ("plain GP", "decay, unconstrained")]
        shown = [f"{value:.2f} ± {error:.2f}" for value, error in ratios]
        rows.append([setting_title(*setting), *(f"{one.error(method):.3f}" for method in METHODS), *shown])
    return table(header, rows)


def coverage_table(scores: dict[tuple[int, int], Scores]) -> str:
    methods = METHODS[1:]
    rows = [
        [setting_title(*setting), *(f"{one.covered(method):.2f}" for method in methods)]
        for setting, one in scores.items()
    ]
    return table(["setting", *methods], rows)


def summary_table(groups: dict[str, dict[tuple[int, int], Scores]]) -> str:
    """The default model in each setting of each group."""
    rows = []
    for group, scores in groups.items():
        for setting, one in scores.items():
            ratios = [one.ratio("decay, monotone", other)[0] for other in ("plain GP", "decay, unconstrained")]
            shown = [f"{ratio:.2f}" for ratio in (*ratios, one.covered("decay, monotone"))]
            rows.append([f"{group}: {setting_title(*setting)}", *shown])
    return table(
        ["", "error / plain GP's", "error / same kernel's, unconstrained", "coverage of the 90 % interval"], rows
    )


def rises_table(rises: dict[str, Rises]) -> str:
    def under(values: Array) -> str:
        return f"{100 * np.mean(values < 0.01):.1f} %"

    rows = [
        [
            title, under(one.mean),
            f"{100 * np.quantile(one.mean, 0.99):.2f} %", f"{100 * one.mean.max():.2f} %",
            under(one.drawn), under(one.unconstrained), f"{one.worst_slope:.0e}", f"{100 * one.exact:.1f} %",
        ]
        for title, one in rises.items()
    ]  # fmt: skip
    header = [
        "kernel and states", "states with a rise under 1 %", "99th percentile", "largest", "the same, joint draws",
        "the same, unconstrained", "largest drawn slope", "states with exact draws",
    ]  # fmt: skip
    return table(header, rows)


def timing_table(found: dict[str, dict[str, float]]) -> str:
    rows = [[name, *(f"{found[kernel][name]:.1f}" for kernel in found)] for name in found["decay"]]
    return table(["milliseconds", *(f"`{kernel}`" for kernel in found)], rows)


def draws_text(found: Draws) -> str:
    return (
        f"{len(found.exact)} boxes of 2 to 40 correlated slopes with probability under 1e-6 (the least 1e"
        f"{found.log_probability.min() / np.log(10.0):.0f}): {100 * found.inside.mean():.1f} % gave 300 draws inside, "
        f"{100 * found.exact.mean():.1f} % exact ones. Median acceptance {np.median(found.acceptance):.2f}, time "
        f"{np.median(found.milliseconds):.0f} ms, 95th percentile {np.quantile(found.milliseconds, 0.95):.0f} ms."
    )


PAGE = """\
# Extrapolating training curves

The policy [`bapi`](bapi.md) rests on a Gaussian process over configurations and training time whose curves only fall
(`farthing.surrogates.curves.monotone`, after Agrell 2019 and appendix A of BAPI). This page shows how well it predicts
the end of real curves from their first 20 %, whether its curves fall, and how long it takes.

## What was measured

Some runs are complete, the others were cut at 20 % of their steps; the final values of the cut ones are predicted. A
curve is its running best, and the models get three points of it: after a quarter, a half and all of the steps it was
trained. The policy chooses its points by variance, unless it is told
`points="halves"`, which are those of this page.

- *last value*: what the run had when it was cut.
- *plain GP*: the exact process of Farthing's other policies (Matern-5/2), with time as one more input.
- *unconstrained*: the kernels of this page without the knowledge that curves fall, which is BAPI's ablation.
- *monotone*: with it; *of logarithms*: fitted to the logarithms of the errors, which fall where the errors do. `decay`
  is the kernel of exponential decay and the default, `rbf` the other one.

Errors are mean absolute errors of the final value, divided by the standard deviation of all final values of the task.
Coverage is the share of final values in the 90 % interval, observation noise included. ± is one standard error over
tasks.

## Results

The default (`decay`, monotone). Below 1 it has less error than the model it is compared with:

{summary}

{findings}

## LCBench: error

{lcbench_errors}

## LCBench: coverage of the 90 % interval

{lcbench_coverage}

## Live networks: error

{live_errors}

## Live networks: coverage of the 90 % interval

{live_coverage}

## Do the curves fall?

{states} random states (3 to 15 runs of 1 to 5 parameters, noise of 0, 0.01 or 0.1), and in each the curves of a run and
of a new configuration, along all of their steps. A rise is the largest climb of a curve above what it had reached, as a
share of the data's range. Slopes drawn at virtual places are at most 0 by construction; the table shows what rounding
leaves. States of `decay` are power laws, exponentials, lines and flat curves; those of `rbf` are these and sigmoids.

{rises}

The first row is the kernel on the curves it is made for. Its two virtual places do not keep sigmoids from rising, as
the second row shows. A curve that stays flat and then falls needs `rbf`.

## The draws

{draws}

## Time

200 runs of three points each (600 observations) in seven parameters; processor time of one thread.

{timings}

Inference is exact up to the draws: nothing is thinned or approximated at this size. What is approximate: 256 draws
stand for the constrained posterior; at most 24 doubtful slopes of runs are carried (others are left to the curves asked
for); the slopes of a curve that is asked for are drawn after the carried ones, by weight, unless the weights leave
fewer than 16 effective draws, when all are drawn together. The cost grows as the cube of the observations, so keep
curves to three points.

## How it was measured

- LCBench: the surrogate of YAHPO Gym, {drawn} random configurations of each of {tasks} tasks ({task_list}), 52 steps,
  1 - validation accuracy. Its folder holds `model.onnx`, `config_space.json` and `encoding.json` of the repository
  slds-lmu/yahpo_data (lcbench), and a `schema.json` with the names of the inputs (`cont_names`) and outputs (`y_names`)
  of the network in their order. The surrogate is smoother than real training.
- Live: scikit-learn's MLPClassifier, {live} random configurations on each of {data_sets}, 50 passes over the data,
  validation error on 40 % of the rows.
- {seeds} draws of runs per task and setting. Priors, virtual places, the floor of the noise and the three points of a
  curve were chosen on twelve other tasks of LCBench (34539, 126025, 167149, 167168, 167185, 167201, 168329, 168330,
  168331, 168335, 168868, 168908), before any live curve was seen. The column of logarithms was added after a short run
  had shown the larger errors on live networks.

{machine}

Reproduce with `make bench-extrapolation LCBENCH=FOLDER`. All numbers are in
[data/extrapolation.json](data/extrapolation.json).
"""

FINDINGS = """\
- **LCBench, compared with the plain GP**: {lcbench_plain} of its error.
- **LCBench, compared with the same kernel without the constraint**: {none:.2f} of its error where no run is complete.
  With complete runs it is {rest}: presumably they already tell which way curves go.
- **Live networks**: {live_plain} of the plain GP's error, and {live_own} of the unconstrained kernel's: here the
  constraint does harm. Median errors of these networks are 0.12 to 0.44 after one pass and 0.02 to 0.04 after fifty;
  slow ones fall after the cut.
- Curves of logarithms are predicted better, with {live_log} of the error on live networks and {lcbench_log} on LCBench,
  but their intervals are too narrow. Both models in the comparison could be given logarithms too; that was not
  measured.
- **`rbf` extrapolates worse with the constraint than without**, presumably because a slope that may be anything below 0
  is expected well below it. On the tasks for tuning `decay` did worse too with five or more places, 1.06 to 1.20 of the
  unconstrained error. On synthetic sigmoids, tried while it was built, `rbf` was also worse with the constraint (1.3 to
  1.7 of the error without), and both far better than `decay`: `rbf` is for curves that stay flat and then fall, not for
  decaying ones."""


def span(values: Sequence[float]) -> str:
    return f"{min(values):.2f} to {max(values):.2f}"


def findings(lcbench: dict[tuple[int, int], Scores], live: dict[tuple[int, int], Scores]) -> str:
    ours, own, logs = "decay, monotone", "decay, unconstrained", "decay, monotone, of logarithms"
    ratios = {setting: one.ratio(ours, own)[0] for setting, one in lcbench.items()}
    return FINDINGS.format(
        lcbench_plain=span([one.ratio(ours, "plain GP")[0] for one in lcbench.values()]),
        none=ratios[20, 0],
        rest=span([ratio for (_, complete), ratio in ratios.items() if complete]),
        live_plain=span([one.ratio(ours, "plain GP")[0] for one in live.values()]),
        live_own=span([one.ratio(ours, own)[0] for one in live.values()]),
        live_log=span([one.ratio(logs, ours)[0] for one in live.values()]),
        lcbench_log=span([one.ratio(logs, ours)[0] for one in lcbench.values()]),
    )


def versions() -> dict[str, str]:
    return {name: version(name) for name in ("farthing", "numpy", "scipy", "scikit-learn")}


def data_of(groups: dict[str, dict[tuple[int, int], Scores]], rises: dict[str, Rises], draws: Draws) -> dict[str, Any]:
    def rounded(values: Array) -> list[Any]:
        return np.round(values, 5).tolist()

    return {
        "methods": METHODS,
        "scores": {
            group: {
                setting_title(*setting): {"errors": rounded(one.errors), "coverage": rounded(one.coverage)}
                for setting, one in scores.items()
            }
            for group, scores in groups.items()
        },
        "rises": {title: rounded(one.mean) for title, one in rises.items()},
        "draws": {"acceptance": rounded(draws.acceptance), "log_probability": rounded(draws.log_probability)},
    }
