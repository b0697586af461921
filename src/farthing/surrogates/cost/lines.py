"""Low-variance models of log cost: linear in a few parameters, robust, with a prior that makes two points enough.

Symbols and shapes
    Z      (n, f)  features in the unit cube, sizes as logs;  groups (f,) the parameter each column belongs to
    b      (n,)    log costs
    S              the q columns of the selected parameters; a categorical one comes with all its dummies
    v      (n,)    Huber weights, min(1, k / |r_i / s|) for residuals r
    w, s^2         weights of the columns and variance of the residuals

    b_i = intercept + (z_i - centre) . w + s e_i,   w | s ~ N(0, s^2 / RIDGE),
    s^2 ~ inverse gamma worth NOISE_STRENGTH observations of standard deviation NOISE_PRIOR,
    the intercept with a flat prior, or one worth k observations of 0

so a parameter moves log cost by about NOISE_PRIOR / sqrt(RIDGE) across its range, in either direction, until the data
say otherwise: two points give little more than their geometric mean. Given v everything is one small solve,

    A = Zc' V Zc + RIDGE I,   w = A^-1 Zc' V b,   Q = sum v r^2 + RIDGE |w|^2 = b' V b - w . Zc' V b
    s^2 = (NOISE_STRENGTH NOISE_PRIOR^2 + Q / kappa) / (NOISE_STRENGTH + n - 1),   kappa = 2 Phi(k) - 1 = E[psi(e) e]

and v and s follow in turn: iteratively reweighted least squares, whose fixed point minimises
sum_i rho(r_i; k s) + RIDGE |w|^2 / 2 with Huber's rho. Kappa makes s consistent for normal residuals.

Leaving observation i out, with u_i = 1 / sum v + z_i' A^-1 z_i and h_i = v_i u_i,
has a closed form too (v fixed):

    r_i^-i = r_i / (1 - h_i),   u_i^-i = u_i / (1 - h_i),   Q^-i = Q - v_i r_i^2 / (1 - h_i)

The predictive law is Student's t with NOISE_STRENGTH + n - 1 degrees of freedom and squared scale s^2 (1 + u): misfit
and noise, and a leverage that grows away from the data. `predict` gives the variance of that law: that of the log cost
of one new evaluation. Beyond the observed log costs the mean bends: it exceeds them by less than one range plus 3 s,
and stays monotone.

Parameters are chosen by greedy forward selection. The evidence of a set S of parameters with q columns is, up to what
all sets share,

    RIDGE^(q/2) |A|^(-1/2) (NOISE_STRENGTH NOISE_PRIOR^2 + Q)^(-(NOISE_STRENGTH + n - 1) / 2),

which charges a categorical parameter for its dummies. All sets read the same Gram matrix Zc' V Zc, with the v of the
fit on all parameters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import comb

import numpy as np

from farthing.numerics.arrays import Array, Ints
from farthing.numerics.late_scipy import dpotrf, dpotrs, gammaln
from farthing.numerics.linalg import backward, forward
from farthing.surrogates.fitting import grouped

NOISE_PRIOR, NOISE_STRENGTH = 0.3, 3.0  # a guess of 30 % misfit and noise, soon outweighed
HUBER = 1.345  # k: 95 % as efficient as least squares where residuals are normal
KAPPA = 0.8213747654313259  # 2 Phi(k) - 1, written out: SciPy is not imported for a constant


def huber_weights(residuals: Array, scale: float) -> Array:
    """v (n,): 1 up to k s, and then such that the pull of a residual no longer grows."""
    return np.asarray(np.minimum(1.0, HUBER * scale / np.maximum(np.abs(residuals), 1e-300)))


def student_spread(n: int) -> float:
    """Variance over squared scale of the predictive law from n observations."""
    return (NOISE_STRENGTH + n - 1.0) / (NOISE_STRENGTH + n - 3.0)


def residual_scale(Q: float, n: int) -> float:
    """s from the penalised sum of weighted squares Q."""
    return float(np.sqrt((NOISE_STRENGTH * NOISE_PRIOR**2 + max(Q, 0.0) / KAPPA) / (NOISE_STRENGTH + n - 1.0)))


def deleted_square(residuals: Array, deleted: Array, u: Array, v: Array, scale: float) -> Array:
    """Squared scale (n,) of the law of each observation given all others; `deleted` are residuals without it."""
    freedom = NOISE_STRENGTH + len(v) - 1.0
    total = np.maximum(freedom * scale**2 - v * residuals * deleted / KAPPA, NOISE_STRENGTH * NOISE_PRIOR**2)
    return np.asarray(total / max(freedom - 1.0, 1.0) * (1.0 + u))


def log_student(residuals: Array, square: Array, freedom: float) -> Array:
    """log density of Student's t with squared scale `square`."""
    constant = gammaln((freedom + 1.0) / 2.0) - gammaln(freedom / 2.0) - 0.5 * np.log(freedom * np.pi)
    tail = np.log1p(residuals**2 / (freedom * square))
    return np.asarray(constant - 0.5 * np.log(square) - 0.5 * (freedom + 1.0) * tail)


