"""Stopping when it is not worth it, and what more budget brings, on twelve tables of real evaluations.

    python -m benchmarks.worth                    3 seeds; writes docs/worth.md and docs/data/worth.json
    QUICK=1 python -m benchmarks.worth            2 tables, 1 seed; prints only
    python -m benchmarks.worth --page             writes the page again, from its data

Every study runs to the end of its budget, which is 40 times the mean cost of the table's configurations, from the same
first configurations as `benchmarks.blackbox`. A price changes nothing of what is proposed before it ends a study, so
where each price would have ended it is read from what its asks expected. Two runs at a time unless `--workers` says
otherwise; finished runs are kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.common.command import parser
from benchmarks.common.documents import kept_data, machine, publish, table, write_page
from benchmarks.common.environments import quick
from benchmarks.common.statistics import percent
from benchmarks.common.tables import CHOOSING, HELD_OUT, TABLES
from benchmarks.worth.runs import AHEAD, MEANS, SHARES, Result, answers_of, measure, results_of

SEEDS = 3
QUICK_TABLES = ("mlp_car", "fcnet_protein_structure")
PRICES = (0.1, 1.0, 10.0)  # mean evaluations, for a hundredth of the way from the table's median to its optimum
LATER = 0.25  # of the budget: the initial design of `carbo`, which may take an eighth, is over
HALVES = {"choosing": CHOOSING, "held out": HELD_OUT}


def of_half(results: Sequence[Result], tables: Sequence[str]) -> list[Result]:
    return [result for result in results if result.run.table in tables]


def stopping_table(results: Sequence[Result]) -> str:
    """What each price saves and loses."""
    rows = []
    for price in PRICES:
        for half, tables in HALVES.items():
            stops = [result.stop(price) for result in of_half(results, tables)]
            if not stops:
                continue
            saved, lost = (np.array([getattr(stop, name) for stop in stops]) for name in ("saved", "lost"))
            net = MEANS * saved.mean() - 100.0 * price * lost.mean()
            rows.append([
                f"{price:g}", half, f"{percent(float(np.median(saved)))} / {percent(float(saved.mean()))}",
                f"{np.median(lost):.4f} / {lost.mean():.4f}", percent(float(np.mean(lost == 0.0))), f"{net:+.1f}",
            ])  # fmt: skip
    header = ["price", "tables", "budget saved, median / mean", "value lost, median / mean"]
    return table([*header, "lost nothing", "gained on balance"], rows)


def outlook_table(results: Sequence[Result]) -> str:
    """What was expected and what came."""
    rows = []
    for half, tables in HALVES.items():
        of_this = [found for result in of_half(results, tables) for found in result.foreseen()]
        groups = {percent(share): [found for found in of_this if found.share == share] for share in SHARES}
        later = [found for found in of_this if found.share >= LATER]
        for name, some in {**groups, "all": of_this, f"{percent(LATER)} and later": later}.items():
            if not some:
                continue
            expected, realised = sum(found.gain for found in some), sum(found.realised for found in some)
            inside = np.mean([found.interval[0] <= found.realised <= found.interval[1] for found in some])
            rows.append([
                half, name, f"{expected / len(some):.4f}", f"{realised / len(some):.4f}",
                f"{expected / realised:.2f}" if realised > 0.0 else "-", percent(float(inside)),
                percent(float(np.mean([found.chance for found in some]))),
                percent(float(np.mean([found.realised > 0.0 for found in some]))),
            ])  # fmt: skip
    header = ["tables", "after", "expected gain", "realised gain", "ratio of the sums", "in the 80 % interval"]
    return table([*header, "chance of any gain", "studies with one"], rows)


PAGE = """\
# When more is not worth it

