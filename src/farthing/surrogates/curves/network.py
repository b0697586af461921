"""A network that was trained once, on synthetic studies, to predict how training curves go on (docs/curve-network.md).

It looks at all curves of a study at once and fits nothing: one pass gives the distribution of the running best at any
later step of any training, begun or not. Trained by training/curves in PyTorch; here it is run in NumPy.

Symbols and shapes
    m, k       trainings that were begun, configurations that were not
    h          (m, size) or (k, size) what the network makes of each token (`tokens.py`)
    p          (..., BUCKETS) probabilities of equal parts of u, the scaled value

    token -> h         two layers
    h -> h             blocks: attention to the tokens of trainings that were begun, then two layers; both act on what
                       is normalised, and are added
    h, time -> p       two more layers; parts above what a training has reached already are impossible
"""

from __future__ import annotations

import hashlib
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from importlib.resources.abc import Traversable

import numpy as np
from numpy.typing import NDArray

from farthing.errors import NetworkUnavailable
from farthing.numerics.arrays import Array, Ints, Mask
from farthing.surrogates.curves import tokens
from farthing.surrogates.curves.tokens import BUCKETS, HIGH, LOW, SHARP, Scale

Floats = NDArray[np.float32]

FILE = "network.npz"
CHECKSUM = "65e612a1a4ccaab63442a938c2b3fa89363b931e65fbb7efc50956f9d87525c1"  # SHA-256 of the file
EDGES = np.linspace(LOW, HIGH, BUCKETS + 1)  # of u
HEADS = 8


@dataclass(frozen=True, eq=False)
class Weights:
    """The arrays of the network by name, and the checksum of the file they came from."""

    arrays: Mapping[str, Floats]
    checksum: str

    @property
    def blocks(self) -> int:
        return sum(name.endswith(".qkv.weight") for name in self.arrays)

    def linear(self, name: str, x: Floats) -> Floats:
        return np.asarray(x @ self.arrays[f"{name}.weight"].T + self.arrays[f"{name}.bias"])

    def norm(self, name: str, x: Floats) -> Floats:
        centred = x - x.mean(axis=-1, keepdims=True)
        spread = np.sqrt(np.square(centred).mean(axis=-1, keepdims=True) + np.float32(1e-5))
        return np.asarray(centred / spread * self.arrays[f"{name}.weight"] + self.arrays[f"{name}.bias"])


@lru_cache(maxsize=1)
def weights() -> Weights:
    """The weights of the wheel; `NetworkUnavailable` says what is wrong with their file."""
    require_file()
    try:
        return read(_here().joinpath(FILE).read_bytes(), CHECKSUM)
    except OSError as error:
        raise NetworkUnavailable(f"the network of training curves cannot be read: {error}") from error


def require_file() -> None:
    """An error if the wheel was taken apart."""
    if not (path := _here().joinpath(FILE)).is_file():
        raise NetworkUnavailable(f"the network of training curves is missing: {path}")


def _here() -> Traversable:
    return files("farthing.surrogates.curves")


def read(data: bytes, expected: str) -> Weights:
    """Weights from the bytes of their file, plain arrays of half precision, if they have that checksum."""
    found = hashlib.sha256(data).hexdigest()
    if found != expected:
        raise NetworkUnavailable(f"{FILE} is damaged: its checksum is {found[:12]}, not {expected[:12]}")
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as stored:  # objects in it would be code
            return Weights({name: stored[name].astype(np.float32) for name in stored.files}, found)
    except (ValueError, TypeError, AttributeError) as error:
        raise NetworkUnavailable(f"{FILE} holds something else than plain arrays: {error}") from error


def _gelu(x: Floats) -> Floats:
    inner = x * x
    inner *= np.float32(0.044715 * math.sqrt(2.0 / math.pi))
    inner += np.float32(math.sqrt(2.0 / math.pi))
    inner *= x
    np.tanh(inner, out=inner)
    inner += np.float32(1.0)
    inner *= x
    inner *= np.float32(0.5)
    return inner