RIDGE = 0.05  # a parameter moves log cost by about NOISE_PRIOR / sqrt(RIDGE) = 1.3 until the data say otherwise


def solved(L: Array, B: Array) -> Array:
    """L^-1 B, also for an empty L."""
    return forward(L, B) if len(L) else B


def ridge_factor(gram: Array) -> Array:
    """Lower factor of Zc' V Zc + RIDGE I; the ridge makes it exist."""
    return np.asarray(dpotrf(gram + RIDGE * np.eye(len(gram)), lower=1, clean=1)[0]) if len(gram) else gram


@dataclass(frozen=True, eq=False)
class Evidence:
    """log evidence of sets of parameters, all from one Gram matrix."""

    owned: Sequence[Ints]  # columns of each parameter
    gram: Array  # (f, f) Zc' V Zc
    moment: Array  # (f,) Zc' V b
    total: float  # b' V b
    n: int

    @classmethod
    def of(cls, Z: Array, b: Array, owned: Sequence[Ints], v: Array) -> Evidence:
        C, t = Z - v @ Z / v.sum(), b - v @ b / v.sum()
        return cls(owned, (C * v[:, None]).T @ C, C.T @ (v * t), float(v @ t**2), len(b))

    def __call__(self, parameters: tuple[int, ...]) -> float:
        S = np.concatenate([np.empty(0, dtype=np.intp), *(self.owned[j] for j in parameters)])
        L = ridge_factor(self.gram[np.ix_(S, S)])
        half = solved(L, self.moment[S])
        left = NOISE_STRENGTH * NOISE_PRIOR**2 + max(self.total - float(half @ half), 0.0)
        determinant = 0.5 * len(S) * np.log(RIDGE) - float(np.log(L.diagonal()).sum())
        return float(determinant - 0.5 * (NOISE_STRENGTH + self.n - 1.0) * np.log(left))

    def forward_selection(self, size: int) -> tuple[int, ...]:
        """The `size` most significant parameters, each the one that adds most evidence to those before it."""
        chosen: tuple[int, ...] = ()
        while len(chosen) < size:
            others = [j for j in range(len(self.owned)) if j not in chosen]
            chosen = (*chosen, max(others, key=lambda j, chosen=chosen: self((*chosen, j))))  # type: ignore[misc]
        return chosen


ITERATIONS, TOLERANCE = 25, 1e-6  # relative change of the scale
SIZES = (1, 2, 3)  # parameters of the low-variance models; one on all parameters comes with them
BEYOND = 3.0  # in s: how far, on top of one range, a mean may leave the observed costs


