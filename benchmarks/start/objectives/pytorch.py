"""A few steps of a small network, as a script has it that imports PyTorch at its top."""

from __future__ import annotations

from typing import Any

import torch

torch.manual_seed(0)
X = torch.randn(256, 10)
y = (X[:, 0] * X[:, 1] > 0).float()


def fitted(config: dict[str, Any]) -> float:
    """One small training; its loss."""
    torch.set_num_threads(1)
    model = torch.nn.Sequential(torch.nn.Linear(10, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))
    optimiser = torch.optim.SGD(model.parameters(), lr=10.0 ** config["x"])
    for _ in range(5):
        loss = torch.nn.functional.binary_cross_entropy_with_logits(model(X)[:, 0], y)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return float(loss.detach())
