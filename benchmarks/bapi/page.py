"""The page of the benchmark on iterative learners."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.bapi.findings import overall_ranks, plans_of
from benchmarks.bapi.runs import TASKS, WIDE
from benchmarks.common.documents import listed, machine_text, table
from benchmarks.common.statistics import percent
from benchmarks.curves.findings import GRID, RESAMPLES, SHARES, Findings
from benchmarks.curves.methods import Method
from benchmarks.curves.runs import SAMPLE
from benchmarks.curves.text import brief, budget_text, is_comparable, peer_line, regret_table

UNCONSTRAINED = "bapi-plain"


def overall_table(found: Mapping[float, Findings]) -> str:
    header = ["mean rank, all budgets", *(f"at {share:.0%}" for share in SHARES), "of the three"]
    ranks = overall_ranks(found)
    rows = [[m.title, *(f"{cell:.2f}" for cell in ranks[m])] for m in sorted(ranks, key=lambda m: ranks[m][-2])]
    return table(header, rows)


def rank_line(found: Mapping[float, Findings]) -> str:
    """Which method has the lowest mean rank."""
    ranks = overall_ranks(found)
    bapi = next(method for method in ranks if method.kind == "subject")
    best, at_end = min(ranks, key=lambda m: float(ranks[m][-2])), float(ranks[bapi][-2])
    if best != bapi:
        first = f"{best.title} has the lowest mean rank at the ends of all budgets ({ranks[best][-2]:.2f})"
        return f"- {first}; `bapi` has {at_end:.2f}."
    other = min((method for method in ranks if method != bapi), key=lambda m: float(ranks[m][-2]))
    return (
        f"- `bapi` has the lowest mean rank at the ends of all budgets: {at_end:.2f}. The next is {other.title} with "
        f"{ranks[other][-2]:.2f}."
    )


def comparison_lines(found: Mapping[float, Findings]) -> list[str]:
    return [rank_line(found), *map(peer_line, found.values())]


def own_table(found: Mapping[float, Findings]) -> str:
    """Compared with Farthing's other policies and with other options of `bapi`, which are not peers."""
    first = next(iter(found.values()))
    others = [method for method in first.of("own", "ablation") if method != first.subject]
    ratios = {m: [part.ratio(part.subject, m) for part in found.values() if part.subject is not None] for m in others}
    rows = [[m.title, *(f"{ratio:.2f}" for ratio in of)] for m, of in ratios.items()]
    return table(["regret of `bapi` / regret of", *(budget_text(multiple) for multiple in found)], rows)


def constraint_text(found: Mapping[float, Findings]) -> str:
    """Whether it helps that the model knows that curves only fall."""
    parts = [part for part in found.values() if part.subject is not None]
    plain = [next((m for m in part.methods if m.name == UNCONSTRAINED), None) for part in parts]
    ratios = [part.ratio(part.subject, m) for part, m in zip(parts, plain, strict=True) if part.subject and m]
    if not ratios:
        return ""
    numbers = listed([f"{ratio.value:.2f}" for ratio in ratios])
    budgets = listed([f"{part.multiple:g}" for part in parts])
    said = f"has {numbers} times the regret of the one without it at budgets of {budgets} trainings"
    if all(ratio.high < 1.0 for ratio in ratios):
        return f"The monotone constraint of the paper helped: the model with it {said}."
    chance = "; all intervals include 1" if all(ratio.low <= 1.0 <= ratio.high for ratio in ratios) else ""
    return f"The monotone constraint of the paper did not help on these tasks: the model with it {said}{chance}."


def plan_text(plans: dict[str, Any] | None) -> str:
    if plans is None:
        return "No cost was predicted."
    return (
        f"Of {plans['proposals']} proposals of `bapi`, {plans['predicted']} had a predicted cost and were not cut by "
        f"the end of the budget; {plans['cut']} were cut. The median proposal spent {plans['median']:.2f} times its "
        f"predicted cost; 90 % of them spent {plans['low']:.2f} to {plans['high']:.2f} times. "
        f"{percent(plans['above'])} spent more than predicted, {percent(plans['above_twice'])} more than twice as "
        f"much, at most {plans['highest']:.1f} times. All together they spent {plans['total']:.2f} times what was "
        "predicted."
    )


def summary(found: Mapping[float, Findings]) -> str:
    """For the screen."""
    plans = plans_of(found)
    return "\n\n".join([brief(found), *([plan_text(plans)] if plans else []), comparison_text(found)])


def comparison_text(found: Mapping[float, Findings]) -> str:
    if not is_comparable(found):
        return "No comparison: it needs `bapi` and a peer."
    return "\n".join(comparison_lines(found))


