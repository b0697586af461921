"""The page of the benchmark of extrapolation."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.common.documents import table
from benchmarks.common.fingerprints import module_file
from benchmarks.extrapolation.comparison import Groups
from benchmarks.extrapolation.models import DEFAULT, LAST, LOGS, METHODS, PLAIN, QUANTILES, UNCONSTRAINED
from benchmarks.extrapolation.properties import Draws, Rises
from benchmarks.extrapolation.scenes import Setting
from benchmarks.extrapolation.scores import MORE, Scores
from benchmarks.extrapolation.tasks import Task

Array = NDArray[np.float64]
BySetting = Mapping[Setting, Scores]
LCBENCH, LIVE, RANDOM = "LCBench", "live networks", "random curves"


def score_table(scores: BySetting) -> str:
    methods = [method for method in METHODS if method != QUANTILES]
    header = ["setting", *methods, "monotone / plain GP", "monotone / unconstrained"]
    rows = []
    for setting in MORE:
        one = scores[setting]
        shown = ["{:.2f} ± {:.2f}".format(*one.ratio(DEFAULT, other)) for other in (PLAIN, UNCONSTRAINED)]
        errors = [one.error(method) for method in methods]
        rows.append([setting.title, *("" if np.isnan(error) else f"{error:.3f}" for error in errors), *shown])
    return table(header, rows)


def coverage_table(scores: BySetting) -> str:
    methods = [method for method in METHODS if method != LAST]
    rows = [[setting.title, *(f"{scores[setting].covered(method):.2f}" for method in methods)] for setting in MORE]
    return table(["setting", *methods], rows)


def summary_table(groups: Groups) -> str:
    """The kernel of the policy in each setting of the groups that have all of them."""
    rows = []
    for title, scores in groups.items():
        for setting in MORE if set(MORE) <= set(scores) else ():
            one = scores[setting]
            ratios = [one.ratio(DEFAULT, other)[0] for other in (PLAIN, UNCONSTRAINED)]
            shown = [f"{ratio:.2f}" for ratio in (*ratios, one.covered(DEFAULT))]
            rows.append([f"{title}: {setting.title}", *shown])
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


def network_text(found: dict[str, float]) -> str:
    """How long the network takes."""
    return "The network, processor milliseconds: " + ", ".join(f"{what} {ms:.1f}" for what, ms in found.items()) + "."


def recorded_text(recorded: Mapping[str, Sequence[Task]]) -> str:
    """What the recorded kinds are, in the words of their own files."""
    return "\n".join(
        f"- `{kind}`: {_about(kind)} Judged on {', '.join(task.title.partition('/')[2] for task in tasks)}."
        for kind, tasks in recorded.items()
    )


def _about(kind: str) -> str:
    """The first sentence of a kind's module."""
    text = ast.get_docstring(ast.parse(module_file(f"curves.kinds.{kind}").read_text())) or ""
    return text.partition("\n\n")[0].replace("\n", " ")


def failures(recorded: Mapping[str, Sequence[Task]], every: int) -> str:
    """How many recorded trainings have no end."""
    kept = sum(len(task.X) for tasks in recorded.values() for task in tasks)
    return f"{every - kept} of {every}"