`stop_when_not_worth=` says what an improvement of the value by 1 is worth in the budget's unit. The study ends when no
candidate is worth its cost. `study.outlook()` says, without any price, what more budget is expected to bring.
[The guide](guide.md#when-more-is-not-worth-it) shows both.

## The rule

At every ask after the initial design, the candidate with the largest expected improvement per expected cost is looked
for, with the models that the ask has anyway. Its improvement is in the units of the objective, and what it is worth is
compared with its cost: log gain + log worth - log cost. The study ends when the average of this over the last 10 asks
is at most 0 twice in a row (one ask counts by at most 3 in either direction). This is the rule of Xie et al. (2025):
the least Gittins index is not below the best value exactly when no expected improvement is worth its cost.

What is proposed until then does not depend on the price. The search for that candidate takes about as long as the
search for the next proposal; without a price there is none.

## Budget saved and value lost

{studies} studies of `auto`, which is `carbo` here: {tables} [tables](blackbox.md) of real trainings with measured
costs, {seeds} seeds, a budget of {means:g} mean costs of a table. A price says how many mean evaluations an
improvement by a hundredth of the way from the table's median to its optimum is worth. Value lost is how much further
the whole budget came, as a share of that way. On balance is what was saved less what the lost value is worth, in mean
evaluations, on average.

{stopping}

The length of the average was chosen on the choosing tables, among 1, 3, 5 and 10 asks: all gain about the same on
balance, and 10 loses least value. Ending at the first hit, without any average, loses more value: at the highest price
so much that nothing is gained on balance.

## What more budget brings

The outlook asks the policy for up to 8 candidates that it would evaluate next, one after the other, draws their values
from the joint model, and takes the mean of how far the least of them is below the best value. Where the budget pays for
more evaluations than that, the gain is that of the candidates: gains that grow with the number of evaluations were too
high on the choosing tables, the more so the faster they grow. Models are optimistic: on the choosing tables, from a
quarter of the budget on, drawn gains were twice the realised ones in sum. So every drawn gain is halved.

After {shares} of the budget, each study was asked what another {ahead} of it would bring. Gains are shares of the way
from the table's median to its optimum.

{outlook}

After a tenth of the budget `carbo` is still in its initial design: its candidates cover the space and are not those
of a search, and the outlook is of little use, too high by far on some tables and too low on others. From a quarter on,
the sum of the expected gains is {choosing:.1f} times that of the realised ones on the choosing tables and
{held_out:.1f} times on the held-out ones. Late in a study it is too high: models believe in small gains where none are
left to find. In most studies nothing is gained and in a few much, so the interval often begins at 0.

An outlook takes {seconds:.2f} s of processor time in these studies, an ask {ask_seconds:.2f} s.

## Reproduce

`make bench-worth`. Every run is in [data/worth.json](data/worth.json).
"""


def ratio(results: Sequence[Result], tables: Sequence[str]) -> float:
    """Of the sums of expected and realised gains, once the initial design is over."""
    found = [found for result in of_half(results, tables) for found in result.foreseen() if found.share >= LATER]
    return sum(each.gain for each in found) / max(sum(each.realised for each in found), 1e-12)


def document(results: Sequence[Result]) -> str:
    """The page."""
    outlooks = sum(len(result.outlooks) for result in results)
    asks = sum(len(result.spent) for result in results)
    return PAGE.format(
        studies=len(results), tables=len({result.run.table for result in results}),
        seeds=len({result.run.seed for result in results}), means=MEANS, stopping=stopping_table(results),
        shares=", ".join(percent(share) for share in SHARES), ahead=percent(AHEAD), outlook=outlook_table(results),
        seconds=sum(result.seconds["outlooks"] for result in results) / max(outlooks, 1),
        ask_seconds=sum(result.seconds["asks"] for result in results) / asks,
        choosing=ratio(results, CHOOSING), held_out=ratio(results, HELD_OUT),
    )  # fmt: skip


def main() -> None:
    options = parser(__doc__, has_page=True)
    options.add_argument("--workers", type=int, default=2)
    arguments = options.parse_args()
    if arguments.page:
        data: dict[str, Any] = kept_data("worth")
        write_page("worth", document(results_of(data)), data)
        return
    results = measure(1 if quick() else SEEDS, QUICK_TABLES if quick() else TABLES, arguments.workers)
    publish("worth", document(results), {"machine": machine(), "runs": answers_of(results)}, not quick())


if __name__ == "__main__":
    main()
