"""Many bounded minimisations at once: projected L-BFGS over the rows of one array.

Every round evaluates all unfinished rows in one call, so a function whose cost is mostly overhead (a Gaussian process
at a few points) is paid once per round and not once per start. Each row keeps its own curvature pairs and step; a row
whose step is refused shortens it and waits for the next round, so there is no inner line search to wait for.

Symbols: X (b, p) current points, one row per start; f (b,), G (b, p) values and gradients; S, Y (memory, b, p) steps
and gradient changes, newest last; rho (memory, b) = 1 / s'y, 0 where a slot is unused.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
Function = Callable[[Array], tuple[Array, Array]]

MEMORY = 6
SUFFICIENT_DECREASE = 1e-4
FIRST_MOVE = 0.1  # length of the first step, in units of the box
SMALLEST_STEP = 1e-8


@dataclass
class _State:
    X: Array
    f: Array
    G: Array
    S: Array
    Y: Array
    rho: Array
    rows: NDArray[np.intp]  # where each row came from

    def keep(self, mask: Mask) -> _State:
        return _State(
            self.X[mask], self.f[mask], self.G[mask],
            self.S[:, mask], self.Y[:, mask], self.rho[:, mask], self.rows[mask],
        )  # fmt: skip


def minimize_rows(
    function: Function, starts: Array, *, rounds: int = 40, ftol: float = 1e-6, gtol: float = 1e-6
) -> tuple[Array, Array]:
    """The points (b, p) and values (b,) that L-BFGS in the unit box reaches from each start; never above the start.

    `function` maps (m, p) to values (m,) and gradients (m, p). A row ends when its projected gradient is below gtol,
    when an accepted step gains less than ftol, or after `rounds` evaluations of all rows.

    >>> def bowl(X): return ((X - 0.3) ** 2).sum(axis=1), 2 * (X - 0.3)
    >>> points, values = minimize_rows(bowl, np.array([[0.9, 0.1], [0.0, 1.0]]))
    >>> points.round(3).tolist()
    [[0.3, 0.3], [0.3, 0.3]]
    """
    X = np.clip(starts, 0.0, 1.0)
    f, G = function(X)
    points, values = X.copy(), f.copy()
    b, p = X.shape
    state = _State(X, f, G, np.zeros((MEMORY, b, p)), np.zeros((MEMORY, b, p)), np.zeros((MEMORY, b)), np.arange(b))
    state = state.keep(np.isfinite(f) & (_projected(X, G) > gtol))
    D = _direction(state)
    step = _first_step(D)
    for _ in range(rounds - 1):
        if not len(state.rows):
            break
        X_new = np.clip(state.X + step[:, None] * D, 0.0, 1.0)
        f_new, G_new = function(X_new)
        move = X_new - state.X
        promised = np.einsum("ij,ij->i", state.G, move)
        taken = f_new <= state.f + SUFFICIENT_DECREASE * np.minimum(promised, 0.0)
        taken &= np.isfinite(f_new)
        gain = np.where(taken, state.f - f_new, np.inf)
        _remember(state, taken, move, G_new - state.G)
        state.X[taken], state.f[taken], state.G[taken] = X_new[taken], f_new[taken], G_new[taken]
        points[state.rows], values[state.rows] = state.X, state.f

        shorter = step * np.clip(_parabola(state.f, f_new, promised), 0.1, 0.5)
        going = (gain > ftol) & (_projected(state.X, state.G) > gtol) & (taken | (shorter > SMALLEST_STEP))
        if taken.any():
            D = np.where(taken[:, None], _direction(state), D)
        step = np.where(taken, 1.0, shorter)
        state, D, step = state.keep(going), D[going], step[going]
    return points, values


def _projected(X: Array, G: Array) -> Array:
    """Largest entry of the projected gradient of each row: 0 at a constrained stationary point."""
    return np.asarray(np.abs(np.clip(X - G, 0.0, 1.0) - X).max(axis=1, initial=0.0))


def _first_step(D: Array) -> Array:
    return np.asarray(FIRST_MOVE / np.maximum(np.abs(D).max(axis=1, initial=0.0), 1e-300))


def _parabola(f: Array, f_new: Array, promised: Array) -> Array:
    """Where the parabola through f, its slope and f_new is least, as a share of the step; 0.5 where it has no least."""
    curvature = f_new - f - promised
    known = np.isfinite(curvature) & (curvature > 0.0) & (promised < 0.0)
    return np.where(known, -0.5 * promised / np.where(known, curvature, 1.0), 0.5)


def _remember(state: _State, taken: Mask, move: Array, change: Array) -> None:
    """Append the curvature pair of the accepted rows whose product s'y is positive enough."""
    product = np.einsum("ij,ij->i", move, change)
    useful = taken & (product > 1e-10 * np.einsum("ij,ij->i", change, change))
    if not useful.any():
        return
    for memory, newest in ((state.S, move), (state.Y, change)):
        memory[:-1, useful] = memory[1:, useful]
        memory[-1, useful] = newest[useful]
    state.rho[:-1, useful] = state.rho[1:, useful]
    state.rho[-1, useful] = 1.0 / product[useful]


def _direction(state: _State) -> Array:
    """L-BFGS two-loop recursion on the coordinates that are free to move.

    A coordinate at its bound with the gradient pushing outwards is held; where the result does not descend, steepest
    descent takes its place.
    """
    X, G = state.X, state.G
    held = ((X <= 0.0) & (G > 0.0)) | ((X >= 1.0) & (G < 0.0))
    downhill = np.where(held, 0.0, -G)
    D = downhill.copy()
    weights = np.zeros_like(state.rho)
    for k in range(MEMORY - 1, -1, -1):
        weights[k] = state.rho[k] * np.einsum("ij,ij->i", state.S[k], D)
        D -= weights[k][:, None] * state.Y[k]
    newest = np.einsum("ij,ij->i", state.Y[-1], state.Y[-1]) * state.rho[-1]
    D *= np.where(newest > 0.0, 1.0 / np.where(newest > 0.0, newest, 1.0), 1.0)[:, None]
    for k in range(MEMORY):
        back = state.rho[k] * np.einsum("ij,ij->i", state.Y[k], D)
        D += (weights[k] - back)[:, None] * state.S[k]
    D[held] = 0.0
    slope = np.einsum("ij,ij->i", D, G)
    uphill = ~(slope < 0.0)
    if uphill.any():
        steepest = downhill[uphill]
        D[uphill] = steepest * _first_step(steepest)[:, None]
    return D
