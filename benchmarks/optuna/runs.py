"""The runs of the Optuna benchmark: those of the black-box benchmark with other methods, done once and kept."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

from benchmarks.blackbox.runs import LIMIT_SECONDS, Method, Result, Run, farthing_method
from benchmarks.common.fingerprints import SOURCE, code_hash, farthing_code, fingerprint
from benchmarks.common.kept_runs import Files, Runner
from benchmarks.common.tables import table_of, tables_folder

TPE = Method("tpe", "Optuna TPE", "optuna", "blackbox.peers.optuna_peer")
GP = Method("gpsampler", "Optuna GPSampler", "optuna", "blackbox.peers.optuna_peer")
SAMPLER = Method("sampler", "`FarthingSampler`", "optuna", "optuna.peers.sampler_peer")
NATIVE = replace(farthing_method("auto"), title="Farthing (`ft.Study`)")
METHODS = (TPE, GP, SAMPLER, NATIVE)


def _name(run: Run) -> str:
    return f"optuna-{run.table}-{run.method.name}-{run.seed}"


def _code(run: Run) -> str:
    method = run.method
    code = fingerprint(method.system, (method.module, "blackbox.peers.task", "common.tables"))
    if method is not SAMPLER:
        return code
    return code + farthing_code() + code_hash(sorted((SOURCE / "adapters" / "optuna").glob("*.py")))


def _shown(run: Run, result: Result) -> str:
    table = table_of(run.table)
    regret = (result.best_at(1.0) - table.optimum) / (table.median - table.optimum)
    return f"regret {regret:.3g}, {result.evaluations} evaluations in {result.seconds:.1f} s"


FILES = Files(_name, _code, Result.of)


def same_choices(runs: Sequence[Run]) -> int:
    """In how many runs FarthingSampler evaluated the same configurations in the same order as Farthing by itself."""

    def levels(run: Run) -> list[list[int]]:
        found: list[list[int]] = json.loads(FILES.path(run).read_text())["levels"]
        return found

    ours = (run for run in runs if run.method is SAMPLER)
    return sum(levels(run) == levels(replace(run, method=NATIVE)) for run in ours)


def measure(runs: Sequence[Run], workers: int) -> dict[Run, Result]:
    """The results of runs, several at a time. The program ends at the end if any failed."""
    return Runner(FILES, _shown, lambda run: (tables_folder(),), LIMIT_SECONDS).measure_all(runs, workers)
