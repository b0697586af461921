"""Iterative learners under a budget: `bapi` on twelve tasks of LCBench, beside its peers.

    python benchmarks/bapi.py --data FOLDER            5 seeds; writes docs/bapi-bench.md, .svg and its data
    QUICK=1 python benchmarks/bapi.py --data FOLDER    2 tasks, 2 seeds, some methods; prints only
    python benchmarks/bapi.py --data FOLDER --kept     the page from the runs done so far
    python benchmarks/bapi.py --data FOLDER --tasks 34539 189354 --methods bapi random --seeds 100-104 --budget 8
    python benchmarks/bapi.py --data FOLDER --policy '{"name": "bapi", "points": "last"}' --workers 2    print only

FOLDER holds the surrogate of LCBench, see peers/lcbench_curves.py. One thread per worker; finished runs are kept, so
that an interrupted benchmark continues.
"""

from __future__ import annotations

import argparse
import json
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from bapi_runs import (
    METHODS,
    MULTIPLES,
    SAMPLE,
    TASKS,
    USUAL,
    WIDE,
    Method,
    Result,
    Run,
    exists,
    facts_of,
    kept,
    measure,
    own,
)  # fmt: skip
from documents import machine, machine_text, table, verdict, write
from environments import BENCHMARKS, DOCS, ensure, quick
from kept_runs import by_name

Array = NDArray[np.float64]

SEEDS, QUICK_SEEDS = tuple(range(5)), (0, 1)
QUICK_TASKS, QUICK_METHODS = TASKS[:2], ("bapi", "ei", "random", "hyperband", "tpe-median")
WORKERS = 1
SHARES = (0.25, 0.5, 1.0)  # of a budget
GRID = np.linspace(0.02, 1.0, 50)  # of the figure
RESAMPLES, LEVEL = 2000, 0.95
BETTER, BETTER_AT = 0.75, 2  # times the regret of the best peer, at so many budgets
OUR_BEST = "bapi"


# -- what the runs say -------------------------------------------------------------------------------------------------


def regrets_of(results: Mapping[Run, Result], shares: Array) -> dict[Run, Array]:
    """Normalised regret at shares of each run's budget: 0 is the lowest value known of the task, 1 the random median.

    Known are the sample of the task and all the results. Who has nothing better has the median.
    """
    lowest: dict[int, float] = {}
    for run, result in results.items():
        known = lowest.get(run.task, facts_of(run.folder, run.task).lowest)
        lowest[run.task] = float(min(known, *result.best[-1:]))
    found = {}
    for run, result in results.items():
        median, low = facts_of(run.folder, run.task).median, lowest[run.task]
        found[run] = (result.best_at(shares * run.budget, median) - low) / (median - low)
    return found


