"""Small networks on sequences: a transformer that answers about a whole sequence, and a recurrent one that predicts.

The transformer adds two numbers modulo 17, having seen most of the table, or recalls which value came with a key. Its
error is flat at first and then falls suddenly, if it falls at all. The recurrent network predicts a noisy periodic
signal (mean squared error) or the next character of the manual pages bundled with Python (cross-entropy).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

Array = NDArray[Any]
Data = tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]  # X (n, length), y (n,) or X-like; then held out

SPACE: list[dict[str, Any]] = [
    {"name": "learning_rate", "type": "uniform_float", "lower": 1e-5, "upper": 0.3, "log": True},
    {"name": "optimiser", "type": "categorical", "choices": ["momentum", "rmsprop", "adam"]},
    {"name": "weight_decay", "type": "uniform_float", "lower": 1e-6, "upper": 1.0, "log": True},
    {"name": "width", "type": "uniform_int", "lower": 8, "upper": 64, "log": True},
    {"name": "layers", "type": "uniform_int", "lower": 1, "upper": 3, "log": False},
    {"name": "batch", "type": "uniform_int", "lower": 8, "upper": 96, "log": True},
    {"name": "dropout", "type": "uniform_float", "lower": 0.0, "upper": 0.5, "log": False},
    {"name": "clip", "type": "uniform_float", "lower": 1e-1, "upper": 1e2, "log": True},
    {"name": "variant", "type": "categorical", "choices": ["first", "second"]},
]
STEPS = 50
TASKS = ("addition", "recall", "signal", "text")
UPDATES = {"addition": 10, "recall": 8, "signal": 5, "text": 5}  # of the weights in each step
NUMBERS = 17
KEYS, VALUES, PAIRS = 16, 8, 8
CHARACTERS = 40
LENGTH, AHEAD = 28, 4
HEADS = 4


def train(task: str, config: dict[str, Any], seed: int) -> Iterator[float]:
    """A fixed number of updates per step, each on a batch drawn at random. Yields nan once the network does."""
    torch.set_num_threads(1)
    torch.manual_seed(seed)  # layers, batches and dropout draw from the global generator of torch
    X, y, X_valid, y_valid = data(task)
    model = make_model(task, config)
    optimiser = make_optimiser(config, model)
    for _ in range(STEPS):
        model.train()
        for rows in torch.randint(len(X), (UPDATES[task], config["batch"])):
            optimiser.zero_grad()
            loss(task, model(X[rows]), y[rows]).backward()
            nn.utils.clip_grad_norm_(model.parameters(), config["clip"])
            optimiser.step()
        model.eval()
        with torch.no_grad():
            yield judged(task, model(X_valid), y_valid)


def loss(task: str, answer: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    if task == "signal":
        return nn.functional.mse_loss(answer[..., 0], y)
    return nn.functional.cross_entropy(answer.flatten(0, -2), y.flatten())


def judged(task: str, answer: torch.Tensor, y: torch.Tensor) -> float:
    if not bool(answer.isfinite().all()):
        return float("nan")
    if task in ("addition", "recall"):
        return float((answer.argmax(1) != y).double().mean())
    return float(loss(task, answer, y))


# -- the networks ------------------------------------------------------------------------------------------------------


def make_model(task: str, config: dict[str, Any]) -> nn.Module:
    if task == "addition":
        return Transformer(NUMBERS + 1, 3, NUMBERS, config)
    if task == "recall":
        return Transformer(KEYS * VALUES + KEYS, PAIRS + 1, VALUES, config)
    if task == "signal":
        return Recurrent(Scalar(config["width"]), 1, config)
    return Recurrent(nn.Embedding(CHARACTERS, config["width"]), CHARACTERS, config)


class Transformer(nn.Module):
    """Answers at the last token. The variant says whether layers are normalised before or after each part."""

    def __init__(self, tokens: int, length: int, answers: int, config: dict[str, Any]) -> None:
        super().__init__()
        width = HEADS * (config["width"] // HEADS)
        self.embed = nn.Embedding(tokens, width)
        self.places = nn.Parameter(0.1 * torch.randn(length, width))
        parts = [part(width) for _ in range(config["layers"]) for part in (Attention, feed_forward)]
        self.layers = nn.Sequential(*(Residual(part, width, config) for part in parts))
        self.answer = nn.Linear(width, answers)

    def forward(self, X: torch.Tensor) -> torch.Tensor:
        return self.answer(self.layers(self.embed(X) + self.places)[:, -1])


class Residual(nn.Module):
    """What goes in, plus what a part makes of it."""

    def __init__(self, part: nn.Module, width: int, config: dict[str, Any]) -> None:
        super().__init__()
        self.part, self.norm, self.dropout = part, nn.LayerNorm(width), nn.Dropout(config["dropout"])
        self.norm_first = config["variant"] == "first"

    def forward(self, H: torch.Tensor) -> torch.Tensor:
        if self.norm_first:
            return H + self.dropout(self.part(self.norm(H)))
        return self.norm(H + self.dropout(self.part(H)))


class Attention(nn.Module):
    """Every token looks at every token, with HEADS heads."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.split, self.join = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, H: torch.Tensor) -> torch.Tensor:
        heads = self.split(H).unflatten(2, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)  # (3, n, HEADS, length, ...)
        return self.join(nn.functional.scaled_dot_product_attention(*heads).transpose(1, 2).flatten(2))


