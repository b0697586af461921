"""Batches for the training: synthetic studies as the network sees them, and what it is asked about them.

A draw is about 900 small operations, which take longer to launch than to run, so it is compiled. One compiled program
serves trainings of any length T: T is the length of a tensor that is marked as dynamic. Nothing may copy from the host
in between (`torch.tensor` on a GPU does), because that waits for all that was launched before.

All studies of a draw have the same T. Batches with one T each would pull the network to and fro, so MIXED draws are cut
into as many batches, each with a share of every draw.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from training.curves.prior import Draw, Studies, configurations, trained
from training.curves.tokens import squash, time_features, tokens

ASKED = 4  # times per token
MIXED = 8  # draws
# Fewest and most steps of a training, and how often.
KINDS = ((3, 12, 0.1), (10, 60, 0.45), (40, 128, 0.3), (100, 400, 0.1), (300, 1_000, 0.05))
USUAL_STEPS = 64
FEW, MANY, OFTEN_MANY = 128, 384, 0.15  # configurations of a study, and how often there are many

Example = tuple[Tensor, ...]


def asked_times(draw: Draw, of: Studies) -> Tensor:
    """Times (B, C, ASKED) as shares: the end, soon, and anywhere later than what is known."""
    B, C, T = of.y.shape
    known = of.length / T
    left = (1.0 - known).clamp(min=0.0)
    soon = known + left * draw.uniform(B, C) ** 3
    later = (known + left * draw.uniform(B, C) for _ in range(ASKED - 2))
    t = torch.stack([torch.ones_like(known), soon, *later], -1)
    return torch.ceil(t * T).clamp(min=1.0, max=T) / T


def example(draw: Draw, of: Studies) -> Example:
    """Tokens, which are begun, features of the times asked for, the answers u, and u now."""
    T = of.y.shape[-1]
    seen, running, best, spread, now = tokens(of)
    t = asked_times(draw, of)
    answers = running.gather(-1, (t * T).round().long() - 1)
    u = squash((answers - best[..., None]) / spread[..., None])
    share = (of.length / T)[..., None].expand_as(t)
    return seen, of.length > 0, time_features(t, share, T), u, now


def _configurations(studies: Tensor) -> tuple[Tensor, Tensor]:
    return configurations(Draw(None, studies.device.type), *studies.shape)


def _example(x: Tensor, latent: Tensor, steps: Tensor) -> Example:
    draw = Draw(None, x.device.type)
    return example(draw, trained(draw, x, latent, len(steps)))


class Drawing:
    """Draws examples on a device, from PyTorch's own random numbers.

    Sizes are those of tensors that are marked as dynamic, so that what is compiled serves all of them. What does not
    depend on T is compiled by itself: as one program, all of it would be computed again for every step.
    """

    def __init__(self, device: str, compiled: bool) -> None:
        self.device = device
        self.configurations = torch.compile(_configurations, dynamic=False) if compiled else _configurations
        self.example = torch.compile(_example, dynamic=False) if compiled else _example

    @torch.no_grad()
    def __call__(self, B: int, C: int, T: int) -> Example:
        """Of B studies with C configurations and T steps."""
        x, latent = self.configurations(_any_size(torch.empty(B, C, device=self.device)))
        return self.example(_any_size(x), _any_size(latent), _any_size(torch.empty(T, device=self.device)))


def _any_size(x: Tensor) -> Tensor:
    """The tensor, with its first two sizes dynamic."""
    torch._dynamo.maybe_mark_dynamic(x, list(range(min(x.ndim, 2))))
    return x


def random_length() -> int:
    kind = int(torch.multinomial(torch.tensor([share for *_, share in KINDS]), 1).item())
    low, high, _ = KINDS[kind]
    return int(torch.randint(low, high + 1, (1,)).item())


def mixed(draws: list[Example]) -> Iterator[Example]:
    """As many batches as draws, each with its share of the studies of every draw."""
    n = len(draws[0][0]) // len(draws)
    for i in range(len(draws)):
        yield tuple(torch.cat([part[i * n : (i + 1) * n] for part in same]) for same in zip(*draws, strict=True))


def batches(total: int, device: str, compiled: bool) -> Iterator[Example]:
    """Of about `total` tokens each, without end."""
    drawing = Drawing(device, compiled)
    if compiled:
        drawing(max(total // FEW, 2), FEW, USUAL_STEPS)  # what is compiled is tuned for the first sizes that it meets
    while True:
        C = MANY if torch.rand(1).item() < OFTEN_MANY else FEW
        B = max(total // (C * MIXED), 1) * MIXED
        yield from mixed([drawing(B, C, random_length()) for _ in range(MIXED)])
