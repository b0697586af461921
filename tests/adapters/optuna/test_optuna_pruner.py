"""FarthingPruner ends trials that will not win, and never the one that does."""

import math

import numpy as np
import optuna
import pytest
from optuna.trial import TrialState, create_trial

from farthing.adapters.optuna import FarthingPruner, FarthingSampler
from farthing.errors import InvalidArgument

optuna.logging.set_verbosity(optuna.logging.ERROR)

STEPS = 20
ENDS = [0.30, 0.25, 0.45, 0.20, 0.60, 0.35]  # of complete trials; the best is 0.20


def curve(end, steps=STEPS, every=1):
    """Falls from 1 towards its end."""
    return {step * every: end + (1 - end) * 0.8**step for step in range(steps)}


def study_of(*curves, direction="minimize", states=None):
    """A study of complete trials with these curves."""
    study = optuna.create_study(direction=direction)
    for number, reports in enumerate(curves):
        state = TrialState.COMPLETE if states is None else states[number]
        study.add_trial(
            create_trial(
                state=state, intermediate_values=reports,
                value=None if state is TrialState.FAIL else list(reports.values())[-1],
            )
        )  # fmt: skip
    return study


def pruned_at(study, reports, pruner=None):
    """The step at which a trial is pruned that reports this, None if it comes to its end."""
    study.pruner = FarthingPruner() if pruner is None else pruner
    trial = study.ask()
    for step, value in reports.items():
        trial.report(value, step)
        if trial.should_prune():
            return step
    return None


def known():
    return study_of(*map(curve, ENDS))


def test_a_hopeless_trial_is_pruned_early():
    assert pruned_at(known(), curve(0.9)) in range(1, 6)


@pytest.mark.parametrize("end", [0.19, 0.1, -3.0])
def test_a_trial_that_becomes_the_best_is_not_pruned(end):
    assert pruned_at(known(), curve(end)) is None


def test_a_trial_that_is_the_best_so_far_is_never_pruned_however_it_goes_on():
    reports = {0: 0.9, 1: 0.1, **dict.fromkeys(range(2, STEPS), 5.0)}
    assert pruned_at(known(), reports) is None


def test_maximising_is_the_mirror_image():
    mirrored = study_of(*({s: -v for s, v in curve(end).items()} for end in ENDS), direction="maximize")
    for end in (0.9, 0.5, 0.19):
        reports = {step: -value for step, value in curve(end).items()}
        assert pruned_at(mirrored, reports) == pruned_at(known(), curve(end))


def test_the_less_hope_there_must_be_the_later_a_trial_ends():
    at = [pruned_at(known(), curve(0.5), FarthingPruner(chance=chance)) for chance in (0.5, 0.05, 0.0)]
    assert at[0] < at[1]
    assert at[2] is None


def test_too_few_complete_trials_prune_nothing():
    few = study_of(*map(curve, ENDS[:4]))
    assert pruned_at(few, curve(0.9)) is None
    assert pruned_at(few, curve(0.9), FarthingPruner(n_startup_trials=4)) is not None
    states = [TrialState.COMPLETE] * 4 + [TrialState.PRUNED, TrialState.FAIL]
    assert pruned_at(study_of(*map(curve, ENDS), states=states), curve(0.9)) is None
    assert pruned_at(optuna.create_study(), curve(0.9), FarthingPruner(n_startup_trials=0)) is None


def test_warm_up_and_interval_are_kept():
    assert pruned_at(known(), curve(0.9), FarthingPruner(n_warmup_steps=10)) == 10
    assert pruned_at(known(), curve(0.9), FarthingPruner(n_warmup_steps=6, interval_steps=7)) == 6
    assert pruned_at(known(), curve(0.55), FarthingPruner(n_warmup_steps=1, interval_steps=7)) in (1, 8, 15)
    sparse = {step: value for step, value in curve(0.9).items() if step % 4 == 3}
    assert pruned_at(known(), sparse, FarthingPruner(n_warmup_steps=5, interval_steps=5)) == 7


def test_nan_and_infinities_say_nothing_and_nothing_else_is_hopeless():
    assert pruned_at(known(), {0: math.nan}) == 0
    assert pruned_at(known(), {0: math.inf, 1: math.nan}) == 0
    holes = {step: math.nan if step % 3 == 0 and step else value for step, value in curve(0.1).items()}
    assert pruned_at(known(), holes) is None
    stands_still = {step: value if step < 4 else math.nan for step, value in curve(0.1).items()}
    assert pruned_at(known(), stands_still) in range(5, STEPS)
    diverged = study_of(*map(curve, ENDS), {0: math.nan, 1: math.inf, 2: 1.0}, {0: math.inf})
    assert pruned_at(diverged, curve(0.9)) is not None
    assert pruned_at(diverged, curve(0.1)) is None


def test_steps_may_be_sparse_shuffled_and_different_in_each_trial():
    rng = np.random.default_rng(0)

    def scattered(end, every):
        steps = rng.permutation(np.arange(0, 2_000, every))
        return {int(step): end + (1 - end) * 0.8 ** (step / 100) for step in steps}

    study = study_of(*(scattered(end, every) for end, every in zip(ENDS, (100, 50, 7, 130, 100, 90), strict=True)))
    in_order = dict(sorted(scattered(0.9, 110).items()))
    assert pruned_at(study, in_order) is not None
    assert pruned_at(study, dict(sorted(scattered(0.1, 110).items()))) is None


def test_a_trial_at_the_end_of_the_longest_is_not_pruned():
    assert pruned_at(known(), {STEPS - 1: 0.9}) is None
    assert pruned_at(known(), {STEPS + 5: 0.9}) is None


def test_equal_curves_are_no_obstacle():
    flat = dict.fromkeys(range(STEPS), 1.0)
    assert pruned_at(study_of(*[flat] * 6), flat) in (None, *range(STEPS))
    assert pruned_at(study_of(*[flat] * 6), dict.fromkeys(range(STEPS), 1e300)) is not None


def test_trials_without_reports_are_left_out():
    study = study_of(*map(curve, ENDS))
    study.add_trial(create_trial(value=0.0))
    assert pruned_at(study, curve(0.9)) is not None


@pytest.mark.parametrize(
    "options",
    [{"chance": 1.5}, {"chance": "a"}, {"n_startup_trials": -1}, {"n_warmup_steps": 0.5}, {"interval_steps": 0}],
)
def test_options_that_make_no_sense_are_refused(options):
    with pytest.raises(InvalidArgument, match=next(iter(options))):
        FarthingPruner(**options)


def test_with_the_sampler_a_study_trains_fewer_steps_and_finds_as_good_an_end():
    """Both know the trials that the pruner ended."""

    def trained(trial):
        rate, kind = trial.suggest_float("rate", 1e-3, 1, log=True), trial.suggest_categorical("kind", ["a", "b"])
        end = abs(math.log10(rate) + 2) / 3 + 0.2 * (kind == "a")
        for step, value in curve(end).items():
            trial.report(value, step)
            if trial.should_prune():
                raise optuna.TrialPruned()
        return value

    def run(pruner):
        study = optuna.create_study(sampler=FarthingSampler("16 evaluations", seed=0), pruner=pruner)
        study.optimize(trained)
        return study.best_value, sum(len(trial.intermediate_values) for trial in study.trials)

    best, steps = run(FarthingPruner())
    best_of_all, all_steps = run(optuna.pruners.NopPruner())
    assert all_steps == 16 * STEPS
    assert steps < 0.75 * all_steps
    assert best < best_of_all + 0.02
