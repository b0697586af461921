"""The page of the benchmark of searches in scikit-learn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.common.documents import listed, machine_text, table
from benchmarks.common.statistics import percent
from benchmarks.sklearn_search.findings import RESAMPLES, SHARES, Findings
from benchmarks.sklearn_search.runs import FARTHING, FIRST_SEED, METHODS, RANDOM, Array

GRID = np.linspace(0.02, 1.0, 50)  # of the figure

ABOUT = {
    "pipeline": "`StandardScaler`, `PCA`, `SVC` on the digits; accuracy; 5 parameters",
    "boosting": "`HistGradientBoostingClassifier(max_iter=90)` on `make_classification`; negative log loss; "
    "5 parameters",
    "network": "`MLPClassifier(max_iter=54)` on the digits; negative log loss; 4 parameters",
    "regressor": "`SVR` on `make_friedman1`; R²; 3 parameters",
}


def _share(share: float) -> str:
    return percent(share) if np.isfinite(share) else "never"


def _with_interval(found: Findings, cells: Array, digits: int) -> str:
    known = cells[np.isfinite(cells)]
    if not len(known):
        return "none"
    if len(known) < len(cells):
        return f"{known.mean():.{digits}f} ({len(cells) - len(known)} of {len(cells)} without)"
    low, high = found.interval(cells)
    return f"{cells.mean():.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"


def task_table(found: Findings, task: str) -> str:
    header = [
        task, "score at the end", "held-out score", *(f"rank at {share:.0%}" for share in SHARES),
        "time to the score of random search", "scores",
    ]  # fmt: skip
    rows = []
    for method in found.methods(task):
        results = found.results[task, method]
        ranks = [""] * len(SHARES)
        if method.name in found.ranked and method == found.stronger(task, method.name):
            cells = found.ranks[method.name][:, found.tasks.index(task)]
            ranks = [f"{cell:.1f}" for cell in cells.mean(axis=0)]
        reached = "" if method.name == RANDOM else _share(float(np.median(found.shares_of(method, [task]))))
        rows.append([
            method.title,
            _with_interval(found, found.lasts(task, method), 4),
            _with_interval(found, np.array([result.held_out for result in results]), 4),
            *ranks,
            reached,
            f"{np.mean([result.candidates for result in results]):.0f}",
        ])  # fmt: skip
    return table(header, rows)


def overall_table(found: Findings) -> str:
    header = ["mean rank", *(f"at {share:.0%}" for share in SHARES)]
    titles = {method.name: method.title for method in reversed(METHODS)}
    rows = []
    for name in sorted(found.ranked, key=lambda name: float(found.ranks[name][..., -1].mean())):
        columns = [found.ranks[name][..., i] for i in range(len(SHARES))]
        spans = [found.interval(column) for column in columns]
        cells = zip(columns, spans, strict=True)
        rows.append(
            [titles[name], *(f"{column.mean():.2f} ({low:.2f} to {high:.2f})" for column, (low, high) in cells)]
        )
    return table(header, rows)


PLACES = ("first", "second", "third", "last")


def rank_line(ends: Mapping[str, float], by_task: Mapping[str, float]) -> str:
    """The mean rank at the end, and its place among all of them."""
    titles = {method.name: method.title for method in reversed(METHODS)}
    order = sorted(ends, key=lambda name: ends[name])
    rivals = listed([f"{titles[name]} {ends[name]:.2f}" for name in order if name != FARTHING])
    tasks = listed([f"{rank:.1f} on {task}" for task, rank in by_task.items()])
    return (
        f"- By mean rank at the end, over tasks and seeds, FarthingSearchCV is {PLACES[order.index(FARTHING)]} with "
        f"{ends[FARTHING]:.2f}; {rivals}. Its rank is {tasks}."
    )


def reached_line(median: float, low: float, high: float, never: float) -> str:
    """When FarthingSearchCV had what random search ended with."""
    after = f"It never has it in {percent(never)} of the searches."
    if not np.isfinite(median):
        return f"- The score that RandomizedSearchCV ends with: {after}"
    return (
        f"- It has the score that RandomizedSearchCV ends with after {_share(median)} of the seconds (median over "
        f"tasks and seeds, 95 % interval {_share(low)} to {_share(high)}). {after}"
    )


def comparison_lines(found: Findings) -> list[str]:
    if not {FARTHING, RANDOM} <= set(found.ranked):
        return ["No comparison: it needs FarthingSearchCV and RandomizedSearchCV on every task."]
    ends = {name: float(ranks[..., -1].mean()) for name, ranks in found.ranks.items()}
    by_task = dict(zip(found.tasks, found.ranks[FARTHING][..., -1].mean(axis=0), strict=True))
    interval = found.interval(found.reached, np.median)
    never = float(np.isinf(found.reached).mean())
    return [rank_line(ends, by_task), reached_line(float(np.median(found.reached)), *interval, never)]


PAGE = """\
# Searches in scikit-learn with equal time

`FarthingSearchCV(estimator, space, budget=Budget(seconds={budget:g}))`, compared with `RandomizedSearchCV`,
`HalvingRandomSearchCV` and `OptunaSearchCV`, all stopped after {budget:g} seconds, on four estimators:

{about}

