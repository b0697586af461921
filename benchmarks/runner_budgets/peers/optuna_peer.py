"""Optuna's RandomSampler with a timeout, as a child process of benchmarks/runner_budgets.

python -m benchmarks.runner_budgets.peers.optuna_peer BUDGET TRIAL_SECONDS STEPS
"""

from __future__ import annotations

import time

from benchmarks.runner_budgets.peers.task import Given, Ran, serve

BEGAN = time.perf_counter()

import optuna  # noqa: E402

IMPORTED = time.perf_counter()

GIVEN = Given.read()


def plain(trial: optuna.Trial) -> float:
    return GIVEN.value(trial.suggest_float("x", -5.0, 5.0))


def step_by_step(trial: optuna.Trial) -> float:
    """As Optuna's guide to pruning has it, so that the default pruner may end a trial between two steps."""
    value = float("inf")
    for step, value in enumerate(GIVEN.values(trial.suggest_float("x", -5.0, 5.0)), 1):
        trial.report(value, step)
        if trial.should_prune():
            raise optuna.TrialPruned
    return value


def study() -> Ran:
    made = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    made.optimize(step_by_step if GIVEN.steps else plain, timeout=GIVEN.budget)
    complete = sum(trial.state is optuna.trial.TrialState.COMPLETE for trial in made.trials)
    return Ran(complete, complete > 0)


if __name__ == "__main__":
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    serve(study, {"optuna": optuna.__version__}, IMPORTED - BEGAN)
