"""The objective that the study of a search evaluates: parameters by their plain names, in the caller's scikit-learn.

A worker process begins with scikit-learn's own settings, so those of the caller (metadata routing, the type of what
transformers return, ...) go along. They hold while the objective works, and not between the steps of a training, when
this thread does other things.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import Any

import sklearn

from farthing.adapters.sklearn.search_space import SearchSpace
from farthing.trial import Config


@dataclass(frozen=True)
class SearchObjective:
    """A function of the estimator's parameters, as an objective of the study."""

    function: Callable[[Config], Any]  # returns a report, or yields one after every step
    searched: SearchSpace
    settings: Mapping[str, Any] = field(default_factory=sklearn.get_config)

    def __call__(self, config: Config) -> Any:
        with sklearn.config_context(**self.settings):
            returned = self.function(self.searched.params(config))
        return self._steps(returned) if isinstance(returned, Generator) else returned

    def _steps(self, steps: Generator[Any, None, None]) -> Generator[Any, None, None]:
        while True:
            with sklearn.config_context(**self.settings):
                try:
                    report = next(steps)
                except StopIteration:
                    return
            try:
                yield report
            except GeneratorExit:  # paused: the training writes its checkpoint
                with sklearn.config_context(**self.settings):
                    steps.close()
                raise
