"""FarthingSampler reads all it knows from Optuna's storage, proposes what Farthing would, and keeps the budget."""

import math
import pickle
import socket
import warnings
from contextlib import contextmanager, nullcontext
from datetime import datetime, timedelta

import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.samplers import PartialFixedSampler
from optuna.storages import JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import TrialState, create_trial

import farthing as ft
from farthing.adapters.optuna import FarthingSampler
from farthing.adapters.optuna.proposed import Proposed
from farthing.errors import InvalidArgument, InvalidBudget

optuna.logging.set_verbosity(optuna.logging.ERROR)

DISTRIBUTIONS = {
    "booster": CategoricalDistribution(["dart", "gbtree", None]),
    "depth": IntDistribution(1, 12),
    "rate": FloatDistribution(1e-4, 1.0, log=True),
    "share": FloatDistribution(0.1, 1.0, step=0.1),
}
START = [
    {"booster": "dart", "depth": 3, "rate": 0.01, "share": 0.5},
    {"booster": None, "depth": 9, "rate": 0.5, "share": 1.0},
]


def value_of(params):
    return abs(math.log10(params["rate"]) + 1) + abs(params["depth"] - 5) / 4 + (params["booster"] == "dart") * 0.2


def cost_of(params):
    return float(params["depth"])


def objective(trial):
    params = {
        "rate": trial.suggest_float("rate", 1e-4, 1.0, log=True),
        "depth": trial.suggest_int("depth", 1, 12),
        "booster": trial.suggest_categorical("booster", ["dart", "gbtree", None]),
        "share": trial.suggest_float("share", 0.1, 1.0, step=0.1),
    }
    trial.set_user_attr("gpu_hours", cost_of(params))
    return value_of(params)


def sampler(budget=40.0, **options):
    options = {"cost": "gpu_hours", "seed": 7, **options}
    return FarthingSampler(ft.Budget(cost=budget) if isinstance(budget, float) else budget, **options)


def optimized(budget=40.0, storage=None, direction="minimize", **options):
    study = optuna.create_study(storage=storage, direction=direction, sampler=sampler(budget, **options))
    sign = 1 if direction == "minimize" else -1
    study.optimize(lambda trial: sign * objective(trial))
    return study


def params_of(study):
    return [trial.params for trial in study.trials]


# -- the same as Farthing ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", ["auto", "cei", "sobol"])
def test_it_proposes_what_farthing_proposes(policy):
    study = optuna.create_study(sampler=sampler(40.0, policy=policy))
    for params in START:
        study.enqueue_trial(params)
    study.optimize(objective)
    native = ft.Study(DISTRIBUTIONS, ft.Budget(cost=40.0), policy=policy, seed=7, start=START)
    while native.ended is None:
        proposal = native.ask()
        native.tell(proposal, value=value_of(proposal.config), cost=cost_of(proposal.config))
    assert params_of(study) == [trial.config for trial in native.trials]
    assert study.sampler.ledger(study).spent == native.ledger.spent
    told = [Proposed.of(trial) for trial in study.trials[len(START) :]]
    assert [(p.cost, p.reason) for p in told] == [(t.predicted_cost, t.reason) for t in native.trials[len(START) :]]


@contextmanager
def over_a_network(storage):
    """Optuna's storage behind a server of its own, on this machine."""
    pytest.importorskip("grpc", reason="Optuna's storage over a network needs grpcio")
    from optuna.storages._grpc.server import make_server

    with socket.create_server(("localhost", 0)) as free:
        port = free.getsockname()[1]
    server = make_server(storage, "localhost", port)
    server.start()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        proxy = optuna.storages.GrpcStorageProxy(host="localhost", port=port)
    try:
        proxy.wait_server_ready(timeout=60)
        yield proxy
    finally:
        proxy.close()
        server.stop(5).wait()


