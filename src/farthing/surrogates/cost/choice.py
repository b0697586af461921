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
fewer observations than leaving one out; processes have fixed shares. Weights below LEAST_WEIGHT are dropped. The
average has

    mean = sum w mu,   variance = sum w (s^2 + mu^2) - mean^2,   d variance = sum w (ds^2 + 2 (mu - mean) dmu)

`state` holds all that the next call needs to continue from here.

Processes are fitted again so that their cost grows slowly with the data. From LONE_PROCESS_FROM observations on, the
average holds one process, the heaviest at the last contest: every prediction pays for each. Contests among all are held
when the data have grown by 10 %; in between the scores of the others stay as they were. Hyperparameters are searched
for again when the data have grown by 10 %, those of the heaviest process by 2 %, and from several starts when they have
doubled. In between a process takes in new observations with the hyperparameters it has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from farthing.numerics.arrays import Array, Ints
from farthing.surrogates import gp
from farthing.surrogates.cost import log_cost
from farthing.surrogates.cost.lines import SIZES, LinearCost, fit_sizes
from farthing.surrogates.cost.log_cost import CostModel, CostProcess, LogFeatures, OnLogFeatures


@dataclass(frozen=True, eq=False)
class Average(CostModel):
    """A weighted mixture of models, represented by its mean and variance."""

    models: tuple[CostModel, ...]
    weights: Array  # (k,), sum 1

    def predict(self, X: Array) -> tuple[Array, Array]:
        """Mean (m,) and variance (m,) at X (m, f)."""
        means, variances = (np.array(part) for part in zip(*(model.predict(X) for model in self.models), strict=True))
        mean = self.weights @ means
        return mean, self.weights @ (variances + (means - mean) ** 2)

    def predict_with_gradient(self, X: Array) -> tuple[Array, Array, Array, Array]:
        """mean (m,), variance (m,), d mean / dX (m, f), d variance / dX (m, f)."""
        parts = zip(*(model.predict_with_gradient(X) for model in self.models), strict=True)
        means, variances, mean_slopes, variance_slopes = (np.array(part) for part in parts)  # (k, m) and (k, m, f)
        w, mean = self.weights, self.weights @ means
        apart = means - mean
        slope = np.tensordot(w, mean_slopes, 1)
        spread = np.tensordot(w, variance_slopes + 2.0 * apart[:, :, None] * mean_slopes, 1)  # sum w apart = 0
        return mean, w @ (variances + apart**2), slope, spread

    def mean_at(self, X: Array) -> Array:
        return np.asarray(self.weights @ np.array([model.mean_at(X) for model in self.models]))

    def mean_with_gradient(self, X: Array) -> tuple[Array, Array]:
        parts = zip(*(model.mean_with_gradient(X) for model in self.models), strict=True)
        means, slopes = (np.array(part) for part in parts)
        return self.weights @ means, np.tensordot(self.weights, slopes, 1)


@dataclass(frozen=True, eq=False)
class Corrected(CostModel):
    """A prior mean, and a model of how the observations differ from it."""

    prior: CostModel
    correction: CostModel

    def predict(self, X: Array) -> tuple[Array, Array]:
        """Mean (m,) and variance (m,) at X (m, f): only the correction is uncertain."""
        mean, variance = self.correction.predict(X)
        return self.prior.mean_at(X) + mean, variance

    def predict_with_gradient(self, X: Array) -> tuple[Array, Array, Array, Array]:
        """mean (m,), variance (m,), d mean / dX (m, f), d variance / dX (m, f)."""
        mean, variance, mean_slope, variance_slope = self.correction.predict_with_gradient(X)
        prior, prior_slope = self.prior.mean_with_gradient(X)
        return prior + mean, variance, prior_slope + mean_slope, variance_slope

    def mean_at(self, X: Array) -> Array:
        return self.prior.mean_at(X) + self.correction.mean_at(X)

    def mean_with_gradient(self, X: Array) -> tuple[Array, Array]:
        prior, prior_slope = self.prior.mean_with_gradient(X)
        mean, slope = self.correction.mean_with_gradient(X)
        return prior + mean, prior_slope + slope


