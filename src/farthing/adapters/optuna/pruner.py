"""`FarthingPruner`: ends a trial when it is unlikely to become the best.

A network that has learned in advance how training curves go on (docs/curve-network.md) looks at the curves of all
trials, and says how likely it is that this one, trained to its end, beats the best complete one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from optuna.pruners import BasePruner
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from farthing.adapters.optuna.reports import curve_of, grid_of, with_reports
from farthing.adapters.optuna.sampler import direction_of, require_single, trials_of
from farthing.adapters.optuna.spaces import parts_of, settled
from farthing.adapters.optuna.turns import in_turn
from farthing.checks import number, whole_number
from farthing.direction import Direction
from farthing.numerics.arrays import Array, Ints
from farthing.numerics.rows import few_rows
from farthing.surrogates.curves.network import EDGES, CurveOutlook, require_file, weights

MOST_CURVES = 64  # that the network looks at: half of them the best. An answer takes a few milliseconds


class FarthingPruner(BasePruner):
    """Prunes a trial whose predicted end is unlikely to beat the best complete trial. The best is never pruned.

    chance            below which a trial is pruned
    n_startup_trials  no trial is pruned before so many are complete
    n_warmup_steps    no trial is pruned before this step
    interval_steps    steps between two looks at a trial

    It works with any sampler. What a trial is judged by is the best value that it reported, as the value of the
    complete trials it is compared with is the best that they reported.

    >>> import optuna
    >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
    >>> def objective(trial):
    ...     rate = trial.suggest_float("rate", 0.0, 1.0)
    ...     for step in range(20):
    ...         trial.report(rate + 0.8**step, step)
    ...         if trial.should_prune():
    ...             raise optuna.TrialPruned()
    ...     return rate + 0.8**step
    >>> sampler = optuna.samplers.RandomSampler(seed=0)
    >>> study = optuna.create_study(sampler=sampler, pruner=FarthingPruner())
    >>> study.optimize(objective, n_trials=20)
    >>> 5 < sum(trial.state.name == "PRUNED" for trial in study.trials) < 15
    True
    """

    def __init__(
        self, *, chance: float = 0.05, n_startup_trials: int = 5, n_warmup_steps: int = 0, interval_steps: int = 1
    ) -> None:
        self._chance = number("chance", chance, least=0.0, most=1.0)
        self._n_startup_trials = whole_number("n_startup_trials", n_startup_trials)
        self._n_warmup_steps = whole_number("n_warmup_steps", n_warmup_steps)
        self._interval_steps = whole_number("interval_steps", interval_steps, least=1)
        require_file()

    def prune(self, study: Study, trial: FrozenTrial) -> bool:
        require_single(study)
        if not self._looks(trial):
            return False
        others = trials_of(study, but=trial)
        complete = [other for other in others if other.state is TrialState.COMPLETE]
        if len(complete) < max(self._n_startup_trials, 1):
            return False
        if not with_reports([trial]):
            return True  # nothing but NaN and infinities
        return self._chance_of(trial, others, direction_of(study)) < self._chance

    def _looks(self, trial: FrozenTrial) -> bool:
        """Whether this step is the first one reported since a look was due."""
        step = trial.last_step
        if step is None or step < self._n_warmup_steps:
            return False
        due = step - (step - self._n_warmup_steps) % self._interval_steps
        return max((other for other in trial.intermediate_values if other != step), default=-1) < due

    def _chance_of(self, trial: FrozenTrial, others: Sequence[FrozenTrial], direction: Direction) -> float:
        """That the best of a trial is better than that of the best complete one, when it is at its end."""
        known = with_reports([*others, trial])
        grid = grid_of(known)
        if not len(grid) or (trial.last_step or 0) >= grid[-1]:
            return 1.0  # nothing to compare with, or it is at its end
        curves = [curve_of(one, grid, direction) for one in known]
        ends = np.array([curve.min() for curve in curves])
        is_complete = np.array([one.state is TrialState.COMPLETE for one in known])
        best = float(ends[is_complete].min())
        if ends[-1] < best:
            return 1.0
        rows = few_rows(len(known) - 1, ends[:-1], MOST_CURVES)
        rows = np.unique([*rows, int(np.argmin(np.where(is_complete, ends, np.inf))), len(known) - 1])
        X, groups = _features([known[i] for i in rows], [*others, trial])
        with in_turn():
            outlook = CurveOutlook.of(X, [curves[i] for i in rows], len(grid), groups, weights())
            p = outlook.begun(np.array([len(rows) - 1]), np.array([[float(len(grid))]]))[0, 0]
        below = (float(outlook.scale.u(np.array(best))) - EDGES[:-1]) / np.diff(EDGES)
        return float(p @ np.clip(below, 0.0, 1.0))


def _features(known: Sequence[FrozenTrial], trials: Sequence[FrozenTrial]) -> tuple[Array, Ints]:
    """Features (m, f) of trials, and to which parameters they belong; those of no known place are in the middle."""
    parts = parts_of(trials, settled(trials))
    if not parts:
        return np.full((len(known), 1), 0.5), np.zeros(1, dtype=np.intp)
    part = parts[0]
    keys = [part.key(part.config(trial.params)) for trial in known]
    nowhere = (None,) * len(part.space)
    return part.space.features(part.space.units_of([key or nowhere for key in keys])), part.space.groups
