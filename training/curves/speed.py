"""What a step of the training takes, and whether compiled draws are like others: `python -m training.curves.speed`.

On a GPU this takes about two minutes, most of them to compile. A training on the same machine does not compile again.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from training.curves.batches import FEW, MANY, Drawing, Example, batches
from training.curves.network import CurveNetwork
from training.curves.train import loss_of

LENGTHS = (8, 32, 64, 128, 400)
FACTS = ("begun", "u", "spread of u", "ties", "hyperparameters", "last u", "share known")


def milliseconds(run: Callable[[], Any], device: str, seconds: float) -> float:
    """Per call, after a first one."""
    wait = torch.cuda.synchronize if device == "cuda" else int
    run()
    wait()
    began, calls = time.perf_counter(), 0
    while time.perf_counter() - began < seconds:
        run()
        wait()
        calls += 1
    return 1e3 * (time.perf_counter() - began) / calls


def facts(of: Example) -> Tensor:
    """(FACTS, B) of each study."""
    seen, begun, time_, u, now = of
    numbers = (begun, u, u.flatten(1).std(1), u == 0.0, seen[..., :16].abs(), now, time_[..., 0] - time_[..., 2])
    return torch.stack([number.float().flatten(1).mean(1) if number.ndim > 1 else number for number in numbers])


def compare(drawings: dict[str, Drawing], B: int, C: int, T: int) -> None:
    """Means over studies of both, and how many standard errors they are apart: rarely more than 3."""
    found = [torch.cat([facts(drawing(B, C, T)) for _ in range(4)], 1) for drawing in drawings.values()]
    (a, b), variance = (one.mean(1) for one in found), sum(one.var(1) / one.shape[1] for one in found)
    for name, *row in zip(FACTS, a.tolist(), b.tolist(), ((a - b) / variance.sqrt()).tolist(), strict=True):
        print(f"  C {C}, T {T}, {name}: {row[0]:.4f} and {row[1]:.4f}, {row[2]:+.1f} standard errors")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--tokens", type=int, default=131_072)
    options.add_argument("--seconds", type=float, default=0.5, help="of each measurement")
    options.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    options.add_argument("--compile", action=argparse.BooleanOptionalAction, default=True)
    given = options.parse_args()
    device, seconds = given.device, given.seconds
    torch.set_float32_matmul_precision("high")
    B = max(given.tokens // FEW, 2)
    drawings = {"compiled": Drawing(device, given.compile), "as it is": Drawing(device, False)}
    for name, drawing in drawings.items():
        for T in LENGTHS:
            taken = milliseconds(lambda drawing=drawing, T=T: drawing(B, FEW, T), device, seconds)
            print(f"drawing {name}, T {T}: {taken:.2f} ms", flush=True)
    compare(drawings, B, FEW, 20)
    compare(drawings, max(given.tokens // MANY, 2), MANY, 100)
    net = CurveNetwork().to(device)
    loss = torch.compile(loss_of, dynamic=False) if given.compile else loss_of
    source = batches(given.tokens, device, given.compile)
    for C in (FEW, MANY):
        of = next(one for one in source if one[0].shape[1] == C)
        forward = milliseconds(lambda of=of: loss(net, of, device), device, seconds)
        both = milliseconds(lambda of=of: loss(net, of, device).backward(), device, seconds)
        print(f"C {C}: forward {forward:.2f} ms, backward {both - forward:.2f} ms", flush=True)
    print(f"a batch: {milliseconds(lambda: next(source), device, 4.0 * seconds):.2f} ms")


if __name__ == "__main__":
    main()