@pytest.mark.parametrize("kind", ["sqlite", "journal", "network"])
def test_the_same_study_in_any_storage_is_the_same(kind, tmp_path):
    here = RDBStorage(f"sqlite:///{tmp_path}/s.db")
    if kind == "journal":
        here = JournalStorage(JournalFileBackend(f"{tmp_path}/s.journal"))
    with over_a_network(here) if kind == "network" else nullcontext(here) as storage:
        assert params_of(optimized(20.0, storage=storage)) == params_of(optimized(20.0))


def test_a_new_sampler_goes_on_as_the_old_one_would_have(tmp_path):
    storage = f"sqlite:///{tmp_path}/s.db"
    whole = params_of(optimized())
    study = optuna.create_study(storage=storage, study_name="s", sampler=sampler())
    study.optimize(objective, n_trials=5)
    again = optuna.load_study(storage=storage, study_name="s", sampler=sampler())
    again.optimize(objective)
    assert params_of(again) == whole


def test_a_pickled_sampler_goes_on_too():
    study = optuna.create_study(sampler=sampler())
    study.optimize(objective, n_trials=5)
    study.sampler = pickle.loads(pickle.dumps(study.sampler))
    study.optimize(objective)
    assert params_of(study) == params_of(optimized())


def test_one_sampler_for_two_studies_tells_them_apart():
    shared = sampler()
    first = optuna.create_study(sampler=shared)
    first.optimize(objective)
    second = optuna.create_study(sampler=shared)
    second.optimize(objective)
    assert params_of(first) == params_of(second) == params_of(optimized())
    first.add_trial(finished(0.0, user_attrs={"gpu_hours": 0.0}))
    assert shared.ledger(first).spent == shared.ledger(second).spent > 0.0
    assert shared.ledger(optuna.create_study()).spent == 0.0


def test_other_seeds_give_other_studies_and_no_seed_is_drawn():
    assert params_of(optimized(seed=8)) != params_of(optimized())
    assert params_of(optimized(seed=None)) != params_of(optimized(seed=None))


def test_maximising_is_minimising_the_negative():
    assert params_of(optimized(direction="maximize")) == params_of(optimized())


# -- the budget --------------------------------------------------------------------------------------------------------


def test_optimize_ends_with_the_trial_that_reaches_the_budget():
    study = optimized(20.0)
    costs = [trial.user_attrs["gpu_hours"] for trial in study.trials]
    assert sum(costs) >= 20.0 > sum(costs[:-1])
    assert study.sampler.exhausted
    ledger = study.sampler.ledger(study)
    assert (ledger.spent, ledger.unit, ledger.total("evaluations")) == (sum(costs), "cost", len(costs))


@pytest.mark.parametrize("jobs", [1, 2, 3])
def test_a_number_of_evaluations_is_kept_exactly(jobs):
    study = optuna.create_study(sampler=FarthingSampler("14 evaluations", seed=0))
    study.optimize(objective, n_jobs=jobs)
    evaluated = [trial for trial in study.trials if trial.params]
    assert [trial.state for trial in evaluated] == [TrialState.COMPLETE] * 14
    assert len({tuple(sorted(trial.params.items(), key=str)) for trial in evaluated}) == 14
    assert study.sampler.ledger(study).total("evaluations") == 14


def test_a_study_whose_budget_is_spent_runs_nothing_more():
    study = optimized(20.0)
    ran = len(study.trials)
    study.optimize(objective, n_trials=10)
    assert len(study.trials) == ran + 1
    assert (study.trials[-1].state, study.trials[-1].params) == (TrialState.PRUNED, {})
    study.sampler = sampler(40.0)
    study.optimize(objective)
    assert sum(trial.user_attrs.get("gpu_hours", 0.0) for trial in study.trials) >= 40.0
    assert all(set(Proposed.of(trial).params) == set(DISTRIBUTIONS) for trial in study.trials[ran + 1 :])


