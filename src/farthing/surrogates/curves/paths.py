"""Joint draws of slopes that are at most 0, and what every other value and slope is given each of them.

Symbols and shapes (BAPI, section 3.3 and appendix A; Agrell 2019)
    Y          the observations, standardised and explained by `unconstrained`; its signal variance is the unit here
    F          k probes that are carried: slopes at virtual places, perhaps values;  C (S, k) their S joint draws
    B_1, B_F   (k, k)  covariance of F given Y, Eq. (13), and its lower factor
    E          (S, k)  the draws whitened: C = mean of F given Y + E B_F'
    Q          (v,)    the slopes of a curve that is asked for, at its own virtual places
    w          (S,)    weights of the draws, 1 / S each until a curve is asked for

That curves fall is imposed as C <= 0 at the virtual places: given Y the slopes there are normal, Eq. (10), and their
distribution below 0 is drawn from once per fit by minimax tilting (Botev 2017). Given Y and one draw everything else is
normal, Eq. (9): with V = L^-1 cov(Y, .) and U = B_F^-1 (cov(F, .) - V_F' V)
    mean = mean given Y + E U,      covariance = prior - V'V - U'U              (Eq. 11 to 18 without an inverse).

A curve that is asked for gets virtual places of its own. They are not drawn again with all the others: Genz's sequence
continues where the draws ended. Its slopes follow one by one, each from its normal given the draw and the slopes before
it, cut at 0. The probability of the part that is kept multiplies the weight of the draw, which makes the weighted draws
those of F and Q together. The uniform numbers of the sequence are made once per fit, so predictions are smooth in x and
the same in every call: a mixture of S normals of one variance.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from farthing.numerics import tilting
from farthing.numerics.arrays import Array, Ints, Mask
from farthing.numerics.late_scipy import ndtr
from farthing.numerics.linalg import cholesky, forward
from farthing.numerics.truncated import interval
from farthing.surrogates.curves import time_kernels
from farthing.surrogates.curves.unconstrained import CurveGP, Probes, different_rows
from farthing.surrogates.gp import TINY_VARIANCE


@dataclass(frozen=True, eq=False)
class Mixture:
    """S normals of one variance for each of p probes: weights (S, p), means (S, p), variance (p,)."""

    weights: Array
    means: Array
    variance: Array

    def moments(self) -> tuple[Array, Array]:
        """Mean (p,) and variance (p,) of the whole."""
        mean = np.einsum("ij,ij->j", self.weights, self.means)
        spread = self.means - mean
        return mean, self.variance + np.einsum("ij,ij,ij->j", self.weights, spread, spread)

    def quantiles(self, share: float) -> Array:
        """The values (p,) below which a share of the probability lies, by bisection."""
        reach = 10.0 * np.sqrt(self.variance)
        low, high = self.means.min(axis=0) - reach, self.means.max(axis=0) + reach
        sd = np.sqrt(self.variance)
        for _ in range(60):
            middle = 0.5 * (low + high)
            below = np.einsum("ij,ij->j", self.weights, ndtr((middle - self.means) / sd)) < share
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        return np.asarray(0.5 * (low + high))

    @property
    def effective(self) -> Array:
        """The effective number of draws (p,): how many of equal weight would say as much."""
        return np.asarray(1.0 / np.einsum("ij,ij->j", self.weights, self.weights))


MOST_VIRTUAL = 40  # slopes that joint draws hold at once: acceptance falls with their number
LEAST_EFFECTIVE = 1 / 16  # of the draws: with less left by the weights, a curve's slopes are drawn with the others
VIRTUAL_NOISE = 1e-8  # variance of a virtual slope's noise divided by its prior variance (sigma_v of Eq. 13)


@dataclass(frozen=True, eq=False)
class Paths:
    """Draws of the carried probes F. Given each draw, all other probes are normal."""

    gp: CurveGP
    carried: Probes  # (k,)
    V: Array  # (n, k)
    factor: Array  # (k, k) B_F
    E: Array  # (S, k)
    log_weights: Array  # (S,), whose exponentials add to 1
    U: Array  # (S, any) uniform numbers, a column for each of the next probes that are drawn; a Latin hypercube
    seed: int
    log_probability: float  # Eq. (19): that the carried slopes, given Y alone, are at most 0
    exact: bool  # whether the draws are, see `tilting`
    used: int = 0  # columns of U
    falling: bool = True  # whether curves that are asked for are known to fall

    @cached_property
    def places(self) -> Array:
        """Virtual times of every curve, (v,)."""
        if not self.falling:
            return np.empty(0)
        return time_kernels.virtual_times(self.gp.hyperparameters.kernel, self.gp.phi)

    @property
    def weights(self) -> Array:
        """(S,)"""
        return np.asarray(np.exp(self.log_weights))

    def drawn(self) -> Array:
        """C (S, k): the draws of the carried probes, in the units of y (slopes: per t_max)."""
        mean = self.gp.mean * (self.carried.order == 0) + self.gp.cross(self.carried) @ self.gp.alpha
        return np.asarray(mean + np.sqrt(self.gp.variance) * self.E @ self.factor.T)

    def at(self, X: Array, t: Array, order: int = 0) -> Mixture:
        """The values (or, with order 1, the slopes) at X (p, f) after t (p,) steps, given that the curves of X fall.

        Each row has the virtual places of its own curve only: rows are not joint.
        """
        R, of = different_rows(X)
        asked = Probes(X, t / self.gp.t_max, np.full(len(X), order, dtype=np.intp))
        found = self._at(R, of, asked)
        first = np.unique(of, return_index=True)[1]
        poor = np.flatnonzero(found.effective[first] < LEAST_EFFECTIVE * len(self.E))
        if self.used == 0:  # extended draws must stay as they are: values carried in them are joint
            for i in poor:
                rows = of == i
                again = self.redrawn(R[[i]])._at(R[[i]], np.zeros(rows.sum(), dtype=np.intp), asked[rows])
                found.weights[:, rows], found.means[:, rows] = again.weights, again.means
                found.variance[rows] = again.variance
        return found

    def redrawn(self, R: Array) -> Paths:
        """Paths whose slopes at the curves of R (c, f) are drawn together with the others, not after them."""
        return draw(self.gp, self.carried + self._slopes_not_carried(R), self.seed, len(self.E), self.falling)

    def _at(self, R: Array, of: Ints, asked: Probes) -> Mixture:
        """The mixture at the probes `asked`; the i-th belongs to the curve of row of[i] of R."""
        v, sd = len(self.places), np.sqrt(self.gp.variance)
        slopes = Probes.slopes(R, self.places)
        means, A = self._given_draws(slopes + asked)
        own, free = A[:, : len(slopes)].reshape(len(A), len(R), v).transpose(1, 0, 2), A[:, len(slopes) :]
        G = _factors(self._of_slopes() - own.transpose(0, 2, 1) @ own)  # (c, v, v)
        log_weights, Y = self._sequence(means[:, : len(slopes)].reshape(len(means), len(R), v), G, self._is_carried(R))
        # K_x is 1 between a probe and the slopes of its own curve. (p, v), then whitened by G
        share = self._slopes_with(asked) - (free.T[:, None, :] @ own[of])[:, 0]
        for j in range(v):
            share[:, j] = (share[:, j] - np.einsum("pi,pi->p", G[of, j, :j], share[:, :j])) / G[of, j, j]
        means = means[:, len(slopes) :] + sd * sum(y[:, of] * part for y, part in zip(Y, share.T, strict=True))
        prior = self.gp.prior_variance(asked)
        left = prior - np.einsum("ij,ij->j", free, free) - np.einsum("pv,pv->p", share, share)
        weights = np.exp(_normalised(self.log_weights[:, None] + log_weights))
        return Mixture(weights[:, of], means, self.gp.variance * np.maximum(left, TINY_VARIANCE * prior))

    def _given_draws(self, probes: Probes) -> tuple[Array, Array]:
        """Means (S, p) given Y and each draw; A = [V; U] (n + k, p), whose products are the explained covariance."""
        mean, V = self.gp.whitened(probes)
        U = forward(self.factor, self.gp.prior(self.carried, probes) - self.V.T @ V) if len(self.carried) else V[:0]
        return mean + np.sqrt(self.gp.variance) * (self.E @ U), np.concatenate([V, U])

    def _of_slopes(self) -> Array:
        """Prior covariance (v, v) of the virtual slopes of one curve, with their noise."""
        one = Probes.slopes(self.gp.X[:1], self.places)
        K = self.gp.prior(one, one)
        K[np.diag_indices(len(K))] *= 1.0 + VIRTUAL_NOISE
        return K

    def _slopes_with(self, asked: Probes) -> Array:
        """Prior covariance (p, v) of probes with the virtual slopes of their own curves."""
        order = np.ones(len(self.places), dtype=np.intp)
        kernel = self.gp.hyperparameters.kernel
        return time_kernels.covariance(kernel, self.gp.phi, asked.t, asked.order, self.places, order)

    def _is_carried(self, R: Array) -> Mask:
        """(c, v) which slopes of the curves of R are carried already."""
        held = {(x.tobytes(), t) for x, t, d in self.carried.each() if d}
        known = [[(x.tobytes(), t) in held for t in self.places] for x in np.ascontiguousarray(R)]
        return np.array(known, dtype=bool).reshape(len(R), len(self.places))

    def _sequence(self, means: Array, G: Array, carried: Mask) -> tuple[Array, list[Array]]:
        """log weights (S, c) and the whitened slopes, v times (S, c), of Genz's sequence for every curve."""
        S, c, v = means.shape
        sd = np.sqrt(self.gp.variance)
        log_weights = np.zeros((S, c))
        Y: list[Array] = []
        lowest = np.full((S, c), -np.inf)
        for j in range(v):
            known = means[:, :, j] + sd * sum((G[:, j, i] * Y[i] for i in range(j)), np.zeros((S, c)))
            limit = np.where(carried[:, j], np.inf, -known / (sd * G[:, j, j]))
            log_width, y = interval(lowest, limit, np.broadcast_to(self._uniform(j)[:, None], (S, c)))
            log_weights += log_width
            Y.append(y)
        return log_weights, Y

    def extend(self, x: Array, t: float) -> Paths:
        """Paths that also carry the virtual slopes of the curve of x (f,) and its value after t steps."""
        value = Probes.values(x[None, :], np.array([t / self.gp.t_max]))
        return self._carry(self._slopes_not_carried(x[None, :]))._carry(value)

    def _carry(self, new: Probes) -> Paths:
        """The same draws with more probes: slopes are cut at 0, values are not."""
        if not len(new):
            return self
        means, A = self._given_draws(new)
        K = self.gp.prior(new, new)
        K[np.diag_indices(len(K))] *= 1.0 + VIRTUAL_NOISE * (new.order == 1) + TINY_VARIANCE
        B = cholesky(K - A.T @ A, scale=float(np.mean(np.diag(K))))
        sd, S = np.sqrt(self.gp.variance), len(self.E)
        log_weights, E = self.log_weights.copy(), np.empty((S, len(new)))
        for j, slope in enumerate(new.order == 1):
            known = means[:, j] + sd * (E[:, :j] @ B[j, :j])
            limit = -known / (sd * B[j, j]) if slope else np.full(S, np.inf)
            log_width, E[:, j] = interval(np.full(S, -np.inf), limit, self._uniform(j))
            log_weights += log_width
        n, k = self.V.shape
        factor = np.zeros((k + len(new),) * 2, order="F")
        factor[:k, :k], factor[k:, :k], factor[k:, k:] = self.factor, A[n:].T, B
        return replace(
            self, carried=self.carried + new, V=np.concatenate([self.V, A[:n]], axis=1), factor=factor,
            E=np.concatenate([self.E, E], axis=1), log_weights=_normalised(log_weights), used=self.used + len(new),
        )  # fmt: skip

    def _uniform(self, j: int) -> Array:
        """(S,) the uniform numbers of the j-th probe drawn next."""
        column, made = self.used + j, self.U.shape[1]
        if column < made:
            return np.asarray(self.U[:, column])
        return _evenly_spread(len(self.E), 1, np.random.default_rng([self.seed, column]))[:, 0]

    def sample(self, X: Array, t: Array, count: int, rng: np.random.Generator) -> Array:
        """Joint draws (count, p) of the values at X (p, f) after t (p,) steps, given that the curves of X fall.

        Only the first curves of X get virtual places, until MOST_VIRTUAL slopes are held.
        """
        slopes = self._slopes_not_carried(different_rows(X)[0])
        room = max(MOST_VIRTUAL - int((self.carried.order == 1).sum()), 0)
        paths = self._carry(slopes[:room])
        if self.used == 0 and 1.0 / np.sum(paths.weights**2) < LEAST_EFFECTIVE * len(self.E):
            paths = draw(self.gp, self.carried + slopes[:room], self.seed, len(self.E), self.falling)
        asked = Probes.values(X, t / self.gp.t_max)
        means, A = paths._given_draws(asked)
        K = self.gp.prior(asked, asked)
        B = cholesky(K - A.T @ A, scale=float(np.mean(np.diag(K))))
        even = (rng.random() + np.arange(count)) / count
        rows = np.minimum(np.searchsorted(np.cumsum(paths.weights), even), len(means) - 1)
        return np.asarray(
            means[rng.permutation(rows)] + np.sqrt(self.gp.variance) * rng.normal(size=(count, len(t))) @ B.T
        )

    def _slopes_not_carried(self, R: Array) -> Probes:
        """The virtual slopes of the curves of R (c, f) that are not carried."""
        return Probes.slopes(R, self.places)[~self._is_carried(R).ravel()]