PROCESSES = ("gp", "gp-lv", "gp-selected")
PROCESSES_FROM = 8  # observations: with fewer, a process is often far too sure of itself
SELECTED = 3  # parameters of gp-selected
LONE_PROCESS_FROM = 50  # observations: from here on a process is expensive enough to keep only one
GROWTH, LEADER_GROWTH, COLD_GROWTH = 1.1, 1.02, 2.0  # of the data, as described above


@dataclass(frozen=True, eq=False)
class Refits:
    """Which processes compete, and their fits: from stored hyperparameters, searched for again when that is due."""

    Z: Array
    b: Array
    groups: Ints
    line: LinearCost
    stored: Mapping[str, Any]
    refit: bool = True  # whether any search for hyperparameters can be due

    def competing(self) -> tuple[str, ...]:
        n, leader = len(self.b), self.stored.get("leader")
        if n < PROCESSES_FROM:
            return ()
        if not self.refit:
            return () if leader is None or self._last(leader) is None else (leader,)
        if n < LONE_PROCESS_FROM or leader is None or n >= GROWTH * self.stored["contest_at"]:
            few = len(self.line.selected) <= SELECTED  # then gp-selected would leave nothing out
            return tuple(name for name in PROCESSES if not (few and name == "gp-selected"))
        return (leader,)

    def process(self, name: str) -> CostProcess:
        last, due, selected = self._last(name), self._due(name), self._selected(name)
        warm = None
        if last is not None and last["selected"] == selected:
            warm = gp.Hyperparameters.from_json(last["hyperparameters"])
            if len(self.b) < COLD_GROWTH * warm.cold_at:
                warm = replace(warm, cold_at=len(self.b))  # keeps gp.fit from its own cold start, which comes earlier
        trend = self.line if name == "gp-lv" else None
        return log_cost.process(self.Z, self.b, self.groups, selected=selected, trend=trend, warm=warm, refit=due)

    def state(
        self, processes: Mapping[str, CostProcess], scores: Mapping[str, float], leader: str | None
    ) -> dict[str, Any]:
        """JSON for the next call. Processes that did not compete keep what was stored."""
        contest = len(processes) > 1
        return {
            "n": len(self.b),
            "leader": leader,
            "contest_at": len(self.b) if contest else self.stored.get("contest_at", 0),
            "scores": {**self.stored.get("scores", {}), **scores},
            "processes": {
                **self.stored.get("processes", {}),
                **{name: self._stored_fit(name, process) for name, process in processes.items()},
            },
        }

    def _stored_fit(self, name: str, process: CostProcess) -> dict[str, Any]:
        last, n, found = self._last(name), len(self.b), process.process.hyperparameters
        warmed = last is not None and n < COLD_GROWTH * last["hyperparameters"]["cold_at"]
        cold_at = last["hyperparameters"]["cold_at"] if last is not None and warmed else found.cold_at
        at = n if last is None or self._due(name) else last["at"]
        hyperparameters = replace(found, cold_at=cold_at).as_json()
        return {"hyperparameters": hyperparameters, "at": at, "selected": self._selected(name)}

    def _last(self, name: str) -> dict[str, Any] | None:
        remembered: dict[str, Any] | None = self.stored.get("processes", {}).get(name)
        return remembered

    def _due(self, name: str) -> bool:
        last, growth = self._last(name), LEADER_GROWTH if name == self.stored.get("leader") else GROWTH
        if not self.refit:
            return False
        return last is None or len(self.b) >= growth * last["at"]

    def _selected(self, name: str) -> list[int] | None:
        """Parameters of gp-selected: the stored ones until new hyperparameters are due."""
        if name != "gp-selected":
            return None
        last = self._last(name)
        return list(self.line.selected[:SELECTED]) if last is None or self._due(name) else last["selected"]