@dataclass(frozen=True, eq=False)
class LinearCost:
    """A fitted model on the parameters `selected`, most significant first."""

    selected: tuple[int, ...]
    columns: Ints  # (q,) of the f columns
    centre: Array  # (q,)
    intercept: float
    weights: Array  # (q,)
    L: Array  # (q, q) lower factor of A
    scale: float  # s
    v: Array  # (n,)
    residuals: Array  # (n,) of the unbent mean
    basis: Array  # (n, q + 1): rows p_i with p_i . p_j = 1 / (sum v + k) + z_i' A^-1 z_j
    weight: float  # sum v + k
    low: float  # smallest and largest observed log cost
    high: float
    log_evidence: float = 0.0  # of its set of parameters, less the log of how many sets have that size

    @property
    def freedom(self) -> float:
        """Degrees of freedom of the predictive law."""
        return NOISE_STRENGTH + len(self.v) - 1.0

    @property
    def noise(self) -> float:
        """Variance of the residuals: misfit and noise."""
        return student_spread(len(self.v)) * self.scale**2

    def predict(self, Z: Array) -> tuple[Array, Array]:
        """Mean (m,) and variance (m,) of log cost at Z (m, f)."""
        mean, variance = self.trend(Z)
        return mean, variance + self.noise

    def predict_with_gradient(self, Z: Array) -> tuple[Array, Array, Array, Array]:
        """mean (m,), variance (m,), d mean / dZ (m, f), d variance / dZ (m, f)."""
        mean, variance, mean_slope, variance_slope = self.trend_with_gradient(Z)
        return mean, variance + self.noise, mean_slope, variance_slope

    def mean_at(self, Z: Array) -> Array:
        """Mean (m,) alone."""
        return self._bend(self._line(Z))[0]

    def mean_with_gradient(self, Z: Array) -> tuple[Array, Array]:
        """mean (m,) and d mean / dZ (m, f)."""
        mean, bend = self._bend(self._line(Z))
        slope = np.zeros_like(Z)
        slope[:, self.columns] = bend[:, None] * self.weights
        return mean, slope

    def _line(self, Z: Array) -> Array:
        return np.asarray(self.intercept + (Z[:, self.columns] - self.centre) @ self.weights)

    def trend(self, Z: Array) -> tuple[Array, Array]:
        """The line without its misfit: mean (m,) and the variance (m,) of intercept and weights."""
        return self.mean_at(Z), self.noise * self._leverage(Z[:, self.columns] - self.centre)[0]

    def trend_with_gradient(self, Z: Array) -> tuple[Array, Array, Array, Array]:
        mean, mean_slope = self.mean_with_gradient(Z)
        leverage, solved = self._leverage(Z[:, self.columns] - self.centre)
        variance_slope = np.zeros_like(Z)
        variance_slope[:, self.columns] = 2.0 * self.noise * solved
        return mean, self.noise * leverage, mean_slope, variance_slope

    def _leverage(self, A: Array) -> tuple[Array, Array]:
        """u (m,) and A^-1 z (m, q) at centred rows."""
        V = solved(self.L, A.T)
        return 1.0 / self.weight + np.einsum("ij,ij->j", V, V), backward(self.L, V).T if len(V) else A

    def _bend(self, mean: Array) -> tuple[Array, Array]:
        """The mean, with its excess t over the observed costs bent to room (1 - exp(-t / room)), and its slope."""
        room = self.high - self.low + BEYOND * self.scale
        inside = np.clip(mean, self.low, self.high)
        excess = mean - inside
        slope = np.exp(-np.abs(excess) / room)
        return inside + np.sign(excess) * room * (1.0 - slope), slope

    @cached_property
    def deleted(self) -> tuple[Array, Array]:
        """Of each observation given all others: residual of the unbent mean and u."""
        u = np.einsum("ij,ij->i", self.basis, self.basis)
        kept = np.maximum(1.0 - self.v * u, 1e-9)  # a single observation has leverage 1
        return self.residuals / kept, u / kept

    def leave_one_out(self) -> tuple[Array, Array]:
        """Residual (n,) of each observation and squared scale (n,) of its predictive law, given all the others."""
        residuals, u = self.deleted
        return residuals, deleted_square(self.residuals, residuals, u, self.v, self.scale)

    def log_densities(self) -> Array:
        """log density (n,) of each observation given all the others."""
        return log_student(*self.leave_one_out(), max(self.freedom - 1.0, 1.0))


