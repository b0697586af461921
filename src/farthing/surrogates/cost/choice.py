"""Which model of log cost to believe: all of them, weighted by how well each predicts every cost from the others.

Symbols and shapes
    X (n, f), b (n,)   features in the unit cube and log costs;  groups, ratios (f,) as in log_cost
    D (n, k)           log density of observation i under candidate m fitted without it
    a (k,)             prior weights, summing to 1;  w (k,) the weights

Candidates: lines in the 1, 2, 3 most significant parameters and in all; from PROCESSES_FROM observations on also a
Gaussian process (gp), one on the residuals of the line in all parameters (gp-lv), and one on the three most significant
parameters (gp-selected). Picking one winner by leave-one-out density is unstable and, with a dozen observations, often
picks a process that is far too sure of itself; the average is more accurate than its best member (Yao et al. 2018,
"Using Stacking to Average Bayesian Predictive Distributions"). The weights are the fixed point of

    w_m = (t a_m + sum_i w_m exp(D_im) / sum_l w_l exp(D_il)) / (t + n)

which climbs sum_i log sum_m w_m exp(D_im) + t sum_m a_m log w_m. The strength t of the prior fades once there is enough
data to tell a process that is right from lines that are nearly right. Among lines a follows the evidence, which needs
fewer observations than leaving one out; processes have fixed shares. Weights below LEAST_WEIGHT are dropped.

A model that the user counts (`own`) competes with them, and so does a process on it (`counted`). A user who wants one
model names it: that one is fitted to all observations, from the first on, and nothing is averaged.

`state` holds all that the next call needs to continue from here; `refits` says when processes are fitted again, and
when a contest is due. Between contests of one process the weights stay, and what has none is not fitted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from farthing.errors import InvalidArgument
from farthing.numerics.arrays import Array, Ints
from farthing.surrogates.cost.averages import Average, Corrected
from farthing.surrogates.cost.counted import CountingCostModel, OnCounts, UserCostModel
from farthing.surrogates.cost.lines import SIZES, LinearCost, fit_sizes
from farthing.surrogates.cost.log_cost import CostModel, LogFeatures, OnLogFeatures
from farthing.surrogates.cost.refits import LONE_PROCESS_FROM, ON_COUNTS, Process, Refits, contest_is_due

CostModelName: TypeAlias = Literal[
    "auto", "gp", "line1", "line2", "line3", "gp-lv", "gp3", "flops", "flops-huber", "gp-flops"
]
OWN = "own"  # the candidate that the user counts
CANDIDATE: Mapping[CostModelName, str] = {
    "gp": "gp",
    "line1": "linear-1",
    "line2": "linear-2",
    "line3": "linear-3",
    "gp-lv": "gp-lv",
    "gp3": "gp-selected",
    "flops": OWN,
    "flops-huber": OWN,
    "gp-flops": ON_COUNTS,
}  # what each name is among the candidates
COUNTING = frozenset(name for name, candidate in CANDIDATE.items() if candidate in (OWN, ON_COUNTS))
COUNTS_NEEDED = "cost_features=, a function that counts what the evaluation of a config does"

PRIOR_STRENGTH, FADES_FROM = 5.0, 20  # t in observations, and the n from which it falls as 1 / n
# Of the prior, where the lines together have 1. The process on counts has what counts have: on 12 tables of networks
# that makes errors 5 to 19 % smaller than without it. Half of it is up to 5 % worse, twice as much up to 6 % better at
# 8 observations and no better from 20 on.
PROCESS_SHARES = {"gp": 0.25, "gp-lv": 0.5, "gp-selected": 0.1, ON_COUNTS: 1.0}
OWN_SHARE = 1.0  # of a model that counts what the program does: as much as all lines together
LEAST_SHARE = 0.02  # of each line, however small its evidence
LEAST_WEIGHT = 0.05  # a model below it changes the average little and costs as much to predict
FEWEST_OF_PROCESS = 2  # observations, where a process is wanted alone
STACKING_STEPS = 20  # of the fixed point, whose first steps go most of the way
TITLES = {
    "linear": "a line in all parameters",
    "linear-0": "a constant",
    "linear-1": "a line in 1 parameter",
    "linear-2": "a line in 2 parameters",
    "linear-3": "a line in 3 parameters",
    "gp": "a Gaussian process",
    "gp-lv": "a Gaussian process on a line",
    "gp-selected": "a Gaussian process in 3 parameters",
    OWN: "the given cost features",
    ON_COUNTS: "a Gaussian process on the given cost features",
}


@dataclass(frozen=True, eq=False)
class Chosen:
    """The average of cost models, and why it is what it is."""

    model: CostModel
    name: str  # of the heaviest candidate
    weights: dict[str, float]  # of those in the average, heaviest first
    scores: dict[str, float]  # leave-one-out log density of each candidate, summed over the observations
    significant: tuple[int, ...]  # parameters, most significant first
    reason: str
    state: dict[str, Any]  # JSON


def choose(
    X: Array,
    b: Array,
    groups: Sequence[int] | Ints,
    ratios: Array,
    stored: Mapping[str, Any] | None = None,
    *,
    prior: CostModel | None = None,
    intercept_strength: float = 0.0,
    own: UserCostModel | None = None,
    refit: bool = True,
    model: CostModelName = "auto",
    seen: int = 0,
) -> Chosen:
    """The model of log costs b (n,) at X (n, f), n >= 1; `stored` is the state of the last choice.

    With a `prior` the candidates are models of its residuals, a constant among them: if the prior has the right shape,
    there is nothing else to learn. Its own intercept counts as `intercept_strength` observations. `own` is a candidate
    of the user that competes with them, a model of the whole cost. With `refit=False` no hyperparameters are searched
    for, and no contest is held: weights and processes are those of the last choice. If none was stored, lines compete.
    A `model` by name stands alone. Where X and b are some of many costs, `seen` says of how many.

    >>> X = np.random.default_rng(0).random((7, 3))
    >>> chosen = choose(X, 2.0 + 5.0 * X[:, 1], [0, 1, 2], np.ones(3))
    >>> chosen.name, chosen.significant[0]
    ('linear-1', 1)
    >>> choose(X, 2.0 + 5.0 * X[:, 1], [0, 1, 2], np.ones(3), model="gp").reason
    'log cost by a Gaussian process'
    """
    counts = own if isinstance(own, CountingCostModel) else None
    if model in COUNTING and counts is None:
        raise InvalidArgument(f"cost_model: {model!r} needs {COUNTS_NEEDED}")
    features, owners = LogFeatures(np.asarray(ratios, dtype=np.float64)), np.asarray(groups, dtype=np.intp)
    Z, b = features(np.asarray(X, dtype=np.float64)), np.asarray(b, dtype=np.float64)
    if prior is not None:
        b = b - prior.mean_at(X)
    sizes: Sequence[int] = SIZES if prior is None or model != "auto" else (0, *SIZES)
    stays = _without_contest(stored or {}, max(seen, len(b)), own, refit) if model == "auto" else None
    if stays is not None:
        sizes = [size for size in sizes if _line_of(size) in stays.weights]
    lines = _lines(Z, b, owners, sizes, intercept_strength, None if stays is None else stays.order)
    fits = Refits(Z, b, owners, features, lines["linear"], stored or {}, refit, counts, seen)
    if stays is not None:
        weights, processes, state = _rest(stays.weights, fits)
    elif model == "auto":
        weights, processes, state = _contest(lines, fits, own)
    else:
        weights, processes, state = _alone(CANDIDATE[model], lines, fits)
    return Chosen(
        model=_average({**lines, **processes}, weights, features, prior, own), name=next(iter(weights)),
        weights=weights, scores=state["scores"], significant=lines["linear"].selected, reason=_reason(weights),
        state={**state, "weights": weights, "order": list(lines["linear"].selected)},
    )  # fmt: skip


Weights = dict[str, float]  # of those in the average, heaviest first
Processes = dict[str, Process]


class Stays(NamedTuple):
    """What was found by the last contest, and holds until the next one."""

    weights: Weights
    order: Sequence[int]  # of the parameters, most significant first


def _without_contest(stored: Mapping[str, Any], n: int, own: UserCostModel | None, refit: bool) -> Stays | None:
    """What stays as it is at n observations; None where a contest is due, or the last one had other candidates."""
    weights, scores = stored.get("weights", {}), stored.get("scores", {})
    is_due = refit and contest_is_due(stored, n)
    if "order" not in stored or not weights or is_due or not weights.keys() <= scores.keys():
        return None
    counted = {OWN: own is not None, ON_COUNTS: isinstance(own, CountingCostModel)}
    is_same = all((name in scores) == is_there for name, is_there in counted.items())
    return Stays(dict(weights), stored["order"]) if is_same else None


def _rest(weights: Weights, fits: Refits) -> tuple[Weights, Processes, dict[str, Any]]:
    """The candidates that have a weight, the processes among them, and the state."""
    processes = {name: fits.process(name) for name in weights if name in PROCESS_SHARES}
    return weights, processes, fits.state(processes, {}, fits.stored["leader"])


def _contest(
    lines: Mapping[str, LinearCost], fits: Refits, own: UserCostModel | None
) -> tuple[Weights, Processes, dict[str, Any]]:
    """All candidates by weight, the processes among them, and the state."""
    processes = {name: fits.process(name) for name in fits.competing()}
    weights, scores = _weighed(lines, processes, own)
    leader = max(processes, key=lambda name: weights[name], default=None)
    state = fits.state(processes, scores, leader)
    if leader is not None and len(fits.b) >= LONE_PROCESS_FROM and len(processes) > 1:
        processes = {leader: processes[leader]}
        weights = _weighed(lines, processes, own)[0]
    return _kept(weights), processes, state


def _alone(name: str, lines: Mapping[str, LinearCost], fits: Refits) -> tuple[Weights, Processes, dict[str, Any]]:
    """One candidate. A line in more parameters than there are is the one in all. One observation has no spread that a
    process could learn, and would be believed everywhere: it is a line's, or the counts'."""
    if name == OWN or (name == ON_COUNTS and len(fits.b) < FEWEST_OF_PROCESS):
        return {OWN: 1.0}, {}, fits.state({}, {}, None)
    if name.startswith("linear") or len(fits.b) < FEWEST_OF_PROCESS:
        return {name if name in lines else "linear": 1.0}, {}, fits.state({}, {}, None)
    processes = {name: fits.process(name)}
    return {name: 1.0}, processes, fits.state(processes, {}, name)


def _average(
    models: Mapping[str, CostModel], kept: Mapping[str, float], features: LogFeatures, prior: CostModel | None,
    own: UserCostModel | None,
) -> CostModel:  # fmt: skip
    """One model of X: the average of those of Z on top of the prior, and of that with the user's own model."""
    inner = {name: weight for name, weight in kept.items() if name not in (OWN, ON_COUNTS)}
    share = sum(inner.values())
    if own is not None and not inner:
        return _counted(own, models, kept)
    averaged = tuple(models[name] for name in inner)
    average = averaged[0] if len(averaged) == 1 else Average(averaged, np.array(list(inner.values())) / share)
    found: CostModel = OnLogFeatures(average, features)
    if prior is not None:
        found = Corrected(prior, found)
    if own is None or len(inner) == len(kept):
        return found
    return Average((found, _counted(own, models, kept)), np.array([share, sum(kept.values()) - share]))


