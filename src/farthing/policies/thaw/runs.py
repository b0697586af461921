"""What the network knows and is asked about: trainings that go on or begin, each at several later steps.

Symbols and shapes
    c, q      candidates, horizons of each
    T         steps of a complete training
    stops     (c, q) the steps at which a candidate is judged
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from farthing.history import History, TrackedTrial, units
from farthing.history.ways import Way
from farthing.numerics.arrays import Array
from farthing.numerics.linalg import squared_distances
from farthing.numerics.rows import few_rows
from farthing.policies.run_candidates import RunCandidates
from farthing.space import Space
from farthing.surrogates.curves.network import CurveOutlook, Weights, mean_and_variance
from farthing.trial import Status

MOST_CURVES = 300  # that the network looks at: half of them the best, the others from all of the study
MOST_EXPECTED = 300  # runs that the network is told to expect the medians of: those that were begun last
APART = 0.05  # of the box, root mean square over features: a new configuration that is nearer tells nothing new
FEWEST = 4  # trainings that `clarity` is said of
TINY = 1e-12
HORIZONS = (0.2, 0.5, 1.0)  # of a complete training, from where a run is: shorter ones favour what is soon good


@dataclass(frozen=True, eq=False)
class Expected:
    """A run whose outcome is not known yet: its trial's number, place (p,) and the step it was planned to stop at."""

    number: int
    unit: Array
    stop: int


@dataclass(frozen=True, eq=False)
class KnownCurves:
    """The trainings that were begun, as the network sees them; those that run are at their planned stops."""

    space: Space
    X: Array  # (m, f) of the trainings that were begun
    curves: Sequence[Array]  # what each of them reported
    row_of: dict[int, int]  # by trial number
    anchors: Array  # (k, p) configurations of the best
    places: Array  # (m + k, f) of those, and of the k new runs among `waiting`
    now: CurveOutlook  # from what is known
    waiting: Sequence[Expected]  # runs whose outcome is not
    outlook: CurveOutlook  # as if those came out as expected

    @classmethod
    def of(cls, space: Space, history: History, weights: Weights, best: int) -> KnownCurves | None:
        """None while nothing was begun."""
        T = history.max_steps
        if T is None or history.way is Way.NONE:
            return None
        trained = [trial for trial in history.trials if len(trial.curve) and trial.value is not None]
        if not trained:
            return None
        ends = np.array([trial.value for trial in trained], dtype=np.float64)
        rows = few_rows(len(trained), ends, MOST_CURVES)
        trained, ends = [trained[i] for i in rows], ends[rows]
        X = space.features(units(trained, len(space)))
        curves = [np.array(trial.curve.values, dtype=np.float64) for trial in trained]
        now = CurveOutlook.of(X, curves, T, space.groups, weights)
        row_of = {trial.number: i for i, trial in enumerate(trained)}
        anchors = units([trained[i] for i in np.argsort(ends, kind="stable")[:best]], len(space))
        running = [Expected(trial.number, trial.unit, min(trial.until_step or T, T)) for trial in history.running]
        return cls(space, X, curves, row_of, anchors, X, now, (), now).expecting(running)

    def expecting(self, more: Sequence[Expected]) -> KnownCurves:
        """With more runs that come out as predicted, each at its median: so that several proposals at once spread out,
        and a run that will be known soon is not judged by what it was."""
        if not more:
            return self
        now, waiting = self.now, (*self.waiting, *more)
        new, seen = self._new(waiting), waiting[-MOST_EXPECTED:]
        X, flat = self._flat(self._new(seen))
        curves = [*self._grown([run for run in seen if run.number in self.row_of]), *flat]
        outlook = CurveOutlook.of(np.concatenate([self.X, X]), curves, now.T, now.groups, now.weights)
        return replace(self, places=np.concatenate([self.X, self._features(new)]), waiting=waiting, outlook=outlook)

    def _new(self, runs: Sequence[Expected]) -> list[Expected]:
        """Those that the network has not seen begin."""
        return [run for run in runs if run.number not in self.row_of]

    def _features(self, runs: Sequence[Expected]) -> Array:
        """(k, f)"""
        return self.space.features(np.array([run.unit for run in runs]).reshape(len(runs), len(self.space)))

    def _flat(self, new: Sequence[Expected]) -> tuple[Array, list[Array]]:
        """Of new runs the features (k, f), and curves that are at their medians from the beginning."""
        X = self._features(new)
        if not new:
            return X, []
        stops = np.array([[float(run.stop)] for run in new])
        middles = self.now.quantile(self.now.new(X, stops), 0.5)[:, 0]
        return X, [np.full(run.stop, float(middle)) for run, middle in zip(new, middles, strict=True)]

    def _grown(self, begun: Sequence[Expected]) -> list[Array]:
        """All curves; those of runs that were begun lead in a line from their best to their medians."""
        curves, rows = list(self.curves), [self.row_of[run.number] for run in begun]
        further = [(row, run.stop) for row, run in zip(rows, begun, strict=True) if run.stop > len(curves[row])]
        if further:
            numbers, stops = (np.array(column) for column in zip(*further, strict=True))
            middles = self.now.quantile(self.now.begun(numbers, stops[:, None].astype(np.float64)), 0.5)[:, 0]
            for (row, stop), middle in zip(further, middles, strict=True):
                line = np.linspace(curves[row].min(), float(middle), stop - len(curves[row]) + 1)
                curves[row] = np.concatenate([curves[row], line[1:]])
        return curves

    def apart(self, U: Array) -> Array:
        """Of new configurations (n, p) those that are not nearly the same as one that was begun, unless all are."""
        X = self.space.features(U)
        nearest = squared_distances(X, self.places).min(axis=1) / max(X.shape[1], 1)
        is_apart = nearest >= APART**2
        return U[is_apart] if is_apart.any() else U

    @cached_property
    def clarity(self) -> float:
        """How much short trainings tell of their ends, from 0 to 1: the share of the variance between the ends of the
        shorter half that lies in what is predicted of them. 1 while there are too few to say."""
        steps = np.array([len(curve) for curve in self.curves])
        short = np.flatnonzero((steps <= np.median(steps)) & (steps < self.now.T))
        if len(short) < FEWEST:
            return 1.0
        end = np.full((len(short), 1), float(self.now.T))
        mean, variance = mean_and_variance(self.now.begun(short, end)[:, 0])
        told = float(mean.var())
        return told / max(told + float(variance.mean()), TINY)


