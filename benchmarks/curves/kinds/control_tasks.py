"""Four tasks of classic control in NumPy, each a batch of episodes that move together.

A state is a row: S (n, d). Actions are numbers 0, 1, ..., actions - 1. The dynamics follow Barto, Sutton and Anderson
(1983) for the cart-pole and Sutton and Barto, "Reinforcement Learning", for the mountain car and the acrobot.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Moved = tuple[Array, Array, Array]  # next states (n, d), rewards (n,), whether the episode is over (n,)


@dataclass(frozen=True)
class Task:
    """How episodes start and move, and what a learner sees of a state: numbers of about -1 to 1."""

    actions: int
    limit: int  # an episode has no more moves than this
    start: Callable[[np.random.Generator, int], Array]
    move: Callable[[Array, Array], Moved]
    see: Callable[[Array], Array]
    scale: float = 1.0  # a learner sees rewards divided by this, so that one learning rate fits all tasks
    wraps: bool = False  # whether the first number that is seen is an angle, so that its ends meet


# -- cart-pole: keep the pole upright and the cart on the track --------------------------------------------------------


def cart_start(rng: np.random.Generator, n: int) -> Array:
    return rng.uniform(-0.1, 0.1, (n, 4))


def cart_move(S: Array, a: Array) -> Moved:
    """One point for every move, less for being away from the middle."""
    x, v, angle, spin = S.T
    force = np.where(a == 1, 10.0, -10.0)
    sine, cosine = np.sin(angle), np.cos(angle)
    push = (force + 0.05 * spin**2 * sine) / 1.1
    turn = (9.8 * sine - cosine * push) / (0.5 * (4.0 / 3.0 - 0.1 * cosine**2 / 1.1))
    pull = push - 0.05 * turn * cosine / 1.1
    S = np.stack([x + 0.02 * v, v + 0.02 * pull, angle + 0.02 * spin, spin + 0.02 * turn], axis=1)
    return S, 1.0 - np.minimum(np.abs(S[:, 0]) / 2.4, 1.0), (np.abs(S[:, 0]) > 2.4) | (np.abs(S[:, 2]) > 0.21)


def cart_see(S: Array) -> Array:
    return S / np.array([1.0, 1.5, 0.1, 1.5])


# -- acrobot: two links that hang down, driven at the elbow; swing the tip up ------------------------------------------


def acrobot_start(rng: np.random.Generator, n: int) -> Array:
    return rng.uniform(-0.1, 0.1, (n, 4))


def acrobot_move(S: Array, a: Array) -> Moved:
    """The lower the tip, the worse, until it is one link above the pivot."""
    p, q, dp, dq = S.T
    torque = 1.5 * (a - 1.0)
    for _ in range(2):
        ddp, ddq = acrobot_pull(p, q, dp, dq, torque)
        dp = np.clip(dp + 0.1 * ddp, -4.0 * np.pi, 4.0 * np.pi)
        dq = np.clip(dq + 0.1 * ddq, -9.0 * np.pi, 9.0 * np.pi)
        p, q = p + 0.1 * dp, q + 0.1 * dq
    height = -np.cos(p) - np.cos(p + q)  # from -2, where it hangs, to 2
    return np.stack([p, q, dp, dq], axis=1), (height - 2.0) / 4.0, height > 1.0


def acrobot_pull(p: Array, q: Array, dp: Array, dq: Array, torque: Array) -> tuple[Array, Array]:
    """Angular accelerations of both links, all masses and lengths 1, gravity 9.8."""
    cosine, sine = np.cos(q), np.sin(q)
    d1, d2 = 3.5 + cosine, 1.25 + 0.5 * cosine
    phi2 = 4.9 * np.sin(p + q)
    phi1 = -0.5 * dq * (dq + 2.0 * dp) * sine + 14.7 * np.sin(p) + phi2
    ddq = (torque + d2 / d1 * phi1 - 0.5 * dp**2 * sine - phi2) / (1.25 - d2**2 / d1)
    return -(d2 * ddq + phi1) / d1, ddq


def acrobot_see(S: Array) -> Array:
    p, q, dp, dq = S.T
    return np.stack([np.cos(p), np.sin(p), np.cos(q), np.sin(q), dp / 4.0, dq / 6.0], axis=1)


# -- mountain car: too weak to drive up the hill without a run-up ------------------------------------------------------


def hill_start(rng: np.random.Generator, n: int) -> Array:
    return np.stack([rng.uniform(-0.6, -0.4, n), np.zeros(n)], axis=1)


def hill_move(S: Array, a: Array) -> Moved:
    """Minus one for every move until the car is on the hill."""
    x, v = S.T
    v = np.clip(v + 0.001 * (a - 1.0) - 0.0025 * np.cos(3.0 * x), -0.07, 0.07)
    x = np.clip(x + v, -1.2, 0.6)
    v = np.where((x <= -1.2) & (v < 0.0), 0.0, v)
    return np.stack([x, v], axis=1), np.full(len(x), -1.0), x >= 0.5


def hill_see(S: Array) -> Array:
    return np.stack([(S[:, 0] + 0.3) / 0.9, S[:, 1] / 0.07], axis=1)


# -- pendulum: swing a weight up with a weak motor, and keep it there --------------------------------------------------


def pendulum_start(rng: np.random.Generator, n: int) -> Array:
    return np.stack([rng.uniform(-np.pi, np.pi, n), rng.uniform(-1.0, 1.0, n)], axis=1)


def pendulum_move(S: Array, a: Array) -> Moved:
    """The further from upright and the faster, the worse. An episode is never over before its limit."""
    angle, spin = S.T
    torque = 2.0 * (a - 1.0)
    reward = -(angle**2 + 0.1 * spin**2 + 0.001 * torque**2)
    spin = np.clip(spin + 0.05 * (15.0 * np.sin(angle) + 3.0 * torque), -8.0, 8.0)
    angle = (angle + 0.05 * spin + np.pi) % (2.0 * np.pi) - np.pi
    return np.stack([angle, spin], axis=1), reward, np.zeros(len(S), dtype=bool)


def pendulum_see(S: Array) -> Array:
    return S / np.array([np.pi, 8.0])


TASKS = {
    "cart_pole": Task(2, 200, cart_start, cart_move, cart_see, scale=5.0),
    "acrobot": Task(3, 125, acrobot_start, acrobot_move, acrobot_see, scale=5.0),
    "mountain_car": Task(3, 200, hill_start, hill_move, hill_see),
    "pendulum": Task(3, 150, pendulum_start, pendulum_move, pendulum_see, scale=5.0, wraps=True),
}