{seeds} paired seeds. A seed sets the data (where they are generated), their split into rows to search with and rows
held out, the {folds} folds and the search; all methods have the same. What counts is the best mean score over the folds
that a search knew at each moment.

{comparison}

![how far behind the best of all, against seconds](sklearn-bench.svg)

{overall}

In parentheses are 95 % intervals from {resamples} bootstrap samples of the seeds. Ranks are among FarthingSearchCV and
the three peers, each with the better of its two spaces where it has two; ties share a rank.

{sections}

## How it was measured

- A search runs in a process of its own with all libraries loaded, `n_jobs=1`, one thread. The clock starts at `fit`, so
  the start of Farthing's worker process is within its budget. The scorer itself writes every score to a file with the
  time, in the same way for all. A candidate is known when all its folds have a score on all of their test rows. What
  comes after the budget does not count, and a search that has not ended a moment later is killed.
- `FarthingSearchCV` is at its defaults. So it begins with the estimator's own parameters, and with the middle of a
  range that has no counterpart of one. The peers do not.
- Farthing trains the two estimators step by step that can be trained so: a score is then that of a step, which is a
  configuration with that number of iterations. The best of many steps may look better than it is; held-out scores tell.
  They are of the best configuration (with the number of iterations of its best step), fitted again to all rows searched
  with, on rows that no search had.
- `RandomizedSearchCV` with more candidates than it can fit. `OptunaSearchCV` at its defaults (TPE, no pruning),
  `n_trials=None, timeout={budget:g}`, the same space in its distributions.
- On the two iterative estimators these two come twice: with all iterations, as Farthing's complete training, and with
  the number of iterations as a further parameter from 5 on.
- `HalvingRandomSearchCV(factor=3, min_resources="exhaust")` over iterations on the two iterative estimators, over rows
  on the others. The number of candidates it begins with is set per task so that it ends about twice within the budget;
  then it begins again with other candidates. Its scores on fewer rows do not count; those after fewer iterations do.
- No default was chosen on these seeds. Defaults were changed after pilot runs of 20 seconds on other seeds, where
  Farthing ended behind `OptunaSearchCV`, and the budget was doubled then.
- Spaces were settled after short pilot runs: of `SVR` two kernels that take minutes or diverge and C above 1e3 were
  left out (scikit-learn's own example ends there too), after one candidate of Farthing had taken a whole budget.
- The last column counts the mean scores over all folds that a search came to know, one per step where it trains in
  steps.
{others}{missing}
{machine}

Reproduce with `make bench-sklearn`. The numbers are in [data/sklearn-bench.json](data/sklearn-bench.json).
"""


OTHERS = """\
- Other options of Farthing are not ranked. `skip_folds=True` leaves candidates that cannot win after some folds, and
  does not train step by step; `iterative=False` does not either.
"""


def document(found: Findings, missing: Sequence[str], facts: dict[str, Any]) -> str:
    versions = next(iter(found.results.values()))[0].versions
    return PAGE.format(
        budget=found.budget,
        about="\n".join(f"- {task}: {ABOUT[task]}" for task in found.tasks),
        seeds=found.seeds,
        folds=5,
        comparison="\n".join(comparison_lines(found)),
        overall=overall_table(found),
        resamples=RESAMPLES,
        sections="\n\n".join(f"## {task.capitalize()}\n\n{task_table(found, task)}" for task in found.tasks),
        others=OTHERS if any(method.kind == "ablation" for _, method in found.results) else "",
        missing=f"\nNot complete, and left out: {', '.join(missing)}.\n" if missing else "",
        machine=machine_text(facts, {"all": versions}),
    )


def behind(found: Findings, task: str) -> dict[str, list[float | None]]:
    """Median over seeds of how far each method is behind the best score that any of them ended with."""
    methods = found.methods(task)
    best = np.max([found.lasts(task, method) for method in methods], axis=0)  # (seeds,)
    curves = {}
    for method in methods:
        scores = np.array([result.at(GRID * found.budget) for result in found.results[task, method]])
        gaps = np.median(best[:, np.newaxis] - scores, axis=0)
        curves[method.key] = [round(float(gap), 6) if np.isfinite(gap) else None for gap in gaps]
    return curves


def data(found: Findings, facts: dict[str, Any]) -> dict[str, Any]:
    """What the figure draws, and every run."""
    return {
        "machine": facts,
        "budget": found.budget,
        "grid": [round(float(share) * found.budget, 3) for share in GRID],
        "methods": {method.key: {"title": method.title, "kind": method.kind} for method in METHODS},
        "ranks": {name: ranks.mean(axis=(0, 1)).round(4).tolist() for name, ranks in found.ranks.items()},
        "reached": [[round(one, 4) if np.isfinite(one) else None for one in row] for row in found.reached.tolist()],
        "curves": {task: behind(found, task) for task in found.tasks},
        "runs": [
            {
                "task": task, "method": method.key, "seed": seed, "seconds": result.seconds.tolist(),
                "scores": result.scores.round(6).tolist(), "configs": result.configs,
                "held_out": round(result.held_out, 6) if np.isfinite(result.held_out) else None,
            }
            for (task, method), results in found.results.items()
            for seed, result in enumerate(results, FIRST_SEED)
        ],
    }  # fmt: skip