@dataclass(frozen=True)
class Findings:
    """One budget: regrets (pairs, shares) of each method, over the same pairs of task and seed."""

    multiple: float
    tasks: tuple[int, ...]
    regrets: Mapping[Method, Array]
    ranks: Mapping[Method, Array]
    curves: Mapping[Method, Array]  # (50,) mean regret against the share of the budget
    results: Mapping[Method, list[Result]]

    @property
    def methods(self) -> list[Method]:
        return list(self.regrets)

    def of(self, *kinds: str) -> list[Method]:
        return [method for method in self.regrets if method.kind in kinds]

    @property
    def bapi(self) -> Method | None:
        return next((method for method in self.regrets if method.name == OUR_BEST), None)

    def best(self, methods: Sequence[Method]) -> Method:
        """With the lowest mean regret at the end."""
        return min(methods, key=lambda method: float(self.regrets[method][:, -1].mean()))

    @property
    def draws(self) -> NDArray[np.int64]:
        """Resampled pairs (RESAMPLES, pairs), the same for all methods."""
        pairs = len(next(iter(self.regrets.values())))
        return np.random.default_rng(0).integers(pairs, size=(RESAMPLES, pairs))

    def interval(self, cells: Array) -> tuple[float, float]:
        """Of the mean of one number per pair."""
        low, high = np.quantile(cells[self.draws].mean(axis=1), [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
        return float(low), float(high)

    def ratio(self, one: Method, other: Method) -> tuple[float, float, float]:
        """Of the mean regrets at the end, with its interval."""
        ours, theirs = (self.regrets[method][:, -1] for method in (one, other))
        drawn = ours[self.draws].mean(axis=1) / theirs[self.draws].mean(axis=1)
        low, high = np.quantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
        return float(ours.mean() / theirs.mean()), float(low), float(high)


def ranked(regrets: Mapping[Method, Array]) -> dict[Method, Array]:
    """Ranks (pairs, shares) from 1, ties shared; versions of one policy are not ranked."""
    methods = [method for method in regrets if method.kind != "ablation"]
    if not methods:
        return {}
    ranks = rankdata(np.array([regrets[method] for method in methods]), axis=0)
    return dict(zip(methods, ranks, strict=True))


def findings(results: Mapping[Run, Result], runs: Sequence[Run]) -> tuple[dict[float, Findings], list[Method]]:
    """By budget, of the methods that have all runs; and the others."""
    planned: dict[Method, list[Run]] = {}
    for run in runs:
        planned.setdefault(run.method, []).append(run)
    whole = [method for method, theirs in planned.items() if all(run in results for run in theirs)]
    done = {run: results[run] for method in whole for run in planned[method]}
    shares, grid = regrets_of(done, np.array(SHARES)), regrets_of(done, GRID)
    found = {}
    for multiple in sorted({run.multiple for run in done}):
        of = {method: [run for run in planned[method] if run.multiple == multiple] for method in whole}
        regrets = {method: np.array([shares[run] for run in theirs]) for method, theirs in of.items()}
        found[multiple] = Findings(
            multiple,
            tuple(sorted({run.task for run in of[whole[0]]})),
            regrets,
            ranked(regrets),
            {method: np.mean([grid[run] for run in theirs], axis=0) for method, theirs in of.items()},
            {method: [done[run] for run in theirs] for method, theirs in of.items()},
        )
    return found, [method for method in planned if method not in whole]


# -- the parts of a page -----------------------------------------------------------------------------------------------


def _with_interval(part: Findings, cells: Array, digits: int) -> str:
    low, high = part.interval(cells)
    return f"{cells.mean():.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"


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


def overall_ranks(found: Mapping[float, Findings]) -> dict[Method, Array]:
    """Mean rank over all pairs of all budgets (4,): at each share, and over the three."""
    methods = next(iter(found.values())).ranks
    means = {m: np.concatenate([part.ranks[m] for part in found.values()]).mean(axis=0) for m in methods}
    return {method: np.append(mean, mean.mean()) for method, mean in means.items()}


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
        ratio, low, high = part.ratio(bapi, peer)
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
        shown = ", ".join("{:.2f} ({:.2f} to {:.2f})".format(*part.ratio(bapi, m)) + f" of {m.title}" for m in others)
        lines.append(f"- budget of {_budget(part.multiple)}: regret at the end {shown}")
    return lines


def plans_of(found: Mapping[float, Findings]) -> dict[str, Any] | None:
    """Cost over predicted cost of all proposals of `bapi` that the budget did not cut."""
    plans = [
        plan
        for part in found.values()
        if part.bapi is not None
        for result in part.results[part.bapi]
        for plan in result.plans
    ]
    told = [plan for plan in plans if plan[4] != "cut" and plan[0]]
    if not told:
        return None
    ratios = np.array([plan[1] / plan[0] for plan in told])
    low, median, high = np.quantile(ratios, [0.05, 0.5, 0.95])
    return {
        "proposals": len(plans),
        "predicted": len(told),
        "cut": sum(plan[4] == "cut" for plan in plans),
        "median": float(median),
        "low": float(low),
        "high": float(high),
        "above": float((ratios > 1.0).mean()),
        "above_twice": float((ratios > 2.0).mean()),
        "highest": float(ratios.max()),
        "total": float(sum(plan[1] for plan in told) / sum(plan[0] for plan in told)),
    }


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


# -- the command line --------------------------------------------------------------------------------------------------


def _policy(text: str) -> Method:
    described = json.loads(text)
    options = [f"{name}={value}" for name, value in described.items() if name != "name"]
    return own("-".join([described["name"], *options]), **described)


def _seeds(text: str) -> list[int]:
    first, _, last = text.partition("-")
    return list(range(int(first), int(last or first) + 1))


def planned(
    folder: Path,
    methods: Sequence[Method],
    seeds: Sequence[int],
    tasks: Sequence[int],
    multiples: Sequence[float] | None,
) -> list[Run]:
    """Every method on every task, one method after the other; without `multiples` the budgets of the page."""
    cells = [
        (multiple, task)
        for multiple in multiples or MULTIPLES
        for task in sorted(tasks)
        if multiples or multiple == USUAL or task in WIDE
    ]
    return [
        Run(folder, task, method, multiple, seed)
        for method, seed, (multiple, task) in product(methods, seeds, sorted(cells))
    ]


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="the folder of the surrogate of LCBench")
    parser.add_argument("--methods", nargs="+", type=by_name(METHODS), default=[])
    parser.add_argument("--policy", nargs="+", type=_policy, default=[], help="policies of Farthing, as JSON")
    parser.add_argument("--tasks", nargs="+", type=int)
    parser.add_argument("--seeds", nargs="+", type=_seeds, help="such as 100-104")
    parser.add_argument("--budget", nargs="+", type=float, help="in mean costs of a training")
    parser.add_argument("--workers", type=int, default=WORKERS)
    parser.add_argument("--kept", action="store_true", help="from the runs that are done")
    arguments = parser.parse_args()
    if arguments.data is None:
        parser.error("--data FOLDER (make: LCBENCH=FOLDER) is needed; docs/extrapolation.md says what it holds")
    known = json.loads((arguments.data / "encoding.json").read_text())["OpenML_task_id"]
    if unknown := [task for task in arguments.tasks or TASKS if str(task) not in known]:
        parser.error(f"the surrogate has no task {', '.join(map(str, unknown))}; it has {', '.join(list(known)[1:])}")
    return arguments


def main() -> None:
    arguments = parsed()
    selected = (arguments.methods, arguments.policy, arguments.tasks, arguments.seeds, arguments.budget)
    is_page = not quick() and not any(selected)
    usual = [method for method in METHODS if exists(method) and not (quick() and method.name not in QUICK_METHODS)]
    methods = [*arguments.methods, *arguments.policy] or usual
    seeds = [*chain(*arguments.seeds)] if arguments.seeds else [*(QUICK_SEEDS if quick() else SEEDS)]
    tasks = arguments.tasks or list(QUICK_TASKS if quick() else TASKS)
    multiples = arguments.budget or ([USUAL] if quick() or arguments.tasks else None)
    runs = planned(arguments.data.resolve(), methods, seeds, tasks, multiples)
    if arguments.kept:
        results = {run: result for run in runs if (result := kept(run)) is not None}
    else:
        results = measure(runs, arguments.workers)
    found, missing = findings(results, runs)
    if not found:
        print("no method has all of its runs")
    elif not is_page:
        print("\n" + brief(found) + "\n\n" + verdict_text(found))
    else:
        facts = machine()
        write("bapi-bench", document(found, missing, len(seeds), facts), data(found, seeds, facts))
        files = (DOCS / "data" / "bapi-bench.json", DOCS / "bapi-bench.svg")
        script = BENCHMARKS / "bapi_figure.py"
        subprocess.run([str(ensure("blackbox")), str(script), *map(str, files)], check=True)


if __name__ == "__main__":
    main()
