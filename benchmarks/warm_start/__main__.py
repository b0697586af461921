"""Studies that begin from earlier ones, compared with studies that begin from nothing, on tables of real trainings.

    python -m benchmarks.warm_start             held-out tables; writes docs/warm-start-bench.md and its data
    python -m benchmarks.warm_start --choosing  the tables that constants are chosen on; prints only
    QUICK=1 python -m benchmarks.warm_start     1 seed; prints only
    python -m benchmarks.warm_start --page      the page again, from its data

One process, one thread. Finished runs are kept in benchmarks/cache, so that an interrupted benchmark continues.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from benchmarks.blackbox.regret import mean_interval, ratio, regret
from benchmarks.common.command import parser
from benchmarks.common.documents import kept_data, machine, machine_text, publish, table, write_page
from benchmarks.common.environments import quick
from benchmarks.common.statistics import percent
from benchmarks.common.tables import CHOOSING, HELD_OUT
from benchmarks.common.versions import version
from benchmarks.warm_start.runs import COLD, EARLIER, MEANS, STARTS, Run, result_of

Array = NDArray[np.float64]

SHARES = (0.1, 0.25, 0.5, 1.0)  # of the budget
SEEDS = 5


def measure(tables: tuple[str, ...], seeds: int) -> dict[str, Any]:
    """Regret of every run, and milliseconds per suggestion; seeds outermost, so that a part is a fair part."""
    rows = []
    for seed, name, start in product(range(seeds), tables, STARTS):
        found = result_of(Run(name, start, seed))
        regrets = [round(float(min(regret(name, np.array(found.best_at(share))), 1.0)), 5) for share in SHARES]
        rows.append([name, start.title, seed, regrets, round(1e3 * found.seconds / len(found.best), 2)])
        print(f"{name}, {start.title}, seed {seed}: regret {regrets[-1]:.3f}", flush=True)
    return {
        "machine": machine(),
        "versions": {"farthing": {name: version(name) for name in ("farthing", "numpy", "scipy")}},
        "tables": list(tables), "seeds": seeds, "runs": rows,
    }  # fmt: skip


def regrets(data: dict[str, Any], title: str) -> Array:
    """(shares, tables, seeds)."""
    found = {(name, seed): cells for name, start, seed, cells, _ in data["runs"] if start == title}
    return np.array(
        [
            [[found[name, seed][i] for seed in range(data["seeds"])] for name in data["tables"]]
            for i in range(len(SHARES))
        ]
    )


# -- the page ----------------------------------------------------------------------------------------------------------

PAGE = """\
# Studies that begin from earlier ones

What is `warm_start=` worth, and what does an earlier study cost that misleads? A table of real trainings is tuned by
`auto` with a budget of {means:g} mean costs of its trainings: after no earlier study, after one, and after three. An
earlier study is one of {earlier} evaluations on another table with the same grid, drawn at random. A shuffled one has
the same configurations and the same values, but not each its own: whatever is learned from its values is wrong. (Its
costs are right.)

{tables} tables that no constant was chosen on, {seeds} seeds each. Regret is 0 for the optimum of a table and 1 for its
median. Columns are shares of the budget.

## Regret

Mean over tables and seeds, with bootstrap 95 % intervals.

{means_table}

## Compared with no earlier study

Ratio of mean regrets; below 1 the earlier studies help.

{ratios}

## Table by table

Mean regret at {first} and at {last} of the budget.

{each}

## Time

Milliseconds of the processor per suggestion, median over runs: {milliseconds}. A study without earlier ones evaluates
more, and cheaper, configurations, so its suggestions are not the same work.

{machine}

Reproduce with `make bench-warm-start`. Every run is in [data/warm-start-bench.json](data/warm-start-bench.json).
"""


def titles(data: dict[str, Any]) -> list[str]:
    return [start.title for start in STARTS if any(row[1] == start.title for row in data["runs"])]


def document(data: dict[str, Any]) -> str:
    names, cold = titles(data), regrets(data, COLD.title)
    header = ["earlier studies", *map(percent, SHARES)]
    found = {title: regrets(data, title) for title in names}
    each = [
        [name, *(f"{found[title][i, t].mean():.3f}" for i in (0, -1) for title in names)]
        for t, name in enumerate(data["tables"])
    ]
    paces = [f"{np.median([row[4] for row in data['runs'] if row[1] == title]):.0f} ({title})" for title in names]
    return PAGE.format(
        means=MEANS, earlier=EARLIER, tables=len(data["tables"]), seeds=data["seeds"],
        means_table=table(header, [[t, *(f"{mean_interval(cells):.3f}" for cells in found[t])] for t in names]),
        ratios=table(header, [
            [t, *(f"{ratio(cells, base):.2f}" for cells, base in zip(found[t], cold, strict=True))] for t in names[1:]
        ]),
        first=percent(SHARES[0]), last=percent(SHARES[-1]),
        each=table(["table", *(f"{title}, {percent(SHARES[i])}" for i in (0, -1) for title in names)], each),
        milliseconds=", ".join(paces), machine=machine_text(data["machine"], data["versions"]),
    )  # fmt: skip


def main() -> None:
    arguments = parser(__doc__, has_page=True)
    arguments.add_argument("--choosing", action="store_true", help="on the tables that constants are chosen on")
    given = arguments.parse_args()
    if given.page:
        data = kept_data("warm-start-bench")
        write_page("warm-start-bench", document(data), data)
        return
    with threadpool_limits(1):
        data = measure(CHOOSING if given.choosing else HELD_OUT, 1 if quick() else SEEDS)
    publish("warm-start-bench", document(data), data, is_whole=not (quick() or given.choosing))


if __name__ == "__main__":
    main()
