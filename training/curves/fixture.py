"""Writes PyTorch's answers for a few small studies: `python -m training.curves.fixture`.

The library runs the network in NumPy. Its tests begin from what a study has (features of configurations, what trainings
reported, the steps that are asked for) and have to come to these answers. Call it whenever the weights change.

For study i the file holds
    X{i}, groups{i}   (c, f) features of configurations, and the parameter that each column belongs to
    known{i}          (c,) steps of each that are known; 0 where it was not begun
    y{i}              (sum of known,) what they reported, one after the other
    T{i}              steps of a complete training
    steps{i}          (c, q) the steps asked for
    p{i}              (c, q, BUCKETS) the answers
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from training.curves.network import CurveNetwork, possible
from training.curves.prior import Draw, Studies, studies
from training.curves.tokens import time_features, tokens

ROOT = Path(__file__).parents[2]
WEIGHTS = ROOT / "src/farthing/surrogates/curves/network.npz"
FIXTURE = ROOT / "tests/surrogates/curves/network_answers.npz"
SEED = 17
CONFIGURATIONS, NEW = 14, 4  # of a study, and how many of them were not begun
STUDIES = ((3, 16), (50, 3), (300, 8))  # steps and columns of each
SHARES = (0.3, 1.0)  # of what is left of a training, asked for


def network(weights: Path) -> CurveNetwork:
    """With the weights of a file of half-precision arrays, in single precision."""
    with np.load(weights) as stored:
        arrays = {name: torch.tensor(stored[name].astype(np.float32)) for name in stored.files}
    size = len(arrays["norm.weight"])
    net = CurveNetwork(size, sum(name.endswith(".qkv.weight") for name in arrays))
    net.load_state_dict(arrays)
    return net.eval()


def small_study(draw: Draw, T: int, columns: int) -> Studies:
    """One study with hyperparameters in its first columns only."""
    of = studies(draw, 1, CONFIGURATIONS, T)
    x = torch.where(torch.arange(of.x.shape[-1]) < columns, of.x, 0.0)
    begun = torch.arange(CONFIGURATIONS) < CONFIGURATIONS - NEW
    length = torch.where(begun, (T * draw.uniform(1, CONFIGURATIONS) ** 2).ceil(), 0.0)  # many short, a few long
    return Studies(x, of.y, length)


@torch.no_grad()
def answers(net: CurveNetwork, of: Studies, steps: Tensor) -> Tensor:
    """Probabilities (B, C, q, BUCKETS) of the running best at these steps (B, C, q)."""
    T = of.y.shape[-1]
    seen, _, _, _, now = tokens(of)
    share = (of.length / T)[..., None].expand_as(steps)
    logits = net(seen, of.length > 0, time_features(steps / T, share, T))
    return torch.softmax(logits.masked_fill(~possible(now)[:, :, None], -torch.inf), -1)


def asked_steps(of: Studies) -> Tensor:
    """(B, C, q) later than what is known, except where that is all."""
    T = of.y.shape[-1]
    left = T - of.length
    return torch.stack([of.length + torch.ceil(share * left).clamp(min=1.0) for share in SHARES], -1).clamp(max=T)


def fixture(net: CurveNetwork) -> dict[str, np.ndarray]:
    draw, found = Draw(SEED, "cpu"), {}
    for i, (T, columns) in enumerate(STUDIES):
        of = small_study(draw, T, columns)
        steps, known = asked_steps(of), of.length[0].int().numpy()
        found[f"X{i}"] = (0.5 + 0.5 * of.x[0, :, :columns]).numpy()
        found[f"groups{i}"] = np.arange(columns)
        found[f"known{i}"] = known
        found[f"y{i}"] = np.concatenate([of.y[0, j, :n].numpy() for j, n in enumerate(known)])
        found[f"T{i}"] = np.array(T)
        found[f"steps{i}"] = steps[0].numpy()
        found[f"p{i}"] = answers(net, of, steps)[0].numpy()
    return found


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--weights", type=Path, default=WEIGHTS)
    options.add_argument("--out", type=Path, default=FIXTURE)
    given = options.parse_args()
    torch.set_num_threads(1)
    np.savez_compressed(given.out, **fixture(network(given.weights)))
    print(f"{given.out}: {given.out.stat().st_size / 1e3:.0f} kB")


if __name__ == "__main__":
    main()
