"""`FarthingSearch`: Farthing proposes what Ray Tune evaluates.

    search = FarthingSearch(budget="10m", max_steps=30)
    tune_config = tune.TuneConfig(search_alg=search, scheduler=FarthingScheduler(search), num_samples=-1, ...)

With the scheduler, every result is reported to the study, which lets trials go on, pauses or stops them, and ends the
experiment. Without it, a trial is one evaluation, which is told when it has ended.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

import cloudpickle
from ray.tune.result import DEFAULT_METRIC
from ray.tune.search import Searcher

from farthing import checks
from farthing.adapters.ray.tune_saving import copied, put_back
from farthing.adapters.ray.tune_space import NestedSpace
from farthing.adapters.ray.tune_study import MEASURED, STEP, Cost, TuneStudy
from farthing.budget import Budget
from farthing.errors import InvalidArgument
from farthing.policies import Policy, policy_of
from farthing.runner.failing import MAX_FAILURES
from farthing.runner.temporary import TemporaryFolder
from farthing.study import Study
from farthing.text.plain import warn
from farthing.trial import Config

UNLIMITED = 2**31  # and more samples: Tune writes -1 as the largest integer
MODES = ("min", "max")


class FarthingSearch(Searcher):
    """A searcher for `tune.TuneConfig(search_alg=...)`. Its study is `search.study`, from the first trial on.

    space       where to search, instead of the Tuner's `param_space`: a Space, or anything that `Space.of` reads, in
                dicts as deep as you like. A name such as "optimizer/lr" is a place in them
    metric      what is reported and optimised, if TuneConfig does not say it
    mode        "min" or "max", if TuneConfig does not say it
    budget      a Budget, or text such as "10m", "$5 at $2.5/h" or "100 evaluations"
    policy      a name or an object, as of a Study
    cost        what a trial has cost so far: its seconds of training, or the name of a result or a function of it, in
                the budget's unit
    max_steps   the number of steps of a complete training; None takes it from the Tuner's `stop`, or from the first
                training that ends
    points_to_evaluate  configurations to evaluate first
    storage     a file to keep the study in; without it, it is kept in the checkpoints of the experiment alone
    seed        a whole number that makes proposals repeatable
    max_failures  end the experiment with EveryTrialFailed if this many first trials all fail with one type of error
                and there is no value yet; None never does
    others      further arguments of `ft.Study`: stop_at, known_cost, warm_start, ...
    """

    def __init__(
        self,
        space: Any = None,
        metric: str | None = None,
        mode: str | None = None,
        *,
        budget: Budget | str,
        policy: str | Policy = "auto",
        cost: Cost = MEASURED,
        max_steps: int | None = None,
        points_to_evaluate: Iterable[Mapping[str, Any]] = (),
        storage: str | PathLike[str] | None = None,
        seed: int | None = None,
        max_failures: int | None = MAX_FAILURES,
        **others: Any,
    ) -> None:
        if mode is not None:
            checks.one_of("FarthingSearch: mode", mode, MODES, or_none=True)
        super().__init__()
        self._metric, self._mode = metric, mode  # one of them may come later
        self._budget, self._cost = Budget.of(budget), _checked_cost(cost, Budget.of(budget))
        self._points = _checked_points(points_to_evaluate)
        self._max_failures = checks.optional(checks.whole_number, "max_failures", max_failures, least=1)
        self._options = {**others, "policy": policy_of(policy), "max_steps": max_steps, "seed": seed}
        self._storage = None if storage is None else Path(storage).absolute()
        self._nested = None if space is None else NestedSpace.of(space)
        self._spec: dict[str, Any] = {}  # of the experiment
        self._most: int | None = None  # trials at once
        self._tune_study: TuneStudy | None = None
        self._is_paused: Callable[[str], bool] | None = None  # says the scheduler, if there is one
        self.to_resume: list[str] = []  # ids of trials that the scheduler should let go on
        self.restored = False

    @property
    def study(self) -> Study:
        """The study that decides; its file is open while it is in use."""
        return self.tune_study.study

    @property
    def tune_study(self) -> TuneStudy:
        if self._tune_study is None:
            self._tune_study = self._begun()
        return self._tune_study

    # -- the beginning -----------------------------------------------------------------------------------------------

    def set_search_properties(self, metric: str | None, mode: str | None, config: dict[str, Any], **spec: Any) -> bool:
        """What the Tuner is given. False, which Tune makes an error, if there is a second search space."""
        self.learn(metric, mode, spec)
        found = NestedSpace.of_tune(config)
        if found is None or self._nested is None:
            self._nested = found or self._nested
            return True
        return False

    def learn(self, metric: str | None, mode: str | None, spec: Mapping[str, Any]) -> None:
        """Metric, mode and limits of the experiment. A restored one is told other limits, which are not used."""
        self._metric = _agreed("metric", self._metric, metric)
        self._mode = _agreed("mode", self._mode, mode)
        self._spec = dict(spec)

    def _begun(self) -> TuneStudy:
        if self._nested is None:
            raise InvalidArgument(
                "FarthingSearch: there is nothing to search; give the Tuner a param_space with tune.uniform, "
                "tune.choice and the like, or FarthingSearch(space=...)"
            )
        if self._mode is None:
            raise InvalidArgument("FarthingSearch: mode: expected 'min' or 'max', here or in TuneConfig, got None")
        self._metric, stop = self._metric or DEFAULT_METRIC, self._spec.get("stop")
        options = dict(self._options)
        if options["max_steps"] is None and isinstance(stop, Mapping):
            options["max_steps"] = stop.get(STEP)
        study = Study(
            self._nested.space, _limited(self._budget, self._spec.get("num_samples")), maximize=self._mode == "max",
            storage=self._path, start=[self._nested.flat(point) for point in self._points], **options,
        )  # fmt: skip
        return TuneStudy(study, self._metric, self._cost, self._max_failures)

    @property
    def _path(self) -> Path:
        """The study's file."""
        return self._storage or self._folder / "study.db"

    @property
    def _folder(self) -> Path:
        """A folder that goes with this object."""
        if "_temporary" not in self.__dict__:
            self._temporary = TemporaryFolder()
            weakref.finalize(self, self._temporary.remove)
        return self._temporary.path

    # -- what Tune asks and tells ------------------------------------------------------------------------------------

    def set_max_concurrency(self, max_concurrent: int) -> bool:
        """Tune's `max_concurrent_trials`: paused trials are not counted, as Tune itself would."""
        self._most = max_concurrent
        return True

    def suggest(self, trial_id: str) -> dict[str, Any] | str | None:
        """The config of a new trial; None if one is resumed instead, or if something has to end first."""
        tune_study = self.tune_study
        if tune_study.over:
            return str(self.FINISHED)
        if self.to_resume or (self._most is not None and tune_study.running >= self._most):
            return None
        proposal = tune_study.ask()
        if proposal is None:
            return str(self.FINISHED) if tune_study.over else None
        known = next((known for known, number in tune_study.numbers.items() if number == proposal.trial), None)
        if known is not None and self._is_paused is not None and self._is_paused(known):
            self.to_resume.append(known)
            return None
        tune_study.begin(trial_id, proposal)
        assert self._nested is not None
        return self._nested.nested(proposal.config)

    def on_trial_complete(self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False) -> None:
        if error:
            self.tune_study.fail(trial_id, "the trial failed; Tune has the error")
        elif self._is_paused is None:
            self.tune_study.told(trial_id, result)
        else:
            self.tune_study.complete(trial_id, result)

    def add_evaluated_point(
        self, parameters: dict[str, Any], value: float, error: bool = False, pruned: bool = False,
        intermediate_values: Sequence[float] | None = None,
    ) -> None:  # fmt: skip
        """A known result, which is not charged. Of a pruned trial its intermediate values are needed."""
        study = self.study
        assert self._nested is not None
        config: Config = self._nested.flat(parameters)
        if error:
            study.add(config, failed="it failed elsewhere")
        elif intermediate_values:
            study.add(config, curve=intermediate_values)
        elif pruned:
            warn("FarthingSearch: a pruned trial without intermediate values is left out: it has no final value")
        else:
            study.add(config, value=value)

    # -- saving ------------------------------------------------------------------------------------------------------

    def attach(self, is_paused: Callable[[str], bool]) -> None:
        """A scheduler reports each result from here on, and says whether a trial can be resumed."""
        self._is_paused = is_paused

    def save(self, checkpoint_path: str) -> None:
        """Tune calls it with each checkpoint of the experiment."""
        Path(checkpoint_path).write_bytes(cloudpickle.dumps(self._saved()))

    def restore(self, checkpoint_path: str) -> None:
        """The study goes on as it was saved, or from its own file, which may know more."""
        self._take_back(cloudpickle.loads(Path(checkpoint_path).read_bytes()))
        self.restored = True

    def _saved(self) -> dict[str, Any]:
        begun = self.tune_study
        return {
            "metric": self._metric, "mode": self._mode, "nested": self._nested, "numbers": begun.numbers,
            "to_resume": list(self.to_resume), "file": copied(str(self._path)),
        }  # fmt: skip

    def _take_back(self, saved: Mapping[str, Any]) -> None:
        if self._tune_study is not None:
            self._tune_study.study.close()
            self.__dict__.pop("_temporary", None)
        self._metric, self._mode, self._nested = saved["metric"], saved["mode"], saved["nested"]
        put_back(saved["file"], self._path, self._folder)
        functions = {name: self._options.get(name) for name in ("known_cost", "cost_features")}
        study = Study.resume(self._path, space=saved["nested"].space, policy=self._options["policy"], **functions)
        self._tune_study = TuneStudy(study, saved["metric"], self._cost, self._max_failures, saved["numbers"])
        self.to_resume = list(saved["to_resume"])

    def __getstate__(self) -> dict[str, Any]:
        """A Tuner keeps its arguments, from before the first trial, for `Tuner.restore`."""
        alone = {"_tune_study": None, "_is_paused": None}
        state = {name: value for name, value in self.__dict__.items() if name != "_temporary"}
        return {**state, **alone, "saved": None if self._tune_study is None else self._saved()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        saved = state.pop("saved")
        self.__dict__.update(state)
        if saved is not None:
            self._take_back(saved)


def _checked_cost(cost: Any, budget: Budget) -> Cost:
    if not isinstance(cost, str):
        checks.function("FarthingSearch: cost", cost, of="the name of a result, or a function of a result")
    elif cost == MEASURED and (budget.unit == "joules" or (budget.unit == "usd" and budget.usd_per_hour is None)):
        rate = ", or a rate: '$5 at $2.5/h'" if budget.unit == "usd" else ""
        raise InvalidArgument(
            f"FarthingSearch: cost: the budget is in {budget.unit}, and Tune measures seconds; name the result that "
            f"has the {budget.unit} of a trial so far{rate}"
        )
    return cost  # type: ignore[no-any-return]


def _checked_points(points: Any) -> list[dict[str, Any]]:
    if isinstance(points, str | Mapping) or not isinstance(points, Iterable):
        checks.refuse("FarthingSearch: points_to_evaluate", "a list of configs", points)
    return list(points)


def _limited(budget: Budget, samples: Any) -> Budget:
    """With Tune's number of trials as one more limit."""
    if not isinstance(samples, int) or not 0 < samples < UNLIMITED:
        return budget
    if samples == 1 and budget.evaluations != 1:
        warn("FarthingSearch: num_samples is 1, so there is one trial; with num_samples=-1 the budget decides")
    return replace(budget, evaluations=min(samples, budget.evaluations or samples))


def _agreed(name: str, here: str | None, given: str | None) -> str | None:
    if here is not None and given is not None and here != given:
        raise InvalidArgument(f"FarthingSearch: {name}: it is {here!r} here and {given!r} in TuneConfig; say it once")
    return here or given