def fit(Z: Array, b: Array, groups: Sequence[int] | Ints | None = None) -> LinearCost:
    """The model whose number of parameters predicts each log cost best from the others.

    >>> Z = np.random.default_rng(0).random((20, 4))
    >>> model = fit(Z, 1.0 + 6.0 * Z[:, 2])
    >>> model.selected[0], model.weights.round().tolist()[0]
    (2, 6.0)
    """
    models = fit_sizes(Z, b, groups)
    return max(models.values(), key=lambda model: float(model.log_densities().sum()) if len(b) > 1 else 0.0)


def fit_sizes(
    Z: Array, b: Array, groups: Sequence[int] | Ints | None = None, sizes: Sequence[int] = SIZES,
    intercept_strength: float = 0.0, order: Sequence[int] | None = None,
) -> dict[int, LinearCost]:  # fmt: skip
    """Models by number of parameters: the one on all parameters first, then those on the 1, 2, 3 most significant.

    An intercept of 0 counts as `intercept_strength` observations. Where the `order` of significance is given, the
    evidence is not asked, and not stated.
    """
    columns = grouped(groups, Z.shape[1])
    owned = [np.flatnonzero(columns == j) for j in range(int(columns.max(initial=-1)) + 1)]
    d, everyone = len(owned), tuple(range(len(owned)))
    everything = huber(Z, b, everyone, owned, np.ones(len(b)), intercept_strength)
    smaller = [size for size in sizes if size < d]
    if order is not None:
        ranked = tuple(order)
        known = {size: huber(Z, b, ranked[:size], owned, everything.v, intercept_strength) for size in smaller}
        return {d: replace(everything, selected=ranked), **known}
    evidence = Evidence.of(Z, b, owned, everything.v)
    first = evidence.forward_selection(min(d, max(sizes)))
    others = tuple(j for j in everyone if j not in first)
    models = {d: replace(everything, selected=first + others, log_evidence=evidence(everyone))}
    for size in smaller:
        some = first[:size]
        model = huber(Z, b, some, owned, everything.v, intercept_strength)
        models[size] = replace(model, log_evidence=evidence(some) - np.log(comb(d, size)))
    return models


def huber(
    Z: Array, b: Array, selected: tuple[int, ...], owned: Sequence[Ints], v: Array, intercept_strength: float = 0.0
) -> LinearCost:
    """The model on some parameters, by iteration from Huber weights v (n,)."""
    columns = np.concatenate([np.empty(0, dtype=np.intp), *(owned[j] for j in selected)])
    A = Z[:, columns]
    scale = np.inf
    for _ in range(ITERATIONS):
        before, (intercept, centre, weights, L, residuals, scale) = scale, _weighted(A, b, v, intercept_strength)
        v = huber_weights(residuals, scale)
        if abs(scale - before) <= TOLERANCE * scale:
            break
    weight = float(v.sum()) + intercept_strength
    basis = np.column_stack([np.full(len(b), weight**-0.5), solved(L, (A - centre).T).T])
    low, high = float(b.min()), float(b.max())
    return LinearCost(
        selected, columns, centre, intercept, weights, L, scale, v, residuals, basis, weight, low, high
    )  # fmt: skip


def _weighted(A: Array, b: Array, v: Array, k: float = 0.0) -> tuple[float, Array, Array, Array, Array, float]:
    """intercept, centre, w, L, residuals and s for given weights v."""
    centre, intercept = v @ A / v.sum(), float(v @ b / (v.sum() + k))
    C, t = A - centre, b - intercept
    weighted = C * v[:, None]
    L = ridge_factor(weighted.T @ C)
    weights = dpotrs(L, weighted.T @ t, lower=1)[0] if len(L) else np.empty(0)
    residuals = t - C @ weights
    scale = residual_scale(float(v @ (t * residuals)) + k * intercept**2, len(b))
    return intercept, centre, weights, L, residuals, scale