def feed_forward(width: int) -> nn.Module:
    return nn.Sequential(nn.Linear(width, 2 * width), nn.ReLU(), nn.Linear(2 * width, width))


class Recurrent(nn.Module):
    """Answers at every place. The first variant is a GRU, the second an LSTM."""

    def __init__(self, embed: nn.Module, answers: int, config: dict[str, Any]) -> None:
        super().__init__()
        cell = nn.GRU if config["variant"] == "first" else nn.LSTM
        inner = config["dropout"] if config["layers"] > 1 else 0.0
        self.embed = embed
        self.cells = cell(config["width"], config["width"], config["layers"], batch_first=True, dropout=inner)
        self.answer = nn.Sequential(nn.Dropout(config["dropout"]), nn.Linear(config["width"], answers))

    def forward(self, X: torch.Tensor) -> torch.Tensor:
        return self.answer(self.cells(self.embed(X))[0])


class Scalar(nn.Linear):
    """A vector for each number, as an embedding is for each token."""

    def __init__(self, width: int) -> None:
        super().__init__(1, width)

    def forward(self, X: torch.Tensor) -> torch.Tensor:
        return super().forward(X[..., None])


def make_optimiser(config: dict[str, Any], model: nn.Module) -> torch.optim.Optimizer:
    """Weight decay is decoupled from the gradient in Adam only."""
    rate, decay = config["learning_rate"], config["weight_decay"]
    if config["optimiser"] == "adam":
        return torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=decay, fused=True)
    if config["optimiser"] == "rmsprop":
        return torch.optim.RMSprop(model.parameters(), lr=rate, weight_decay=decay)
    return torch.optim.SGD(model.parameters(), lr=rate, weight_decay=decay, momentum=0.9, fused=True)


# -- the sequences -----------------------------------------------------------------------------------------------------


@cache
def data(task: str) -> Data:
    """The sequences of a task, the same for every seed: at most 400 are held out."""
    sequences = {"addition": addition, "recall": recall, "signal": signal, "text": text}
    X, y = (torch.tensor(x) for x in sequences[task](np.random.default_rng(0)))
    cut = max(int(0.75 * len(X)), len(X) - 400)
    return X[:cut], y[:cut], X[cut:], y[cut:]


def addition(rng: np.random.Generator) -> tuple[Array, Array]:
    """Every pair of numbers once, followed by a sign that asks for their sum modulo NUMBERS."""
    a, b = np.divmod(rng.permutation(NUMBERS**2), NUMBERS)
    return np.stack([a, b, np.full_like(a, NUMBERS)], axis=1), (a + b) % NUMBERS


def recall(rng: np.random.Generator) -> tuple[Array, Array]:
    """A token for each pair of a key and a value, then one of the keys alone: which value was paired with it?"""
    n = 3000
    keys = rng.permuted(np.tile(np.arange(KEYS), (n, 1)), axis=1)[:, :PAIRS]
    values = rng.integers(0, VALUES, (n, PAIRS))
    asked = rng.integers(0, PAIRS, n)
    query = KEYS * VALUES + keys[np.arange(n), asked]
    return np.concatenate([keys * VALUES + values, query[:, None]], axis=1), values[np.arange(n), asked]


def signal(rng: np.random.Generator) -> tuple[Array, Array]:
    """Two waves of random period and phase under noise: what comes AHEAD places later, without the noise?"""
    n = 600
    time = np.arange(LENGTH + AHEAD)
    period, phase = rng.uniform(5.0, 20.0, (2, n, 1)), rng.uniform(0.0, 2.0 * np.pi, (2, n, 1))
    waves = np.sin(2.0 * np.pi * time / period + phase).sum(0)
    noisy = waves + rng.normal(0.0, 0.3, waves.shape)
    return noisy[:, :LENGTH].astype(np.float32), waves[:, AHEAD:].astype(np.float32)


def text(rng: np.random.Generator) -> tuple[Array, Array]:
    """Pieces of the manual of Python, in lower case; the rarest characters are all written alike."""
    from pydoc_data.topics import topics

    letters = " ".join("\n".join(topics[name] for name in sorted(topics)).lower().split())[: 600 * (LENGTH + 1)]
    found, codes, counts = np.unique(list(letters), return_inverse=True, return_counts=True)
    ranks = np.empty(len(found), dtype=np.int64)
    ranks[np.argsort(-counts, kind="stable")] = np.arange(len(found))
    pieces = rng.permutation(np.minimum(ranks[codes], CHARACTERS - 1).reshape(-1, LENGTH + 1))
    return pieces[:, :-1], pieces[:, 1:]
