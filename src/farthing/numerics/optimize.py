"""Many bounded minimisations at once: projected L-BFGS over the rows of one array.

Every round evaluates all unfinished rows in one call, so a function whose cost is mostly overhead (a Gaussian process
at a few points) is called once per round and not once per start. Each row keeps its own curvature pairs and step. A row
whose step is refused shortens it and tries again in the next round, so there is no inner line search.

Symbols: X (b, p) current points, one row per start; f (b,), G (b, p) values and gradients; S, Y (memory, b, p) steps
and gradient changes, newest last, 0 where a slot is unused.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from farthing.numerics.arrays import Array, Mask
from farthing.numerics.deadline import keep_to_deadline

Rows = NDArray[np.intp]
Function = Callable[[Array, Rows], tuple[Array, Array]]

MEMORY = 6  # curvature pairs, a usual number for L-BFGS
SUFFICIENT_DECREASE = 1e-4  # of the decrease that the slope promises (Armijo's rule)
FIRST_MOVE = 0.1  # largest coordinate move of the first step, in units of the box
LONGEST_MOVE = 0.3  # and of any other
SMALLEST_STEP = 1e-8  # a row that must shorten its step further ends
CURVATURE = 1e-10  # a pair is kept while s'y exceeds this share of y'y


@dataclass
class _State:
    X: Array
    f: Array
    G: Array
    S: Array
    Y: Array
    rows: Rows  # the start each row came from

    def keep(self, mask: Mask) -> _State:
        if mask.all():
            return self
        return _State(
            self.X[mask], self.f[mask], self.G[mask],
            self.S[:, mask], self.Y[:, mask], self.rows[mask],
        )  # fmt: skip


def minimize_rows(
    function: Function, starts: Array, *, rounds: int = 40, ftol: float = 1e-6, gtol: float = 1e-6
) -> tuple[Array, Array]:
    """The points (b, p) and values (b,) that L-BFGS in the unit box reaches from each start; never above the start.

    `function` maps points (m, p) and the numbers (m,) of their starts to values (m,) and gradients (m, p).
    A row ends when its projected gradient is below gtol,
    when an accepted step gains less than ftol, or after `rounds` evaluations of all rows.

    >>> def bowl(X, rows): return ((X - 0.3) ** 2).sum(axis=1), 2 * (X - 0.3)
    >>> points, values = minimize_rows(bowl, np.array([[0.9, 0.1], [0.0, 1.0]]))
    >>> points.round(3).tolist()
    [[0.3, 0.3], [0.3, 0.3]]
    """
    X = np.clip(starts, 0.0, 1.0)
    b, p = X.shape
    f, G = function(X, np.arange(b))
    points, values = X.copy(), f.copy()
    state = _State(X, f, G, np.zeros((MEMORY, b, p)), np.zeros((MEMORY, b, p)), np.arange(b))
    state = state.keep(np.isfinite(f) & (_projected(X, G) > gtol))
    D = _direction(state)
    step, stretch = _step_of(FIRST_MOVE, D), np.ones(len(D))
    for _ in range(rounds - 1):
        if not len(state.rows):
            break
        keep_to_deadline()
        X_new = np.clip(state.X + step[:, None] * D, 0.0, 1.0)
        f_new, G_new = function(X_new, state.rows)
        move = X_new - state.X
        promised = np.einsum("ij,ij->i", state.G, move)
        taken = f_new <= state.f + SUFFICIENT_DECREASE * np.minimum(promised, 0.0)
        taken &= np.isfinite(f_new)
        gain = np.where(taken, state.f - f_new, np.inf)
        curved = _remember(state, taken, move, G_new - state.G)
        state.X[taken], state.f[taken], state.G[taken] = X_new[taken], f_new[taken], G_new[taken]
        points[state.rows], values[state.rows] = state.X, state.f

        shorter = step * np.clip(_parabola(state.f, f_new, promised), 0.1, 0.5)
        going = (gain > ftol) & (_projected(state.X, state.G) > gtol) & (taken | (shorter > SMALLEST_STEP))
        if taken.any():
            D = np.where(taken[:, None], _direction(state), D)
        # A step without upward curvature means that the function falls further than its model: go further.
        stretch = np.where(curved, 1.0, np.where(taken, 2.0 * stretch, stretch))
        step = np.where(taken, np.minimum(stretch, _step_of(LONGEST_MOVE, D)), shorter)
        state, D, step, stretch = state.keep(going), D[going], step[going], stretch[going]
    return points, values


def _projected(X: Array, G: Array) -> Array:
    """Largest entry of the projected gradient of each row: 0 at a constrained stationary point."""
    return np.asarray(np.abs(np.clip(X - G, 0.0, 1.0) - X).max(axis=1, initial=0.0))


def _step_of(move: float, D: Array) -> Array:
    """The step (b,) along D whose largest coordinate move is `move`."""
    return np.asarray(move / np.maximum(np.abs(D).max(axis=1, initial=0.0), 1e-300))


def _parabola(f: Array, f_new: Array, promised: Array) -> Array:
    """The minimum of the parabola through f, its slope and f_new, as a share of the step; 0.5 if it has none."""
    curvature = f_new - f - promised
    known = np.isfinite(curvature) & (curvature > 0.0) & (promised < 0.0)
    return np.where(known, -0.5 * promised / np.where(known, curvature, 1.0), 0.5)


def _remember(state: _State, taken: Mask, move: Array, change: Array) -> Mask:
    """Append the curvature pairs of the accepted rows whose product s'y is positive; returns the mask of these rows."""
    product = np.einsum("ij,ij->i", move, change)
    useful = np.asarray(taken & (product > CURVATURE * np.einsum("ij,ij->i", change, change)))
    rows = slice(None) if useful.all() else useful  # a slice copies faster than a mask
    for memory, newest in ((state.S, move), (state.Y, change)):
        memory[:-1, rows] = memory[1:, rows]
        memory[-1, rows] = newest[rows]
    return useful


