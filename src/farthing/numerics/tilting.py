"""Exact draws from a normal distribution cut to a box, by minimax tilting.

Botev 2017, "The normal law under linear restrictions" (J. R. Statist. Soc. B 79, 125-148).

Symbols and shapes
    m, K        (d,), (d, d)   mean and covariance before the cut
    a, b        (d,)           limits, -inf and inf allowed
    T           (d, d)         strictly lower: the factor of K, each row divided by its diagonal, less the identity
    l, u        (d,)           limits of the rows less the mean, divided by the same diagonal
    x, mu       (d,)           where the saddle is, and the tilting; the last of both is 0
    Z           (d, N)         proposals, one column each, in units of the diagonal

Genz's sequence draws z_k from N(0, 1) cut to [l_k - (T z)_k, u_k - (T z)_k]. Here it draws from N(mu_k, 1) cut to the
same interval, and a proposal then has the log likelihood ratio
    psi(z; mu) = sum_k mu_k^2 / 2 - mu_k z_k + log P(l_k - mu_k - (T z)_k <= N(0, 1) <= u_k - mu_k - (T z)_k),
which is concave in z and convex in mu. At its saddle (x, mu*) the value psi* = psi(x; mu*) is the largest over all z,
and the smallest such value over all mu: accepting with probability exp(psi - psi*) gives exact draws, and the mean of
exp(psi) is the probability of the box. If the saddle was not found, psi* bounds nothing, and mu is 0, as in Genz. Then,
and if too few proposals are accepted, draws are resampled from the proposals by weight and moved by Gibbs sweeps;
`exact` says which they are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from farthing.numerics.arrays import Array
from farthing.numerics.late_scipy import erfcx
from farthing.numerics.linalg import backward, cholesky, forward
from farthing.numerics.normal import LOG_SQRT_2PI, SQRT_HALF, SQRT_HALF_PI
from farthing.numerics.truncated import check_box, interval, least_probable_first, log_mean

NEWTON_STEPS = 60  # damped; near the saddle they converge quadratically
FLAT = 1e-7  # a gradient this small is near enough to the saddle for psi* to bound psi up to rounding
SHORTEST = 1e-6  # share of a Newton step at which damping ends without success
LEAST_BATCH, MOST_BATCH = 64, 4096  # proposals at once: enough to amortise calls, few enough for memory
MOST_PROPOSALS = 40  # for each draw that is wanted; beyond it too few are accepted
SWEEPS = 20  # of Gibbs, to separate resampled copies
LARGEST_LOG = 300.0  # the square of its exponential is a float
SMALLEST_UNIFORM = 2.0**-60  # above 0, where the quantile is infinite


@dataclass(frozen=True, eq=False)
class Draws:
    """X (N, d) inside the box; log P of the box; the share of proposals accepted; whether the draws are exact."""

    X: Array
    log_probability: float
    acceptance: float
    exact: bool


@dataclass(frozen=True, eq=False)
class Tilting:
    """A box prepared for draws: coordinates in Gibson's order, the saddle and its value."""

    order: NDArray[np.intp]  # (d,): row i of T is coordinate order[i]
    diagonal: Array  # (d,) of the factor
    T: Array
    l: Array  # noqa: E741  the symbol of the paper
    u: Array
    mu: Array
    psi: float  # at the saddle
    found: bool

    def propose(self, U: Array) -> tuple[Array, Array]:
        """Z (d, N) and psi (N,) from points U (N, d) of the unit cube."""
        d, N = len(self.l), len(U)
        Z, log_ratio = np.empty((d, N)), np.zeros(N)
        for k in range(d):
            shift = self.mu[k] + self.T[k, :k] @ Z[:k]
            log_width, y = interval(self.l[k] - shift, self.u[k] - shift, U[:, k])
            Z[k] = self.mu[k] + y
            log_ratio += log_width + self.mu[k] * (0.5 * self.mu[k] - Z[k])
        return Z, log_ratio

    def places(self, Z: Array) -> Array:
        """Draws (N, d) less the mean, in the original order of the coordinates."""
        X = np.empty((Z.shape[1], len(self.l)))
        X[:, self.order] = ((Z + self.T @ Z) * self.diagonal[:, None]).T
        return X


def sample(mean: Array, covariance: Array, lower: Array, upper: Array, count: int, rng: np.random.Generator) -> Draws:
    """`count` draws of N(mean, covariance) (d,) cut to [lower, upper] (d,).

    >>> box = np.array([9.0, -np.inf]), np.array([np.inf, -9.0])
    >>> far = sample(np.zeros(2), np.eye(2), *box, 4, np.random.default_rng(0))
    >>> far.exact, bool(np.all(far.X[:, 0] > 9.0) and np.all(far.X[:, 1] < -9.0)), round(far.log_probability, 3)
    (True, True, -87.256)
    """
    d = len(mean)
    if d == 0:
        return Draws(np.empty((count, 0)), 0.0, 1.0, True)
    tilting = tilted(mean, covariance, lower, upper)
    accepted, kept, proposed, tried = [], 0, [], 0
    while kept < count and tried < MOST_PROPOSALS * count:
        rate = max(kept, 1) / max(tried, 1) if tried else 1.0
        batch = int(np.clip(1.2 * (count - kept) / rate, LEAST_BATCH, MOST_BATCH))
        Z, log_ratio = tilting.propose(rng.uniform(SMALLEST_UNIFORM, 1.0 - 2.0**-53, (batch, d)))
        taken = rng.exponential(size=batch) > tilting.psi - log_ratio
        proposed.append((Z, log_ratio))
        accepted.append(Z[:, taken])
        kept, tried = kept + int(taken.sum()), tried + batch
        if not tilting.found and tried >= 4 * count:
            break
    log_ratios = np.concatenate([ratio for _, ratio in proposed])
    exact = tilting.found and kept >= count
    if exact:
        X = tilting.places(np.concatenate(accepted, axis=1)[:, :count])
    else:
        X = _resampled(tilting.places(np.concatenate([Z for Z, _ in proposed], axis=1)), log_ratios, count, rng)
        _sweep(X, covariance, lower - mean, upper - mean, rng)
    X = np.clip(mean + X, lower, upper)  # rounding
    return Draws(X, log_mean(log_ratios), kept / tried, exact)


