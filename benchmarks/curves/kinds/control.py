"""Reinforcement learning on classic control: an actor-critic on two tasks, SARSA with tile coding on two.

The actor-critic is proximal policy optimisation (Schulman et al. 2017, arXiv:1707.06347, Eq. 7) with generalised
advantage estimation (arXiv:1506.02438, Eq. 16). SARSA(lambda) with tile coding is as in Sutton and Barto, chapter 12.
Both are judged by the last episodes they played, exploration included, as is usual. The episodes are few and start at
random, so that the curves are noisy; they are often flat at first, and can fall back.

Shapes: n episodes played together, T moves, A actions, K tilings of C cells each.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from benchmarks.curves.kinds import control_tasks
from benchmarks.curves.kinds.control_tasks import Task

Array = NDArray[Any]

SPACE: list[dict[str, Any]] = [
    {"name": "learning_rate", "type": "uniform_float", "lower": 1e-4, "upper": 1.0, "log": True},
    {"name": "one_minus_gamma", "type": "uniform_float", "lower": 1e-3, "upper": 0.5, "log": True},
    {"name": "trace", "type": "uniform_float", "lower": 0.0, "upper": 1.0, "log": False},
    {"name": "exploration", "type": "uniform_float", "lower": 1e-4, "upper": 1.0, "log": True},
    {"name": "width", "type": "uniform_int", "lower": 8, "upper": 64, "log": True},
    {"name": "depth", "type": "uniform_int", "lower": 1, "upper": 3, "log": False},
    {"name": "episodes", "type": "uniform_int", "lower": 2, "upper": 16, "log": True},
    {"name": "passes", "type": "uniform_int", "lower": 1, "upper": 3, "log": False},
    {"name": "damped", "type": "categorical", "choices": ["no", "yes"]},
]
STEPS = 60
TASKS = ("cart_pole", "acrobot", "mountain_car", "pendulum")
JUDGED = 10  # the last episodes


def train(task: str, config: dict[str, Any], seed: int) -> Iterator[float]:
    """Minus the mean return of the last episodes. Yields nan once the learner has diverged."""
    torch.set_num_threads(1)
    torch.manual_seed(seed)  # layers and batches draw from the global generator of torch
    rng = np.random.default_rng(seed)
    make = ActorCritic if task in TASKS[:2] else Tiles
    learner = make(control_tasks.TASKS[task], config, rng)
    returns: deque[float] = deque(maxlen=JUDGED)
    for _ in range(STEPS):
        returns.extend(learner.step())
        yield -float(np.mean(returns)) if learner.finite() else float("nan")


# -- actor-critic ------------------------------------------------------------------------------------------------------


class ActorCritic:
    """`exploration` is the weight of the entropy; if `damped`, advantages are brought to mean 0 and variance 1."""

    def __init__(self, task: Task, config: dict[str, Any], rng: np.random.Generator) -> None:
        self.task, self.config, self.rng = task, config, rng
        inputs = task.see(task.start(rng, 1)).shape[1]
        self.actor = network(inputs, config["width"], config["depth"], task.actions)
        self.critic = network(inputs, config["width"], config["depth"], 1)
        self.parameters = [*self.actor.parameters(), *self.critic.parameters()]
        self.optimiser = torch.optim.Adam(self.parameters, lr=config["learning_rate"])

    def step(self) -> Array:
        """Plays some episodes, learns from them, and tells their returns."""
        seen, actions, rewards, ongoing, alive = self.play()
        with torch.no_grad():
            old = self.actor(seen[:-1]).log_softmax(-1)
            values = self.critic(seen)[..., 0]
        chosen = old.gather(-1, actions[..., None])[..., 0]
        gains = advantages(rewards, values, ongoing, 1.0 - self.config["one_minus_gamma"], self.config["trace"])
        batch = [x[alive] for x in (seen[:-1], actions, chosen, gains, values[:-1] + gains)]
        for _ in range(self.config["passes"]):
            for rows in torch.randperm(len(batch[0])).chunk(4):
                self.update(*(x[rows] for x in batch))
        return (rewards.double() * alive).sum(0).numpy() * self.task.scale

    def play(self) -> tuple[torch.Tensor, ...]:
        """What was seen (T + 1, n, d); actions, rewards, whether it goes on, and whether it was still on (T, n)."""
        S, alive = self.task.start(self.rng, self.config["episodes"]), np.ones(self.config["episodes"], dtype=bool)
        seen, rest = [self.task.see(S)], []
        while len(rest) < self.task.limit and alive.any():
            noise = self.rng.gumbel(size=(len(S), self.task.actions))
            actions = (self.logits(seen[-1]) + noise).argmax(1)
            S, rewards, over = self.task.move(S, actions)
            seen.append(self.task.see(S))
            rest.append((actions, (rewards / self.task.scale).astype(np.float32), ~over & alive, alive))
            alive = alive & ~over
        columns = [np.array(seen, dtype=np.float32), *map(np.array, zip(*rest, strict=True))]
        return tuple(torch.tensor(column) for column in columns)

    def update(self, *batch: torch.Tensor) -> None:
        seen, actions, old, gains, targets = batch
        if self.config["damped"] == "yes":
            gains = (gains - gains.mean()) / (gains.std(correction=0) + 1e-6)
        logs = self.actor(seen).log_softmax(-1)
        ratio = (logs.gather(1, actions[:, None])[:, 0] - old).exp()
        better = torch.minimum(ratio * gains, ratio.clamp(0.8, 1.2) * gains).mean()
        entropy = -(logs.exp() * logs).sum(1).mean()
        missed = (self.critic(seen)[:, 0] - targets).square().mean()
        self.optimiser.zero_grad()
        (0.5 * missed - better - self.config["exploration"] * entropy).backward()
        self.optimiser.step()

    @torch.no_grad()
    def logits(self, seen: Array) -> Array:
        return self.actor(torch.from_numpy(seen.astype(np.float32))).numpy()

    def finite(self) -> bool:
        return all(bool(p.isfinite().all()) for p in self.parameters)


def network(inputs: int, width: int, depth: int, outputs: int) -> nn.Module:
    sizes = [inputs] + [width] * depth
    hidden = [layer for a, b in pairwise(sizes) for layer in (nn.Linear(a, b), nn.Tanh())]
    return nn.Sequential(*hidden, nn.Linear(width, outputs))


def advantages(
    rewards: torch.Tensor, values: torch.Tensor, ongoing: torch.Tensor, gamma: float, trace: float
) -> torch.Tensor:
    """Eq. (16) from the last move backwards. An episode stopped by its limit goes on with the value of its state."""
    surprise = rewards + gamma * values[1:] * ongoing - values[:-1]
    gains, gain = torch.empty_like(rewards), torch.zeros_like(rewards[0])
    for t in range(len(rewards) - 1, -1, -1):
        gain = surprise[t] + gamma * trace * ongoing[t] * gain
        gains[t] = gain
    return gains


# -- SARSA with tile coding --------------------------------------------------------------------------------------------


class Tiles:
    """`exploration` is epsilon, `width` and `depth` give the tiles, `passes` the rounds of episodes in a step.

    Traces accumulate or, if `damped`, are replaced. Episodes played together share their weights.
    """

    def __init__(self, task: Task, config: dict[str, Any], rng: np.random.Generator) -> None:
        self.task, self.config, self.rng = task, config, rng
        self.tiles, self.tilings = 2 + config["width"] // 6, 2 ** (config["depth"] + 1)
        self.weights = np.zeros((self.tilings * (self.tiles + 1) ** 2, task.actions), dtype=np.float32)  # (K * C, A)

    def step(self) -> Array:
        """Plays rounds of episodes, learns at every move, and tells the returns of the last round."""
        return [self.play() for _ in range(self.config["passes"])][-1]

    @np.errstate(all="ignore")
    def play(self) -> Array:
        n, gamma = self.config["episodes"], 1.0 - self.config["one_minus_gamma"]
        rate = np.float32(self.config["learning_rate"] / self.tilings)
        S, alive, each, total = self.task.start(self.rng, n), np.ones(n, dtype=bool), np.arange(n), np.zeros(n)
        traces = np.zeros((n, *self.weights.shape), dtype=np.float32)
        cells = self.cells(self.task.see(S))
        values = self.weights[cells].sum(1)  # (n, A)
        actions = self.explore(values)
        for _ in range(self.task.limit):
            S, rewards, over = self.task.move(S, actions)
            total += rewards * alive
            traces *= np.float32(gamma * self.config["trace"])
            traces[each[:, None], cells, actions[:, None]] += 1.0
            if self.config["damped"] == "yes":
                np.minimum(traces, 1.0, out=traces)
            before = values[each, actions]
            cells = self.cells(self.task.see(S))
            values = self.weights[cells].sum(1)
            actions = self.explore(values)
            target = rewards / self.task.scale + gamma * values[each, actions] * ~over
            surprise = np.where(alive, target - before, 0.0).astype(np.float32)
            self.weights += rate * np.tensordot(surprise, traces, 1)
            alive &= ~over
            if not alive.any():
                break
        return total

    def cells(self, seen: Array) -> Array:
        """The cell of each tiling that each state lies in, (n, K). Tilings are shifted by odd parts of a tile."""
        shift = np.arange(self.tilings)[:, None] * np.array([1.0, 3.0]) / self.tilings % 1.0  # (K, 2)
        tiles = np.floor(np.clip(seen + 1.0, 0.0, 1.9999)[:, None, :] * (self.tiles / 2.0) + shift).astype(int)
        if self.task.wraps:
            tiles[..., 0] %= self.tiles
        across = self.tiles + 1
        return np.arange(self.tilings) * across**2 + tiles[..., 0] * across + tiles[..., 1]

    def explore(self, values: Array) -> Array:
        anything = self.rng.integers(0, self.task.actions, len(values))
        return np.where(self.rng.random(len(values)) < self.config["exploration"], anything, values.argmax(1))

    def finite(self) -> bool:
        return bool(np.isfinite(self.weights).all())