def _counted(own: UserCostModel, models: Mapping[str, CostModel], kept: Mapping[str, float]) -> CostModel:
    """The user's own model, a process on it, or the average of the two."""
    alone, process = kept.get(OWN, 0.0), models.get(ON_COUNTS)
    if ON_COUNTS not in kept or not isinstance(process, OnCounts):
        return own
    return replace(process, share=kept[ON_COUNTS] / (kept[ON_COUNTS] + alone))


def _lines(
    Z: Array, b: Array, groups: Ints, wanted: Sequence[int], intercept_strength: float, order: Sequence[int] | None
) -> dict[str, LinearCost]:
    sizes = fit_sizes(Z, b, groups, wanted, intercept_strength, order)
    everything = next(iter(sizes))  # the one on all parameters comes first
    return {"linear" if size == everything else _line_of(size): model for size, model in sizes.items()}


def _line_of(size: int) -> str:
    return f"linear-{size}"


def stacked(D: Array, prior: Array) -> Array:
    """Weights (k,) from log densities D (n, k) and prior weights (k,), summing to 1.

    >>> stacked(np.log([[0.9, 0.1], [0.8, 0.2], [0.9, 0.1]]), np.array([0.5, 0.5])).round(2).tolist()
    [0.66, 0.34]
    """
    relative = np.exp(D - D.max(axis=1, keepdims=True))
    w, strength = prior, PRIOR_STRENGTH * min(1.0, FADES_FROM / len(D))
    for _ in range(STACKING_STEPS):
        shares = relative * w
        shares /= shares.sum(axis=1, keepdims=True)
        w = (strength * prior + shares.sum(axis=0)) / (strength + len(D))
    return w