def stops_of(found: RunCandidates, T: int, left: float) -> Array:
    """(c, q) the steps at which each candidate is judged: as far as the horizons, the training and the budget reach."""
    ahead = np.maximum(np.round(np.array(HORIZONS) * T), 1.0)
    with np.errstate(over="ignore"):
        payable = np.floor((left - found.start) / np.exp(found.log_cost))
    reach = np.minimum(found.step + np.maximum(payable, 0.0), float(T))
    return np.minimum(known_steps(found)[:, None] + ahead, reach[:, None])


def known_steps(found: RunCandidates) -> Array:
    """(c,) the steps whose values are known: more than the steps they go on from where a run is trained again."""
    return np.array([0.0 if trial is None else float(len(trial.curve)) for trial in found.trials])


def outcomes(found: RunCandidates, known: KnownCurves, stops: Array) -> Array:
    """Probabilities (c, q, buckets) of what new candidates, and then paused ones, will have reached at these steps."""
    paused = [trial for trial in found.trials if trial is not None]
    new, asked = len(found.U) - len(paused), np.maximum(stops, 1.0)
    rows = np.array([known.row_of[trial.number] for trial in paused], dtype=np.intp)
    parts = [known.outlook.new(found.X[:new], asked[:new])] if new else []
    parts += [known.outlook.begun(rows, asked[new:])] if paused else []
    return np.concatenate(parts)


def paused_of(history: History, known: KnownCurves) -> list[TrackedTrial]:
    """Paused trainings that the network knows."""
    return [trial for trial in history.of(Status.PAUSED) if trial.number in known.row_of]