PAGE = """\
# Extrapolating training curves

Two policies for learners that train in steps predict how training curves go on. [`bapi`](bapi.md) fits a Gaussian
process over configurations and training time whose curves only fall (`farthing.surrogates.curves.monotone`, after
Agrell 2019 and appendix A of BAPI). `thaw` asks a [network](curve-network.md) that was trained in advance on synthetic
curves. This page shows how well each predicts the ends of curves, whether the curves of the process fall, and how long
it takes.

## What was measured

Some runs are complete, the others were cut. What is predicted are the final values of the cut ones, and those of {new}
more configurations that were not begun. A final value is the best one that the training has reported.

- *last value*: what the run had when it was cut.
- *plain GP*: the exact process of Farthing's other policies (Matern-5/2), with time as one more input.
- *unconstrained*: the kernels of `bapi` without the knowledge that curves fall, which is BAPI's ablation.
- *monotone*: with it; *of logarithms*: fitted to the logarithms of the values, where none is below 0. `decay` is the
  kernel of exponential decay, `rbf` the other one.
- *`bapi`*: the model of the policy with its defaults (kernel {kernel}, monotone {falling}), fitted to values that were
  [warped](methods.md#outputs).
- *network*: the one of `thaw`, weights {weights}. Its predictions are medians.

All models know the same runs up to the same steps. The Gaussian processes get three points of each curve, its running
best after a quarter, a half and all of the steps it was trained: the policy does so too, but chooses its points by
variance, unless it is told `points="halves"`. The network gets all that was reported, as the policy gives it.

- *Log density* is that of the true final value, observation noise included, as the natural logarithm. All are densities
  of the value itself: for models that see transformed values (the network, `bapi`, logarithms) the derivative of the
  transform is multiplied in. The unit is the standard deviation of all final values of the task, so that tasks can be
  averaged. Each counts at least {least:g}, so that no curve decides alone. Higher is better.
- *Error* is the mean absolute error of the final value, divided by the standard deviation of all final values of the
  task.
- *Coverage* is the share of final values in the 90 % interval, observation noise included. The network gives
  probabilities to 128 parts of the range of values, and many runs get no better. So where its interval of a cut run
  ends in the part with the value that the run has, it is taken to end at that value. This rule was made after a look at
  four recorded sets; the tables also show its *quantiles as they are*.

## The network compared with the Gaussian processes

20 runs were begun, 3 of them complete; the others were cut after a tenth, a fifth or a half of their steps. Each kind
of curves counts the same:

{shown}

{comparison}

### Log density

The best of each row is bold. The interval is over draws of runs.

{densities}

### Error

{errors}

### Coverage of the 90 % interval

{coverages}

### Where the network is not the best

The best model is found here after the fact, row by row.

{density_losses}

{error_losses}

## More and fewer complete runs

All others were cut after a fifth. The process with the kernel `decay`, monotone. Below 1 it has less error than the
model it is compared with; ± is one standard error over tasks.

{summary}

{findings}

### LCBench: error

{lcbench_errors}

### LCBench: coverage of the 90 % interval

{lcbench_coverage}

### Live networks: error

{live_errors}

### Live networks: coverage of the 90 % interval

{live_coverage}

## Do the curves fall?

{states} random states (3 to 15 runs of 1 to 5 parameters, noise of 0, 0.01 or 0.1), and in each the curves of a run and
of a new configuration, along all of their steps. A rise is the largest climb of a curve above what it had reached, as a
share of the data's range. Slopes drawn at virtual places are at most 0 by construction; the table shows what rounding
leaves. States of `decay` are power laws, exponentials, lines and flat curves; those of `rbf` are these and sigmoids.

{rises}

The first row is the kernel on the curves it is made for. Its two virtual places do not keep sigmoids from rising, as
the second row shows. A curve that stays flat and then falls needs `rbf`. The network needs no such check: it predicts
the best value so far at a later step, and gives no probability to values above the present one.

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

{network_time} It fits nothing. [Time per suggestion](asks.md) compares the policies.

## How it was measured

- LCBench: the surrogate of YAHPO Gym, {drawn} random configurations of each of {tasks} tasks ({task_list}), 52 steps,
  1 - validation accuracy. Its folder holds `model.onnx`, `config_space.json` and `encoding.json` of the repository
  slds-lmu/yahpo_data (lcbench), and a `schema.json` with the names of the inputs (`cont_names`) and outputs (`y_names`)
  of the network in their order. The surrogate is smoother than real training.
- Live networks: scikit-learn's MLPClassifier, {live} random configurations on each of {data_sets}, 50 passes over the
  data, validation error on 40 % of the rows.
- Random curves: {random} tasks of the five shapes of the section on falling curves, {random_count} configurations each.
  `decay` is made for four of these shapes, and the synthetic curves that the network was trained on have such shapes
  too.
- The other kinds were recorded once, with random configurations of real learners, and lie in the repository. Only the
  sets that judge are used, not those that defaults are chosen on. Trainings that failed are left out ({failed}).

{recorded}

- {seeds} draws of runs per task and setting. Priors, virtual places, the floor of the noise and the three points of a
  curve were chosen on twelve other tasks of LCBench (34539, 126025, 167149, 167168, 167185, 167201, 168329, 168330,
  168331, 168335, 168868, 168908), before any live curve was seen. The column of logarithms was added after a short run
  had shown the larger errors on live networks.
- Values of some learners are counts of errors, and many curves end on a value that they had long before. Then a density
  says how finely a model resolves values, too: the network in 128 parts, each a two-hundredth of the study's spread
  near the best value, a process in its noise, at least a hundredth of its signal's standard deviation.

{machine}

Reproduce with `make bench-extrapolation LCBENCH=FOLDER`. All numbers are in
[data/extrapolation.json](data/extrapolation.json).
"""

