"""The page of the benchmark on synthetic functions: what it keeps as data, and the page made from the data alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.bopt_synthetic.findings import Findings
from benchmarks.bopt_synthetic.runs import COMPLETE, CONTINUED, Method, Result
from benchmarks.common.documents import machine_text, table
from benchmarks.common.statistics import percent

Array = NDArray[np.float64]

SHARES = (0.1, 0.25, 0.5, 1.0)  # of the cost after the first design
KINDS = ("bopt", "paper", "rival")
ACCOUNTS = {"continued": CONTINUED, "complete": COMPLETE}  # what a complete run costs after the cheap one of its point
# What the methods are today. They are kept with the results, since methods change and a page does not.
METHODS_TODAY = {
    "paper": (
        'The rows "as in the paper" are its form, `BOPT.paper()`, with the levels and the first design of this '
        "experiment."
    ),
    "sizes": "f3 is about a tenth of the complete level in size.",
    "ei": '`ei` with `end="ignored"`, blind to cost.',
    "eqie": (
        "the policy `eqie` with fixed costs, `EQIE.paper()`: on the DGP model with the quantile 0.9, `level` and rules "
        "as above. The points with a cheap run are among its candidates for complete ones, at 4/5. A new point may be "
        "trained completely at once; that costs 1, and shows its cheap value on the way."
    ),
}


def _number(value: float) -> str:
    if value < 1e-12:
        return "0"
    return f"{value:.0e}" if value < 1e-3 else f"{value:.3g}" if value < 1e3 else f"{value:.0f}"


def _with_error(cells: Array) -> str:
    error = cells.std(ddof=1) / np.sqrt(len(cells)) if len(cells) > 1 else 0.0
    return f"{_number(float(cells.mean()))} ± {_number(float(error))}"


# -- what is kept ------------------------------------------------------------------------------------------------------


def cells(found: Findings, method: Method) -> list[str]:
    """The row of a method: regret at some costs, the median at the end, the area under the curve."""
    regret = found.regret(method, np.array([found.cost_at(share) for share in SHARES]))
    seconds = np.mean([result.seconds for result in found.results[method]])
    means = [_with_error(column) for column in regret.T]
    return [*means, _number(float(np.median(regret[:, -1]))), _with_error(found.area(method)), f"{seconds:.1f}"]


def lowest(found: Findings) -> list[str]:
    """At which share of the cost levels which of ours is below all rivals, and who is the best of these."""
    ours, paper, rivals = found.of("bopt"), found.of("paper"), found.of("rival")
    groups = (ours, *([method] for method in ours), paper)
    means = np.array([found.regret(method, found.costs).mean(axis=0) for method in rivals])
    leads = np.bincount(means.argmin(axis=0), minlength=len(rivals)) / means.shape[1]
    leaders = [f"{rivals[i].title} {percent(leads[i])}" for i in np.argsort(-leads)[:2] if leads[i]]
    shares = [found.won(group, rivals) for group in groups] + [found.won(ours, found.elsewhere)]
    return [*map(str, shares), ", ".join(leaders)]


def data(found: Mapping[str, Findings], missing: Sequence[Method], seeds: int, facts: dict[str, Any]) -> dict[str, Any]:
    """Per function, method and seed, at which cost a run improved and to which regret; and what the tables say, which
    needs more digits and every run."""
    methods = next(iter(found.values())).methods
    is_compared = all(part.elsewhere and part.of(kind) for part in found.values() for kind in KINDS)
    return {
        "machine": facts,
        "versions": versions(found),
        "seeds": seeds,
        "missing": [method.title for method in missing],
        "texts": METHODS_TODAY,
        "methods": {method.name: {"title": method.title, "kind": method.kind} for method in methods},
        "functions": {
            name: {
                "title": part.function.title,
                "first": part.first,
                "budget": part.function.budget,
                "lowest": _lowest_by_account(part) if is_compared else {},
                "cells": {m.name: cells(part, m) for m in methods},
                "area": {m.name: [float(f"{a:.4g}") for a in part.area(m)] for m in methods},
                "seconds": {m.name: [result.seconds for result in part.results[m]] for m in methods},
                "steps": {m.name: [_steps(r, part.function.optimum) for r in part.results[m]] for m in methods},
            }
            for name, part in found.items()
        },
    }


def _lowest_by_account(found: Findings) -> dict[str, list[str]]:
    return {account: lowest(found.counted_with(continued)) for account, continued in ACCOUNTS.items()}


def _steps(result: Result, optimum: float) -> list[list[float]]:
    return [[float(f"{number:.4g}") for number in column] for column in result.steps(optimum)]


def versions(found: Mapping[str, Findings]) -> dict[str, dict[str, str]]:
    part = next(iter(found.values()))
    return {m.module.rpartition(".")[2].removesuffix("_peer"): part.results[m][0].versions for m in part.methods}


# -- the page ----------------------------------------------------------------------------------------------------------


def regret_table(kept: Mapping[str, Any], part: Mapping[str, Any]) -> str:
    """Mean regret at some costs, the median at the end, the area under the curve."""
    costs = [part["first"] + share * (part["budget"] - part["first"]) for share in SHARES]
    header = ["mean regret at cost", *(f"{cost:g}" for cost in costs), "median at the end", "EC-AUC", "own seconds"]
    return table(header, [[method["title"], *part["cells"][name]] for name, method in kept["methods"].items()])


def sections(kept: Mapping[str, Any]) -> str:
    parts = []
    for part in kept["functions"].values():
        first = f"The first design has cost {part['first']:g}, the budget is {part['budget']:g}."
        parts.append(f"## {part['title']}\n\n{first}\n\n{regret_table(kept, part)}")
    return "\n\n".join(parts)


def share_table(kept: Mapping[str, Any], account: str) -> str:
    """Who is lowest at which share of the cost levels."""
    form = next(method["title"] for method in kept["methods"].values() if method["kind"] == "paper").partition(", ")[2]
    header = ["lowest at", "TGP or DGP", "TGP-BOPT", "DGP-BOPT", f"either, {form}"]
    header += ["TGP or DGP, other libraries only", "lowest of the others"]
    return table(header, [[part["title"], *part["lowest"][account]] for part in kept["functions"].values()])


def won_text(part: Mapping[str, Any], account: str) -> str:
    """At which share of the cost levels BOPT is lowest, on one function."""
    alone, _, shared = part["lowest"][account][0].partition(" + ")
    solved = f" (and another {shared} are solved by both)" if shared else ""
    return f"{alone} on {part['title']}{solved}"


def comparison_text(kept: Mapping[str, Any]) -> str:
    """With our account of costs and with the paper's."""
    functions = kept["functions"].values()
    if not all(part["lowest"] for part in functions):
        return "No comparison: it needs BOPT, also as in the paper, and a peer."
    lines = [
        f"- {words}: {'; '.join(won_text(part, account) for part in functions)}."
        for account, words in (
            ("continued", "Costs as above"),
            ("complete", "Every complete run charged 1, as in the paper"),
        )
    ]
    return "\n\n".join(
        [
            "\n".join(lines),
            share_table(kept, "continued"),
            "The same with every complete run charged 1:",
            share_table(kept, "complete"),
        ]
    )


