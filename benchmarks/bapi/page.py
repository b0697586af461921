"""The page of the benchmark on iterative learners."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.bapi.findings import GRID, OUR_BEST, RESAMPLES, SHARES, Findings, overall_ranks, plans_of
from benchmarks.bapi.runs import (
    SAMPLE,
    TASKS,
    WIDE,
    Method,
)  # fmt: skip
from benchmarks.common.documents import machine_text, table, verdict

Array = NDArray[np.float64]
BETTER, BETTER_AT = 0.75, 2


def _with_interval(part: Findings, cells: Array, digits: int) -> str:
    found = part.interval(cells)
    return f"{found.value:.{digits}f} ({found.to(f'.{digits}f')})"


def _budget(multiple: float) -> str:
    return f"{multiple:g} trainings"


def regret_table(part: Findings) -> str:
    header = ["mean regret at", *(f"{share:.0%}" for share in SHARES), *(f"rank at {share:.0%}" for share in SHARES)]
    header += ["trainings begun", "own seconds"]
    rows = []
    for method in part.methods:
        regrets, ranks, results = part.regrets[method], part.ranks.get(method), part.results[method]
        cells = [_with_interval(part, column, 3) for column in regrets.T]
        cells += ["" for _ in SHARES] if ranks is None else [_with_interval(part, column, 1) for column in ranks.T]
        begun, seconds = (np.mean([getattr(one, name) for one in results]) for name in ("trainings", "seconds"))
        rows.append([method.title, *cells, f"{begun:.0f}", f"{seconds:.1f}"])
    return table(header, rows)


def overall_table(found: Mapping[float, Findings]) -> str:
    header = ["mean rank, all budgets", *(f"at {share:.0%}" for share in SHARES), "of the three"]
    ranks = overall_ranks(found)
    rows = [[m.title, *(f"{cell:.2f}" for cell in ranks[m])] for m in sorted(ranks, key=lambda m: ranks[m][-2])]
    return table(header, rows)


def bar_lines(found: Mapping[float, Findings]) -> list[str]:
    """The bar, point by point."""
    ranks = overall_ranks(found)
    bapi = next(method for method in ranks if method.name == OUR_BEST)
    at_end, of_all = (min(ranks, key=lambda method: float(ranks[method][i])) for i in (-2, -1))
    lines = [
        f"- lowest mean rank at the ends of all budgets: {at_end.title} ({ranks[at_end][-2]:.2f}; `bapi` "
        f"{ranks[bapi][-2]:.2f}), {verdict(at_end == bapi)}; at all three shares of them: {of_all.title} "
        f"({ranks[of_all][-1]:.2f}; `bapi` {ranks[bapi][-1]:.2f}), {verdict(of_all == bapi)}"
    ]
    ratios = []
    for part in found.values():
        peer = part.best(part.of("peer"))
        found_ratio = part.ratio(bapi, peer)
        ratio, low, high = found_ratio.value, found_ratio.low, found_ratio.high
        ratios.append(ratio)
        lines.append(
            f"- budget of {_budget(part.multiple)}: {part.regrets[bapi][:, -1].mean():.3f} beside "
            f"{part.regrets[peer][:, -1].mean():.3f} of the best peer ({peer.title}), {ratio:.2f} times it "
            f"({low:.2f} to {high:.2f}), {verdict(ratio <= 1.0)}"
        )
    count = sum(ratio <= BETTER for ratio in ratios)
    lines.append(f"- at most {BETTER:g} times it at {count} of {len(ratios)} budgets, {verdict(count >= BETTER_AT)}")
    return lines


def own_lines(found: Mapping[float, Findings]) -> list[str]:
    """Beside our own other policies and the ablations, which do not count as peers."""
    lines = []
    for part in found.values():
        bapi = part.bapi
        assert bapi is not None
        others = [method for method in part.of("own", "ablation") if method != bapi]
        shown = ", ".join(f"{(r := part.ratio(bapi, m)).value:.2f} ({r.to('.2f')}) of {m.title}" for m in others)
        lines.append(f"- budget of {_budget(part.multiple)}: regret at the end {shown}")
    return lines


def plan_text(plans: dict[str, Any] | None) -> str:
    if plans is None:
        return "No cost was predicted."
    return (
        f"Of {plans['proposals']} proposals of `bapi`, {plans['predicted']} had a predicted cost and were not cut by "
        f"the end of the budget (as {plans['cut']} were). They spent {plans['median']:.2f} times it in the median, "
        f"90 % of them {plans['low']:.2f} to {plans['high']:.2f} times; {plans['above']:.0%} more than predicted, "
        f"{plans['above_twice']:.0%} more than twice, at most {plans['highest']:.1f} times; all together "
        f"{plans['total']:.2f} times."
    )


def brief(found: Mapping[float, Findings]) -> str:
    """For the screen: what each method reached, over all pairs and task by task."""
    parts = []
    for part in found.values():
        ends = {m: part.regrets[m][:, -1].reshape(-1, len(part.tasks)) for m in part.methods}
        header = [f"regret at the end, x{part.multiple:g}", *map(str, part.tasks)]
        rows = [[m.title, *(f"{cell:.3f}" for cell in ends[m].mean(axis=0))] for m in part.methods]
        parts += [regret_table(part), table(header, rows)]
    if (plans := plans_of(found)) is not None:
        parts.append(plan_text(plans))
    return "\n\n".join(parts)


def verdict_text(found: Mapping[float, Findings]) -> str:
    if not all(part.bapi is not None and part.of("peer") for part in found.values()):
        return "No verdict: it needs `bapi` and a peer."
    return "\n".join(bar_lines(found))


PAGE = """\
# Iterative learners under a budget

