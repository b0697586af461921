"""Where the rules of farthing.policies.bopt.stopping end real training curves, and what they saw of the end by then.

    python benchmarks/levels.py              trains (a minute), writes docs/levels.md, .svg and docs/data/levels.json
    QUICK=1 python benchmarks/levels.py      5 configurations each; prints only
    python benchmarks/levels.py --figure docs/data/levels.json docs/levels.svg      where matplotlib is

A cell is a learner, a data set and a value that is minimised; its configurations are drawn at random. Rules see a curve
as they would during training. One process, one thread; seconds are processor seconds of training alone.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import spearmanr
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from documents import machine, machine_text, table, write
from environments import BENCHMARKS, DOCS, ROOT, ensure, quick
from farthing.policies.bopt.stopping import (
    BY_NAME,
    Converged,
    Elbow,
    Loss,
    Progress,
    Quotient,
    Rises,
    Rule,
    Share,
    first_end,
)

Array = NDArray[np.float64]
SEED = 0
CONFIGURATIONS, QUICK_CONFIGURATIONS = 15, 5
EIGHTY = 0.8
SHARES = tuple(np.arange(1, 101) / 100)
LONG = 300  # steps, on the smaller data set

# -- training ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Data:
    """One data set, standardised; classes are 0, 1, ..."""

    X: Array
    y: NDArray[np.int64]
    X_valid: Array
    y_valid: NDArray[np.int64]


@dataclass(frozen=True)
class Run:
    """One configuration trained to its end: validation values by their name, training loss and seconds, (k,) each."""

    values: dict[str, Array]
    train: Array
    seconds: Array


@dataclass(frozen=True)
class Cell:
    """All runs of a learner on a data set, judged by one value."""

    learner: str
    data: str
    value: str
    runs: Sequence[Run]

    @property
    def title(self) -> str:
        return f"{self.learner}, {self.data}, {self.value}"


def load(name: str) -> Data:
    X, y = {"digits": load_digits, "breast_cancer": load_breast_cancer}[name](return_X_y=True)
    X, X_valid, y, y_valid = train_test_split(X, y, test_size=0.4, random_state=0, stratify=y)
    scaler = StandardScaler().fit(X)
    return Data(scaler.transform(X), y, scaler.transform(X_valid), y_valid)


def log_uniform(rng: np.random.Generator, low: float, high: float) -> float:
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


def sgd(rng: np.random.Generator, steps: int, data: Data) -> Run:
    model = SGDClassifier(
        loss="log_loss",
        alpha=log_uniform(rng, 1e-6, 1e-1),
        learning_rate=str(rng.choice(["constant", "invscaling"])),
        eta0=log_uniform(rng, 1e-5, 1e-1),
        power_t=0.25,
        average=bool(rng.random() < 0.25),
        random_state=int(rng.integers(1 << 30)),
    )
    return pass_by_pass(model, steps, data, lambda: log_loss(data.y, model.predict_proba(data.X)))


def mlp(rng: np.random.Generator, steps: int, data: Data) -> Run:
    model = MLPClassifier(
        hidden_layer_sizes=(int(log_uniform(rng, 4, 100)),) * int(rng.integers(1, 3)),
        learning_rate_init=log_uniform(rng, 1e-4, 3e-2),
        batch_size=int(log_uniform(rng, 16, 256)),
        alpha=log_uniform(rng, 1e-6, 1e-1),
        solver=str(rng.choice(["adam", "sgd"])),
        random_state=int(rng.integers(1 << 30)),
    )
    return pass_by_pass(model, steps, data, lambda: float(model.loss_))


def boosting(rng: np.random.Generator, steps: int, data: Data) -> Run:
    model = GradientBoostingClassifier(
        n_estimators=steps,
        learning_rate=log_uniform(rng, 1e-2, 1.0),
        max_depth=int(rng.integers(1, 5)),
        subsample=float(rng.uniform(0.3, 1.0)),
        max_features=float(rng.uniform(0.05, 0.3)),
        min_samples_leaf=int(log_uniform(rng, 1, 50)),
        random_state=int(rng.integers(1 << 30)),
    )
    clock = [time.process_time()]
    model.fit(data.X, data.y, monitor=lambda *_: bool(clock.append(time.process_time())))
    P = model.staged_predict_proba(data.X_valid)
    return Run(judged(P, data), np.array(model.train_score_), np.diff(clock))


def pass_by_pass(model: Any, steps: int, data: Data, train_loss: Callable[[], float]) -> Run:
    """One pass over the data per step."""
    P, train, seconds = [], [], []
    for _ in range(steps):
        start = time.process_time()
        model.partial_fit(data.X, data.y, classes=np.unique(data.y))
        seconds.append(time.process_time() - start)
        P.append(model.predict_proba(data.X_valid))
        train.append(train_loss())
    return Run(judged(P, data), np.array(train), np.array(seconds))


def judged(probabilities: Iterable[Array], data: Data) -> dict[str, Array]:
    y = data.y_valid
    pairs = [(np.mean(P.argmax(axis=1) != y), log_loss(y, P)) for P in probabilities]
    error, loss = np.array(pairs).T
    return {"error": error, "log-loss": loss}


def log_loss(y: NDArray[np.int64], P: Array) -> float:
    return float(-np.log(np.maximum(P[np.arange(len(y)), y], 1e-15)).mean())


LEARNERS: dict[str, tuple[Callable[[np.random.Generator, int, Data], Run], int]] = {
    "sgd": (sgd, 100),
    "mlp": (mlp, 80),
    "boosting": (boosting, 100),
}
DATA = ("digits", "breast_cancer")


def train_all(configurations: int, names: Sequence[str] = DATA, long: int | None = None) -> list[Cell]:
    """Every learner on every data set, each judged by both values."""
    cells = []
    for i, (learner, (train, steps)) in enumerate(LEARNERS.items()):
        for name in names:
            data, start = load(name), time.perf_counter()
            rngs = [np.random.default_rng([SEED, i, DATA.index(name), c]) for c in range(configurations)]
            runs = [train(rng, long or steps, data) for rng in rngs]
            cells += [Cell(learner, name, value, runs) for value in runs[0].values]
            print(f"{learner} on {name}: {time.perf_counter() - start:.0f} s", flush=True)
    return cells


# -- judging -----------------------------------------------------------------------------------------------------------

Ends = Callable[[Array, Array], int | None]  # values, train_values -> the step, None where training goes to its end


@dataclass(frozen=True)
class Judged:
    """A rule on the configurations of one cell, (n,) each; the rank correlation is of the value then with the final."""

    reached: Array  # share of the final improvement
    steps: Array  # share of the steps
    seconds: Array  # share of the time
    correlation: float


def judge(cell: Cell, ends: Ends) -> Judged:
    """What had been reached where a rule ends; values are the best so far, as Farthing keeps them."""
    rows, then, final = [], [], []
    for run in cell.runs:
        best = np.minimum.accumulate(run.values[cell.value])
        k = len(best)
        end = ends(run.values[cell.value], run.train) or k
        gain = best[0] - best[-1]
        reached = (best[0] - best[end - 1]) / gain if gain > 0 else 1.0
        rows.append((reached, end / k, run.seconds[:end].sum() / run.seconds.sum()))
        then.append(best[end - 1])
        final.append(best[-1])
    return Judged(*np.array(rows).T, float(spearmanr(then, final).statistic))


def by_rule(rule: Rule, train: bool = True, shift: float = 0.0) -> Ends:
    """A rule with or without training values, perhaps on values moved by a constant."""
    return lambda values, train_values: rule.first_end(values - shift, train_values if train else None, len(values))


def knowing(share: float) -> Ends:
    """The first step that reached a share of the final improvement: nobody knows it during training."""

    def end(values: Array, train_values: Array) -> int:
        best = np.minimum.accumulate(values)
        return int(np.argmax(best[0] - best >= share * (best[0] - best[-1]))) + 1

    return end


LEVEL_ONE: dict[str, Ends] = {
    "**`elbow`** (default)": by_rule(Elbow()),
    "`elbow`, no latest": by_rule(Elbow(latest=None)),
    "`progress`": by_rule(Progress()),
    "`progress`, values only": by_rule(Progress(), train=False),
    "`progress`, values only, minus 6": by_rule(Progress(), train=False, shift=6.0),
    "`quotient`": by_rule(Quotient()),
    "`share`": by_rule(Share()),
    "`share`, a third": by_rule(Share(share=1 / 3)),
    "first step with 80 % (hindsight)": knowing(EIGHTY),
}
COMPLETE: dict[str, Ends] = {
    "**`converged`** (default)": by_rule(Converged()),
    "`converged`, values only": by_rule(Converged(), train=False),
    "`loss`": by_rule(Loss()),
    "`rises`": by_rule(Rises()),
    "`quotient`, no latest": by_rule(Quotient(latest=None)),
    "`progress`, no latest": by_rule(Progress(latest=None)),
    "last improvement (hindsight)": knowing(1.0),
}


class Comparison:
    """Rules beside fixed shares of the steps that take as much time."""

    def __init__(self, cells: Sequence[Cell]) -> None:
        self.cells = cells
        fixed = [[judge(cell, by_rule(Share(share=share))) for cell in cells] for share in SHARES]
        self.times = np.array([np.mean([each.seconds.mean() for each in row]) for row in fixed])  # (shares,)
        self.fixed = np.array([[(j.reached.mean(), j.correlation) for j in row] for row in fixed])  # (shares, cells, 2)

    def row(self, title: str, ends: Ends) -> list[str]:
        """Means over configurations and cells; differences with the standard error over cells."""
        found = [judge(cell, ends) for cell in self.cells]
        reached = np.concatenate([each.reached for each in found])
        seconds = float(np.mean([each.seconds.mean() for each in found]))
        own = np.array([(each.reached.mean(), each.correlation) for each in found])  # (cells, 2)
        more = own - self._at(seconds)
        mean, spread = more.mean(axis=0), more.std(axis=0, ddof=1) / np.sqrt(len(more))
        return [
            title, percent(own[:, 0].mean()), percent(np.median(reached)), percent(np.quantile(reached, 0.1)),
            percent(np.mean([each.steps.mean() for each in found])), percent(seconds),
            f"{own[:, 1].mean():.2f}", f"{own[:, 1].min():.2f}",
            f"{100 * mean[0]:+.1f} ± {100 * spread[0]:.1f}", f"{mean[1]:+.3f} ± {spread[1]:.3f}",
        ]  # fmt: skip

    def _at(self, seconds: float) -> Array:
        """What the fixed share that takes so much time reached, per cell (cells, 2)."""
        flat = self.fixed.reshape(len(SHARES), -1)
        at = [np.interp(seconds, self.times, column) for column in flat.T]
        return np.array(at).reshape(self.fixed.shape[1:])

    def table(self, rules: dict[str, Ends]) -> str:
        header = [
            "rule", "reached, mean", "median", "lowest tenth", "of the steps", "of the time", "rank correlation",
            "lowest cell", "reached: more than the fixed share of that time", "correlation: more than that",
        ]  # fmt: skip
        return table(header, [self.row(title, ends) for title, ends in rules.items()])


def percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def cell_table(cells: Sequence[Cell]) -> str:
    """The two defaults, cell by cell."""
    rows = []
    for cell in cells:
        row = [cell.title]
        for ends in (by_rule(Elbow()), by_rule(Share()), by_rule(Converged())):
            found = judge(cell, ends)
            row += [percent(found.reached.mean()), percent(found.seconds.mean()), f"{found.correlation:.2f}"]
        rows.append(row)
    each = ("reached", "time", "correlation")
    return table(["cell", *(f"{rule}: {what}" for rule in ("elbow", "share", "converged") for what in each)], rows)


def speed_table() -> str:
    """Milliseconds for 100 curves of 200 steps, training values and all."""
    rng = np.random.default_rng(SEED)
    t = np.arange(200)
    curves = [0.1 + np.exp(-t / rng.uniform(5, 200)) + 0.01 * rng.normal(size=200) for _ in range(100)]

    def milliseconds(rule: str, max_steps: int | None) -> str:
        taken = []
        for _ in range(5):
            start = time.perf_counter()
            for curve in curves:
                first_end(rule, curve, curve, max_steps)
            taken.append(time.perf_counter() - start)
        return f"{1e3 * min(taken):.1f}"

    rows = [[f"`{rule}`", milliseconds(rule, 200), milliseconds(rule, None)] for rule in BY_NAME]
    return table(["milliseconds for 100 curves of 200 steps", "max_steps known", "not known"], rows)


# -- the page ----------------------------------------------------------------------------------------------------------

PAGE = """\
# Levels of training

