"""The network: a transformer over configurations. All see those that were begun; each answers for its own future.

token -> h        two layers
h -> h            BLOCKS blocks: attention to the tokens of trainings that were begun, then two layers (both after
                  a normalisation, both added)
h, time -> logits of BUCKETS equal parts of u; parts above what a training has reached already are impossible
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.attention.flex_attention import flex_attention

from training.curves.tokens import BUCKETS, HIGH, LOW, OF_TIME, WIDTH


def attention(q: Tensor, k: Tensor, v: Tensor, begun: Tensor) -> Tensor:
    """Of all tokens to those of trainings that were begun (B, C); q, k, v (B, heads, C, size of a head)."""
    if not (q.is_cuda and torch.compiler.is_compiling()):
        return F.scaled_dot_product_attention(q, k, v, attn_mask=begun[:, None, None, :])

    # On an H200 the step of a training takes a tenth less time with this. PyTorch 2.11 would take cuDNN otherwise,
    # whose gradients can be NaN where C % 128 is 64 (pytorch/pytorch#196678).
    def seen(score: Tensor, b: Tensor, _head: Tensor, _query: Tensor, key: Tensor) -> Tensor:
        return torch.where(begun[b, key], score, -torch.inf)

    return flex_attention(q, k, v, score_mod=seen)


class Block(nn.Module):
    def __init__(self, size: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(size), nn.LayerNorm(size)
        self.qkv, self.mix = nn.Linear(size, 3 * size), nn.Linear(size, size)
        self.up, self.down = nn.Linear(size, 2 * size), nn.Linear(2 * size, size)

    def forward(self, h: Tensor, begun: Tensor) -> Tensor:
        B, C, size = h.shape
        q, k, v = self.qkv(self.norm1(h)).view(B, C, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        seen = attention(q, k, v, begun)
        h = h + self.mix(seen.transpose(1, 2).reshape(B, C, size))
        return h + self.down(F.gelu(self.up(self.norm2(h)), approximate="tanh"))


class CurveNetwork(nn.Module):
    def __init__(self, size: int = 256, blocks: int = 6, heads: int = 8) -> None:
        super().__init__()
        self.settings = {"size": size, "blocks": blocks, "heads": heads}
        self.enter1, self.enter2 = nn.Linear(WIDTH, 2 * size), nn.Linear(2 * size, size)
        self.blocks = nn.ModuleList(Block(size, heads) for _ in range(blocks))
        self.norm = nn.LayerNorm(size)
        self.ask, self.when = nn.Linear(size, size), nn.Linear(OF_TIME, size, bias=False)
        self.think, self.answer = nn.Linear(size, size), nn.Linear(size, BUCKETS)

    def forward(self, tokens: Tensor, begun: Tensor, time: Tensor) -> Tensor:
        """Logits (B, C, Q, BUCKETS) for times (B, C, Q, OF_TIME) at tokens (B, C, WIDTH)."""
        h = self.enter2(F.gelu(self.enter1(tokens), approximate="tanh"))
        for block in self.blocks:
            h = block(h, begun)
        a = self.ask(self.norm(h))[:, :, None] + self.when(time)
        return self.answer(F.gelu(self.think(F.gelu(a, approximate="tanh")), approximate="tanh"))


def possible(u: Tensor) -> Tensor:
    """Which buckets (..., BUCKETS) a training can still come to from u: those that do not lie above it."""
    low = torch.arange(BUCKETS, device=u.device) * ((HIGH - LOW) / BUCKETS) + LOW
    return low <= u[..., None] + 1e-6


def bucket(u: Tensor) -> Tensor:
    return ((u - LOW) * (BUCKETS / (HIGH - LOW))).long().clamp(0, BUCKETS - 1)