PRIOR_STRENGTH, FADES_FROM = 5.0, 20  # t in observations, and the n from which it falls as 1 / n
PROCESS_SHARES = {"gp": 0.25, "gp-lv": 0.5, "gp-selected": 0.1}  # of the prior, where the lines together have 1
OWN_SHARE = 1.0  # of a model that counts what the program does: as much as all lines together
LEAST_SHARE = 0.02  # of each line, however small its evidence
LEAST_WEIGHT = 0.05  # a model below it changes the average little and costs as much to predict
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
    "own": "the given cost features",
}


class UserCostModel(CostModel, Protocol):
    """A further candidate, a model of the whole log cost at X itself: the features that the user counts."""

    def log_densities(self) -> Array: ...


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
) -> Chosen:
    """The model of log costs b (n,) at X (n, f), n >= 1; `stored` is the state of the last choice.

    With a `prior` the candidates are models of its residuals, a constant among them: if the prior has the right shape,
    there is nothing else to learn. Its own intercept counts as `intercept_strength` observations. `own` is a candidate
    of the user that competes with them. With `refit=False` no hyperparameters are searched for: of the processes only
    the one of the last choice is there, as it was stored.

    >>> X = np.random.default_rng(0).random((7, 3))
    >>> chosen = choose(X, 2.0 + 5.0 * X[:, 1], [0, 1, 2], np.ones(3))
    >>> chosen.name, chosen.significant[0]
    ('linear-1', 1)
    """
    features, owners = LogFeatures(np.asarray(ratios, dtype=np.float64)), np.asarray(groups, dtype=np.intp)
    Z, b = features(np.asarray(X, dtype=np.float64)), np.asarray(b, dtype=np.float64)
    if prior is not None:
        b = b - prior.mean_at(X)
    lines = _lines(Z, b, owners, SIZES if prior is None else (0, *SIZES), intercept_strength)
    fits = Refits(Z, b, owners, lines["linear"], stored or {}, refit)
    processes = {name: fits.process(name) for name in fits.competing()}
    weights, scores = _weighed(lines, processes, own)
    leader = max(processes, key=lambda name: weights[name], default=None)
    state = fits.state(processes, scores, leader)
    if leader is not None and len(b) >= LONE_PROCESS_FROM and len(processes) > 1:
        processes = {leader: processes[leader]}
        weights = _weighed(lines, processes, own)[0]
    kept = _kept(weights)
    return Chosen(
        model=_average({**lines, **processes}, kept, features, prior, own), name=next(iter(kept)), weights=kept,
        scores=state["scores"], significant=lines["linear"].selected, reason=_reason(kept),
        state={**state, "weights": kept},
    )  # fmt: skip


def _average(
    models: Mapping[str, CostModel], kept: Mapping[str, float], features: LogFeatures, prior: CostModel | None,
    own: UserCostModel | None,
) -> CostModel:  # fmt: skip
    """One model of X: the average of those of Z on top of the prior, and of that with the user's own model."""
    inner = {name: weight for name, weight in kept.items() if name != "own"}
    share = sum(inner.values())
    if own is not None and not inner:
        return own
    average = Average(tuple(models[name] for name in inner), np.array(list(inner.values())) / share)
    found: CostModel = OnLogFeatures(average, features)
    if prior is not None:
        found = Corrected(prior, found)
    return found if own is None or len(inner) == len(kept) else Average((found, own), np.array([share, kept["own"]]))


def _lines(Z: Array, b: Array, groups: Ints, wanted: Sequence[int], intercept_strength: float) -> dict[str, LinearCost]:
    sizes = fit_sizes(Z, b, groups, wanted, intercept_strength)
    everything = next(iter(sizes))  # the one on all parameters comes first
    return {"linear" if size == everything else f"linear-{size}": model for size, model in sizes.items()}


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
    lines: Mapping[str, LinearCost], processes: Mapping[str, CostProcess], own: UserCostModel | None
) -> tuple[dict[str, float], dict[str, float]]:
    """Weight and score of each candidate."""
    candidates: dict[str, LinearCost | CostProcess | UserCostModel] = {**lines, **processes}
    parts = [PROCESS_SHARES[name] for name in processes]
    if own is not None:
        candidates, parts = {**candidates, "own": own}, [*parts, OWN_SHARE]
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
