"""A small convolutional network on small images: digits that were moved or turned, drawn shapes, textures.

The digits are judged by the share of wrong answers, which has ties, because few images are held out. The shapes and
textures are judged by cross-entropy, which rises again when the network overfits and has no upper limit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

Array = NDArray[Any]
Data = tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]  # X (n, 1, size, size), y (n,); then held out

SPACE: list[dict[str, Any]] = [
    {"name": "learning_rate", "type": "uniform_float", "lower": 1e-5, "upper": 1.0, "log": True},
    {"name": "optimiser", "type": "categorical", "choices": ["sgd", "momentum", "adam"]},
    {"name": "schedule", "type": "categorical", "choices": ["constant", "cosine"]},
    {"name": "weight_decay", "type": "uniform_float", "lower": 1e-7, "upper": 1e-1, "log": True},
    {"name": "channels", "type": "uniform_int", "lower": 4, "upper": 32, "log": True},
    {"name": "blocks", "type": "uniform_int", "lower": 1, "upper": 3, "log": False},
    {"name": "batch", "type": "uniform_int", "lower": 16, "upper": 256, "log": True},
    {"name": "dropout", "type": "uniform_float", "lower": 0.0, "upper": 0.7, "log": False},
    {"name": "norm", "type": "categorical", "choices": ["none", "batch"]},
]
STEPS = 30
TASKS = ("digits_moved", "digits_turned", "shapes", "textures")


def train(task: str, config: dict[str, Any], seed: int) -> Iterator[float]:
    """One pass over the training images per step. Yields nan once the network answers with nan."""
    torch.set_num_threads(1)
    torch.manual_seed(seed)  # layers and dropout draw from the global generator of torch
    X, y, X_valid, y_valid = data(task)
    model = network(config, size=X.shape[-1], classes=int(y.max()) + 1)
    optimiser = make_optimiser(config, model)
    schedule = make_schedule(config, optimiser)
    for _ in range(STEPS):
        one_pass(model, optimiser, X, y, config["batch"])
        schedule.step()
        yield judged(model, X_valid, y_valid, JUDGES[task])


# -- the network -------------------------------------------------------------------------------------------------------


def network(config: dict[str, Any], size: int, classes: int) -> nn.Module:
    """Blocks that each halve the image, then one linear layer on all that is left."""
    layers: list[nn.Module] = []
    into, out = 1, config["channels"]
    for _ in range(config["blocks"]):
        layers.append(nn.Conv2d(into, out, 3, padding=1))
        if config["norm"] == "batch":
            layers.append(nn.BatchNorm2d(out))
        layers += [nn.ReLU(), nn.MaxPool2d(2)]
        into, size = out, size // 2
    return nn.Sequential(*layers, nn.Flatten(), nn.Dropout(config["dropout"]), nn.Linear(out * size**2, classes))


def make_optimiser(config: dict[str, Any], model: nn.Module) -> torch.optim.Optimizer:
    rate, decay = config["learning_rate"], config["weight_decay"]
    if config["optimiser"] == "adam":
        return torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=decay)
    momentum = 0.9 if config["optimiser"] == "momentum" else 0.0
    return torch.optim.SGD(model.parameters(), lr=rate, weight_decay=decay, momentum=momentum)


def make_schedule(config: dict[str, Any], optimiser: torch.optim.Optimizer) -> torch.optim.lr_scheduler.LRScheduler:
    if config["schedule"] == "cosine":
        return torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, STEPS)
    return torch.optim.lr_scheduler.ConstantLR(optimiser, factor=1.0)


def one_pass(model: nn.Module, optimiser: torch.optim.Optimizer, X: torch.Tensor, y: torch.Tensor, batch: int) -> None:
    model.train()
    for rows in torch.randperm(len(X)).split(batch):
        optimiser.zero_grad()
        nn.functional.cross_entropy(model(X[rows]), y[rows]).backward()
        optimiser.step()


def judged(model: nn.Module, X: torch.Tensor, y: torch.Tensor, judge: Callable[..., torch.Tensor]) -> float:
    model.eval()
    with torch.no_grad():
        answer = model(X)
    return float(judge(answer, y)) if bool(answer.isfinite().all()) else float("nan")


def error(answer: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return (answer.argmax(1) != y).double().mean()


JUDGES = {
    "digits_moved": error,
    "digits_turned": error,
    "shapes": nn.functional.cross_entropy,
    "textures": nn.functional.cross_entropy,
}


# -- the images --------------------------------------------------------------------------------------------------------


@cache
def data(task: str) -> Data:
    """The images of a task, the same for every seed: 60 % to train on, the rest held out."""
    images = {"digits_moved": moved_digits, "digits_turned": turned_digits, "shapes": shapes, "textures": textures}
    X, y = images[task](np.random.default_rng(0))
    X_all = torch.tensor((X - X.mean()) / X.std(), dtype=torch.float32)[:, None]
    y_all = torch.tensor(y, dtype=torch.long)
    cut = int(0.6 * len(X))
    return X_all[:cut], y_all[:cut], X_all[cut:], y_all[cut:]


def digits(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    """n of the digits of scikit-learn in random order, (n, 8, 8) from 0 to 1."""
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    rows = rng.permutation(len(X))[:n]
    return X[rows].reshape(-1, 8, 8) / 16.0, y[rows]


def moved_digits(rng: np.random.Generator) -> tuple[Array, Array]:
    """Each digit somewhere in an image of 12 x 12, under noise."""
    X, y = digits(rng, 1500)
    larger = rng.normal(0.0, 0.15, (len(X), 12, 12))
    for image, digit, (row, column) in zip(larger, X, rng.integers(0, 5, (len(X), 2)), strict=True):
        image[row : row + 8, column : column + 8] += digit
    return larger, y


def turned_digits(rng: np.random.Generator) -> tuple[Array, Array]:
    """Each digit at 12 x 12, turned by up to 75 degrees either way, under noise."""
    from scipy.ndimage import rotate, zoom

    X, y = digits(rng, 1500)
    angles = rng.uniform(-75.0, 75.0, len(X))
    turned = [rotate(zoom(x, 1.5, order=1), angle, reshape=False, order=1) for x, angle in zip(X, angles, strict=True)]
    return np.stack(turned) + rng.normal(0.0, 0.2, (len(X), 12, 12)), y


def grid(n: int, size: int, rng: np.random.Generator, shift: float) -> tuple[Array, Array]:
    """Coordinates of every pixel, from -1 to 1, moved and turned at random for each image: (n, size, size) each."""
    axis = np.linspace(-1.0, 1.0, size)
    dx, dy = rng.uniform(-shift, shift, (2, n, 1, 1))
    x, y = axis[None, None, :] - dx, axis[None, :, None] - dy
    angle = rng.uniform(0.0, 2.0 * np.pi, (n, 1, 1))
    return x * np.cos(angle) + y * np.sin(angle), y * np.cos(angle) - x * np.sin(angle)


def shapes(rng: np.random.Generator) -> tuple[Array, Array]:
    """Disc, ring, square, triangle, cross or bar, of random size, place, angle and brightness, under noise."""
    n, size = 1300, 16
    u, v = grid(n, size, rng, shift=0.25)
    scale = rng.uniform(0.35, 0.65, (n, 1, 1))
    u, v = u / scale, v / scale
    radius, square = np.hypot(u, v), np.maximum(np.abs(u), np.abs(v))
    drawn = np.stack(
        [
            radius < 1.0,
            (radius < 1.1) & (radius > 0.55),
            square < 0.9,
            (v > -0.6) & (v + 1.8 * np.abs(u) < 1.1),
            (square < 1.1) & (np.minimum(np.abs(u), np.abs(v)) < 0.35),
            (np.abs(u) < 1.3) & (np.abs(v) < 0.4),
        ]
    )  # (classes, n, size, size)
    y = rng.integers(0, len(drawn), n)
    bright = rng.uniform(0.6, 1.0, (n, 1, 1))
    return bright * drawn[y, np.arange(n)] + rng.normal(0.0, 0.2, (n, size, size)), y


def textures(rng: np.random.Generator) -> tuple[Array, Array]:
    """Stripes, checks, rings, dots, waves or a blur of noise, of random width and angle, under noise."""
    n, size = 1300, 16
    u, v = grid(n, size, rng, shift=1.0)
    width = rng.uniform(6.0, 11.0, (n, 1, 1))
    u, v = u * width, v * width
    rough = rng.normal(0.0, 1.0, (n, size + 1, size + 1))
    drawn = np.stack(
        [
            np.sin(u),
            np.sign(np.sin(0.7 * u) * np.sin(0.7 * v)),
            np.sin(np.hypot(u, v)),
            2.0 * (np.cos(u) + np.cos(v) > 1.0) - 0.5,
            np.sin(u + 1.5 * np.sin(0.6 * v)),
            (rough[:, 1:, 1:] + rough[:, :-1, 1:] + rough[:, 1:, :-1] + rough[:, :-1, :-1]) / 2.5,
        ]
    )  # (classes, n, size, size)
    y = rng.integers(0, len(drawn), n)
    return drawn[y, np.arange(n)] + rng.normal(0.0, 0.6, (n, size, size)), y
