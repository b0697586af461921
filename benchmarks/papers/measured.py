"""What the page is made of: the scores of a group's runs, with the machine that did them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from benchmarks.common.documents import machine
from benchmarks.common.kept_runs import CACHE, write
from benchmarks.papers.forms import Form
from benchmarks.papers.groups import Group


def measured(group: Group, seeds: int, workers: int, only_kept: bool = False) -> dict[str, Any] | None:
    """The scores of the forms that have all of their runs, ready for JSON; None where no form is whole."""
    planned = group.planned(seeds)
    runs = list(planned.values())
    if only_kept:
        results = group.files.all_kept(runs)
    else:
        is_new = any(not group.files.path(run).exists() for run in runs)
        results = group.measure(runs, workers)
        if is_new:
            write(_machine_file(group), machine())
    whole = [form for form in group.forms if all(run in results for run in _runs_of(form, planned))]
    if not whole:
        return None
    done = {run: results[run] for form in whole for run in _runs_of(form, planned)}
    scores = group.scores(done)
    return {
        "problems": list(group.problems),
        "choosing": [problem for problem in group.problems if problem in group.choosing],
        "seeds": seeds,
        "measures": list(group.measures),
        "mean": group.mean,
        "machine": _machine(group),
        "versions": dict(next(iter(done.values())).versions),
        "forms": {form.name: _described(form, planned, scores, done) for form in whole},
        "left_out": [form.name for form in group.forms if form not in whole],
    }


def _runs_of(form: Form, planned: Mapping[tuple[str, str, int], Any]) -> list[Any]:
    return [run for (name, _, _), run in planned.items() if name == form.name]


def _described(
    form: Form, planned: Mapping[tuple[str, str, int], Any], scores: Mapping[Any, Any], done: Mapping[Any, Any]
) -> dict[str, Any]:
    """A form and its scores: by problem, then seed, then measure."""
    by_problem: dict[str, list[list[float]]] = {}
    for (name, problem, _), run in planned.items():
        if name == form.name:
            by_problem.setdefault(problem, []).append([float(f"{score:.5g}") for score in scores[run]])
    seconds = float(np.mean([done[run].seconds for run in _runs_of(form, planned)]))
    return {
        "policy": form.policy,
        "kind": form.kind,
        "shown": form.shown,
        "seconds": float(f"{seconds:.3g}"),
        "scores": by_problem,
    }


# Runs may be done on one machine and the page written on another: the facts travel with the runs.


def _machine_file(group: Group) -> Any:
    return CACHE / f"papers-{group.name}-machine.json"


def _machine(group: Group) -> dict[str, Any]:
    path = _machine_file(group)
    facts: dict[str, Any] = json.loads(path.read_text()) if path.exists() else machine()
    return facts