BOPT-HPO trains a configuration to one of two levels: to the end of its fast-improving period (eighty-percent training,
which the paper expects at 20 % to a third of the time) or completely. `farthing.policies.bopt.stopping` finds both ends
while a curve is being trained. Here its rules meet {runs} runs: {configurations} random configurations each of three
learners on two data sets that scikit-learn carries, judged by validation error and by validation log-loss. That makes
{cells} cells.

*Reached* is the share of the final improvement (first value minus best value of the whole run) that the best value so
far had; a tenth of all curves stayed below the *lowest tenth*. *Rank correlation* is Spearman's, of the best value at
the end of the level with the best value of the whole run, over the configurations of a cell: what makes a level useful
to a tuner. The last two columns compare with one fixed share of max_steps for all runs that takes as much time on
average; ± is one standard error over the cells. Rows of *hindsight* know the rest of the curve.

![curves and where the rules end](levels.svg)

## The end of the fast period

{level_one}

The default is `elbow`:

- It reaches what the paper says, about 80 % in 20 % to a third of the time, from the values alone. {limits}
- It does not change when values are moved or scaled. Prechelt's ratios do, and need positive values, while Farthing
  minimises minus the accuracy of those who maximise accuracy: `progress` ends elsewhere on the same curves minus 6.
- **It does not rank configurations better than one fixed share of the same time**, nor does the step that hindsight
  would choose. It has reached a little more by then. Without `latest` it ranks worse than a fixed share: slow runs
  are then trained much further than fast ones.
