"""Error of cost models against the number of evaluations they were given.

s, r, m   sizes of the training set, repetitions, models
E (s, m)  root mean squared error of log cost on configurations that were not trained on, of one repetition

A repetition draws one sample; its first configurations are the training sets, each the beginning of the next, and the
last HELD_OUT of it are what every model of every size is tested on. The automatic choice sees the evaluations one by
one, each time with the state that it stored the last time, as in a study. The single models are fitted from scratch.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
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
Priced = Callable[[Array, Array], flops.FlopCost]

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
COUNTED = {
    "flops": "flop count",
    "flops-huber": "flop count, Huber on seconds",
    "gp-flops": "GP on the flop count",
    "flops-updates": "flop count, with updates",
    "gp-flops-updates": "GP on it, with updates",
    "auto-updates": "automatic, with updates",
}
PAPER_COUNTS, ALL_COUNTS = 2, 4  # columns of the counts: those of CArBO, and with those that come per update
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


class Counts(log_cost.CostModel):
    """The flop count of a sample as a model of its features, fitted to its first n costs."""

    def __init__(self, sample: Sample, columns: int, n: int, priced: Priced = flops.fit) -> None:
        assert sample.counts is not None
        counts = sample.counts[:, :columns]
        self.by_row = {x.tobytes(): row for x, row in zip(sample.X, counts, strict=True)}
        self.fitted = priced(counts[:n], np.exp(sample.log_cost[:n]))

    def predict(self, X: Array) -> tuple[Array, Array]:
        """Mean (m,) and variance (m,) at rows of the sample."""
        return self.fitted.predict(np.array([self.by_row[x.tobytes()] for x in np.ascontiguousarray(X)]))

    def predict_with_gradient(self, X: Array) -> tuple[Array, Array, Array, Array]:
        raise NotImplementedError

    def log_densities(self) -> Array:
        return self.fitted.log_densities()


def count_errors(sample: Sample, n: int, test: slice) -> dict[str, float]:
    """Errors of the models that count operations, from the first n."""

    def on_counts(columns: int) -> log_cost.CostModel:
        own = Counts(sample, columns, n)
        seen = (sample.X[:n], sample.log_cost[:n], sample.groups, sample.ratios)
        return cost_choice.choose(*seen, own=own, model="gp-flops").model

    models: dict[str, log_cost.CostModel] = {
        "flops": Counts(sample, PAPER_COUNTS, n),
        "flops-huber": Counts(sample, PAPER_COUNTS, n, flops.fit_runtime),
        "gp-flops": on_counts(PAPER_COUNTS),
        "flops-updates": Counts(sample, ALL_COUNTS, n),
        "gp-flops-updates": on_counts(ALL_COUNTS),
    }
    X, b = sample.X[test], sample.log_cost[test]
    return {name: rmse(model.predict(X)[0], b) for name, model in models.items()}


def automatic_errors(sample: Sample, sizes: Sequence[int], test: slice, counts: int = 0) -> dict[int, float]:
    """Errors of the automatic choice, one evaluation after the other, by the number of evaluations; with that many
    counts, if any."""
    X, b = sample.X, sample.log_cost
    state, errors = None, {}
    for n in range(1, max(sizes) + 1):
        own = Counts(sample, counts, n) if counts else None
        chosen = cost_choice.choose(X[:n], b[:n], sample.groups, sample.ratios, state, own=own)
        state = chosen.state
        if n in sizes:
            errors[n] = rmse(chosen.model.predict(X[test])[0], b[test])
    return errors


def repetition(sample: Sample, sizes: Sequence[int]) -> list[dict[str, float]]:
    """Error of every model, per size."""
    test = slice(max(sizes), None)
    b, Z = sample.log_cost, log_cost.LogFeatures(np.asarray(sample.ratios))(sample.X)
    automatic = automatic_errors(sample, sizes, test)
    counting = {} if sample.counts is None else automatic_errors(sample, sizes, test, ALL_COUNTS)
    rows = []
    for n in sizes:
        models = single_models(Z[:n], b[:n], sample.groups)
        row = {AUTO: automatic[n], **{name: rmse(model.predict(Z[test])[0], b[test]) for name, model in models.items()}}
        if sample.counts is not None:
            row.update(count_errors(sample, n, test), **{"auto-updates": counting[n]})
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