def test_in_a_loop_of_ask_and_tell_exhausted_says_when_to_end():
    mine = sampler(30.0)
    study, spent = optuna.create_study(sampler=mine), []
    while not mine.exhausted:
        trial = study.ask(DISTRIBUTIONS)
        trial.set_user_attr("gpu_hours", cost_of(trial.params))
        spent.append(cost_of(trial.params))
        study.tell(trial, value_of(trial.params))
    assert sum(spent) >= 30.0 > sum(spent[:-1])
    assert study.ask(DISTRIBUTIONS).params  # nothing is refused: Optuna has made the trial already


def finished(seconds, state=TrialState.COMPLETE, **more):
    """A trial that took so many seconds."""
    began = datetime(2026, 1, 1)
    params = more.pop("params", {"x": 0.1 * seconds % 1})
    trial = create_trial(
        state=state, params=params, distributions={"x": FloatDistribution(0, 1)},
        value=more.pop("value", 1.0) if state is TrialState.COMPLETE else None, **more,
    )  # fmt: skip
    trial.datetime_start, trial.datetime_complete = began, began + timedelta(seconds=seconds)
    return trial


def test_seconds_are_those_of_trials_and_what_the_sampler_took_is_the_optimisers():
    trials = [finished(2.0), finished(3.0, TrialState.FAIL), finished(4.0, TrialState.PRUNED)]
    trials[0].system_attrs["farthing:proposed"] = vars(Proposed(seconds=0.5))
    study = optuna.create_study()
    study.add_trials(trials)
    ledger = FarthingSampler("20s").ledger(study)
    assert ledger.accounts["evaluation"]["seconds"] == 1.5 + 4.0
    assert ledger.accounts["failed"]["seconds"] == 3.0
    assert ledger.accounts["optimiser"]["seconds"] == 0.5
    assert ledger.remaining == 20.0 - 9.0
    assert FarthingSampler("20s of compute").ledger(study).remaining == 20.0 - 8.5
    assert FarthingSampler("$1 at $360/h").ledger(study).spent == pytest.approx(0.9)
    assert FarthingSampler("9 evaluations").ledger(study).remaining == math.inf
    assert FarthingSampler("9 evaluations").ledger(study).left("evaluations") == 6


def test_a_known_result_that_was_added_costs_nothing():
    study = optuna.create_study()
    study.add_trial(finished(0.0))
    assert FarthingSampler("9 evaluations").ledger(study).left("evaluations") == 9


def test_seconds_end_a_study_too():
    def slow(trial):
        end = datetime.now() + timedelta(seconds=0.05)
        x = trial.suggest_float("x", 0, 1)
        while datetime.now() < end:
            pass
        return x

    mine = FarthingSampler("0.4s", seed=0)
    study = optuna.create_study(sampler=mine)
    study.optimize(slow)
    assert mine.exhausted
    assert (
        0.4
        <= mine.ledger(study).total("seconds")
        == pytest.approx(sum(trial.duration.total_seconds() for trial in study.trials))
    )


def test_cost_may_be_a_function_of_the_trial():
    by_function = optimized(cost=lambda trial: float(trial.params["depth"]) if trial.params else None)
    assert params_of(by_function) == params_of(optimized())


@pytest.mark.parametrize(
    ("attribute", "message"),
    [(None, "trial 0 is complete and has no cost: user attribute 'gpu_hours' is missing"), (-1, "at least 0, got -1"),
     ("much", "expected a finite number of at least 0, got 'much'")],
)  # fmt: skip
def test_a_complete_trial_without_a_cost_is_an_error_and_is_kept(attribute, message):
    def forgetful(trial):
        if attribute is not None:
            trial.set_user_attr("gpu_hours", attribute)
        return trial.suggest_float("x", 0, 1)

    study = optuna.create_study(sampler=sampler())
    with pytest.raises(InvalidArgument, match=message):
        study.optimize(forgetful)
    assert study.trials[0].state is TrialState.COMPLETE


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"budget": "$5"}, InvalidBudget, r"\$5 at \$2.5/h"),
        ({"budget": ft.Budget(joules=5)}, InvalidBudget, "limits joules, which no clock measures"),
        ({"budget": "5 apples"}, InvalidBudget, "5 apples"),
        ({"budget": "5s", "cost": 3}, InvalidArgument, "cost: expected the name of a user attribute"),
        ({"budget": "5s", "policy": "thaw"}, InvalidArgument, "FarthingPruner"),
        ({"budget": "5s", "policy": "best"}, InvalidArgument, "carbo"),
        ({"budget": "5s", "seed": -1}, InvalidArgument, "seed: expected a whole number"),
    ],
)
def test_arguments_that_make_no_sense_are_refused(options, error, message):
    with pytest.raises(error, match=message):
        FarthingSampler(**options)