- Where steps report training values, `progress` ranks better than a fixed share of its time with 80 or 100 steps, most
  often by waiting for `latest`. It does not from values alone, nor with {long} steps.
- `quotient` is rarely met in the first third: overfitting comes later. It is the share `latest` under another name.

### With {long} steps, on breast_cancer

Where max_steps is set more generously, `elbow` ends at a smaller share of it, still near 80 %, while a fixed share
goes on to whatever is there. Ranks are worse than above with every rule, and best after a fixed third.

{level_one_long}

## The end of complete training

{complete}

With {long} steps on breast_cancer:

{complete_long}

The default is `converged`:

- Where training values are reported it gives up under 1 % of the improvement with 80 or 100 steps, 2 % with {long}. It
  saves the more, the longer max_steps is; with 80 or 100 steps half of the curves still improve in their last tenth.
- **Its weakness is a validation error that stands still for a while and then falls by a few examples**, worst without
  training values, which would say that learning goes on. With {long} steps it ranks no better than a fixed share, and
  perhaps worse: final errors are then a few examples apart.
- `rises` loses nothing and saves little, for it waits for overfitting; `quotient` is in between. `loss` at Prechelt's
  5 % takes the noise of a validation error for overfitting: it ended {lost} of the curves within 10 steps.

## Cell by cell

