"""`auto`, which is Farthing as it is by default, compared with peers that begin as they do by themselves.

    python -m benchmarks.auto --data FOLDER                  10 seeds on tables, 5 live; writes docs/auto-bench.md
    python -m benchmarks.auto --data FOLDER --groups a b     some of the parts; prints only
    python -m benchmarks.auto --data FOLDER --methods farthing-uninformed --groups a --seeds 3
    QUICK=1 python -m benchmarks.auto                        prints only

One run at a time, one thread each; finished runs are kept, so that an interrupted benchmark continues.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path

from benchmarks.auto.methods import methods
from benchmarks.auto.problems import problems
from benchmarks.auto.runs import Run, measure
from benchmarks.common.command import parser
from benchmarks.common.kept_runs import by_name


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--data", type=Path)
    options.add_argument("--groups", nargs="+", choices="abc", default=list("abc"))
    options.add_argument("--problems", nargs="+")
    options.add_argument("--methods", nargs="+", type=by_name(methods()), default=list(methods()))
    options.add_argument("--seeds", type=int, default=10)
    given = options.parse_args()
    every = [one for one in problems(given.data) if one.group in given.groups]
    if given.problems:
        every = [one for one in every if one.name in given.problems]
    runs = [Run(p, m, s) for m, s, p in product(given.methods, range(given.seeds), every)]
    measure(runs, 1, given.data)


if __name__ == "__main__":
    main()