# -- what trials are ---------------------------------------------------------------------------------------------------


def test_running_trials_are_waited_for_and_not_proposed_again():
    study = optuna.create_study(sampler=sampler(1000.0))
    study.optimize(objective, n_trials=6)
    asked = [study.ask() for _ in range(3)]
    seen = []
    for trial in asked:  # none has ended, and each has asked for its first parameter only
        trial.suggest_float("rate", 1e-4, 1.0, log=True)
        seen.append(trial.relative_params)
    assert len({tuple(sorted(params.items(), key=str)) for params in seen}) == 3
    assert study.sampler.ledger(study).committed == pytest.approx(
        sum(Proposed.of(trial).cost for trial in study.trials[-3:])
    )


def test_an_enqueued_trial_is_taken_before_it_runs():
    """The point that Farthing would propose next is not proposed while it waits."""
    whole = optimized()
    study = optuna.create_study(sampler=sampler())
    study.optimize(objective, n_trials=6)
    asked = study.ask()
    study.enqueue_trial(whole.trials[6].params)
    proposed = study.sampler.sample_relative(study, study._storage.get_trial(asked._trial_id), dict(DISTRIBUTIONS))
    assert proposed != whole.trials[6].params


def test_failed_trials_teach_what_they_teach_farthing():
    def failing(trial):
        if trial.suggest_float("x", 0, 1) < 0.3:
            raise RuntimeError("out of memory")
        return trial.params["x"]

    study = optuna.create_study(sampler=FarthingSampler("12 evaluations", seed=0))
    study.enqueue_trial({"x": 0.2})
    study.optimize(failing, catch=(RuntimeError,))
    native = ft.Study({"x": (0.0, 1.0)}, "12 evaluations", seed=0, start=[{"x": 0.2}])
    while native.ended is None:
        proposal = native.ask()
        x = proposal.config["x"]
        native.tell(proposal, **({"failed": "out of memory"} if x < 0.3 else {"value": x}))
    assert params_of(study) == [trial.config for trial in native.trials]
    assert 2 < sum(trial.state is TrialState.FAIL for trial in study.trials) < 9


def test_a_pruned_trial_counts_with_its_best_report_and_is_no_cheap_one():
    """After many pruned trials that cost a tenth, the predicted cost is that of a complete one."""

    def trained(trial):
        x = trial.suggest_float("x", 0, 1)
        steps = 1 if x > 0.5 else 10
        for step in range(steps):
            trial.report(x + 1 / (1 + step), step)
        trial.set_user_attr("gpu_hours", 1.0 * steps)
        if steps < 10:
            raise optuna.TrialPruned()
        return x + 0.1

    study = optuna.create_study(sampler=sampler(100.0))
    study.optimize(trained)
    pruned = [trial for trial in study.trials if trial.state is TrialState.PRUNED]
    assert 1 <= len(pruned) <= len(study.trials) / 2  # what was reported is known: the region is left
    assert all(8.0 < Proposed.of(trial).cost < 12.0 for trial in study.trials[6:])
    assert study.sampler.ledger(study).spent == sum(trial.user_attrs["gpu_hours"] for trial in study.trials)


