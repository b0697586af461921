"""Error of cost models against the number of evaluations they were given.

s, r, m   sizes of the training set, repetitions, models
E (s, m)  root mean squared error of log cost on configurations that were not trained on, of one repetition

A repetition draws one sample; its first configurations are the training sets, each the beginning of the next, and the
last HELD_OUT of it are what every model of every size is tested on. The automatic choice sees the evaluations one by
one, each time with the state that it stored the last time, as in a study. The single models are fitted from scratch.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.common.fingerprints import code_hash, farthing_code, module_file
from benchmarks.common.kept_runs import once
from benchmarks.cost_models.data import Sample, Source
from farthing.surrogates.cost import choice as cost_choice
from farthing.surrogates.cost import flops, log_cost
from farthing.surrogates.cost import lines as linear_cost

Array = NDArray[np.float64]

HELD_OUT = 500
SELECTED = 3  # parameters of the limited process, as in the paper
AUTO = "auto"
SINGLE = {
    "line-1": "line, 1 parameter",
    "line-2": "line, 2 parameters",
    "line-3": "line, 3 parameters",
    "line": "line, all parameters",
    "gp": "GP (plain, warped)",
    "gp-lv": "GP-LV (on a line)",
    "gp-selected": "GP, 3 parameters",
}
COUNTED = {"flops": "flop count", "flops-updates": "flop count, with updates"}
TITLES = {AUTO: "automatic choice", **SINGLE, **COUNTED}


def rmse(predicted: Array, seen: Array) -> float:
    return float(np.sqrt(np.mean((predicted - seen) ** 2)))


def single_models(Z: Array, b: Array, groups: NDArray[np.intp]) -> dict[str, log_cost.CostModel]:
    """Every single model on log features Z (n, f), fitted to log costs b (n,)."""
    lines = linear_cost.fit_sizes(Z, b, groups)
    everything = next(iter(lines.values()))  # the one on all parameters comes first
    limited = everything.selected[:SELECTED]
    return {
        **{f"line-{size}": lines[size] for size in linear_cost.SIZES},
        "line": everything,
        "gp": log_cost.process(Z, b, groups),
        "gp-lv": log_cost.process(Z, b, groups, trend=everything),
        "gp-selected": log_cost.process(Z, b, groups, selected=limited),
    }


def count_errors(counts: Array, b: Array, n: int, test: slice) -> dict[str, float]:
    """Errors of the flop-count models from the first n: CArBO's two features, and all four."""
    errors = {}
    for name, columns in zip(COUNTED, (2, 4), strict=True):
        model = flops.fit(counts[:n, :columns], np.exp(b[:n]))
        errors[name] = rmse(model.predict(counts[test, :columns])[0], b[test])
    return errors


def automatic_errors(sample: Sample, sizes: Sequence[int], test: slice) -> dict[int, float]:
    """Errors of the automatic choice, one evaluation after the other, by the number of evaluations."""
    X, b = sample.X, sample.log_cost
    state, errors = None, {}
    for n in range(1, max(sizes) + 1):
        chosen = cost_choice.choose(X[:n], b[:n], sample.groups, sample.ratios, state)
        state = chosen.state
        if n in sizes:
            errors[n] = rmse(chosen.model.predict(X[test])[0], b[test])
    return errors


def repetition(sample: Sample, sizes: Sequence[int]) -> list[dict[str, float]]:
    """Error of every model, per size."""
    test = slice(max(sizes), None)
    b, Z = sample.log_cost, log_cost.LogFeatures(np.asarray(sample.ratios))(sample.X)
    automatic = automatic_errors(sample, sizes, test)
    rows = []
    for n in sizes:
        models = single_models(Z[:n], b[:n], sample.groups)
        row = {AUTO: automatic[n], **{name: rmse(model.predict(Z[test])[0], b[test]) for name, model in models.items()}}
        if sample.counts is not None:
            row.update(count_errors(sample.counts, b, n, test))
        rows.append(row)
    return rows


def source_errors(source: Source, sizes: Sequence[int], repetitions: int) -> dict[str, list[list[float]]]:
    """By model, errors (r, s) on one source; from the cache where the code and the data are the same."""
    letters = np.frombuffer(source.name.encode(), dtype=np.uint8).tolist()

    def sample(r: int) -> Sample:
        return source.draw(np.random.default_rng([r, *letters]), max(sizes) + HELD_OUT)

    def errors() -> dict[str, list[list[float]]]:
        found = [repetition(sample(r), sizes) for r in range(repetitions)]
        return {name: [[row[name] for row in rows] for rows in found] for name in found[0][0]}

    first = sample(0)
    drawn = hashlib.sha256(first.X.tobytes() + first.log_cost.tobytes()).hexdigest()
    code = code_hash([module_file("cost_models.fits")]) + farthing_code()
    stored: dict[str, list[list[float]]] = once(
        f"costs-errors-{source.name}", [source.name, list(sizes), repetitions, drawn, code], errors
    )
    return stored


def all_errors(sources: Sequence[Source], sizes: Sequence[int], repetitions: int) -> dict[str, dict[str, Array]]:
    """By source and model, errors (r, s); one line on the screen per source."""
    found: dict[str, dict[str, Array]] = {}
    for i, source in enumerate(sources, start=1):
        stored: Mapping[str, Any] = source_errors(source, sizes, repetitions)
        found[source.name] = {name: np.array(rows) for name, rows in stored.items()}
        last = found[source.name][AUTO].mean(axis=0)[-1]
        print(f"{i}/{len(sources)} {source.name}: automatic choice {last:.3f} at {sizes[-1]}", flush=True)
    return found