PAGE = """\
# Iterative learners under a budget

Which method finds the lowest validation error of a network for a given total cost of training? The policy `bapi`,
compared with Hyperband, BOHB, SMAC3 and Optuna's pruners, on {tasks} tasks of LCBench: networks that train for up to 52
epochs, with 7 hyperparameters. The curves come from the surrogate of YAHPO Gym; the cost is the seconds that it
predicts for an epoch.

Budgets are 4, 8 and 16 times the average cost of a complete training, over random configurations. All tasks have the
budget of 8, {wide} have all three. {seeds} paired seeds: on a task all methods have the same.

{comparison}

![mean normalised regret against the share of the budget](bapi-bench.svg)

Regret is normalised per task: 0 is the lowest error known, from {sample} random configurations and from all runs on
this page, at any epoch; 1 is the median of what those configurations have after their last epoch. What counts is the
best error at any epoch seen so far. A method that has nothing below the median yet has 1. In parentheses and brackets
are 95 % intervals from {resamples} bootstrap samples of the pairs of task and seed. Ranks are among all methods except
the other options of `bapi`.

{overall}

Compared with Farthing's other policies and with other options of `bapi`, regret at the end. Below 1 `bapi` is better;
where the interval includes 1 the difference may be chance.

{own}

{constraint}

{sections}

## Predicted and actual cost

{plans}

## How it was measured

- Every method is charged the epochs it trains and nothing else. Trainings may be paused and resumed: then only the new
  epochs cost. The epoch that would end past the budget is cut and does not count.
- The surrogate gives cumulative seconds that sometimes fall. An epoch costs what their running maximum rises by, and at
  least 1e-4 of the whole training.
- `bapi`, also with two other options, and `bopt` pause trainings; `ei` and `eipu` train completely. All of them use
  `Study.ask` and `Study.report` with `max_steps=52`, at their defaults, except that `ei` has `end="ignored"`: it is
  blind to cost. The others know the budget.
- Random search: Optuna's, complete trainings. TPE with `MedianPruner` and with `HyperbandPruner(max_resource=52)`:
  Optuna's defaults, every epoch reported. Pruned trainings are lost, because Optuna cannot resume them.
- Hyperband and BOHB: HpBandSter 0.7.4 in an environment of its own, its brackets and models without the network of
  workers; eta = 3, rungs at 2, 6, 17 and 52 epochs. SMAC3: `MultiFidelityFacade` with the same rungs, and 10 random
  configurations as its first design: its default of 70 is more than most of the budgets can begin. A promoted
  configuration goes on and is charged its new epochs.
- The method is our version of BAPI at its defaults, not the paper's form; [the comparison of the two](papers.md) is a
  page of its own. Of the paper's rivals, EI (our `ei`), Hyperband, BOHB and random search are here. BMS-EI, MS-EI,
  BINOCULARS, BOIL and GLASSES are not, so this page says nothing about how `bapi` compares with other methods that
  plan ahead. SMAC3, Optuna's pruners, `eipu` and `bopt` are not in the paper.
- A method that takes one value per run is told the best so far. Methods that do not know the budget are run once with
  the largest budget of the task, and cut for the others.
- No default was chosen on these tasks. Other tasks of LCBench were used for that.
- The optimisers' own CPU seconds, until the last step within the budget, are not charged.

{machine}

Reproduce with `make bench-bapi LCBENCH=FOLDER`; [extrapolation](extrapolation.md) says what the folder holds. The
regrets of all runs are in [data/bapi-bench.json](data/bapi-bench.json).{missing}
"""


def sections(found: Mapping[float, Findings]) -> str:
    return "\n\n".join(
        f"## Budget of {budget_text(part.multiple)}\n\n{len(part.problems)} tasks.\n\n{regret_table(part)}"
        for part in found.values()
    )


def document(found: Mapping[float, Findings], missing: Sequence[Method], seeds: int, facts: dict[str, Any]) -> str:
    absent = ", ".join(method.title for method in missing)
    return PAGE.format(
        tasks=len(TASKS),
        wide=len(WIDE),
        seeds=seeds,
        sample=f"{SAMPLE:,}",
        resamples=RESAMPLES,
        comparison=comparison_text(found),
        overall=overall_table(found),
        own=own_table(found) if is_comparable(found) else "Nothing.",
        constraint=constraint_text(found),
        sections=sections(found),
        plans=plan_text(plans_of(found)),
        machine=machine_text(facts, versions(found)),
        missing=f" Left out, because not all of their runs are done: {absent}." if missing else "",
    )


def versions(found: Mapping[float, Findings]) -> dict[str, dict[str, str]]:
    part = next(iter(found.values()))
    return {m.library: part.results[m][0].versions for m in part.methods}


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
                "tasks": [int(problem.data) for problem in part.problems],
                "regrets": {m.name: part.regrets[m].round(4).tolist() for m in methods},
                "curves": {m.name: part.mean(part.curves[m]).round(4).tolist() for m in methods},
                "seconds": {m.name: part.seconds[m].tolist() for m in methods},
            }
            for multiple, part in found.items()
        },
    }