def test_infinite_values_are_failures():
    study = optuna.create_study(sampler=FarthingSampler("12 evaluations", seed=0))
    study.optimize(lambda trial: math.inf if (x := trial.suggest_float("x", 0, 1)) > 0.5 else x)
    assert len(study.trials) == 12
    assert study.best_value < 0.1


# -- spaces that come into being ---------------------------------------------------------------------------------------


def conditional(trial):
    kind = trial.suggest_categorical("kind", ["linear", "deep"])
    value = trial.suggest_float("rate", 0, 1)
    if kind == "deep":
        layers = trial.suggest_int("layers", 1, 3)
        value += sum(trial.suggest_float(f"width{i}", 0, 1) for i in range(layers)) - layers
    return value


def test_conditional_parameters_are_proposed_with_the_others():
    study = optuna.create_study(sampler=FarthingSampler("40 evaluations", seed=0))
    study.optimize(conditional)
    late = [trial for trial in study.trials[20:] if trial.params["kind"] == "deep"]
    assert len(late) > 10
    assert all(set(Proposed.of(trial).params) == set(trial.params) for trial in late)
    assert study.best_value < -1.0  # of at least -2


def test_a_range_that_was_changed_is_the_range_and_one_that_always_changes_is_drawn():
    study = optuna.create_study(sampler=FarthingSampler("60 evaluations", seed=0))
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=6)
    study.optimize(lambda trial: trial.suggest_float("x", -1, 1), n_trials=10)
    assert study.best_value < -0.9
    assert all("x" in Proposed.of(trial).params for trial in study.trials[10:])
    study = optuna.create_study(sampler=FarthingSampler("20 evaluations", seed=0))
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1) + trial.suggest_float("y", 0, 1 + trial.number))
    assert not any("y" in Proposed.of(trial).params for trial in study.trials[3:])
    assert all("x" in Proposed.of(trial).params for trial in study.trials[1:])


def test_fixed_parameters_stay_fixed():
    study = optuna.create_study(sampler=sampler(1000.0))
    study.optimize(objective, n_trials=4)
    with pytest.warns(optuna.exceptions.ExperimentalWarning):
        study.sampler = PartialFixedSampler({"depth": 4}, study.sampler)
    study.optimize(objective, n_trials=4)
    assert all(trial.params["depth"] == 4 for trial in study.trials[4:])
    study.enqueue_trial({"rate": 0.25})
    study.optimize(objective, n_trials=1)
    assert study.trials[-1].params["rate"] == 0.25


def test_under_hyperband_the_budget_counts_the_trials_of_all_brackets():
    def trained(trial):
        x = trial.suggest_float("x", 0, 1)
        for step in range(9):
            trial.report(x + 1 / (1 + step), step)
            if trial.should_prune():
                raise optuna.TrialPruned()
        return x

    pruner = optuna.pruners.HyperbandPruner(min_resource=1, max_resource=9)
    study = optuna.create_study(sampler=FarthingSampler("25 evaluations", seed=0), pruner=pruner)
    study.optimize(trained)
    assert len(study.trials) == 25
    assert study.best_value < 0.1


def test_several_objectives_are_refused_in_words():
    study = optuna.create_study(directions=["minimize", "maximize"], sampler=FarthingSampler("5 evaluations"))
    with pytest.raises(InvalidArgument, match="one objective, got one with several"):
        study.optimize(lambda trial: (trial.suggest_float("x", 0, 1), 1.0))


def test_options_that_repeat_each_other_and_small_steps_are_no_obstacle():
    def odd(trial):
        kind = trial.suggest_categorical("kind", ["a", "a", True, 1, None, 1.5])
        return trial.suggest_float("x", 0, 1, step=1e-5) + (kind is None)

    study = optuna.create_study(sampler=FarthingSampler("25 evaluations", seed=0))
    study.optimize(odd)
    assert study.best_value < 0.01
    assert all(round(trial.params["x"] * 1e5, 6).is_integer() for trial in study.trials)