def tilted(mean: Array, covariance: Array, lower: Array, upper: Array) -> Tilting:
    """The saddle for a box. Coordinates go by Gibson's order, which makes acceptance larger."""
    check_box(lower, upper)
    order = np.array(least_probable_first(covariance, lower - mean, upper - mean), dtype=np.intp)
    L = cholesky(covariance[np.ix_(order, order)])
    diagonal = np.diag(L).copy()
    T = np.tril(L / diagonal[:, None], -1)
    l, u = (lower - mean)[order] / diagonal, (upper - mean)[order] / diagonal  # noqa: E741
    x, mu, found = _saddle(T, l, u)
    shift = mu + T @ x
    psi = float(np.sum(_log_width(l - shift, u - shift) + mu * (0.5 * mu - x)))
    return Tilting(order, diagonal, T, l, u, mu, psi, found)


def _saddle(T: Array, l: Array, u: Array) -> tuple[Array, Array, bool]:  # noqa: E741
    """x (d,), mu (d,) by damped Newton steps on the gradient of psi, and whether it vanished there."""
    d = len(l)
    y = np.zeros(2 * (d - 1))
    gradient, jacobian = _gradient(y, T, l, u)
    size = float(gradient @ gradient)
    for _ in range(NEWTON_STEPS):
        if size <= FLAT * FLAT:
            break
        move = np.linalg.lstsq(jacobian, -gradient)[0]  # correlated rows make it nearly singular
        step = 1.0
        while step > SHORTEST:
            trial = _gradient(y + step * move, T, l, u)
            trial_size = float(trial[0] @ trial[0])
            if trial_size < (1.0 - 0.1 * step) * size:
                break
            step *= 0.5
        else:
            break
        y, (gradient, jacobian), size = y + step * move, trial, trial_size
    if size > (100.0 * FLAT) ** 2:
        return np.zeros(d), np.zeros(d), False
    return np.append(y[: d - 1], 0.0), np.append(y[d - 1 :], 0.0), True


def _gradient(y: Array, T: Array, l: Array, u: Array) -> tuple[Array, Array]:  # noqa: E741
    """d psi / d (x, mu) without their last coordinates, (2d - 2,), and its Jacobian."""
    d = len(l)
    x, mu = np.append(y[: d - 1], 0.0), np.append(y[d - 1 :], 0.0)
    shift = mu + T @ x
    lo, hi = l - shift, u - shift
    at_lo, at_hi = _ends(lo, hi)
    P = at_lo - at_hi  # mean of the cut standard normal
    by_x = (T.T @ P - mu)[:-1]
    by_mu = (mu - x + P)[:-1]
    finite_lo, finite_hi = np.where(np.isfinite(lo), lo, 0.0), np.where(np.isfinite(hi), hi, 0.0)
    dP = finite_lo * at_lo - finite_hi * at_hi - P * P
    weighted = dP[:, None] * T
    xx = (T.T @ weighted)[:-1, :-1]
    mx = (weighted - np.eye(d))[:-1, :-1]
    return np.append(by_x, by_mu), np.block([[xx, mx.T], [mx, np.diag(1.0 + dP[:-1])]])


def _ends(lo: Array, hi: Array) -> tuple[Array, Array]:
    """The density of the cut standard normal at its ends; by the Mills ratio if there is only one, however far out."""
    log_width = _log_width(lo, hi) + LOG_SQRT_2PI
    at_lo = np.exp(np.minimum(-0.5 * lo * lo - log_width, LARGEST_LOG))
    at_hi = np.exp(np.minimum(-0.5 * hi * hi - log_width, LARGEST_LOG))
    at_lo = np.where(np.isposinf(hi), 1.0 / SQRT_HALF_PI / erfcx(lo * SQRT_HALF), at_lo)
    at_hi = np.where(np.isneginf(lo), 1.0 / SQRT_HALF_PI / erfcx(-hi * SQRT_HALF), at_hi)
    return at_lo, at_hi


def _log_width(lo: Array, hi: Array) -> Array:
    return interval(lo, hi, np.full(len(lo), 0.5))[0]


def _resampled(X: Array, log_ratios: Array, count: int, rng: np.random.Generator) -> Array:
    """Rows of X chosen by weight, by systematic resampling: a row of n times the mean weight appears about n times."""
    share = np.cumsum(np.exp(log_ratios - log_ratios.max()))
    at = (rng.random() + np.arange(count)) / count * share[-1]
    return np.asarray(X[np.minimum(np.searchsorted(share, at), len(X) - 1)])


def _sweep(X: Array, covariance: Array, low: Array, high: Array, rng: np.random.Generator) -> None:
    """Gibbs sweeps over the rows of X (N, d), each its own chain, which separate the copies made by resampling."""
    L = cholesky(covariance)
    precision = backward(L, forward(L, np.eye(len(L))))
    sds = 1.0 / np.sqrt(np.diag(precision))
    for _ in range(SWEEPS):
        for i, sd in enumerate(sds):
            others = X[:, i] - sd * sd * (X @ precision[i])
            _, y = interval((low[i] - others) / sd, (high[i] - others) / sd, rng.random(len(X)))
            X[:, i] = np.clip(others + sd * y, low[i], high[i])