{each}

## Time

{speed}

## How it was measured

- SGD and networks: one pass over the data per step (`partial_fit`), 100 and 80 steps; boosting: one round per step, 100
  steps. 60 % of the rows train, 40 % validate: 719 of digits, 228 of breast_cancer. Seconds are processor seconds of
  training alone. Rules get max_steps, and the training loss where the row does not say *values only*.
- The options of `elbow` and `converged`, what counts as a real improvement, and the number of strips of `rises` were
  chosen on five other draws of configurations of these learners and data sets (seeds 100 to 104), before the runs of
  this page (seed {seed}) were trained; the other options are Prechelt's, or a guess made before any curve was seen.
  Data and models are small, and curves of large networks may be different.
- On an exponential curve `elbow` ends at about 4.6 time constants, beyond 80 %. Real curves have longer tails: with
  options that end an exponential curve after 2.1 (small = 0.25, window = 0.25, back = 3: 88 %), real ones reached 68 %.

{machine}

Reproduce with `.venv/bin/python benchmarks/levels.py`. The shown curves and all ends are in
[data/levels.json](data/levels.json).
"""


def share_of_curves(cells: Sequence[Cell], ends: Ends, which: Callable[[int, int], bool]) -> str:
    """On how many curves the step at which a rule ends, beside the length, is such a one."""
    found = [
        which(ends(run.values[cell.value], run.train) or len(run.train), len(run.train))
        for cell in cells
        for run in cell.runs
    ]
    return percent(np.mean(found))


def limits_text(cells: Sequence[Cell], longer: Sequence[Cell]) -> str:
    """How often the default of level one is met before its limit."""
    rule = Elbow()
    met = [share_of_curves(group, by_rule(rule), lambda end, k: end != rule.limit(k)) for group in (cells, longer)]
    return f"An elbow ends {met[0]} of\n  the curves here and {met[1]} of those with {LONG} steps, `latest` the others."


def document(cells: Sequence[Cell], longer: Sequence[Cell], facts: dict[str, Any]) -> str:
    comparison, long = Comparison(cells), Comparison(longer)
    return PAGE.format(
        runs=sum(len(cell.runs) for cell in cells) // 2,
        configurations=CONFIGURATIONS,
        cells=len(cells),
        level_one=comparison.table(LEVEL_ONE),
        limits=limits_text(cells, longer),
        lost=share_of_curves(cells, by_rule(Loss()), lambda end, k: end <= 10),
        long=LONG,
        level_one_long=long.table(LEVEL_ONE),
        complete=comparison.table(COMPLETE),
        complete_long=long.table(COMPLETE),
        each=cell_table(cells),
        speed=speed_table(),
        seed=SEED,
        machine=machine_text(facts, {"farthing": versions()}),
    )


def versions() -> dict[str, str]:
    return {name: version(name) for name in ("farthing", "numpy", "scipy", "scikit-learn")}


def data_of(cells: Sequence[Cell], longer: Sequence[Cell], facts: dict[str, Any]) -> dict[str, Any]:
    """Where every rule ended every curve, and one curve per cell for the figure."""
    return {
        "machine": facts,
        "versions": versions(),
        "seed": SEED,
        "ends": {cell.title: ends_of(cell) for cell in cells},
        f"ends with {LONG} steps": {cell.title: ends_of(cell) for cell in longer},
        "shown": [shown(cell) for cell in cells],
    }


def ends_of(cell: Cell) -> dict[str, list[int | None]]:
    """Per rule, the step at which each run ended, None for its last."""
    rules = {**LEVEL_ONE, **COMPLETE}
    curves = [(run.values[cell.value], run.train) for run in cell.runs]
    return {plain(title): [rule(*curve) for curve in curves] for title, rule in rules.items()}


def shown(cell: Cell) -> dict[str, Any]:
    """The curve of a cell whose final value is the middle one."""
    final = [run.values[cell.value].min() for run in cell.runs]
    middle = int(np.argsort(final)[len(final) // 2])
    values = cell.runs[middle].values[cell.value]
    return {"title": cell.title, "run": middle, "values": [float(f"{v:.4g}") for v in values]}


def plain(title: str) -> str:
    return title.replace("*", "").replace("`", "").removesuffix(" (default)")


# -- the figure --------------------------------------------------------------------------------------------------------

MARKS = {  # colour, marker, size
    "elbow": ("#7a1f2b", "o", 10),
    "progress": ("#1f5fa8", "s", 8),
    "share": ("#5b7f3a", "^", 6),
    "first step with 80 % (hindsight)": ("#9a9a9a", "x", 6),
    "converged": ("#d1495b", "D", 7),
    "loss": ("#c08a2b", "v", 6),
    "rises": ("#8a5a9e", "P", 6),
}


def drawn(data: dict[str, Any]) -> Any:
    """The shown curves with a mark where each rule ends; rules that let it run to the end have none."""
    from matplotlib.figure import Figure

    from figures import bare

    figure = Figure(figsize=(12.5, 8.0), layout="constrained")
    for axes, curve in zip(figure.subplots(3, 4).flat, data["shown"], strict=True):
        values = np.array(curve["values"])
        axes.plot(np.arange(1, len(values) + 1), values, color="#4a4a4a", linewidth=1.1)
        for rule, (colour, marker, size) in MARKS.items():
            end = data["ends"][curve["title"]][rule][curve["run"]]
            where = [end] if end is not None else []
            axes.plot(where, values[np.array(where, dtype=int) - 1], marker, color=colour, markersize=size,
                      markerfacecolor="none", markeredgewidth=1.6, linestyle="none", label=rule)  # fmt: skip
        axes.axvline(len(values) / 3, color="#c4c4c4", linewidth=0.8, linestyle="dashed")
        axes.set_title(curve["title"], fontsize=9)
        axes.set_ylim(bottom=0)
        bare(axes)
    figure.supxlabel("steps (dashed: a third of max_steps)", fontsize=9)
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=len(MARKS), frameon=False)
    return figure


def main() -> None:
    short = quick()
    with threadpool_limits(1):
        cells = train_all(QUICK_CONFIGURATIONS if short else CONFIGURATIONS)
        longer = [] if short else train_all(CONFIGURATIONS, ["breast_cancer"], LONG)
    if short:
        comparison = Comparison(cells)
        print("\n" + "\n\n".join((comparison.table(LEVEL_ONE), comparison.table(COMPLETE), speed_table())))
        return
    facts = machine()
    write("levels", document(cells, longer, facts), data_of(cells, longer, facts))
    files = (DOCS / "data" / "levels.json", DOCS / "levels.svg")
    command = [str(ensure("blackbox")), str(BENCHMARKS / "levels.py"), "--figure", *map(str, files)]
    subprocess.run(command, check=True, env={**os.environ, "PYTHONPATH": str(ROOT / "src")})


if __name__ == "__main__":
    if sys.argv[1:2] == ["--figure"]:
        from figures import draw

        draw(Path(sys.argv[2]), Path(sys.argv[3]), drawn, dpi=110)
    else:
        main()