def _weighed(
    lines: Mapping[str, LinearCost], processes: Mapping[str, Process], own: UserCostModel | None
) -> tuple[dict[str, float], dict[str, float]]:
    """Weight and score of each candidate."""
    candidates: dict[str, LinearCost | Process | UserCostModel] = {**lines, **processes}
    parts = [PROCESS_SHARES[name] for name in processes]
    if own is not None:
        candidates, parts = {**candidates, OWN: own}, [*parts, OWN_SHARE]
    D = np.column_stack([model.log_densities() for model in candidates.values()])
    w = stacked(D, _prior(lines, parts))
    return dict(zip(candidates, w.tolist(), strict=True)), dict(zip(candidates, D.sum(axis=0).tolist(), strict=True))


def _prior(lines: Mapping[str, LinearCost], others: Sequence[float]) -> Array:
    """Prior weights: 1 is divided among the lines by evidence; the others have fixed shares."""
    evidence = np.array([line.log_evidence for line in lines.values()])
    share = np.exp(evidence - evidence.max())
    parts = np.append(share / share.sum() + LEAST_SHARE, others)
    return np.asarray(parts / parts.sum())


def _kept(weights: Mapping[str, float]) -> dict[str, float]:
    """The weights that are large enough to keep, heaviest first, summing to 1."""
    least = min(LEAST_WEIGHT, max(weights.values()))
    kept = {name: weights[name] for name in sorted(weights, key=lambda k: -weights[k]) if weights[name] >= least}
    total = sum(kept.values())
    return {name: weight / total for name, weight in kept.items()}


def _reason(weights: Mapping[str, float]) -> str:
    if len(weights) == 1:
        return f"log cost by {TITLES[next(iter(weights))]}"
    return "log cost by " + ", ".join(f"{TITLES[name]} ({weight:.0%})" for name, weight in weights.items())