def _direction(state: _State) -> Array:
    """L-BFGS two-loop recursion in the subspace of the coordinates that are free to move.

    A coordinate at its bound with the gradient pushing outwards is held: curvature pairs are restricted to the others
    and used if their product is still positive. If the result does not descend, steepest descent replaces it.
    """
    X, G = state.X, state.G
    free = ((X > 0.0) | (G < 0.0)) & ((X < 1.0) | (G > 0.0))
    S, Y, downhill = state.S, state.Y, -G  # (memory, b, p), (b, p)
    if not free.all():
        S, Y, downhill = S * free, Y * free, np.where(free, downhill, 0.0)
    product, size = np.einsum("kij,kij->ki", S, Y), np.einsum("kij,kij->ki", Y, Y)
    useful = product > CURVATURE * size
    rho = np.where(useful, 1.0 / np.where(useful, product, 1.0), 0.0)
    slots = np.flatnonzero(useful.any(axis=1))
    D, weights = downhill.copy(), np.zeros_like(rho)
    for k in slots[::-1]:
        weights[k] = rho[k] * np.einsum("ij,ij->i", S[k], D)
        D -= weights[k][:, None] * Y[k]
    newest, rows = MEMORY - 1 - np.argmax(useful[::-1], axis=0), np.arange(len(X))
    known = useful[newest, rows]
    D *= np.where(known, product[newest, rows] / np.where(known, size[newest, rows], 1.0), 1.0)[:, None]
    for k in slots:
        back = rho[k] * np.einsum("ij,ij->i", Y[k], D)
        D += (weights[k] - back)[:, None] * S[k]
    uphill = ~(np.einsum("ij,ij->i", D, downhill) > 0.0)
    if uphill.any():
        steepest = downhill[uphill]
        D[uphill] = steepest * _step_of(FIRST_MOVE, steepest)[:, None]
    return D
