"""Estimators that take their time, or fail, and a policy that pauses; importable by worker processes."""

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression

import farthing as ft
from farthing.policies import Sobol


class Slow(ClassifierMixin, BaseEstimator):
    """A logistic regression that takes some seconds, and notes every fit in a file."""

    def __init__(self, C=1.0, seconds=0.1, notes=None):
        self.C = C
        self.seconds = seconds
        self.notes = notes

    def fit(self, X, y):
        if self.notes is not None:
            with Path(self.notes).open("a") as file:
                file.write(f"{self.C}\n")
        end = time.perf_counter() + self.seconds
        while time.perf_counter() < end:
            time.sleep(0.005)
        self.model_ = LogisticRegression(C=self.C, max_iter=1000).fit(X, y)
        self.classes_ = self.model_.classes_
        return self

    def predict(self, X):
        return self.model_.predict(X)


class Greedy(ClassifierMixin, BaseEstimator):
    """Holds some memory for a minute, if it is asked to."""

    def __init__(self, bytes=0):
        self.bytes = bytes

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        held = b"x" * self.bytes
        if held:
            time.sleep(60)
        return self

    def predict(self, X):
        return np.zeros(len(X), dtype=int)


class Refusal(Exception):
    """With more than a message."""

    def __init__(self, why, number):
        super().__init__(why, number)
        self.number = number


class Picky(ClassifierMixin, BaseEstimator):
    """Fails above a limit: by an error, or by the end of its process."""

    def __init__(self, C=1.0, limit=1.0, dies=False, first=None):
        self.C = C
        self.limit = limit
        self.dies = dies
        self.first = first

    def fit(self, X, y):
        if self.limit < self.C and (self.first is None or tuple(X[0]) == self.first):
            if self.dies:
                os.kill(os.getpid(), signal.SIGKILL)
            raise Refusal("C is too large", self.C)
        self.model_ = LogisticRegression(C=self.C, max_iter=1000).fit(X, y)
        self.classes_ = self.model_.classes_
        return self

    def predict(self, X):
        return self.model_.predict(X)


@dataclass(frozen=True)
class Restless:
    """Pauses after every step, and goes on with what rests."""

    name: ClassVar[str] = "restless"

    def propose(self, space, history, ledger, n, rng):
        resting = [trial for trial in history.trials if trial.status is ft.Status.PAUSED]
        if len(resting) < 2 and len(history.trials) < 2:
            return Sobol().propose(space, history, ledger, 1, rng)
        return [ft.Proposal(trial.number, trial.config) for trial in resting[:1]]

    def decide(self, space, history, ledger, trial, rng):
        return ft.Decision.PAUSE