PAGE = """\
# Two levels of training on synthetic functions

Does `bopt` find a better complete value for the same cost? After section 5.1 of BOPT-HPO (Yang, Deng and Zhu 2023): a
complete run costs 1, a cheap one 1/5, and the simple regret of the best complete value is compared at equal cost.
Functions: Currin exponential and Park (to be maximised), Rosenbrock in ten dimensions with two cheap versions, since
the paper does not say which it used (f2 is the next level below in Mainini et al. 2022). {seeds} replications with
paired seeds (the paper has 10). Means are followed by their standard errors.

![mean simple regret against cost](bopt-synthetic.svg)

## Which method is lowest, and how often

At this share of the cost levels (every fifth of a unit after the first design) TGP-BOPT or DGP-BOPT has the lowest mean
regret of all methods:

{comparison}

Where two shares are shown, the second is of levels at which the mean regret of both BOPT and another method is below
1e-6: solved by both. {paper} They are not counted, neither for BOPT nor for the others. EQIE and `ei` run on Farthing's
own models as well; the column on other libraries leaves these two out.

{sections}

## What explains it

- With Eq. (4.1) new points go where the cheap level is low, and only they can be completed. Where its optimum is not
  that of the complete level, progress ends about there: the complete regret at the cheap optimum is 0.032 on Currin,
  11 on Rosenbrock with f2, 0.22 with f3, and 0 on Park. `aim="complete"`, Farthing's default, has no such limit.
- In ten dimensions the paper's width sqrt(0.2 d log 2t) is above 3: new points explore, even late. Farthing's default
  leaves d out. Both defaults were chosen on seeds 100 to 109 of Currin, Park and Rosenbrock with f2, which are not on
  this page; widths of 1, 1/2 and 1/5 of the paper's and this one were compared there.
- `bopt` has rho = 1 fixed, which the paper advises for levels of one scale. {sizes}
- With the paper's options TGP and DGP have the same model of the cheap level, so all their new points are the same;
  they differ only in which paused run is completed.

## How it was measured

- The first design is the nested Latin hypercube of the seed: 10 cheap and 5 complete runs, 60 and 30 in ten dimensions;
  the same for BOPT and EQIE. A complete run continues the cheap one of its point and costs the other 4/5, so the design
  costs 6 (36). Methods of one level start from as many complete points of it, 6 (36). BOHB takes none.
- The paper charges a complete run 1 even where the point had its cheap run (5 + 10/5 = 7). The second count does so
  too, with the same runs: then the design costs 7 (42).
- Farthing: an objective that yields twice; `BOPT(surrogate=..., s=2, initial=5 or 30, fast_ends=Share(share=0.5),
  ends=None, level="last")`; the bounds of TGP are learned from the biases seen. {ei}
- EQIE: {eqie}
- Random search and TPE: Optuna's defaults, first points enqueued. SMAC3: `HyperparameterOptimizationFacade`, the first
  points as its design. BOHB: HpBandSter 0.7.4 in an environment of its own, budgets 1/5 and 1, eta = 5, its own models
  and brackets without the network of workers; a promoted run is charged 4/5.
- EC-AUC is the area under simple regret against cost, from the first design to the budget, of each run. The paper says
  no more of it than "area under the error-cost curve"; its appendix S2.5 was not available to us. Nor does its text say
  where the budgets end: 30, and 100 in ten dimensions, are ours.
- The optimisers' own seconds are not charged.

{machine}

Reproduce with `make bench-bopt-synthetic`. Where every run improved is in
[data/bopt-synthetic.json](data/bopt-synthetic.json).{missing}
"""


def document(kept: Mapping[str, Any]) -> str:
    """The page, from its data."""
    absent = ", ".join(kept["missing"])
    return PAGE.format(
        seeds=kept["seeds"],
        comparison=comparison_text(kept),
        sections=sections(kept),
        machine=machine_text(kept["machine"], kept["versions"]),
        missing=f" Left out, because not all of their runs are done: {absent}." if absent else "",
        **kept["texts"],
    )