FINDINGS = """\
- **LCBench, compared with the plain GP**: {lcbench_plain} of its error.
- **LCBench, compared with the same kernel without the constraint**: {none:.2f} of its error where no run is complete,
  {rest} with complete runs.
- **Live networks**: {live_plain} of the plain GP's error, and {live_own} of the unconstrained kernel's: the constraint
  does harm in {harm} of {settings} settings. Median errors of these networks are {first} after one pass and {final}
  after fifty; slow ones fall after the cut.
- Curves of logarithms have {live_log} of the error on live networks and {lcbench_log} on LCBench; their intervals hold
  {log_cover} of the ends.
- `rbf` has {rbf} times the error with the constraint that it has without. While it was built, on tasks for tuning,
  `decay` did worse too with five or more virtual places, 1.06 to 1.20 of the unconstrained error. On synthetic sigmoids
  `rbf` was also worse with the constraint (1.3 to 1.7 of the error without), and both far better than `decay`: `rbf` is
  for curves that stay flat and then fall, not for decaying ones."""


def span(values: Sequence[float]) -> str:
    return f"{min(values):.2f} to {max(values):.2f}"


def findings(lcbench: BySetting, live: BySetting, tasks: Sequence[Task]) -> str:
    """What the four settings say; `tasks` are those of the live networks."""

    def ratios(scores: BySetting, ours: str, theirs: str, settings: Sequence[Setting] = MORE) -> list[float]:
        return [scores[setting].ratio(ours, theirs)[0] for setting in settings]

    some = [setting for setting in MORE if setting.complete]
    own = ratios(live, DEFAULT, UNCONSTRAINED)
    both = (lcbench, live)
    return FINDINGS.format(
        lcbench_plain=span(ratios(lcbench, DEFAULT, PLAIN)),
        none=lcbench[Setting(20, 0, 0.2)].ratio(DEFAULT, UNCONSTRAINED)[0],
        rest=span(ratios(lcbench, DEFAULT, UNCONSTRAINED, some)),
        live_plain=span(ratios(live, DEFAULT, PLAIN)),
        live_own=span(own),
        harm=sum(ratio > 1.0 for ratio in own),
        settings=len(own),
        first=span([float(np.median(task.running[:, 0])) for task in tasks]),
        final=span([float(np.median(task.running[:, -1])) for task in tasks]),
        live_log=span(ratios(live, LOGS, DEFAULT)),
        lcbench_log=span(ratios(lcbench, LOGS, DEFAULT)),
        log_cover=span([scores[setting].covered(LOGS) for scores in both for setting in MORE]),
        rbf=span([r for scores in both for r in ratios(scores, "rbf, monotone", "rbf, unconstrained")]),
    )


def versions() -> dict[str, str]:
    return {name: version(name) for name in ("farthing", "numpy", "scipy", "scikit-learn")}


def data_of(groups: Groups, rises: dict[str, Rises], draws: Draws) -> dict[str, Any]:
    """For the file. Scores are (tasks, seeds, methods, cut or not begun, measures); null where there is none."""

    def rounded(values: Array) -> list[Any]:
        found: list[Any] = np.where(np.isnan(values), np.array(None), np.round(values, 4)).tolist()
        return found

    return {
        "methods": METHODS,
        "measures": ["error", "coverage", "log density"],
        "scores": {
            group: {
                f"{setting.title}, {setting.share:.0%} of the others": rounded(one.cells)
                for setting, one in scores.items()
            }
            for group, scores in groups.items()
        },
        "rises": {title: rounded(one.mean) for title, one in rises.items()},
        "draws": {"acceptance": rounded(draws.acceptance), "log_probability": rounded(draws.log_probability)},
    }