def draw(gp: CurveGP, carried: Probes, seed: int, samples: int, falling: bool = True) -> Paths:
    """Draws of the slopes `carried` (k,), all at most 0, Eq. (10)."""
    rng = np.random.default_rng(seed)
    mean, V = gp.whitened(carried)
    K = gp.prior(carried, carried)
    K[np.diag_indices(len(K))] *= 1.0 + VIRTUAL_NOISE
    K -= V.T @ V
    factor, sd = cholesky(K) if len(K) else K, float(np.sqrt(gp.variance))
    found = tilting.sample(mean / sd, factor @ factor.T, np.full(len(K), -np.inf), np.zeros(len(K)), samples, rng)
    E = forward(factor, (found.X - mean / sd).T).T if len(K) else found.X
    U = _evenly_spread(samples, 3 * MOST_VIRTUAL, rng)
    even = np.full(samples, -np.log(samples))
    return Paths(gp, carried, V, factor, E, even, U, seed, found.log_probability, found.exact, 0, falling)


def _evenly_spread(samples: int, columns: int, rng: np.random.Generator) -> Array:
    """Uniform numbers (samples, columns), one of every column in each of `samples` equal intervals."""
    strata = rng.permuted(np.tile(np.arange(float(samples))[:, None], (1, columns)), axis=0)
    return np.clip((strata + rng.random(strata.shape)) / samples, tilting.SMALLEST_UNIFORM, 1.0 - 2.0**-53)


def _normalised(log_weights: Array) -> Array:
    """Log weights (S, ...) whose exponentials add to 1 over the draws."""
    shifted = log_weights - log_weights.max(axis=0)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(axis=0)))


def _factors(blocks: Array) -> Array:
    """Lower factors of blocks (c, v, v): all at once, or one by one if rounding has made one of them indefinite."""
    try:
        return np.asarray(np.linalg.cholesky(blocks), dtype=np.float64)
    except np.linalg.LinAlgError:
        return np.array([cholesky(block) for block in blocks])
