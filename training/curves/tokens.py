"""What the network sees of a study: one token per configuration, begun or not. The library has the same in NumPy.

Symbols and shapes
    r        running best of a curve: the value of a training that has come that far
    scale    z = (value - best) / spread: 0 is the best value of the study, 1 about the median of its trainings
    squash   u = asinh(20 z) / asinh(20): fine near the best, logarithmic far from it
    segments of a curve end at fixed shares of its known steps; each shows its end, the running best there, and the mean
             of what was reported in it: the difference of both tells noise from progress
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from training.curves.prior import SLOTS, Studies

SHARES = (0.04, 0.1, 0.2, 0.35, 0.5, 0.7, 0.85, 1.0)  # of the known steps, where segments end
SHARP = 20.0
LOW, HIGH, BUCKETS = -1.6, 2.2, 128  # of u: beyond lie 8 spreads below the best and 80 above it
BELLS = 32  # bell-shaped functions of the last u, so that it can be told apart finely
OF_SEGMENT = 5
WIDTH = SLOTS + len(SHARES) * OF_SEGMENT + 5 + BELLS
OF_TIME = 6


def squash(z: Tensor) -> Tensor:
    return (torch.asinh(SHARP * z) / math.asinh(SHARP)).clamp(LOW, HIGH)


def scale_of(first: Tensor, last: Tensor, begun: Tensor) -> tuple[Tensor, Tensor]:
    """Best and spread (B, 1) from the first value and the running best at the last step of each curve (B, C).

    The spread is the distance from the best to the median, at least a tenth of that of first values, which is what is
    left where all trainings have come equally far.
    """
    best = torch.where(begun, last, torch.inf).amin(1, keepdim=True)
    nan = torch.full_like(last, torch.nan)
    median = torch.where(begun, last, nan).nanmedian(1, keepdim=True)[0]
    median_first = torch.where(begun, first, nan).nanmedian(1, keepdim=True)[0]
    spread = torch.maximum(median - best, 0.1 * (median_first - best))
    return best, torch.where(spread > 1e-9 * best.abs().clamp(min=1e-30), spread, torch.ones_like(spread))


def log_time(t: Tensor) -> Tensor:
    """About -1 to 1 for shares of a training from a thousandth to all of it."""
    return torch.log(t + 1e-3) / math.log(1e3) * 2.0 + 1.0


def log_steps(t: Tensor, T: int) -> Tensor:
    """0 to 1 for a step to a thousand of them, at a share t of a training of T steps."""
    return torch.log(t * T) / 7.0


def tokens(of: Studies) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Tokens (B, C, WIDTH), running bests (B, C, T), best and spread (B, 1), u of the last known step (B, C)."""
    B, C, T = of.y.shape
    running, n, begun = of.y.cummin(-1)[0], of.length, of.length > 0
    last = running.gather(-1, (n - 1).clamp(min=0).long()[..., None])[..., 0]
    best, spread = scale_of(of.y[..., 0], last, begun)
    ends = torch.stack([torch.ceil(share * n - 1e-4) for share in SHARES], -1).clamp(min=1.0)  # (B, C, S)
    before = torch.cat([torch.zeros_like(ends[..., :1]), ends[..., :-1]], -1)
    sums = torch.cat([torch.zeros_like(of.y[..., :1]), of.y.double().cumsum(-1).float()], -1)
    valid = (ends > before) & begun[..., None]
    total = sums.gather(-1, ends.long()) - sums.gather(-1, before.long())
    mean = total / (ends - before).clamp(min=1.0)
    bests = running.gather(-1, (ends - 1).long())

    def scaled(y: Tensor) -> Tensor:
        return squash((y - best[..., None]) / spread[..., None])

    t = ends / T
    parts = [torch.ones_like(t), t, log_time(t), scaled(bests), scaled(mean)]
    segments = torch.where(valid[..., None], torch.stack(parts, -1), 0.0).flatten(-2)
    u = torch.where(begun, squash((last - best) / spread), HIGH)
    share = n / T
    count = begun.sum(1, keepdim=True).float().expand(B, C)
    facts = torch.stack(
        [begun.float(), share, log_time(share), log_steps(torch.ones_like(share), T), torch.log1p(count) / 6.0], -1
    )
    middles = torch.linspace(LOW, HIGH, BELLS, device=of.y.device)
    bells = torch.exp(-0.5 * ((u[..., None] - middles) / ((HIGH - LOW) / BELLS)) ** 2) * begun[..., None]
    return torch.cat([of.x, segments, facts, bells], -1), running, best, spread, u


def time_features(t: Tensor, share: Tensor, T: int) -> Tensor:
    """Of a time t that is asked for, as a share of a training, at a token that has come as far as `share`."""
    early, size = log_time(t), log_steps(torch.ones_like(t), T)
    return torch.stack([t, early, t - share, early - log_time(share), log_steps(t, T), size], -1)