@dataclass(frozen=True, eq=False)
class CurveOutlook:
    """What the network makes of a study: asked for the values of trainings at later steps.

    Times are steps; values are in the units of the study through `scale`.
    """

    weights: Weights
    scale: Scale
    T: int
    groups: Ints
    reached: Array  # (m,) u of begun trainings
    share: Array  # (m,) of a training that each has come to
    h: Floats  # (m, size) of begun trainings
    keys: Sequence[tuple[Floats, Floats]]  # of each block, (heads, m, size / heads) both

    @classmethod
    def of(cls, X: Array, curves: Sequence[Array], T: int, groups: Ints, weights: Weights) -> CurveOutlook:
        """From features X (m, f) of begun trainings, and what each reported, at least one value each."""
        scale = Scale.of(curves)
        h = _entered(weights, tokens.of_begun(tokens.slots(X, groups), curves, T, scale))
        keys = []
        for i in range(weights.blocks):
            q, k, v = _projected(weights, i, h)
            keys.append((k, v))
            h = _block(weights, i, h, q, k, v)
        reached = scale.u(np.array([curve.min() for curve in curves]))
        share = np.array([len(curve) for curve in curves]) / T
        return cls(weights, scale, T, groups, reached, share, h, keys)

    def begun(self, rows: Ints, steps: Array) -> Array:
        """Probabilities (r, q, BUCKETS) of the running best of begun trainings at steps (r, q), not below theirs."""
        return self._answered(self.h[rows], self.share[rows], steps, EDGES[:-1] <= self.reached[rows, None] + 1e-6)

    def new(self, X: Array, steps: Array) -> Array:
        """Probabilities (k, q, BUCKETS) of the running best of trainings at X (k, f), not begun, at steps (k, q)."""
        h = _entered(self.weights, tokens.of_new(tokens.slots(X, self.groups), self.T, len(self.h)))
        for i, (k, v) in enumerate(self.keys):
            h = _block(self.weights, i, h, _queries(self.weights, i, h), k, v)
        return self._answered(h, np.zeros(len(X)), steps, np.ones((len(X), BUCKETS), dtype=np.bool_))

    def _answered(self, h: Floats, share: Array, steps: Array, possible: Mask) -> Array:
        w = self.weights
        time = tokens.of_times(steps / self.T, np.broadcast_to(share[:, None], steps.shape), self.T)
        asked = w.linear("ask", w.norm("norm", h))[:, None] + time.astype(np.float32) @ w.arrays["when.weight"].T
        logits = w.linear("answer", _gelu(w.linear("think", _gelu(asked)))).astype(np.float64)
        logits = np.where(possible[:, None], logits, -np.inf)
        p = np.exp(logits - logits.max(axis=-1, keepdims=True))
        return np.asarray(p / p.sum(axis=-1, keepdims=True))

    def quantile(self, p: Array, level: float) -> Array:
        """Quantiles (...) of values with probabilities p (..., BUCKETS)."""
        return self.scale.best + self.scale.spread * unsquashed(quantile(p, level))


def quantile(p: Array, level: float) -> Array:
    """Quantiles (...) of u with probabilities p (..., BUCKETS), linear within a bucket."""
    above = np.cumsum(p, axis=-1)
    i = np.minimum((above < level).sum(axis=-1), BUCKETS - 1)[..., None]
    mass = np.take_along_axis(p, i, axis=-1)[..., 0]
    below = np.take_along_axis(above, i, axis=-1)[..., 0] - mass
    inside = np.clip((level - below) / np.maximum(mass, 1e-12), 0.0, 1.0)
    return np.asarray(EDGES[0] + (i[..., 0] + inside) * (EDGES[1] - EDGES[0]))


def unsquashed(u: Array) -> Array:
    """z (...) of u (...)."""
    return np.asarray(np.sinh(u * math.asinh(SHARP)) / SHARP)


def expected_gain(p: Array) -> Array:
    """E[max(-u, 0)] (...), the expected improvement over the best of the study, for probabilities p (..., BUCKETS).

    On the scale of u: in units of values, a chance of one in a thousand that everything known is surpassed by nine
    spreads would outweigh every improvement that is to be expected.
    """
    return np.asarray(p @ GAIN)


def mean_and_variance(p: Array) -> tuple[Array, Array]:
    """Of u (...) with probabilities p (..., BUCKETS)."""
    middle = 0.5 * (EDGES[1:] + EDGES[:-1])
    mean = p @ middle
    return mean, np.maximum(p @ np.square(middle) - np.square(mean), 0.0)


def _mean_gain() -> Array:
    """E[max(-u, 0)] (BUCKETS,) of u that is uniform in each bucket."""
    low, high = np.maximum(-EDGES[1:], 0.0), np.maximum(-EDGES[:-1], 0.0)
    return np.asarray((np.square(high) - np.square(low)) / (2.0 * np.diff(EDGES)))


GAIN = _mean_gain()


# -- layers ------------------------------------------------------------------------------------------------------------


def _entered(w: Weights, token: Array) -> Floats:
    return w.linear("enter2", _gelu(w.linear("enter1", token.astype(np.float32))))


def _heads(x: Floats) -> Floats:
    """(n, size) as (heads, n, size / heads)."""
    return np.asarray(x.reshape(len(x), HEADS, -1).transpose(1, 0, 2))


def _queries(w: Weights, i: int, h: Floats) -> Floats:
    """As `_projected`, without keys and values: nobody looks at those of configurations that were not begun."""
    size = h.shape[1]
    weight, bias = w.arrays[f"blocks.{i}.qkv.weight"][:size], w.arrays[f"blocks.{i}.qkv.bias"][:size]
    return _heads(np.asarray(w.norm(f"blocks.{i}.norm1", h) @ weight.T + bias))


def _projected(w: Weights, i: int, h: Floats) -> tuple[Floats, Floats, Floats]:
    together = w.linear(f"blocks.{i}.qkv", w.norm(f"blocks.{i}.norm1", h))
    q, k, v = (_heads(part) for part in np.split(together, 3, axis=1))
    return q, k, v


def _block(w: Weights, i: int, h: Floats, q: Floats, k: Floats, v: Floats) -> Floats:
    score = q @ k.transpose(0, 2, 1) * np.float32(1.0 / math.sqrt(q.shape[-1]))
    score -= score.max(axis=-1, keepdims=True)
    np.exp(score, out=score)
    seen = (score @ v) / score.sum(axis=-1, keepdims=True)
    h = h + w.linear(f"blocks.{i}.mix", seen.transpose(1, 0, 2).reshape(h.shape))
    inner = _gelu(w.linear(f"blocks.{i}.up", w.norm(f"blocks.{i}.norm2", h)))
    return np.asarray(h + w.linear(f"blocks.{i}.down", inner))