Networks that train for up to 52 epochs, on {tasks} tasks of LCBench (the surrogate of YAHPO Gym, 7 hyperparameters):
which method finds the lowest validation error for a budget of training cost? The cost is what the surrogate says an
epoch takes, in seconds. Budgets are 4, 8 and 16 times what a complete training costs on average, over random
configurations; all tasks have the budget of 8, {wide} have all three. {seeds} paired seeds: all methods have the same
one, another on every task.

![mean normalised regret against the share of the budget](bapi-bench.svg)

Regret is normalised per task: 0 is the lowest error known, of {sample} random configurations and of all runs on this
page, at any epoch; 1 is the median of what those configurations have after their last epoch. What counts is the best
error at any epoch seen so far; who has nothing below the median yet, or nothing at all, has 1. In parentheses are 95 %
intervals from {resamples} bootstrap samples of the pairs of task and seed. Ranks are among all methods but the
ablations.

## The bar

`bapi` has the best mean rank; its mean regret at the end is not above the best peer's at any budget, and at most
{better} times it at two of them. Peers are the methods that are not ours.

{bar}

{overall}

Beside our own:

{own}

{sections}

## Predicted and spent

{plans}

## How it was measured

- Every method is charged the epochs it trains and nothing else. Trainings may be paused and taken up again: then only
  the new epochs cost. The epoch that would end past the budget is cut and does not count.
- The surrogate gives cumulative seconds that fall here and there; an epoch costs what their running maximum rises by,
  and at least 1e-4 of the whole training.
- `bapi`, with two of its options, and `bopt` pause trainings; `ei` and `eipu` train completely. All of them through
  `Study.ask` and `Study.report` with `max_steps=52`, at their defaults. They know the budget.
- Random search: Optuna's, complete trainings. TPE with `MedianPruner` and with `HyperbandPruner(max_resource=52)`:
  Optuna's defaults, every epoch reported; pruned trainings are lost, as Optuna cannot take them up again.
- Hyperband and BOHB: HpBandSter 0.7.4 in an environment of its own, its brackets and models without the network of
  workers; eta = 3, rungs at 2, 6, 17 and 52 epochs. SMAC3: `MultiFidelityFacade` with the same rungs, and 10 random
  configurations as its first design, for the 70 that are its default are more than most of the budgets can begin.
  Whoever is promoted goes on and is charged the new epochs.
- A method that takes one value per run is told the best so far. Methods that do not know the budget are run once with
  the widest budget of the task, and cut for the others; their seconds are those of the whole run.
- Nothing on this page was used to choose defaults: other tasks of LCBench were.
- The optimisers' own seconds are not charged. They were taken beside other work on the machine.

{machine}

Reproduce with `make bench-bapi LCBENCH=FOLDER`; [extrapolation](extrapolation.md) says what the folder holds. The
regrets of all runs are in [data/bapi-bench.json](data/bapi-bench.json).{missing}
"""


def sections(found: Mapping[float, Findings]) -> str:
    return "\n\n".join(
        f"## Budget of {_budget(part.multiple)}\n\n{len(part.tasks)} tasks.\n\n{regret_table(part)}"
        for part in found.values()
    )


def document(found: Mapping[float, Findings], missing: Sequence[Method], seeds: int, facts: dict[str, Any]) -> str:
    absent = ", ".join(method.title for method in missing)
    has_verdict = all(part.bapi is not None and part.of("peer") for part in found.values())
    return PAGE.format(
        tasks=len(TASKS),
        wide=len(WIDE),
        seeds=seeds,
        sample=f"{SAMPLE:,}",
        resamples=RESAMPLES,
        better=BETTER,
        bar=verdict_text(found),
        overall=overall_table(found),
        own="\n".join(own_lines(found)) if has_verdict else "Nothing.",
        sections=sections(found),
        plans=plan_text(plans_of(found)),
        machine=machine_text(facts, versions(found)),
        missing=f" Left out, for not all of their runs are done: {absent}." if missing else "",
    )


def versions(found: Mapping[float, Findings]) -> dict[str, dict[str, str]]:
    part = next(iter(found.values()))
    return {m.script.removeprefix("bapi_").split("_")[0]: part.results[m][0].versions for m in part.methods}


def data(found: Mapping[float, Findings], seeds: Sequence[int], facts: dict[str, Any]) -> dict[str, Any]:
    """Per budget and method: regret of each run (seed after seed, task after task) at the shares, and mean curves."""
    methods = next(iter(found.values())).methods
    return {
        "machine": facts,
        "versions": versions(found),
        "seeds": list(seeds),
        "shares": list(SHARES),
        "grid": [round(float(share), 3) for share in GRID],
        "methods": {method.name: {"title": method.title, "kind": method.kind} for method in methods},
        "plans": plans_of(found),
        "budgets": {
            f"{multiple:g}": {
                "tasks": list(part.tasks),
                "regrets": {m.name: part.regrets[m].round(4).tolist() for m in methods},
                "curves": {m.name: part.curves[m].round(4).tolist() for m in methods},
                "seconds": {m.name: [result.seconds for result in part.results[m]] for m in methods},
            }
            for multiple, part in found.items()
        },
    }
