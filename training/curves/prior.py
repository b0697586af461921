"""Synthetic studies of training curves: what the network is told a tuner may meet (docs/curve-network.md has pictures).

Symbols and shapes
    B, C, T     studies, configurations of each, steps of a complete training (the same for all studies of one draw)
    x           (B, C, SLOTS) hyperparameters, centred: 0 is the middle of a range, or that one is absent
    latent      (B, C, P) in (0, 1): what hyperparameters make of each configuration, one number per property of a curve
    y           (B, C, T) what is reported after each step, to be minimised
    length      (B, C) steps that were trained; 0 where a configuration has not been begun

A study is made in this order: hyperparameters (some irrelevant, some on grids, some options of a choice, some absent);
smooth random functions from them to the properties of curves; curves by one of several laws; what happens to real ones
(noise, spikes, overfitting, divergence, ties, bounds, another scale of values); a freeze-thaw history.

Every choice that real studies make differently is drawn for each study: the network should be uncertain about it at
first and learn it from the study's own curves.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import torch
from torch import Tensor

SLOTS = 16  # columns that hyperparameters are put into (`tokens.py`)
HIDDEN = 32  # units of the random functions
PROPERTIES = 16  # of a curve

END, START, RATE, SLOW_RATE, SHAPE, MIXED, FLAT, DELAY, OVERFIT, DIVERGE, NOISE, LATE = range(12)  # the rest: jumps
JUMPS = slice(12, 16)


@dataclass(frozen=True)
class Studies:
    """A draw of studies."""

    x: Tensor
    y: Tensor
    length: Tensor


class Draw:
    """Random numbers on one device, from a generator of their own.

    Without a seed they come from PyTorch's, the only one that compiled code can draw from.
    """

    def __init__(self, seed: int | None, device: str) -> None:
        self.device = device
        self.source: dict[str, Any] = {"device": device}
        if seed is not None:
            self.source["generator"] = torch.Generator(device=device).manual_seed(seed)

    def uniform(self, *shape: int, low: float = 0.0, high: float = 1.0) -> Tensor:
        return low + (high - low) * torch.rand(*shape, **self.source)

    def log_uniform(self, *shape: int, low: float, high: float) -> Tensor:
        return torch.exp(self.uniform(*shape, low=math.log(low), high=math.log(high)))

    def normal(self, *shape: int) -> Tensor:
        return torch.randn(*shape, **self.source)

    def happens(self, *shape: int, p: float) -> Tensor:
        return self.uniform(*shape) < p

    def integers(self, low: int, high: int, *shape: int) -> Tensor:
        """From low to high - 1."""
        return torch.randint(low, high, shape, **self.source)

    def one_of(self, shares: Sequence[float], *shape: int) -> Tensor:
        """Places in `shares`, each as often as it says."""
        u = self.uniform(*shape)
        return torch.stack([u >= below for below in accumulate(shares[:-1])]).sum(0)


def ranks(x: Tensor) -> Tensor:
    """How many entries of the last axis are smaller than each. Sorting takes minutes to compile."""
    return (x[..., :, None] > x[..., None, :]).sum(-1)


# -- hyperparameters ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Columns:
    """How the columns of each study are filled.

    used    (B, 1, SLOTS) whether a hyperparameter is there
    levels  (B, 1, SLOTS) on how many levels, 0 for a continuous one
    group   (B, SLOTS) columns of one choice have the same number
    rare    (B, 1, SLOTS) share of the configurations in which a conditional one is absent
    """

    used: Tensor
    levels: Tensor
    group: Tensor
    rare: Tensor


def columns(draw: Draw, B: int) -> Columns:
    count = 1 + (draw.uniform(B, 1, 1) ** 1.3 * SLOTS).floor().clamp(max=SLOTS - 1)  # few are as usual as many
    used = ranks(draw.uniform(B, 1, SLOTS)) < count
    levels = torch.where(draw.happens(B, 1, SLOTS, p=0.3), draw.integers(2, 12, B, 1, SLOTS), 0)
    # Neighbouring columns become one choice: in a third of the studies, from one column up to five on.
    start, width = draw.integers(0, SLOTS, B, 1), draw.integers(3, 6, B, 1)
    column = torch.arange(SLOTS, device=draw.device)[None]
    inside = (column >= start) & (column < start + width) & draw.happens(B, 1, p=0.35)
    group = torch.where(inside, -1, column)
    conditional = draw.happens(B, 1, SLOTS, p=0.15) & draw.happens(B, 1, 1, p=0.4)
    return Columns(used | inside[:, None], levels, group, conditional * draw.uniform(B, 1, SLOTS, low=0.2, high=0.8))


def placed(draw: Draw, raw: Tensor, of: Columns) -> Tensor:
    """Hyperparameters (B, C, SLOTS) in [-1, 1] from raw ones in [0, 1]: on their grids, 0 where absent; the columns of
    a choice show which of them was largest."""
    levels = of.levels.clamp(min=1)
    grid = ((raw * levels).floor().clamp(min=0.0).minimum(levels - 1.0) + 0.5) / levels
    x = 2.0 * torch.where(of.levels > 0, grid, raw) - 1.0
    chosen = (of.group < 0)[:, None].expand_as(raw)  # (B, C, SLOTS) columns of the choice
    hot = torch.where(chosen, raw, -1.0).argmax(-1, keepdim=True) == torch.arange(SLOTS, device=raw.device)
    k = chosen.sum(-1, keepdim=True).clamp(min=1)
    x = torch.where(chosen, math.sqrt(2.0) * (hot.float() - 1.0 / k), x)
    absent = draw.uniform(*raw.shape) < of.rare
    return torch.where(of.used & ~absent, x, 0.0)


# -- from hyperparameters to the properties of curves ------------------------------------------------------------------


class RandomFunctions:
    """Smooth functions of hyperparameters, PROPERTIES per study: a random network, a bowl, or a mixture of both."""

    def __init__(self, draw: Draw, B: int) -> None:
        self.relevance = draw.log_uniform(B, 1, SLOTS, low=0.03, high=1.5) * draw.happens(B, 1, SLOTS, p=0.8)
        scale = draw.log_uniform(B, 1, 1, low=0.4, high=5.0)
        size = self.relevance.pow(2).sum(-1, keepdim=True).sqrt().clamp(min=0.05)
        self.first = draw.normal(B, SLOTS, HIDDEN) * (self.relevance / size).transpose(1, 2) * scale
        self.first_bias = draw.normal(B, 1, HIDDEN) * 0.7 * scale.clamp(max=2.0)
        self.second = draw.normal(B, HIDDEN, HIDDEN) / math.sqrt(HIDDEN) * draw.log_uniform(B, 1, 1, low=0.5, high=2.5)
        self.second_bias = 0.5 * draw.normal(B, 1, HIDDEN)
        self.is_shallow = draw.happens(B, 1, 1, p=0.35)
        self.out = draw.normal(B, HIDDEN, PROPERTIES) / math.sqrt(HIDDEN)
        # A bowl is what a learning rate makes: an optimum inside, worse on both sides.
        self.centre = draw.uniform(B, 1, SLOTS, low=-0.9, high=0.9)
        self.width = draw.uniform(B, 1, SLOTS, low=0.25, high=1.2)
        self.bowl_share = draw.uniform(B, 1, PROPERTIES) * draw.happens(B, 1, PROPERTIES, p=0.6)
        self.bowl_sign = torch.where(draw.happens(B, 1, PROPERTIES, p=0.5), 1.0, -1.0)
        self.bowl_sign[:, :, END] = 1.0  # the end is worse on both sides more often than better
        # Properties go together: what learns fast may end well, or badly.
        self.tie = draw.uniform(B, 1, 1, low=-1.2, high=1.2) * draw.happens(B, 1, 1, p=0.6)
        self.jitter = draw.log_uniform(B, 1, 1, low=0.005, high=0.6)  # what the seed of a training does
        self.norm: tuple[Tensor, Tensor] | None = None

    def __call__(self, draw: Draw, x: Tensor) -> Tensor:
        """latent (B, C, PROPERTIES) at x; the first call also settles the scale, so that it should be of all places."""
        h = torch.tanh(x @ self.first + self.first_bias)
        h = torch.where(self.is_shallow, h, torch.tanh(h @ self.second + self.second_bias))
        network = h @ self.out
        bowl = (((x - self.centre) / self.width).pow(2) * self.relevance).sum(-1, keepdim=True)
        if self.norm is None:
            self.norm = (_moments(network), _moments(bowl))
        (mean, sd), (bowl_mean, bowl_sd) = self.norm
        smooth, around = (network - mean) / sd, (bowl - bowl_mean) / bowl_sd
        o = (1.0 - self.bowl_share) * smooth + self.bowl_share * self.bowl_sign * around
        o = o / (self.bowl_share.pow(2) + (1.0 - self.bowl_share).pow(2)).sqrt()
        tied = (o[..., END : END + 1] + self.tie * o[..., RATE : RATE + 1]) / (1.0 + self.tie.pow(2)).sqrt()
        o = torch.cat([tied, o[..., 1:]], -1) + self.jitter * draw.normal(*o.shape)
        return (0.5 * (1.0 + torch.erf(o / math.sqrt(2.0)))).clamp(1e-4, 1.0 - 1e-4)


def _moments(o: Tensor) -> tuple[Tensor, Tensor]:
    return o.mean(1, keepdim=True), o.std(1, keepdim=True).clamp(min=1e-3)


# -- curves ------------------------------------------------------------------------------------------------------------

LAWS = {"fast then slow": 0.45, "S-shaped": 0.15, "S-shaped in log time": 0.1, "jumps": 0.12, "rewards": 0.18}


def curves(draw: Draw, u: Tensor, T: int) -> Tensor:
    """Values (B, C, T) from properties u (B, C, PROPERTIES): from about 1 at the start to an end of at least 0."""
    B = len(u)
    t = torch.arange(1, T + 1, device=draw.device) / T  # (T,)
    each = u.unbind(-1)
    law = draw.one_of(tuple(LAWS.values()), B, 1, 1)
    skew = draw.log_uniform(B, 1, low=0.4, high=5.0)
    end = each[END] ** skew * draw.uniform(B, 1, low=0.2, high=1.0)
    start = end + (1.0 - end) * (1.0 - 0.4 * each[START] * draw.uniform(B, 1))
    late = torch.where(draw.happens(B, 1, p=0.3), each[DELAY] ** 3 * draw.uniform(B, 1, low=0.0, high=0.6), 0.0)
    s = (t - late[..., None]).clamp(min=0.0)
    p = _progress(draw, u, s, law, T)
    # A schedule that ends with a small rate gains at the end; some configurations hardly learn at all.
    schedule = draw.uniform(B, 1, 1, high=0.5) * draw.happens(B, 1, 1, p=0.2)
    p = (1.0 - schedule) * p + schedule * 0.5 * (1.0 - torch.cos(math.pi * t)) * p.amax(-1, keepdim=True)
    share = draw.uniform(B, 1, high=0.6) * draw.happens(B, 1, p=0.6)
    stuck = torch.where(each[FLAT] < share, 0.25 * each[MIXED] ** 2, 1.0)
    y = start[..., None] - (start - end)[..., None] * p * stuck[..., None]
    return y + _harm(draw, u, t, y)


def _progress(draw: Draw, u: Tensor, s: Tensor, law: Tensor, T: int) -> Tensor:
    """From 0 towards 1 along s (B, C, T), by the law of each study."""
    B, C, _ = u.shape
    each = u.unbind(-1)

    def spread(latent: Tensor, most: float) -> Tensor:
        """A factor per curve, up to e^most either way."""
        return torch.exp((latent - 0.5) * 2.0 * draw.uniform(B, 1, low=0.1, high=most))[..., None]

    rate = draw.log_uniform(B, 1, 1, low=0.4, high=80.0)
    fast, slow = rate * spread(each[RATE], 2.5), rate * spread(each[SLOW_RATE], 2.5)
    power = spread(each[SHAPE], 1.0) * draw.log_uniform(B, 1, 1, low=0.2, high=1.5)
    mixed = (0.5 * draw.uniform(B, 1) + 0.5 * each[MIXED])[..., None] * draw.happens(B, 1, 1, p=0.7)
    decay = mixed * (1.0 - torch.exp(-fast * s)) + (1.0 - mixed) * (1.0 - (1.0 + slow * s) ** -power)

    steep = 1.5 + 5.0 * each[SHAPE][..., None] * draw.uniform(B, 1, 1)
    half = 0.02 + each[RATE][..., None] * draw.uniform(B, 1, 1, low=0.1, high=1.3)
    hill = s**steep / (s**steep + half**steep + 1e-12)
    log_s = torch.log1p(s * T) / torch.log1p(torch.full_like(rate, T))
    middle = 0.1 + 0.8 * each[RATE][..., None]
    sharp = draw.log_uniform(B, 1, 1, low=4.0, high=30.0)
    log_hill = torch.sigmoid(sharp * (log_s - middle))
    at, height = u[..., JUMPS].clamp(0.02, 0.98), torch.softmax(2.0 * draw.normal(B, C, 4), -1)
    width = draw.log_uniform(B, 1, 1, low=0.003, high=0.05)
    jumps = sum(
        height[..., j : j + 1] * torch.sigmoid((s - at[..., j : j + 1] * (0.3 + 0.7 * half)) / width) for j in range(4)
    )
    jumps = 0.3 * decay + 0.7 * jumps
    found = torch.where(law == 1, hill, torch.where(law == 2, log_hill, torch.where(law == 3, jumps, decay)))
    # Rewards: S-shaped, often late, often up and down again.
    waves = sum(
        torch.sin(2.0 * math.pi * (draw.uniform(B, C, 1, low=0.5, high=6.0) * s + draw.uniform(B, C, 1)))
        for _ in range(2)
    )
    swing = draw.uniform(B, 1, 1, high=0.35) * u[..., NOISE : NOISE + 1]
    rewards = hill * (1.0 + swing * waves)
    return torch.where(law == 4, rewards, found).clamp(-0.5, 1.3)


def _harm(draw: Draw, u: Tensor, t: Tensor, y: Tensor) -> Tensor:
    """What is added to values (B, C, T): overfitting, divergence at the start and for good, noise, spikes."""
    B, C, T = y.shape
    overfits = draw.happens(B, 1, 1, p=0.35)
    onset = 1.0 - 0.9 * u[..., OVERFIT : OVERFIT + 1]
    harm = overfits * draw.uniform(B, 1, 1) * (t - onset).clamp(min=0.0) * 1.2
    worse_first = draw.happens(B, 1, 1, p=0.15) * u[..., DIVERGE : DIVERGE + 1]
    length = draw.uniform(B, 1, 1, low=0.02, high=0.3)
    harm = harm + worse_first * 3.0 * (t / length) * torch.exp(1.0 - t / length) * draw.uniform(B, 1, 1)
    lost = draw.uniform(B, 1, 1, high=0.4) * draw.happens(B, 1, 1, p=0.2)
    diverges = u[..., DIVERGE : DIVERGE + 1] > 1.0 - lost
    harm = harm + torch.where(diverges, 2.0 * (t - u[..., LATE : LATE + 1] * 0.5).clamp(min=0.0), 0.0)
    size = draw.log_uniform(B, 1, 1, low=1e-4, high=0.12)
    size = size * torch.exp((u[..., NOISE : NOISE + 1] - 0.5) * 2.0 * draw.uniform(B, 1, 1, high=1.5))
    fades = torch.where(draw.happens(B, 1, 1, p=0.3), (1.0 + 10.0 * t) ** -0.5, 1.0)
    noise = draw.normal(B, C, T) * size * fades
    spikes = draw.happens(B, C, T, p=0.02) * draw.happens(B, 1, 1, p=0.15) * draw.uniform(B, C, T, high=0.6)
    return harm + noise + spikes


BOUND_STEPS = 16  # of a training, by which a study's bound is chosen


def seen_values(draw: Draw, y: Tensor) -> Tensor:
    """Values (B, C, T) as a study would report them: another scale, bounds that many reach, and few digits."""
    B, _, T = y.shape
    k = draw.uniform(B, 1, 1, low=0.5, high=4.0)
    stretched = torch.expm1(k * y.clamp(max=3.0)) / torch.expm1(k)
    shrunk = torch.log(y.clamp(min=0.0) + draw.log_uniform(B, 1, 1, low=0.003, high=0.3))
    kind = draw.uniform(B, 1, 1)
    y = torch.where(kind < 0.3, stretched, torch.where(kind > 0.85, shrunk, y))
    some = y[:, :, ((torch.arange(BOUND_STEPS, device=draw.device) + 0.5) * T / BOUND_STEPS).long()].flatten(1)
    bound = some.kthvalue(1 + some.shape[1] // 50, dim=1)[0]  # of all values it would take long
    y = torch.where(draw.happens(B, 1, 1, p=0.12), torch.maximum(y, bound[:, None, None]), y)
    digits = draw.log_uniform(B, 1, 1, low=15.0, high=3000.0)
    return torch.where(draw.happens(B, 1, 1, p=0.25), (y * digits).round() / digits, y)


# -- histories ---------------------------------------------------------------------------------------------------------


def lengths(draw: Draw, y: Tensor) -> Tensor:
    """How many steps (B, C) of each curve are known; 0 for those not begun.

    Some histories train at random lengths, some train longer what looks good, by degrees or on the rungs of successive
    halving, and some train everything to its end.
    """
    B, C, T = y.shape
    u = draw.uniform(B, 1)
    few = torch.full_like(u, C - 8).pow(u).ceil()
    count = torch.where(draw.happens(B, 1, p=0.5), few, draw.integers(1, C - 8, B, 1).float())
    begun = ranks(draw.uniform(B, C)) < count
    early = torch.where(torch.arange(T, device=draw.device) < max(T // 10, 1), y, torch.inf).amin(-1)
    merit = ranks(torch.where(begun, early + 1e-6 * draw.normal(B, C), torch.inf)) / count.clamp(min=1)
    at_random = draw.uniform(B, C) ** draw.log_uniform(B, 1, low=0.5, high=5.0)
    at_random = torch.where(draw.happens(B, C, p=0.12), 1.0, at_random)
    least = draw.uniform(B, 1, low=0.01, high=0.2)
    by_merit = least + (1.0 - least) * (1.0 - merit).clamp(min=0.0) ** draw.log_uniform(B, 1, low=1.0, high=15.0)
    by_merit = by_merit * draw.uniform(B, C, low=0.6, high=1.2)
    rungs = 3.0 ** (-(torch.log(merit * count + 1.0) / math.log(3.0)).floor().clamp(max=3.0))
    kind = draw.uniform(B, 1)
    share = torch.where(kind < 0.4, at_random, torch.where(kind < 0.8, by_merit, rungs))
    share = torch.where(kind > 0.95, 1.0, share)
    steps = (share * T).ceil().clamp(1, T)
    return torch.where(begun, steps, 0.0)


# -- studies -----------------------------------------------------------------------------------------------------------


def configurations(draw: Draw, B: int, C: int) -> tuple[Tensor, Tensor]:
    """Hyperparameters x and what they make of curves, latent. The first half of the configurations is spread out; in
    half of the studies the others are near the best of those, as a search that has learned something would place them.
    """
    of, functions = columns(draw, B), RandomFunctions(draw, B)
    half = C // 2
    raw = draw.uniform(B, half, SLOTS)
    latent = functions(draw, placed(draw, raw, of))
    good = latent[..., END] + 0.3 * draw.normal(B, half)
    four = good.topk(4, largest=False)[1]  # (B, 4) the best
    best = four.gather(1, draw.integers(0, 4, B, C - half))  # (B, C - half) one of them
    near = raw.gather(1, best[..., None].expand(-1, -1, SLOTS))
    moved = draw.happens(B, C - half, SLOTS, p=0.6) * draw.normal(B, C - half, SLOTS)
    near = (near + moved * draw.log_uniform(B, 1, 1, low=0.02, high=0.4)).clamp(0.0, 1.0)
    searched = draw.happens(B, 1, 1, p=0.5) & draw.happens(B, C - half, 1, p=0.7)
    raw = torch.cat([raw, torch.where(searched, near, draw.uniform(B, C - half, SLOTS))], 1)
    x = placed(draw, raw, of)
    return x, functions(draw, x)


def trained(draw: Draw, x: Tensor, latent: Tensor, T: int) -> Studies:
    """Studies with T steps, of these configurations."""
    y = seen_values(draw, curves(draw, latent, T))
    return Studies(x, y, lengths(draw, y))


def studies(draw: Draw, B: int, C: int, T: int) -> Studies:
    return trained(draw, *configurations(draw, B, C), T)
