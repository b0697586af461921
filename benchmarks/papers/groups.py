"""The three groups of problems, on the runs of three other benchmarks: tables, LCBench tasks and two-level functions.

Every run has scores, one per measure, all to be minimised. The last measure is the one that verdicts rest on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.bapi import runs as lcbench
from benchmarks.blackbox import regret as table_regret
from benchmarks.blackbox import runs as tables
from benchmarks.bopt_synthetic import runs as two_level
from benchmarks.bopt_synthetic.findings import NEGLIGIBLE
from benchmarks.bopt_synthetic.findings import Findings as FunctionFindings
from benchmarks.common.kept_runs import Files
from benchmarks.common.tables import CHOOSING, HELD_OUT, TABLES
from benchmarks.common.two_level_functions import FUNCTIONS
from benchmarks.curves import findings as curve_findings
from benchmarks.curves import methods as curve_methods
from benchmarks.curves import runs as curves
from benchmarks.papers.forms import FOR_ERRORS, Form, forms_of, selected

Array = NDArray[np.float64]

SHARES = (0.25, 0.5, 1.0)  # of a budget
MEANS, MOST = 20, 1_000  # of a run on a table: half of the budget of the black-box benchmark, a third of its time
MULTIPLE = lcbench.USUAL  # trainings that a run on LCBench can pay for
TASKS = lcbench.TASKS[::2]
SET_BY_TABLES = frozenset({"warm_up"})  # all methods are given the same first configurations
SET_BY_FUNCTIONS = frozenset({"s", "initial", "ratio", "fast_ends", "ends", "level"})  # see its farthing_peer

STEPWISE = ("bapi", "bopt")
BLACK_BOX = ("carbo", "cei", "eipu", "ei_cool", "ei")
WITH_SINGLES = frozenset({"carbo", "cei", "bapi", "bopt"})  # the four papers' own methods
# Single options, and the rivals of the four methods, are measured on half of the tables; single options on two thirds
# of the tasks (as many of them held out as not), and on the functions that defaults were chosen on.
SINGLE_TABLES = tuple(name for name in TABLES if name in CHOOSING[::2] + HELD_OUT[::2])
SINGLE_TASKS, SINGLE_FUNCTIONS = 4, 3
ONE_LEVEL = ("ei",)  # sees no cheap level, so the two versions of Rosenbrock's are one to it


@dataclass(frozen=True)
class Group:
    """Problems of one kind, and how a form is run on them.

    choosing   the problems that defaults are chosen on; the others are held out
    fewer      the problems that are enough for some forms: those with a single option, and those that cannot tell the
               other problems from these
    mean       of scores: "arithmetic", or "geometric" where problems have other scales
    scores     (measures,) of each run
    """

    name: str
    problems: tuple[str, ...]
    choosing: tuple[str, ...]
    fewer: tuple[str, ...]
    forms: tuple[Form, ...]
    measures: tuple[str, ...]
    mean: str
    run: Callable[[Form, str, int], Any]
    files: Files[Any, Any]
    measure: Callable[[Sequence[Any], int], Mapping[Any, Any]]
    scores: Callable[[Mapping[Any, Any]], Mapping[Any, Array]]

    def only(self, methods: Sequence[str] | None, problems: Sequence[str] | None) -> Group:
        """Some forms, some problems."""
        forms = tuple(selected(list(self.forms), methods)) if methods else self.forms
        kept = tuple(problem for problem in self.problems if problems is None or problem in problems)
        return replace(self, forms=forms, problems=kept, fewer=kept if problems else self.fewer)

    def planned(self, seeds: int) -> dict[tuple[str, str, int], Any]:
        """Runs by form, problem and seed; seeds outermost, so that a part is a fair part. Where fewer problems are
        enough, so is half of the seeds."""
        return {
            (form.name, problem, seed): self.run(form, problem, seed)
            for seed in range(seeds)
            for form in self.forms
            if not self._needs_fewer(form) or seed < max(seeds // 2, 1)
            for problem in (self.fewer if self._needs_fewer(form) else self.problems)
        }

    def _needs_fewer(self, form: Form) -> bool:
        has_one_level = self.name == "two-level" and form.policy in ONE_LEVEL
        is_rival = self.name == "tables" and form.policy not in WITH_SINGLES
        return form.kind == "single" or has_one_level or is_rival


def _shares() -> tuple[str, ...]:
    return tuple(f"{share:.0%}".replace("%", " %") for share in SHARES)


# -- tables ------------------------------------------------------------------------------------------------------------


def tables_group() -> Group:
    forms = [form for name in BLACK_BOX for form in forms_of(name, name in WITH_SINGLES, SET_BY_TABLES)]
    return Group(
        "tables", TABLES, CHOOSING, SINGLE_TABLES, tuple(forms), _shares(), "arithmetic",
        _table_run, tables.FILES, _tables_measured, _table_scores,
    )  # fmt: skip


def _table_run(form: Form, problem: str, seed: int) -> tables.Run:
    options = tuple(form.as_json.items())
    method = tables.Method(form.name, form.name, "farthing", "blackbox.peers.farthing_peer", options)
    return tables.Run(problem, method, seed, MEANS, 1, MOST)


def _tables_measured(runs: Sequence[tables.Run], workers: int) -> Mapping[tables.Run, tables.Result]:
    try:
        return tables.measure(runs, workers)
    except SystemExit as failed:  # some did: the others are kept
        print(failed, flush=True)
        return tables.FILES.all_kept(runs)


def _table_scores(results: Mapping[tables.Run, tables.Result]) -> dict[tables.Run, Array]:
    """Normalised regret, at most 1, at shares of the budget."""
    return {
        run: np.minimum(table_regret.regret(run.table, np.array([result.best_at(share) for share in SHARES])), 1.0)
        for run, result in results.items()
    }


# -- LCBench -----------------------------------------------------------------------------------------------------------


def lcbench_group(folder: Path) -> Group:
    policies = (*STEPWISE, *BLACK_BOX)
    forms = [form for name in policies for form in forms_of(name, name in STEPWISE, given=FOR_ERRORS.get(name))]
    problems = tuple(map(str, TASKS))

    def run(form: Form, problem: str, seed: int) -> curves.Run:
        method = curve_methods.own(form.name, "own", form.name, **form.as_json)
        return lcbench.run_of(folder, int(problem), method, MULTIPLE, seed)

    def scores(results: Mapping[curves.Run, curves.Result]) -> Mapping[curves.Run, Array]:
        return curve_findings.regrets_of(results, np.array(SHARES))

    return Group(
        "lcbench", problems, problems[::2], problems[:SINGLE_TASKS], tuple(forms), _shares(), "arithmetic",
        run, curves.FILES, curves.measure, scores,
    )  # fmt: skip


# -- functions of two levels -------------------------------------------------------------------------------------------


def two_level_group() -> Group:
    problems = tuple(FUNCTIONS)
    forms = [
        *forms_of("bopt", with_singles=True, fixed=SET_BY_FUNCTIONS),
        *forms_of("eqie", fixed=SET_BY_FUNCTIONS),
        *forms_of("ei"),
    ]
    return Group(
        "two-level", problems, problems, problems[:SINGLE_FUNCTIONS], tuple(forms), ("end", "area"), "geometric",
        _function_run, two_level.FILES, two_level.measure, _function_scores,
    )  # fmt: skip


def _function_run(form: Form, problem: str, seed: int) -> two_level.Run:
    # What sets both levels is the experiment's, so only the other options are given: the rest is our default.
    policy = (("name", form.policy), *form.options.items())
    levels, module = (1 if form.policy in ONE_LEVEL else 2), "bopt_synthetic.peers.farthing_peer"
    method = two_level.Method(form.name, form.name, "bopt", "farthing", module, levels, policy)
    return two_level.Run(problem, method, seed)


def _function_scores(results: Mapping[two_level.Run, two_level.Result]) -> dict[two_level.Run, Array]:
    """The regret at the end, and the area under regret against cost. A regret below 1e-6 is none."""
    found = {}
    for run, result in results.items():
        part = FunctionFindings(FUNCTIONS[run.function], (run.method,), {run.method: [result]})
        end = part.regret(run.method, np.array([part.function.budget]))[0, 0]
        found[run] = np.maximum([end, part.area(run.method)[0]], NEGLIGIBLE)
    return found
