"""EQIE, expected quantile improvement per cost, as a child process of the benchmark on synthetic functions.

    python -m benchmarks.bopt_synthetic.peers.eqie_peer < tasks.jsonl

Our implementation, on Farthing's DGP surrogate with the settings that `bopt` gives it (surrogates/two_fidelity.py,
rho = 1). Symbols at a point x, all of the complete level:

    m, s2        mean and variance after n runs
    q            Phi^-1(a), a = 0.9
    q_min        the least m + q s at evaluated points
    s2_level     variance after one more run at x: of the cheap level it leaves what the bias does not tell, a complete
                 run leaves nothing, because there is no noise
    m_Q, s_Q     mean m + q s_level and standard deviation sqrt(s2 - s2_level) of the quantile after that run
    EQI = (q_min - m_Q) Phi(z) + s_Q phi(z),  z = (q_min - m_Q) / s_Q,      EQIE = EQI / cost of the level

The next run is where EQIE is largest over points and levels; the points that had their cheap run are candidates for
their complete one at the cost of the rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import version

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from benchmarks.bopt_synthetic.peers.task import CHEAP, COMPLETE, Record, Task, serve
from farthing.acquisitions.maximize import maximize
from farthing.numerics.normal import log_h
from farthing.surrogates import two_fidelity
from farthing.surrogates.two_fidelity import TwoFidelity

Array = NDArray[np.float64]

VERSIONS = {name: version(name) for name in ("farthing", "numpy", "scipy")}
QUANTILE = float(ndtri(0.9))
STEP = 1e-5  # of finite differences
TAME = 3.0  # interquartile ranges above the upper quartile at which a value is cut, as `bopt` does
ANCHORS = 3
TINY = 1e-300


@dataclass(frozen=True)
class Cube:
    """The unit cube as the maximiser sees a space."""

    p: int

    @property
    def levels(self) -> list[None]:
        return [None] * self.p

    def snap(self, U: Array) -> Array:
        return np.clip(U, 0.0, 1.0)

    def features(self, U: Array) -> Array:
        return U

    def pull(self, U: Array, G: Array) -> Array:
        return G

    def neighbours(self, u: Array) -> Array:
        return u[None, :][:0]

    def admissible(self, U: Array) -> NDArray[np.bool_]:
        return np.ones(len(U), dtype=np.bool_)


@dataclass(frozen=True)
class LogEQIE:
    """log EQIE of one level at points X (k, p)."""

    model: TwoFidelity
    q_min: float
    is_complete: bool
    cost: float

    def __call__(self, X: Array) -> Array:
        mean, variance = self.model.predict(X)
        left = np.zeros_like(variance) if self.is_complete else self._left_by_cheap(X, variance)
        s_Q = np.sqrt(np.maximum(variance - left, TINY))
        z = (self.q_min - mean - QUANTILE * np.sqrt(left)) / s_Q
        return np.log(s_Q) + log_h(z)[0] - np.log(self.cost)

    def _left_by_cheap(self, X: Array, variance: Array) -> Array:
        """s2 less cov(y_c, y_e)^2 / var(y_e)."""
        pair = self.model.joint.predict(X)
        shared = self.model.hyperparameters.rho * pair.low_variance + pair.covariance
        return np.clip(variance - shared**2 / np.maximum(pair.low_variance, TINY), 0.0, variance)

    def with_gradient(self, X: Array) -> tuple[Array, Array]:
        k, p = X.shape
        steps = np.where(X + STEP <= 1.0, STEP, -STEP)
        moved = X[:, None, :] + steps[:, :, None] * np.eye(p)
        values = self(np.concatenate([X, moved.reshape(-1, p)]))
        return values[:k], (values[k:].reshape(k, p) - values[:k, None]) / steps


class EQIE:
    """All runs so far and the next one."""

    def __init__(self, record: Record, task: Task) -> None:
        self._record, self._rng = record, np.random.default_rng([task["seed"], 1])
        self._cheap: list[tuple[list[float], float]] = []
        self._complete: list[tuple[list[float], float]] = []
        self._warm: two_fidelity.Hyperparameters | None = None

    def run(self, point: list[float], is_complete: bool) -> None:
        if is_complete:
            self._complete.append((point, self._record.complete(point)))
        else:
            self._cheap.append((point, self._record.cheap(point)))

    def step(self) -> None:
        """Fit, and take the largest EQIE."""
        (X_e, y_e), (X_c, y_c) = _arrays(self._cheap), _arrays(self._complete)
        centre, unit = float(np.median(y_e)), float(np.std(_tamed(y_e))) or 1.0
        y_e, y_c = (_tamed(y_e) - centre) / unit, (_tamed(y_c) - centre) / unit
        model = two_fidelity.fit(X_e, y_e, X_c, y_c, warm=self._warm)
        self._warm = model.hyperparameters
        mean, variance = model.predict(np.concatenate([X_e, X_c]))
        q_min = float(np.min(mean + QUANTILE * np.sqrt(variance)))
        anchors = X_c[np.argsort(y_c, kind="stable")[:ANCHORS]]
        candidates = [
            self._best(LogEQIE(model, q_min, False, CHEAP), anchors, False),
            self._best(LogEQIE(model, q_min, True, COMPLETE), anchors, True),
            *self._best_begun(LogEQIE(model, q_min, True, COMPLETE - CHEAP)),
        ]
        _, point, is_complete = max(candidates, key=lambda candidate: candidate[0])
        self.run(point, is_complete)

    def _best(self, utility: LogEQIE, anchors: Array, is_complete: bool) -> tuple[float, list[float], bool]:
        found = maximize(utility, Cube(anchors.shape[1]), anchors, self._rng)
        return float(found.utility[0]), found.U[0].tolist(), is_complete

    def _best_begun(self, utility: LogEQIE) -> list[tuple[float, list[float], bool]]:
        done = {tuple(point) for point, _ in self._complete}
        begun = [point for point, _ in self._cheap if tuple(point) not in done]
        if not begun:
            return []
        values = utility(np.array(begun))
        best = int(np.argmax(values))
        return [(float(values[best]), begun[best], True)]


def _arrays(runs: list[tuple[list[float], float]]) -> tuple[Array, Array]:
    return np.array([point for point, _ in runs]), np.array([value for _, value in runs])


def _tamed(y: Array) -> Array:
    low, high = np.percentile(y, [25, 75])
    return np.minimum(y, high + TAME * (high - low))


def search(record: Record, task: Task) -> None:
    eqie = EQIE(record, task)
    for point in task["design"]:
        eqie.run(point, False)
    for point in task["design"][: len(task["design"]) // 2]:
        eqie.run(point, True)
    while record.is_open:
        eqie.step()


if __name__ == "__main__":
    serve(search, VERSIONS)
