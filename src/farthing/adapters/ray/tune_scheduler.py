"""`FarthingScheduler`: what becomes of Ray Tune's trials after each result, and which paused one goes on."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from ray.tune.experiment import Trial
from ray.tune.result import DEFAULT_METRIC, SHOULD_CHECKPOINT
from ray.tune.schedulers import TrialScheduler
from ray.tune.trainable import FunctionTrainable, Trainable
from ray.tune.utils import flatten_dict

from farthing import checks
from farthing.adapters.ray.tune_search import FarthingSearch
from farthing.errors import InvalidArgument
from farthing.text.plain import warn
from farthing.trial import Decision, Status

COLOURS = re.compile(r"\x1b\[[0-9;]*m")
DECISIONS = {
    Decision.CONTINUE: TrialScheduler.CONTINUE,
    Decision.PAUSE: TrialScheduler.PAUSE,
    Decision.STOP: TrialScheduler.STOP,
}


class FarthingScheduler(TrialScheduler):
    """A scheduler for `tune.TuneConfig(scheduler=...)`, for the same `FarthingSearch` that is its `search_alg`.

    A trial is paused after a step of which there is a checkpoint: one that a function reports, or one that a class with
    `save_checkpoint` can write. When the budget is spent, all trials are stopped.
    """

    _supports_buffered_results = False  # a decision follows each result

    def __init__(self, search: FarthingSearch) -> None:
        super().__init__()
        self.search = checks.instance("FarthingScheduler: search", search, FarthingSearch, of="a FarthingSearch")
        self._trials: dict[str, Trial] = {}
        self._chosen: set[str] = set()  # to be resumed
        self._compared = False  # with what a restored search knows
        search.attach(self._is_paused)

    def set_search_properties(self, metric: str | None, mode: str | None, **spec: Any) -> bool:
        self.search.attach(self._is_paused)
        self.search.learn(metric, mode, spec)
        self._metric = self.search.metric or DEFAULT_METRIC
        return True

    def _is_paused(self, trial_id: str) -> bool:
        """Whether a trial is paused, or about to be: its checkpoint may be being written."""
        trial = self._trials.get(trial_id)
        return trial is not None and not trial.is_finished()

    # -- what Tune tells ---------------------------------------------------------------------------------------------

    def on_trial_add(self, tune_controller: Any, trial: Trial) -> None:
        """A new trial, one of a restored experiment, or one that failed and runs again."""
        known = self.search.tune_study.trial(trial.trial_id)
        if known is None and not self.search.restored:
            raise InvalidArgument(
                "FarthingScheduler: a trial was not proposed by its FarthingSearch; give TuneConfig both of them"
            )
        again = trial.trial_id in self._trials
        self._trials[trial.trial_id] = trial
        if again:
            self.search.tune_study.retry(trial.trial_id)
        elif not trial.is_finished():
            self._set_status(trial, None if known is None else known.status)
        elif trial.status == Trial.ERROR:
            self.search.tune_study.fail(trial.trial_id, _error_of(trial))
        elif known is not None:
            self.search.tune_study.complete(trial.trial_id, flatten_dict(trial.last_result))

    def _set_status(self, trial: Trial, known: Status | None) -> None:
        """A restored experiment lets all trials run that had not ended, but the study may know better."""
        if known is Status.PAUSED:
            trial.set_status(Trial.PAUSED)
        elif known is not Status.RUNNING:
            if known is None:
                warn(f"FarthingScheduler: trial {trial.trial_id} is not in the study's checkpoint, and is not resumed")
            trial.set_status(Trial.TERMINATED)
        elif trial.trial_id in self.search.to_resume:
            trial.set_status(Trial.PAUSED)  # it was about to be resumed, and will be

    def on_trial_result(self, tune_controller: Any, trial: Trial, result: dict[str, Any]) -> str:
        decision: str = DECISIONS[self.search.tune_study.report(trial.trial_id, result, _can_pause(trial, result))]
        return decision

    def on_trial_complete(self, tune_controller: Any, trial: Trial, result: dict[str, Any]) -> None:
        """The search is told."""

    def on_trial_remove(self, tune_controller: Any, trial: Trial) -> None:
        """The search is told."""

    def on_trial_error(self, tune_controller: Any, trial: Trial) -> None:
        if not trial.should_recover():
            self.search.tune_study.fail(trial.trial_id, _error_of(trial))

    # -- which trial is next -----------------------------------------------------------------------------------------

    def choose_trial_to_run(self, tune_controller: Any) -> Trial | None:
        """Called several times a second: also the place where the end of the budget is noticed."""
        search, trials = self.search, tune_controller.get_trials()
        if not self._compared:
            self._compared = True
            if search.restored:
                search.tune_study.keep({trial.trial_id for trial in trials})
        if search.tune_study.over:
            self._stop_all(tune_controller)
            return None
        live = list(tune_controller.get_live_trials())
        for trial in live:
            if trial.status == Trial.RUNNING:
                search.tune_study.trains(trial.trial_id)
        return self._resumed() or next((trial for trial in trials if trial.status == Trial.PENDING), None)

    def _resumed(self) -> Trial | None:
        """The trial that the study resumes next, once it is paused in Tune too."""
        for trial_id in list(self.search.to_resume):
            trial = self._trials[trial_id]
            if trial.status == Trial.PAUSED:
                self._chosen.add(trial_id)
                return trial
            if trial.is_finished():  # its checkpoint could not be written
                self.search.tune_study.abandon(trial_id)
            elif trial_id not in self._chosen:  # its checkpoint is being written
                continue
            self._chosen.discard(trial_id)
            self.search.to_resume.remove(trial_id)
        return None

    def _stop_all(self, tune_controller: Any) -> None:
        live = [trial for trial in tune_controller.get_live_trials() if not trial.is_finished()]
        for trial in live:
            self.search.tune_study.cut(trial.trial_id)
            if not trial.run_metadata.last_result:
                trial.update_last_result(
                    {"config": trial.config, "done": True}
                )  # Tune would wait until its first step has ended
            tune_controller.stop_trial(trial)
        if live:
            self.search.tune_study.close_account()

    def debug_string(self) -> str:
        return f"Farthing: {self.search.study!r}"


def _can_pause(trial: Trial, result: dict[str, Any]) -> bool:
    """Whether a trial can go on from the step that it has just reported."""
    trainable = trial.get_trainable_cls()
    if trainable is None or issubclass(trainable, FunctionTrainable):
        return bool(result.get(SHOULD_CHECKPOINT))
    return trainable.save_checkpoint is not Trainable.save_checkpoint


def _error_of(trial: Trial) -> str:
    """The last error of a trial, as Tune has written it below those before, without colours."""
    try:
        text = Path(trial.error_file).read_text(encoding="utf-8", errors="replace")
    except (TypeError, OSError):
        return "the trial failed; Tune has no text of the error"
    last = text.rpartition("Failure # ")[2].partition("\n")[2] or text
    return COLOURS.sub("", last).strip() or "the trial failed"
