"""Trains the network: `python -m training.curves.train --minutes 8 --total 24 --folder checkpoints`, three times.

The rate of learning follows a cosine over `--total` minutes of all calls together. A call ends after its own minutes;
it begins where the checkpoint of the call before ended, and writes the averaged weights as half-precision arrays, with
what they were trained with. Parts of a checkpoint have at most 15 MB each.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from training.curves.batches import Example, batches
from training.curves.network import CurveNetwork, bucket, possible
from training.curves.tokens import BUCKETS, HIGH, LOW

WARM_UP, DECAY, BETAS = 1_000, 0.01, (0.9, 0.98)
AVERAGE = 0.9995  # of the weights, per step
PART = 14_000_000  # bytes of one file of a checkpoint


def loss_of(net: torch.nn.Module, of: Example, device: str) -> Tensor:
    """Mean negative log density of u, in nats."""
    seen, begun, time_, u, now = of
    with torch.autocast(device, dtype=torch.bfloat16):
        logits = net(seen, begun, time_)
    logits = logits.float().masked_fill(~possible(now)[:, :, None], -1e4)
    found = F.cross_entropy(logits.flatten(0, -2), bucket(u).flatten())
    return found + math.log((HIGH - LOW) / BUCKETS)


# -- checkpoints -------------------------------------------------------------------------------------------------------


def save(folder: Path, state: dict[str, Any]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    whole = folder / "whole.pt"
    torch.save({**state, "optimiser": _shorter(state["optimiser"])}, whole)
    data = whole.read_bytes()
    whole.unlink()
    for i in range(0, len(data), PART):
        (folder / f"part{i // PART:02d}").write_bytes(data[i : i + PART])


def _shorter(optimiser: dict[str, Any]) -> dict[str, Any]:
    """The optimiser's moments with half of their bytes: they are averages of noise."""
    moments = {
        i: {name: value.bfloat16() if name.startswith("exp_avg") else value for name, value in of.items()}
        for i, of in optimiser["state"].items()
    }
    return {**optimiser, "state": moments}


def load(folder: Path, device: str) -> dict[str, Any] | None:
    parts = sorted(folder.glob("part*"))
    if not parts:
        return None
    whole = folder / "whole.pt"
    whole.write_bytes(b"".join(part.read_bytes() for part in parts))
    state = torch.load(whole, map_location=device, weights_only=True)
    whole.unlink()
    return state


def weights_in(path: Path, device: str) -> dict[str, Tensor]:
    """What `export` wrote."""
    with np.load(path, allow_pickle=False) as stored:
        return {name: torch.tensor(stored[name].astype(np.float32), device=device) for name in stored.files}


def export(path: Path, weights: dict[str, Tensor], facts: dict[str, Any]) -> None:
    arrays = {name: value.detach().cpu().half().numpy() for name, value in weights.items()}
    np.savez(path, **arrays)
    path.with_suffix(".json").write_text(json.dumps(facts, indent=1))


# -- training ----------------------------------------------------------------------------------------------------------


def train(options: argparse.Namespace) -> None:
    began, device = time.time(), options.device
    torch.manual_seed(options.seed)
    torch.set_float32_matmul_precision("high")
    net = CurveNetwork(options.size, options.blocks, options.heads).to(device)
    optimiser = torch.optim.AdamW(
        net.parameters(), lr=options.rate, weight_decay=DECAY, betas=BETAS, fused=device == "cuda"
    )
    if options.begin is not None:
        net.load_state_dict(weights_in(options.begin, device))
    average = {name: value.detach().clone() for name, value in net.state_dict().items()}
    step, losses, seconds = 0, [], 0.0
    kept = load(options.folder, device)
    if kept is not None:
        net.load_state_dict(kept["net"])
        optimiser.load_state_dict(kept["optimiser"])
        average, step, losses, seconds = kept["average"], kept["step"], kept["losses"], kept["seconds"]
    torch.manual_seed(options.seed + 7919 * step)
    torch._dynamo.config.suppress_errors = True  # what cannot be compiled is run as it is
    loss_now = torch.compile(loss_of, dynamic=False) if options.compile else loss_of
    weights = net.state_dict()
    current = [weights[name] for name in average]
    source = batches(options.tokens, device, options.compile)
    recent: list[Tensor] = []
    while (taken := time.time() - began) < 60.0 * options.minutes and seconds + taken < 60.0 * options.total:
        shown = 0.5 * (1.0 + math.cos(math.pi * (seconds + taken) / (60.0 * options.total)))
        for group in optimiser.param_groups:
            group["lr"] = options.rate * min(1.0, (step + 1) / WARM_UP) * (shown + 1e-3)
        loss = loss_now(net, next(source), device)
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimiser.step()
        step += 1
        first = 1.0 - AVERAGE if options.begin is not None else 1.0 / (0.1 * step + 1.0)
        torch._foreach_lerp_(list(average.values()), current, max(1.0 - AVERAGE, first))
        recent.append(loss.detach())
        if step % options.every == 0:
            mean = float(torch.stack(recent).mean())
            recent.clear()
            losses.append([step, round(mean, 4)])
            print(f"step {step}: {mean:.4f} nats, {seconds + taken:.0f} s", flush=True)
            if not math.isfinite(mean):
                raise SystemExit("the loss is not finite")
    seconds += time.time() - began
    state = {"net": net.state_dict(), "optimiser": optimiser.state_dict(), "average": average, "step": step}
    save(options.folder, {**state, "losses": losses, "seconds": seconds})
    facts = {
        **net.settings, "steps": step, "tokens": options.tokens, "rate": options.rate, "seed": options.seed,
        "loss": losses, "seconds": round(seconds), "torch": torch.__version__, "numpy": np.__version__,
        "device": torch.cuda.get_device_name() if device == "cuda" else "cpu",
    }  # fmt: skip
    export(options.folder / "curves.npz", average, facts)


def parsed() -> argparse.Namespace:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--minutes", type=float, default=8.0)
    options.add_argument("--total", type=float, default=24.0, help="minutes of all calls")
    options.add_argument("--tokens", type=int, default=131_072, help="of a batch")
    options.add_argument("--rate", type=float, default=1e-3, help="of learning, at its highest")
    options.add_argument("--begin", type=Path, help="weights (.npz) to begin with instead of random ones")
    options.add_argument("--folder", type=Path, default=Path("checkpoints"))
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--every", type=int, default=500)
    options.add_argument("--size", type=int, default=256)
    options.add_argument("--blocks", type=int, default=6)
    options.add_argument("--heads", type=int, default=8)
    options.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    options.add_argument("--compile", action=argparse.BooleanOptionalAction, default=True)
    return options.parse_args()


if __name__ == "__main__":
    train(parsed())
